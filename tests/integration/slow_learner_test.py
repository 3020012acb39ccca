"""A learner that trains a batch or a few and then none for half a second, over and over: its replay
fills, then the rings, then the actors wait; nothing is queued anywhere else, so that no process
grows; and all flows again once the learner is quick.

The trainer's thread alone is stopped: ingest, heartbeats and pages go on, as with a large batch.
"""

import json
import pathlib
import re
import statistics
import time

import brake
import harness

SLEEP_S = 0.5
WARM_UP, MEASURED = 6, 18  # sleeps
SESSION_LEASE_S = 20  # a trainer that is stopped with a lock stops its process
# From the median of the first third to that of the last, 12 sleeps later. An honest process takes
# some pages. A row has 576 bytes: those that pass through are some 2 MiB, and an actor that does
# not wait makes as many in a moment.
MOST_GROWTH_KIB = 512


class SlowLearner(harness.Case):
    def pages(self, run):
        """{service: where it serves its metrics}, once all three do."""
        def listed():
            pages = json.loads((run.folder / "endpoints.json").read_text())["http"]
            return pages if {"coordinator", "learner", "actor-0"} <= set(pages) else None
        return harness.wait_until("the services' pages", listed)

    def figure(self, run, name, figure, labels=""):
        """A figure of a service's /metrics: the sum over its other labels."""
        code, text = harness.get(self.pages(run)[name], "/metrics")
        self.assertEqual(code, 200, text)
        lines = re.findall(rf"^{figure}({{.*}})? (\S+)$", text, re.M)
        return sum(float(value) for label, value in lines if labels in label)

    def resident_kib(self, run):
        """{service: resident memory}."""
        return {name: int(re.search(r"VmRSS:\s+(\d+) kB", pathlib.Path(
            f"/proc/{run.pid_of(name)}/status").read_text()).group(1)) for name in run.processes}

    def brake_on_trainer(self, run):
        try:
            trainer = brake.Brake(run.pid_of("learner"), "trainer")
        except PermissionError:
            self.skipTest("this machine lets no process stop a thread of another")
        self.addCleanup(trainer.release)
        return trainer

    def waiting_rows(self, run):
        """(head - tail, capacity): rows that the actor has published and the replay has not taken.
        Each is asked for once; those that are taken between the questions only make it smaller."""
        head = self.figure(run, "actor-0", "tetrion_actor_rows_committed_total")
        tail = (self.figure(run, "learner", "tetrion_replay_committed_rows")
                + self.figure(run, "learner", "tetrion_replay_commit_lag_rows"))
        capacity = self.figure(run, "learner", "tetrion_ring_capacity_rows")
        self.assertLessEqual(head - tail, capacity)
        self.assertLessEqual(self.figure(run, "learner", "tetrion_ring_used_rows"), capacity)
        return head - tail, capacity

    def expect_full(self, run):
        """Without a batch the ring fills, and its worker makes no row more."""
        def full():
            rows, capacity = self.waiting_rows(run)
            return rows == capacity
        harness.wait_until("the ring is full", full)
        time.sleep(SLEEP_S)
        self.assertTrue(full(), "its worker waits")

    def stop(self, run, trainer):
        """Not where it holds a lock that others of its process want: that is no slow trainer."""
        page = self.pages(run)["learner"]
        def free():
            trainer.stop()
            if harness.get(page, "/metrics")[0] == 200:
                return True
            trainer.go_on()
            return False
        harness.wait_until("the trainer holds no lock", free)

    def batches(self, run):
        return self.figure(run, "learner", "tetrion_learner_weights_published_total")

    def waited_s(self, run):
        return (self.figure(run, "actor-0", "tetrion_actor_wait_seconds_total", 'reason="ring"'),
                self.figure(run, "learner", "tetrion_replay_lease_wait_seconds_total"))

    def slow_down(self, run, trainer):
        """Sleeps between batches; the memory of each service at the end of every sleep."""
        memory = []
        for _ in range(WARM_UP + MEASURED):
            self.stop(run, trainer)
            self.expect_full(run)
            memory.append(self.resident_kib(run))
            trained = self.batches(run)
            trainer.go_on()
            harness.wait_until("a batch", lambda n=trained: self.batches(run) > n)
        return memory[WARM_UP:]

    def expect_flat(self, memory):
        third = len(memory) // 3
        for name in memory[0]:
            first, last = (statistics.median(sample[name] for sample in part)
                           for part in (memory[:third], memory[-third:]))
            self.assertLess(last - first, MOST_GROWTH_KIB, f"{name} grows: "
                            f"{[sample[name] for sample in memory]} KiB")

    def check(self, run):
        run.expect_progress()
        trainer = self.brake_on_trainer(run)
        before = self.waited_s(run)
        memory = self.slow_down(run, trainer)
        for waited, earlier in zip(self.waited_s(run), before, strict=True):
            self.assertGreater(waited, earlier, "who waits says so")
        self.expect_flat(memory)
        trainer.release()
        run.expect_progress()
        self.assertNotRegex(run.log("actor-0"), "is silent|was fenced")
        run.finish_and_check()

    def test_rows_in_shared_memory_wait_in_their_ring(self):
        self.check(self.new_run().start_by_hand(session_lease=SESSION_LEASE_S))

    def test_rows_of_another_host_wait_in_theirs(self):
        run = self.new_run()
        run.learner_options = {"rows_bind": "tcp://127.0.0.1:0"}
        run.start_coordinator(session_lease=SESSION_LEASE_S)
        run.wait_for("the run folder", lambda _: True)
        run.start_learner()
        run.start_actor(rows="tcp")
        self.check(run)


if __name__ == "__main__":
    harness.main()
