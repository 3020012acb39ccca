"""Runs whose replay lies in a device's memory, the simulated one: rows that actors send, and lanes
that the learner plays there itself. The account is that of every other run."""

import json
import re

import harness

TETRIS = {"env": "tetris", "view": "planes", "network": "mlp", "lanes": 8, "max_steps": 60,
          "window": 8}


class RowsOfActors(harness.Case):
    def test_the_device_takes_them_out_of_the_rings_and_a_killed_learner_goes_on(self):
        run = self.new_run()
        run.learner_options = {"device": "sim"}
        run.start_by_hand()
        run.replace_learner()
        self.assertIn("replay in the memory of", run.log("learner"))
        run.finish_and_check()

    def test_streamed_rows_reach_it_as_well(self):
        run = self.new_run().start_up(device="sim", inference="streamed")
        run.expect_progress()
        run.finish_and_check()


class ResidentLanes(harness.Case):
    def test_cartpole_is_learnt_without_actors(self):
        run = self.new_run().start_up(
            device="sim", resident_lanes=16, settings={"lanes": 16, "max_steps": 500},
            stop_after="60000steps")
        best = {"mean": 0.0}

        def ended():
            status = run.status()
            if status:
                best.update(mean=max(best["mean"], status["return_mean"]))
            return run.processes["up"].poll() is not None

        harness.wait_until("the run ends by itself", ended, deadline_s=200)
        self.assertEqual(run.wait_exit("up"), 0)
        print(f"mean return {best['mean']:.0f}")
        # Random play reaches 22.
        self.assertGreaterEqual(best["mean"], 60)
        figures = run.check_ended()
        self.assertGreaterEqual(figures["env_steps"], 60_000)
        self.assertEqual(run.rings(), [])

    def test_tetris_is_played(self):
        run = self.new_run().start_up(device="sim", resident_lanes=16, settings=TETRIS)
        run.expect_progress(episodes=40, batches=4, deadline_s=90)
        # The lanes' session is a connection of its own.
        endpoints = json.loads((run.folder / "endpoints.json").read_text())
        text = harness.get(endpoints["http"]["learner"], "/metrics")[1]
        for peer in ("coordinator", "coordinator_resident"):
            sent = re.search(
                rf'tetrion_link_messages_total{{peer="{peer}",direction="out"}} (\d+)', text)
            self.assertGreater(int(sent[1]) if sent else 0, 0, peer)
        steps = re.search(r"\ntetrion_learner_resident_env_steps_total (\d+)", text)
        self.assertGreater(int(steps[1]) if steps else 0, 0)
        run.finish_and_check()

    def test_a_killed_learner_resumes_and_every_token_is_accounted_once(self):
        # Its lanes have every slot of the run: a successor's wait for those of the dead one.
        run = self.new_run().start_up(device="sim", resident_lanes=16,
                                      settings={"max_workers": 2})
        for _ in range(2):
            run.expect_progress(episodes=50, batches=5)
            run.wait_for("a checkpoint", lambda s: s["learner"].get("checkpoints", 0) >= 1)
            with run.a_learner_resumes():
                run.kill("learner")
        run.expect_progress(episodes=50, batches=5)
        self.assertEqual(run.log("learner").count("resumed from"), 2)
        run.finish_and_check()

    def test_a_killed_coordinator_finds_the_lanes_again(self):
        run = self.new_run()
        run.learner_options = {"device": "sim", "resident_lanes": 16}
        run.start_by_hand(actors=0)
        run.expect_progress(episodes=50, batches=5)
        run.kill("coordinator")
        run.start_coordinator(resume=True)
        run.expect_progress(episodes=50, batches=5)
        run.finish_and_check()

    def test_an_actor_is_told_that_there_is_no_place_for_it(self):
        run = self.new_run()
        run.learner_options = {"device": "sim", "resident_lanes": 8}
        run.start_by_hand(actors=1)
        self.assertEqual(run.wait_exit("actor-0"), 75)
        run.killed.add("actor-0")
        self.assertIn("the learner plays its lanes itself", run.log("actor-0"))
        run.expect_progress(episodes=50, batches=5)
        run.finish_and_check()


class BadInput(harness.Case):
    def refused(self, code, words, program, *arguments):
        got, said = self.call(program, *arguments)
        self.assertEqual(got, code, said)
        self.assertIn(words, said)

    def test_what_cannot_be_is_refused_in_one_sentence(self):
        self.refused(2, "give --device cuda as well", "tetrion-up", "--resident-lanes", 8,
                     "--runs-dir", self.base)
        self.refused(2, "--device", "tetrion-up", "--device", "tpu", "--runs-dir", self.base)
        self.refused(2, "were built for cpu and sim", "tetrion-up", "--device", "cuda",
                     "--runs-dir", self.base)

    def test_lanes_that_are_no_groups_and_devices_of_other_builds_end_the_learner(self):
        for options, words in (
                ({"device": "sim", "resident_lanes": 12}, "not a multiple of the run's 8 lanes"),
                ({"device": "sim", "resident_lanes": 800}, "slots for 8"),
                ({"device": "cuda"}, "were built for cpu and sim")):
            with self.subTest(options=options):
                run = self.new_run(folder=words[:12].strip())
                run.start_coordinator()
                run.wait_for("the run folder", lambda _: True)
                run.start_learner(**options)
                self.assertEqual(run.wait_exit("learner"), 2)
                self.assertIn(words, run.log("learner"))


if __name__ == "__main__":
    harness.main()
