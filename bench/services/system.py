"""The whole system: system.py BIN_DIR [--quick] runs BIN_DIR/tetrion-up and reads what it writes.

Prints JSON lines: environment steps a second once the run is steady, seconds from the start of
tetrion-up to the first update (the first checkpoint follows it at once), resident memory of each
process.
"""

import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

START_TIMEOUT_S = 30
NOTES = {"cartpole": "for scale, on a 2-core cloud machine: stable-baselines3 PPO 4.3 k steps/s, "
                     "sample-factory 8 k",
         "tetris-placement": "for scale, on a 2-core cloud machine: a Python PPO loop over C "
                             "environments 9.7 k placements/s with an afterstates scorer, 41 k "
                             "with an MLP on planes"}
TARGETS = {"cartpole": None, "tetris-placement": ">= 50k"}


def spread(values):
    """median, min, max."""
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def figure(what, unit, values, target=None, note=None):
    """Prints and returns one figure; without values nothing but a remark."""
    if not values:
        print(f"no value: {what}")
        return None
    line = {"what": what, "unit": unit, "ours": spread(values), "rival": None, "ratio": None,
            "target": target, **({"note": note} if note else {})}
    print(json.dumps(line), flush=True)
    return line


def resident_mb(parent):
    """{program: MB} of a process's children."""
    memory = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            status = dict(line.split(":", 1) for line in
                          (folder / "status").read_text(encoding="utf-8").splitlines())
        except (OSError, ValueError):
            continue
        if status["PPid"].strip() == str(parent) and "VmRSS" in status:
            program = os.path.basename(
                (folder / "cmdline").read_bytes().split(b"\0")[0].decode(errors="replace"))
            memory[program] = int(status["VmRSS"].split()[0]) * 1.024e-3
    return memory


def steady_rates(folder, seconds):
    """The coordinator's own env_steps_per_s, once a second."""
    endpoints = json.loads((folder / "endpoints.json").read_text(encoding="utf-8"))
    url = f"http://{endpoints['http']['coordinator']}/status"
    rates = []
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        with urllib.request.urlopen(url, timeout=5) as page:
            rates.append(json.load(page)["env_steps_per_s"])
        time.sleep(min(1, seconds / 5))
    return rates


def run(bin_dir, options, seconds):
    """(seconds to the first update or None, {program: MB}, [steps/s of the second half]).

    `options` of tetrion-up."""
    with tempfile.TemporaryDirectory() as runs, \
            tempfile.TemporaryDirectory(dir="/dev/shm") as shm:
        os.chmod(shm, 0o700)
        folder = pathlib.Path(runs) / "bench"
        started = time.monotonic()
        with open(pathlib.Path(runs) / "up.log", "wb") as log, subprocess.Popen(
                [str(bin_dir / "tetrion-up"), "--runs-dir", runs, "--shm-dir", shm, "--run",
                 "bench", *options], stdout=log, stderr=log) as up:
            first, memory = None, {}
            while up.poll() is None and time.monotonic() - started < START_TIMEOUT_S:
                if any(folder.glob("checkpoints/*.safetensors")):
                    first = time.monotonic() - started
                    break
                time.sleep(0.01)
            rates = []
            if first is not None and seconds > 0:
                time.sleep(seconds / 2)
                rates = steady_rates(folder, seconds / 2)
                memory = resident_mb(up.pid)
            up.send_signal(signal.SIGTERM)
            try:
                up.wait(timeout=40)
            except subprocess.TimeoutExpired:
                up.kill()
        if first is None:
            tail = (pathlib.Path(runs) / "up.log").read_text(errors="replace").splitlines()[-3:]
            print(f"{' '.join(options)}: no update within {START_TIMEOUT_S} s:", *tail,
                  file=sys.stderr)
        return first, memory, rates


def main():
    bin_dir, quick = pathlib.Path(sys.argv[1]), "--quick" in sys.argv
    starts = []
    for env in ("cartpole", "tetris-placement"):
        first, memory, rates = run(bin_dir, ["--env", env], 5 if quick else 10)
        starts += [first] if first is not None else []
        figure(f"whole system, {env}: environment", "steps/s", rates, TARGETS[env], NOTES[env])
        for program, megabytes in sorted(memory.items()):
            figure(f"memory, {env}: {program}", "MB", [megabytes],
                   None if program == "tetrion-learner" else "<= 300")
    for _ in range(0 if quick else 3):
        first, _, _ = run(bin_dir, ["--env", "tetris-placement"], 0)
        starts += [first] if first is not None else []
    figure("start-up: tetrion-up to the first update", "s", starts, "<= 3")
    return 0 if starts else 1


if __name__ == "__main__":
    sys.exit(main())
