"""The whole system: system.py BIN_DIR [--quick] runs BIN_DIR/tetrion-up and reads what it writes.

Prints JSON lines: environment steps a second once the run is steady, seconds from the start of
tetrion-up to the first update (the first checkpoint follows it at once), resident memory of each
process. Exit status 1 when a run gave no figure.
"""

import contextlib
import http.client
import itertools
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

START_TIMEOUT_S, STOP_TIMEOUT_S, LOOK_TIMEOUT_S = 30, 40, 5
SHM = os.environ.get("TETRION_BENCH_SHM", "/dev/shm")  # as tools/bench_program.py gives it
INTERVAL_S = 1  # a status is up to half a second old
LOOK_ERRORS = (OSError, ValueError, LookupError, TypeError, http.client.HTTPException)
NOTES = {"cartpole": "for scale, on a 2-core cloud machine: stable-baselines3 PPO 4.3 k steps/s, "
                     "sample-factory 8 k",
         "tetris-placement": "for scale, on a 2-core cloud machine: a Python PPO loop over C "
                             "environments 9.7 k placements/s with an afterstates scorer, 41 k "
                             "with an MLP on planes"}


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


def end_when_told():
    """SIGTERM ends this script as Ctrl-C does: what it has started is stopped first."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))


@contextlib.contextmanager
def training(bin_dir, options):
    """(tetrion-up, its run's folder, its log): a run with `options` in folders of its own. It is
    stopped at the end of the block, also of one that fails."""
    with tempfile.TemporaryDirectory() as runs, tempfile.TemporaryDirectory(dir=SHM) as shm:
        os.chmod(shm, 0o700)
        log_path = pathlib.Path(runs) / "up.log"
        command = [str(bin_dir / "tetrion-up"), "--runs-dir", runs, "--shm-dir", shm, "--run",
                   "bench", *options]
        with open(log_path, "wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as up:
            try:
                yield up, pathlib.Path(runs) / "bench", log_path
            finally:
                stop(up)


def stop(up):
    """Asks tetrion-up to end and waits; kills it after STOP_TIMEOUT_S."""
    up.terminate()
    try:
        with contextlib.suppress(subprocess.TimeoutExpired):
            up.wait(timeout=STOP_TIMEOUT_S)
    finally:  # also of a second interrupt
        up.kill()


def await_update(up, folder):
    """Whether a run's first checkpoint is there, within START_TIMEOUT_S."""
    until = time.monotonic() + START_TIMEOUT_S
    while up.poll() is None and time.monotonic() < until:
        if any(folder.glob("checkpoints/*.safetensors")):
            return True
        time.sleep(0.01)
    return False


def look(folder):
    """(seconds that the run's coordinator has been up, environment steps), as its /status tells:
    both of one moment. One of LOOK_ERRORS when it tells nothing."""
    endpoints = json.loads((folder / "endpoints.json").read_text(encoding="utf-8"))
    url = f"http://{endpoints['http']['coordinator']}/status"
    with urllib.request.urlopen(url, timeout=LOOK_TIMEOUT_S) as page:
        status = json.load(page)
    return status["elapsed_s"], status["env_steps"]


def steady_rates(folder, seconds, intervals=None):
    """Steps a second in each of the intervals that `seconds` have, INTERVAL_S long unless their
    number is given: differences of the run's counter, so that no interval holds another's steps."""
    count = intervals or max(1, round(seconds / INTERVAL_S))
    looks = [look(folder)]
    for _ in range(count):
        time.sleep(seconds / count)
        looks.append(look(folder))
    return [(steps - before) / (at - since)
            for (since, before), (at, steps) in itertools.pairwise(looks) if at > since]


def run(bin_dir, options, warm_up_s, seconds, intervals=None):
    """(seconds to the first update or None, {program: MB}, [steps/s of intervals]) of a run with
    `options`, measured for `seconds` (not where that is 0) from `warm_up_s` after its first update
    on; no rates, and why on standard error, when it could not be measured."""
    memory, rates, first = {}, [], None
    started = time.monotonic()
    with training(bin_dir, options) as (up, folder, log_path):
        if await_update(up, folder):
            first = time.monotonic() - started
        else:
            print(f"{' '.join(options)}: no update within {START_TIMEOUT_S} s:",
                  *log_path.read_text(errors="replace").splitlines()[-3:], file=sys.stderr)
        try:
            if first is not None and seconds > 0:
                time.sleep(warm_up_s)
                rates = steady_rates(folder, seconds, intervals)
                memory = resident_mb(up.pid)
        except LOOK_ERRORS as error:
            print(f"{' '.join(options)}: the coordinator's /status: {error!r}", file=sys.stderr)
    return first, memory, rates


def main():
    bin_dir, quick = pathlib.Path(sys.argv[1]), "--quick" in sys.argv
    end_when_told()
    starts, good, seconds = [], True, 2.5 if quick else 5
    for env in ("cartpole", "tetris-placement"):
        first, memory, rates = run(bin_dir, ["--env", env], seconds, seconds)
        starts += [first] if first is not None else []
        good = figure(f"whole system, {env}: environment", "steps/s", rates, None,
                      NOTES[env]) is not None and good
        for program, megabytes in sorted(memory.items()):
            figure(f"memory, {env}: {program}", "MB", [megabytes],
                   None if program == "tetrion-learner" else "<= 300")
    for _ in range(0 if quick else 3):
        first, _, _ = run(bin_dir, ["--env", "tetris-placement"], 0, 0)
        good = first is not None and good
        starts += [first] if first is not None else []
    figure("start-up: tetrion-up to the first update", "s", starts, "<= 3")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
