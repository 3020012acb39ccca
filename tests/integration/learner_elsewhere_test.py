"""A learner whose machine has the folder of the runs at another path than the coordinator's."""

import json

import harness

CONFIG = 78


class LearnerElsewhere(harness.Case):
    def start(self):
        run = self.new_run()
        run.start_coordinator(bind="tcp://127.0.0.1:0")
        run.wait_for("the run folder", lambda _: True)
        return run, json.loads((run.folder / "endpoints.json").read_text())["control"]

    def test_checkpoints_are_kept_where_its_own_machine_has_the_runs(self):
        run, control = self.start()
        mounted = self.base / "mounted"
        (mounted / run.name).mkdir(parents=True)
        run.start_process("learner", "tetrion-learner",
                          ["--coordinator", control, "--runs-dir", str(mounted),
                           "--checkpoint-every", "1", "--threads", "1"])
        run.start_actor()
        run.wait_for("a checkpoint", lambda s: s["learner"].get("checkpoints", 0) >= 1)
        run.drain()
        self.assertTrue(list(mounted.glob("x/checkpoints/*.safetensors")))
        self.assertFalse(list(run.folder.glob("checkpoints/*.safetensors")))

    def test_a_folder_that_is_not_here_ends_it_at_the_start_with_what_to_do(self):
        run, control = self.start()
        code, said = self.call("tetrion-learner", "--coordinator", control,
                               "--runs-dir", self.base / "nowhere")
        self.assertEqual(code, CONFIG, said)
        self.assertRegex(said, rf"the folder of run x is not here, {self.base}/nowhere/x: .*"
                               r"say with --runs-dir where it is")
        self.assertFalse(list(run.shm.glob("*.learner")))
        run.drain()


if __name__ == "__main__":
    harness.main()
