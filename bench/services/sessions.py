"""Idle sessions at one coordinator: sessions.py BIN_DIR [--quick] [--sessions N] [--idle S]

Starts BIN_DIR/tetrion-coordinator in a temporary folder with its default lease and heartbeat and
loads it with N sessions of BIN_DIR/tetrion-load, in as many processes as the limit of open files
asks for. Measures registration, memory and CPU while the sessions idle; then kills the coordinator
with -9, resumes the run at once and waits until every session is back, and for a lease more.

Prints JSON lines, then the table; exit status 1 when a session was fenced or did not come back.
"""

import argparse
import json
import math
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import time
import urllib.request

from system import end_when_told, figure

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import bench

LEASE_S = 10  # the coordinator's default
DEADLINE_S = 120  # for anything to happen
FILES_PER_SESSION, OWN_FILES = 4, 64  # of tetrion-load
TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def resident_bytes(pid):
    status = pathlib.Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1)) * 1024


def cpu_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_S


def wait_until(what, condition, check, deadline_s=DEADLINE_S):
    """Polls until condition() is true; `check` throws when waiting is in vain."""
    end = time.monotonic() + deadline_s
    while not condition():
        check()
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {deadline_s} s")
        time.sleep(0.05)


class Bench:
    """A coordinator and its load."""

    def __init__(self, bin_dir, base):
        self.bin_dir, self.base = bin_dir, pathlib.Path(base)
        self.run_folder = self.base / "runs" / "bench"
        self.coordinator, self.loads = None, []

    def start(self, name, program, *arguments):
        with open(self.base / f"{name}.out", "ab") as out, \
                open(self.base / f"{name}.log", "ab") as log:
            return subprocess.Popen([str(self.bin_dir / program), *arguments], stdout=out,
                                    stderr=log, stdin=subprocess.DEVNULL)

    def start_coordinator(self, resume):
        self.coordinator = self.start(
            "coordinator", "tetrion-coordinator", "--runs-dir", str(self.base / "runs"),
            "--shm-dir", str(self.base / "shm"),
            *(["--resume", "bench"] if resume else ["--run", "bench", "--env", "cartpole"]))

    def start_loads(self, sessions):
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        most = max(1, (files - OWN_FILES) // FILES_PER_SESSION)
        count = math.ceil(sessions / most)
        shares = [sessions // count + (i < sessions % count) for i in range(count)]
        self.loads = [self.start(f"load-{i}", "tetrion-load", "--run-folder", str(self.run_folder),
                                 "--seconds", "0", "--grants", "--sessions", str(share))
                      for i, share in enumerate(shares)]

    def check(self):
        """Throws when a process has ended on its own."""
        for process in [self.coordinator, *self.loads]:
            if process.poll() is not None:
                raise RuntimeError(f"{process.args[0]} ended with {process.returncode}")

    def states(self):
        """The newest line of each load."""
        found = []
        for i in range(len(self.loads)):
            lines = (self.base / f"load-{i}.out").read_text(encoding="utf-8").split("\n")
            found += [json.loads(lines[-2])] if len(lines) > 1 else []
        return found

    def total(self, key):
        return sum(state[key] for state in self.states())

    def all_stand(self, epoch):
        states = self.states()
        return len(states) == len(self.loads) and all(
            state["epoch"] == epoch and state["complete_s"] > 0 for state in states)

    def completed_s(self):
        return max(state["complete_s"] for state in self.states())

    def counter(self, name):
        """A counter of the coordinator's /metrics, all labels together."""
        endpoints = json.loads((self.run_folder / "endpoints.json").read_text(encoding="utf-8"))
        url = f"http://{endpoints['http']['coordinator']}/metrics"
        with urllib.request.urlopen(url, timeout=20) as page:
            text = page.read().decode()
        return sum(float(v) for v in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", text, re.MULTILINE))

    def stop(self):
        """Goodbye of all; the exit codes."""
        for process in self.loads:
            process.terminate()
        codes = [process.wait(DEADLINE_S) for process in self.loads]
        self.coordinator.terminate()
        return [*codes, self.coordinator.wait(DEADLINE_S)]

    def close(self):
        for process in [self.coordinator, *self.loads]:
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


def measure(case, sessions, idle_s, report):
    case.start_coordinator(resume=False)
    wait_until("the run folder", (case.run_folder / "endpoints.json").exists, case.check)
    before_bytes, before_cpu = resident_bytes(case.coordinator.pid), cpu_seconds(
        case.coordinator.pid)
    started_s = time.monotonic()
    case.start_loads(sessions)
    wait_until("registration", lambda: case.all_stand(1), case.check)
    report("registration of all", "s", case.completed_s() - started_s)
    wait_until("grants", lambda: case.total("granted") == sessions, case.check)
    cpu = cpu_seconds(case.coordinator.pid)
    report("registration and a grant, coordinator's CPU", "us/session",
           (cpu - before_cpu) / sessions * 1e6)
    time.sleep(2)
    cpu, idle_started_s = cpu_seconds(case.coordinator.pid), time.monotonic()
    first_bytes = resident_bytes(case.coordinator.pid)
    time.sleep(idle_s)
    case.check()
    report("idle, coordinator's CPU", "cores",
           (cpu_seconds(case.coordinator.pid) - cpu) / (time.monotonic() - idle_started_s))
    report("memory at first, coordinator", "KiB/session",
           (first_bytes - before_bytes) / sessions / 1024)
    report(f"memory after {idle_s:g} s, coordinator", "KiB/session",
           (resident_bytes(case.coordinator.pid) - before_bytes) / sessions / 1024)
    report("idle, oldest answer of any session", "s",
           max(state["oldest_answer_s"] for state in case.states()))
    rebinds = case.counter("tetrion_coordinator_rebinds_total")
    case.coordinator.kill()
    case.coordinator.wait()
    killed_s = time.monotonic()
    case.start_coordinator(resume=True)
    wait_until("everybody's return", lambda: case.all_stand(2), case.check)
    report("kill -9 and restart: all back after", "s", case.completed_s() - killed_s,
           f"<= {LEASE_S}")
    time.sleep(LEASE_S + 2)
    case.check()
    rebinds += case.counter("tetrion_coordinator_rebinds_total")
    report("sessions fenced", "sessions", case.total("fenced"), "<= 0")
    report("connections closed for their memory", "times", rebinds, "<= 0")
    standing = case.total("in_epoch")
    codes = case.stop()
    if any(codes) or standing != sessions:
        raise RuntimeError(f"{standing} of {sessions} sessions stand, exit codes {codes}")


def main():
    end_when_told()
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--quick", action="store_true", help="1,000 sessions")
    parser.add_argument("--sessions", type=int, help="10,000 without --quick")
    parser.add_argument("--idle", type=float, help="length of the idle window in seconds")
    parser.add_argument("--keep", action="store_true", help="leave the folder with all logs")
    args = parser.parse_args()
    sessions = args.sessions or (1000 if args.quick else 10_000)
    figures = []

    def report(what, unit, value, target=None):
        figures.append(figure(f"{sessions} idle sessions: {what}", unit, [value], target))

    with tempfile.TemporaryDirectory(prefix="tetrion-sessions-") as base:
        case = Bench(args.bin_dir, base)
        try:
            measure(case, sessions, args.idle or (5 if args.quick else 20), report)
            failure = None
        except RuntimeError as error:
            failure = str(error)
            for log in sorted(pathlib.Path(base).glob("*.log")):
                tail = log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:]
                print(f"{log.name}:", *tail, sep="\n  ", file=sys.stderr)
        finally:
            case.close()
            if args.keep:
                kept = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-sessions-kept-"))
                subprocess.run(["cp", "-r", f"{base}/.", str(kept)], check=False)
                print(f"kept: {kept}", file=sys.stderr)
    print(bench.table(figures))
    if failure:
        print(f"sessions.py: {failure}", file=sys.stderr)
    return 1 if failure or any(bench.verdict(f) == "MISSED" for f in figures
                               if "fenced" in f["what"]) else 0


if __name__ == "__main__":
    sys.exit(main())
