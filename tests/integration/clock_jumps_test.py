"""The wall clock of every service jumps by an hour in the middle of a run: no lease ends, nobody is
taken for silent, the run goes on; and a lease that has to end still does.

tests/support/moved_wall_clock.cc moves what a process reads of it; CLOCK_MONOTONIC stays.
"""

import datetime
import json
import re
import signal
import struct
import time

import harness

HOUR_S = 3600
MARGIN_S = 600  # a stamp is compared with the time at which the test looks at it
# A run goes on for one full lease after a jump. A busy machine may hold a process up for a second
# or two, which must not end a lease either.
LEASE_S = 8


class ClockJumps(harness.Case):
    def start(self):
        """A run with clocks that this test moves, and the date in its logs."""
        library = harness.BIN.parent / "tests" / "moved_wall_clock.so"
        self.assertTrue(library.exists(), f"{library} is missing; build moved_wall_clock")
        self.clock = self.base / "clock"
        self.clock.write_bytes(struct.pack("=q", 0))
        run = self.new_run()
        run.environment = {"LD_PRELOAD": str(library), "WALL_CLOCK_FILE": str(self.clock)}
        run.start_coordinator(log_format="json", session_lease=LEASE_S)
        run.wait_for("the run folder", lambda _: True)
        run.start_learner(log_format="json")
        for name in ("actor-0", "actor-1"):
            run.start_actor(name, log_format="json")
        run.wait_for("two actors", lambda s: s["actors"] == 2)
        run.expect_progress()
        return run

    def jump(self, to_s):
        """In place, since the services have mapped the file."""
        with open(self.clock, "r+b", buffering=0) as file:
            file.write(struct.pack("=q", to_s))

    def lines(self, run, name):
        return [line for line in run.log(name).splitlines() if line.startswith("{")]

    def moved_s(self, line):
        """How far a line's stamp is from this process's clock, in whole hours."""
        stamp = datetime.datetime.fromisoformat(json.loads(line)["time"])
        off_s = stamp.timestamp() - time.time()
        moved_s = round(off_s / HOUR_S) * HOUR_S
        self.assertLess(abs(off_s - moved_s), MARGIN_S, line)
        return moved_s

    def sessions_ended(self, run):
        """{reason: sessions}, as the coordinator's metrics have it."""
        endpoints = json.loads((run.folder / "endpoints.json").read_text())
        code, text = harness.get(endpoints["http"]["coordinator"], "/metrics")
        self.assertEqual(code, 200, text)
        ended = dict(re.findall(
            r'^tetrion_coordinator_sessions_ended_total{.*?reason="(\w+)".*?} (\S+)$', text, re.M))
        return {reason: int(float(count)) for reason, count in ended.items() if float(count)}

    def expect_no_change(self, run, to_s):
        """The clocks jump, and what is done by time goes on: heartbeats (which bring episodes and
        batches), checkpoints, leases and their judgement."""
        before = run.wait_for("the coordinator", lambda _: True)
        said = len(self.lines(run, "learner"))
        self.jump(to_s)
        run.wait_for("the coordinator reads the moved clock", lambda s: abs(
            s["time"] - time.time() - to_s) < MARGIN_S)
        harness.wait_until("the learner reads it", lambda: any(
            self.moved_s(line) == to_s for line in self.lines(run, "learner")[said:]))
        end = time.monotonic() + LEASE_S
        while time.monotonic() < end:
            run.expect_progress(episodes=20, batches=2)
        status = run.wait_for("checkpoints go on", lambda s: s["learner"]["checkpoints"]
                              >= before["learner"].get("checkpoints", 0) + 2)
        self.assertEqual(status["actors"], 2)
        for figure in ("freed", "abandoned", "duplicates", "refused"):
            self.assertEqual(status["tokens"][figure], 0, figure)
        self.assertEqual(self.sessions_ended(run), {})

    def check_logs(self, run, to_s, *names):
        """Every process began before the jump and had its last words after it."""
        for name in names:
            lines = self.lines(run, name)
            self.assertEqual(self.moved_s(lines[0]), 0, name)
            self.assertEqual(self.moved_s(lines[-1]), to_s, name)
            self.assertNotRegex(run.log(name), "is silent|was fenced|lease is over")

    def test_an_hour_forward_ends_no_lease(self):
        run = self.start()
        self.expect_no_change(run, HOUR_S)
        run.finish_and_check()
        self.check_logs(run, HOUR_S, "coordinator", "learner", "actor-0", "actor-1")

    def test_an_hour_back_ends_no_lease(self):
        run = self.start()
        self.expect_no_change(run, -HOUR_S)
        run.finish_and_check()
        self.check_logs(run, -HOUR_S, "coordinator", "learner", "actor-0", "actor-1")

    def test_an_hour_back_makes_no_lease_longer(self):
        run = self.start()
        run.signal("actor-1", signal.SIGSTOP)  # its lease was begun before the jump
        self.jump(-HOUR_S)
        run.wait_for("its lease ends", lambda s: s["actors"] == 1)
        self.assertEqual(self.sessions_ended(run), {"lease": 1})
        run.signal("actor-1", signal.SIGCONT)
        run.wait_for("it is back", lambda s: s["actors"] == 2)
        run.expect_progress()
        run.finish_and_check()
        self.check_logs(run, -HOUR_S, "learner", "actor-0")


if __name__ == "__main__":
    harness.main()
