"""Streamed inference across processes: stream.py BIN_DIR [--quick]; prints JSON lines.

The CartPole loop of the compatibility layout (BIN_DIR/tetrion-stream, kernel and host on a core
each): steps a second and round trips. Then whole systems of BIN_DIR/tetrion-up with --inference
streamed and local in turns, everything else as the environment's preset has it: environment steps a
second of either, and their ratio. Exit status 1 when a window of these gave no figure.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "services"))
import system
from system import spread

ENVS = ("cartpole", "tetris-placement")


def print_figure(what, unit, ours, target=None, rival=None, note=None):
    """One JSON line; `rival` is (name, values), its windows the neighbours of ours."""
    line = {"what": what, "unit": unit, "ours": spread(ours), "rival": None, "ratio": None,
            "target": target}
    if rival:
        name, values = rival
        line["rival"] = {"name": name, **spread(values)}
        line["ratio"] = spread([a / b for a, b in zip(ours, values, strict=True)])
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
    """Whether every window of the loop gave a figure."""
    with tempfile.TemporaryDirectory(dir=system.SHM) as folder:
        windows = [loop_window(program, pathlib.Path(folder), 200_000 if quick else 1_000_000)
                   for _ in range(5)]
    complete = all(windows)
    windows = [window for window in windows if window]
    if windows:
        what = "stream: cartpole loop of two processes"
        print_figure(what, "steps/s", [w["steps_per_s"] for w in windows], ">= 1M")
        print_figure(f"{what}, round trip p50", "ns", [w["p50_ns"] for w in windows])
        print_figure(f"{what}, round trip p99", "ns", [w["p99_ns"] for w in windows])
    return complete


def system_rate(bin_dir, env, inference, seconds):
    """Steps/s of a system over `seconds`, after half as many; None with a remark."""
    _, _, rates = system.run(bin_dir, ["--env", env, "--inference", inference], seconds / 2,
                             seconds, intervals=1)
    return rates[0] if rates else None


def bench_systems(bin_dir, quick):
    """Whether every system gave a figure."""
    complete = True
    for env in ENVS:
        streamed, local = [], []
        for _ in range(1 if quick else 3):
            pair = [system_rate(bin_dir, env, inference, 3 if quick else 5)
                    for inference in ("streamed", "local")]
            complete = complete and all(pair)
            if all(pair):
                streamed.append(pair[0])
                local.append(pair[1])
        if streamed:
            print_figure(f"whole system, {env}, streamed inference: environment", "steps/s",
                         streamed, rival=("local inference", local))
    return complete


def main():
    system.end_when_told()
    bin_dir, quick = pathlib.Path(sys.argv[1]), "--quick" in sys.argv
    good = True
    if (bin_dir / "tetrion-stream").exists():
        good = bench_loop(str(bin_dir / "tetrion-stream"), quick)
    if all((bin_dir / f"tetrion-{name}").exists() for name in ("up", "learner")):
        good = bench_systems(bin_dir, quick) and good
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
