"""A run with DreamerV3 whose replay lies in a device's memory, the simulated one: rows come out of
the actors' rings by the device's own copies, batches and latents cross to the trainer and back. The
account is that of every other run."""

import dreamer_test
import harness

# Few updates a row: what is looked at here is the way of the rows.
SETTINGS = {**dreamer_test.SETTINGS, "train_ratio": 2}

ON_DEVICE = "updates are computed on simulated device"


class DreamerOnADevice(harness.Case):
    def check(self, run, least_updates):
        """The account after an end, and that the run has learnt on the device."""
        figures = run.check_ended()
        self.assertIn("replay in the memory of", run.log("learner"))
        self.assertGreaterEqual(
            max(e[harness.VERSION_FIELD] for _, e in run.episodes()), least_updates)
        return figures

    def test_it_ends_at_its_steps_and_goes_on(self):
        run = self.new_run().start_up(device="sim", settings=SETTINGS, stop_after="2000steps")
        self.assertEqual(run.wait_exit("up", deadline_s=120), 0)
        first = self.check(run, 2)
        self.assertGreaterEqual(first["env_steps"], 2000)
        run.start_up(resume=True, device="sim", stop_after="3000steps")
        self.assertEqual(run.wait_exit("up", deadline_s=120), 0)
        self.assertIn("resumed from", run.log("learner"))
        self.assertGreaterEqual(self.check(run, 3)["env_steps"], 3000)

    def test_an_actor_and_the_learner_may_be_killed(self):
        run = self.new_run()
        run.learner_options = {"device": "sim"}
        run.start_by_hand(settings=SETTINGS)
        run.expect_progress(**dreamer_test.PROGRESS)
        run.kill("actor-0")
        run.start_actor("actor-1")
        run.expect_progress(**dreamer_test.PROGRESS)
        run.wait_for("a checkpoint", lambda s: s["learner"].get("checkpoints", 0) >= 1)
        with run.a_learner_resumes():
            run.kill("learner")
            run.start_learner(resume=True)
        run.expect_progress(**dreamer_test.PROGRESS)
        run.drain()
        self.check(run, 2)

    def test_it_plays_and_trains_there_without_actors(self):
        run = self.new_run().start_up(device="sim", resident_lanes=SETTINGS["lanes"],
                                      settings=SETTINGS)
        run.expect_progress(**dreamer_test.PROGRESS)
        run.wait_for("a checkpoint", lambda s: s["learner"].get("checkpoints", 0) >= 1)
        with run.a_learner_resumes():
            run.kill("learner")
        run.expect_progress(**dreamer_test.PROGRESS)
        self.assertEqual(run.rings(), [])
        run.finish_and_check()
        self.check(run, 2)

    def test_it_computes_its_updates_there_and_goes_on_with_them_on_the_cpu(self):
        run = self.new_run().start_up(device="sim", trainer_device="device", settings=SETTINGS,
                                      stop_after="240steps")
        self.assertEqual(run.wait_exit("up", deadline_s=240), 0)
        self.check(run, 2)
        run.start_up(resume=True, device="sim", stop_after="480steps")
        self.assertEqual(run.wait_exit("up", deadline_s=120), 0)
        self.assertIn("resumed from", run.log("learner"))
        self.assertEqual(run.log("learner").count(ON_DEVICE), 1)
        self.check(run, 3)

    def test_v_trace_computes_on_the_cpu_alone(self):
        run = self.new_run()
        run.start_coordinator()
        run.wait_for("the run folder", lambda _: True)
        run.start_learner(device="sim", trainer_device="device")
        self.assertEqual(run.wait_exit("learner"), dreamer_test.USAGE)
        self.assertIn("--trainer-device device: algorithm vtrace", run.log("learner"))
        self.assertNotIn(ON_DEVICE, run.log("learner"))

    def test_pictures_are_not_played_there(self):
        run = self.new_run()
        run.start_coordinator(settings={**SETTINGS, "env": "tetris", "view": "pixels"})
        run.wait_for("the run folder", lambda _: True)
        run.start_learner(device="sim", resident_lanes=SETTINGS["lanes"])
        self.assertEqual(run.wait_exit("learner"), dreamer_test.USAGE)
        self.assertIn("view pixels is not made on a device", run.log("learner"))


if __name__ == "__main__":
    harness.main()
