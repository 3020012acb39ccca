"""A learner whose machine has the folder of the runs at another path than the coordinator's."""

import json
import signal

import harness
import mounts

CONFIG = 78
TRY_AGAIN = 75


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

    def test_one_that_wakes_beside_its_successor_saves_nothing(self):
        command = mounts.private_command()
        if not command:
            self.skipTest("this machine lets no user mount a folder")
        run = self.new_run()
        run.start_coordinator(session_lease=1)
        run.wait_for("the run folder", lambda _: True)
        run.start_learner(checkpoint_every=3600, give_up=3)
        run.start_actor()
        run.wait_for("its first checkpoint, and updates since",
                     lambda s: s["learner"].get("checkpoints", 0) == 1
                     and s["learner"].get("updates", 0) > 100)
        run.signal("learner", signal.SIGSTOP)
        saved = sorted(run.folder.glob("checkpoints/*.safetensors"))
        # On another host: it sees neither the regions nor the first one's lock.
        run.start_process("successor", f"/usr/bin/{command[0]}", [
            *command[1:], "sh", "-c", f'mount -t tmpfs -o mode=0700 none {run.shm} && exec "$@"',
            "sh", str(harness.BIN / "tetrion-learner"), "--run-folder", str(run.folder),
            "--name", "far", "--threads", "1", "--resume"])
        harness.wait_until("the successor has taken over",
                           lambda: "resumed from" in run.log("successor"))
        run.signal("learner", signal.SIGCONT)
        self.assertEqual(run.wait_exit("learner"), TRY_AGAIN)
        self.assertEqual(sorted(run.folder.glob("checkpoints/*.safetensors")), saved)


if __name__ == "__main__":
    harness.main()
