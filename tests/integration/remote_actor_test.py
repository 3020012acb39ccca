"""Actors whose rows travel over TCP: the same run, the same account, and no file of theirs."""

import re
import signal
import time

import harness

BIND = "tcp://127.0.0.1:0"


class RemoteActor(harness.Case):
    def start(self, actors=1, settings=None, learner=None, **actor_options):
        """A run whose actors send their rows by TCP."""
        run = self.new_run()
        run.start_coordinator(settings=settings)
        run.wait_for("the run folder", lambda _: True)
        run.learner_options = {"rows_bind": BIND, **(learner or {})}
        run.start_learner()
        for i in range(actors):
            run.start_actor(f"actor-{i}", rows="tcp", **actor_options)
        return run

    def figure(self, run, name, figure):
        """A counter of a service's /metrics, 0 while it does not answer."""
        endpoints = run.folder / "endpoints.json"
        address = re.search(rf'"{name}":\s*"([^"]+)"', endpoints.read_text())
        if address is None:
            return 0
        _, text = harness.get(address.group(1), "/metrics")
        values = re.findall(rf"^{figure}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE)
        return sum(float(value) for value in values)

    def test_cartpole_trains_and_no_file_is_made(self):
        run = self.start(actors=2, workers=2)
        # The second may begin late; one that comes after the run's end would wait for the next run.
        run.wait_for("both actors' rings are attached",
                     lambda s: s["actors"] == 2 and s["learner"].get("rings") == 4)
        run.expect_progress(episodes=500)
        self.assertEqual(run.rings(), [], "rows of remote actors have no file")
        harness.wait_until("a version of the weights was fetched",
                           lambda: self.figure(run, "actor-0", "tetrion_courier_weights_total"))
        self.assertGreater(self.figure(run, "actor-0", "tetrion_courier_rows_total"), 0)
        run.finish_and_check()

    def test_tetris_trains_with_packed_rows(self):
        run = self.start(settings={"env": "tetris-placement", "lanes": 4}, compress="zstd")
        run.expect_progress(episodes=20, batches=5)
        rows, travelled = (harness.wait_until(
            f"{name} is served", lambda name=name: self.figure(run, "actor-0", name))
            for name in ("tetrion_courier_rows_total", "tetrion_courier_bytes_total"))
        self.assertLess(travelled / rows, 4 * 100, "a lane's row has over 100 bytes unpacked")
        run.finish_and_check()

    def test_local_and_remote_actors_play_in_one_run(self):
        run = self.start()
        run.start_actor("actor-1")
        run.wait_for("two actors", lambda s: s["actors"] == 2)
        run.expect_progress(episodes=500)
        self.assertEqual(len(run.rings()), 1)
        run.finish_and_check()

    def test_killed_actor_is_replaced(self):
        run = self.start(learner={"remote_silence": 2})
        run.expect_progress()
        run.kill("actor-0")
        run.start_actor("actor-1", rows="tcp")
        run.expect_progress()
        harness.wait_until("the silent stream has ended", lambda: re.search(
            r"ring remote:\S+ ended at row", run.log("learner")))
        run.finish_and_check()

    def test_killed_actor_holds_its_slots_no_longer_than_its_lease(self):
        run = self.start(settings={"max_workers": 1}, learner={"remote_silence": 3600})
        run.expect_progress()
        run.kill("actor-0")
        harness.wait_until("its stream has ended", lambda: re.search(
            r"silent for \d+ s, and its session has ended", run.log("learner")))
        harness.wait_until("its slot is free", lambda: re.search(
            r"ring remote:\S+ is drained and gone", run.log("coordinator")))
        run.start_actor("actor-1", rows="tcp")
        run.expect_progress()
        run.finish_and_check()

    def test_killed_learner_comes_back_behind_another_port(self):
        run = self.start()
        for _ in range(2):
            run.replace_learner()
        self.assertEqual(len(re.findall(r"session \d+ begun", run.log("actor-0"))), 1)
        self.assertIn("have moved to", run.log("actor-0"))
        run.finish_and_check()

    def test_killed_coordinator_costs_no_row(self):
        run = self.start()
        run.expect_progress()
        run.kill("coordinator")
        run.start_coordinator(resume=True)
        run.expect_progress()
        self.assertNotIn("was fenced", run.log("actor-0"))
        run.finish_and_check()

    def test_frozen_actor_comes_back_with_its_rows(self):
        run = self.start(learner={"remote_silence": 2})
        run.expect_progress()
        run.signal("actor-0", signal.SIGSTOP)
        harness.wait_until("its stream has ended by silence", lambda: re.search(
            r"its actor was silent", run.log("learner")))
        time.sleep(harness.SESSION_LEASE_S)
        run.signal("actor-0", signal.SIGCONT)
        run.expect_progress()
        self.assertIsNone(run.processes["actor-0"].poll(), "the same process goes on")
        run.finish_and_check()


class BadInput(harness.Case):
    def refused(self, *arguments):
        code, said = self.call("tetrion-actor", "--run-folder", "nowhere", *arguments)
        self.assertEqual(code, 2)
        return said

    def test_streamed_rows_need_shared_memory(self):
        said = self.refused("--rows", "tcp", "--inference", "streamed")
        self.assertIn("--inference streamed needs the learner's shared memory", said)

    def test_packing_is_for_the_network(self):
        self.assertIn("--rows tcp", self.refused("--rows", "shm", "--compress", "zstd"))

    def test_learner_that_takes_no_rows_is_named_with_its_option(self):
        run = self.new_run().start_by_hand(actors=0)
        run.start_actor("actor-0", rows="tcp")
        self.assertEqual(run.wait_exit("actor-0"), 75)
        self.assertIn("--rows-bind tcp://0.0.0.0:9001", run.log("actor-0"))
        run.drain()

    def test_wrong_address_keeps_the_actor_waiting_and_says_so(self):
        run = self.new_run()
        run.start_coordinator()
        run.wait_for("the run folder", lambda _: True)
        run.start_learner(rows_bind=BIND, rows_advertise="127.0.0.1:1")
        run.start_actor("actor-0", rows="tcp", drain_timeout=1)
        harness.wait_until("the actor says what it tries", lambda: re.search(
            r"learner's rows at tcp://127.0.0.1:1 silent", run.log("actor-0")))
        run.drain()


if __name__ == "__main__":
    harness.main()
