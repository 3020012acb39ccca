"""Streamed inference across processes: stream.py BIN_DIR [--quick]; prints JSON lines.

The CartPole loop of the compatibility layout (BIN_DIR/tetrion-stream, kernel and host on a core
each): steps a second and round trips. Then whole systems of BIN_DIR/tetrion-up with --inference
streamed and local in turns, everything else as the environment's preset has it: environment steps a
second of either, and their ratio.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "services"))
from system import START_TIMEOUT_S, spread, steady_rates  # noqa: E402

ENVS = ("cartpole", "tetris-placement")
STOP_TIMEOUT_S = 40


def print_figure(what, unit, ours, target=None, rival=None, note=None):
    """One JSON line; `rival` is (name, values), its windows the neighbours of ours."""
    line = {"what": what, "unit": unit, "ours": spread(ours), "rival": None, "ratio": None,
            "target": target}
    if rival:
        name, values = rival
        line["rival"] = {"name": name, **spread(values)}
        line["ratio"] = spread([a / b for a, b in zip(ours, values)])
    print(json.dumps({**line, "note": note} if note else line), flush=True)


def pinned(core, command):
    """The command on one core, where there are two."""
    cores = sorted(os.sched_getaffinity(0))
    return ["taskset", "-c", str(cores[core])] + command if len(cores) > 1 else command


def loop_window(program, folder, steps):
    """The kernel's account of about `steps` CartPole steps, or None with a remark."""
    region = ["--region", str(folder / "region")]
    kernel = [program, "kernel", *region, "--steps", str(steps), "--weights", "0.1,0.5,2,2"]
    with subprocess.Popen(pinned(1, [program, "host", *region]), stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as host:
        try:
            done = subprocess.run(pinned(0, kernel), capture_output=True, text=True, check=False,
                                  timeout=120)
            host.wait(timeout=30)
        except subprocess.TimeoutExpired:
            print(f"tetrion-stream: no end of {steps} steps", file=sys.stderr)
            return None
        finally:
            host.kill()
            (folder / "region").unlink(missing_ok=True)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines or not lines[-1]["streamed"]:
        print(f"tetrion-stream: exit status {done.returncode}: {done.stderr.strip()[-200:]}",
              file=sys.stderr)
        return None
    return lines[-1]


def bench_loop(program, quick):
    """Whether the loop gave figures."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        windows = [loop_window(program, pathlib.Path(folder), 200_000 if quick else 1_000_000)
                   for _ in range(5)]
    windows = [window for window in windows if window]
    if windows:
        what = "stream: cartpole loop of two processes"
        print_figure(what, "steps/s", [w["steps_per_s"] for w in windows], ">= 1M")
        print_figure(f"{what}, round trip p50", "ns", [w["p50_ns"] for w in windows])
        print_figure(f"{what}, round trip p99", "ns", [w["p99_ns"] for w in windows])
    return bool(windows)


def system_rate(bin_dir, env, inference, seconds):
    """Mean steps/s of a system in its steady state, or None with a remark."""
    with tempfile.TemporaryDirectory() as runs, tempfile.TemporaryDirectory(dir="/dev/shm") as shm:
        os.chmod(shm, 0o700)
        folder, log_path = pathlib.Path(runs) / "bench", pathlib.Path(runs) / "up.log"
        command = [str(bin_dir / "tetrion-up"), "--runs-dir", runs, "--shm-dir", shm, "--run",
                   "bench", "--env", env, "--inference", inference]
        rates = []
        with open(log_path, "wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as up:
            until = time.monotonic() + START_TIMEOUT_S
            while up.poll() is None and time.monotonic() < until:
                if any(folder.glob("checkpoints/*.safetensors")):
                    time.sleep(seconds / 2)  # warm up
                    rates = steady_rates(folder, seconds)
                    break
                time.sleep(0.01)
            up.send_signal(signal.SIGTERM)
            try:
                up.wait(timeout=STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                up.kill()
        if not rates:
            print(f"{env}, {inference}: no update within {START_TIMEOUT_S} s:",
                  *log_path.read_text(errors="replace").splitlines()[-3:], file=sys.stderr)
            return None
    return sum(rates) / len(rates)


def bench_systems(bin_dir, quick):
    """Whether every system gave a figure."""
    complete = True
    for env in ENVS:
        streamed, local = [], []
        for _ in range(1 if quick else 3):
            pair = [system_rate(bin_dir, env, inference, 3 if quick else 5)
                    for inference in ("streamed", "local")]
            if all(pair):
                streamed.append(pair[0])
                local.append(pair[1])
        if streamed:
            print_figure(f"whole system, {env}, streamed inference: environment", "steps/s",
                         streamed, rival=("local inference", local))
        complete = complete and bool(streamed)
    return complete


def main():
    bin_dir, quick = pathlib.Path(sys.argv[1]), "--quick" in sys.argv
    good = True
    if (bin_dir / "tetrion-stream").exists():
        good = bench_loop(str(bin_dir / "tetrion-stream"), quick)
    if all((bin_dir / f"tetrion-{name}").exists() for name in ("up", "learner")):
        good = bench_systems(bin_dir, quick) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
