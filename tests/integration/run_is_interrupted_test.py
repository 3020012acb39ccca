"""Ctrl-C: once drains and saves, twice ends at once; --resume goes on. A closed terminal and a
kill -9 of tetrion-up also save, and leave no shared memory, as does a run that ends in parts."""

import re
import signal

import harness
import mounts

UNSAVED = 74


class RunIsInterrupted(harness.Case):
    def test_ctrl_c_saves_and_resume_goes_on(self):
        run = self.new_run().start_up()
        run.expect_progress()
        first = run.finish_and_check()
        said = run.log("up")
        self.assertRegex(said, rf"go on +\./tetrion up --resume {run.name} --runs-dir {run.runs}")
        self.assertRegex(said, r"\d+ episodes, \d+ updates in")
        update = int(re.findall(r"checkpoint at update (\d+)", run.log("learner"))[-1])
        self.assertIn(f"{update:012}.safetensors", said)

        run.start_up(resume=True)
        status = run.expect_progress()
        self.assertGreater(status["learner"]["updates"], update)
        self.assertGreaterEqual(status["tokens"]["done"], first["done"] + 200)
        self.assertIn(f"at update {update}\n", run.log("learner").split("resumed from")[1])
        second = run.finish_and_check()
        self.assertGreater(second["done"], first["done"])
        self.assertGreaterEqual(second["env_steps"], first["env_steps"])

    def test_a_second_ctrl_c_ends_everything_at_once(self):
        # As many slots as workers: those of the dead must come free for the resumed run's.
        run = self.new_run().start_up(actors=2, settings={"max_workers": 2})
        run.expect_progress()
        frozen = run.signal("learner", signal.SIGSTOP)  # so that the drain cannot be over before
        self.assertTrue(frozen)
        run.signal("up", signal.SIGINT)
        harness.wait_until("it drains", lambda: "draining: asked to" in run.log("up"))
        run.signal("up", signal.SIGINT)
        self.assertEqual(run.wait_exit("up"), 143)
        self.assertEqual(harness.wait_until_gone(run.base), [])
        self.assertEqual([path.name for path in run.shm.iterdir()], [".lock"])
        figures, violations = harness.check_account.check(run.folder / "tetrion.db")
        self.assertEqual(violations, [])

        run.killed.update({"learner", "actor-0", "actor-1"})
        run.start_up(resume=True, actors=2)
        run.expect_progress()
        run.drain()
        after, violations = harness.check_account.check(run.folder / "tetrion.db")
        self.assertEqual(violations, [])
        self.assertGreaterEqual(after["done"], figures["done"] + 200)

    def test_a_last_checkpoint_that_finds_no_room_is_no_success(self):
        if not mounts.mine():
            self.skipTest("this machine lets no user mount a folder")
        for told in ("coordinator", "up"):
            with self.subTest(told):
                self.expect_unsaved(told)

    def expect_unsaved(self, told):
        run = self.new_run(told)
        checkpoints = run.folder / "checkpoints"
        if not mounts.tmpfs(checkpoints, "4m"):
            self.skipTest("this machine mounts no file system for a test")
        self.addCleanup(mounts.unmount, checkpoints)
        run.start_up()
        run.expect_progress()
        with run.a_learner_resumes():
            run.kill("learner")  # its successor is not excused
        run.expect_progress()
        rest, unwritten = checkpoints / "rest", "checkpoint not written"
        def no_room_is_left():
            mounts.fill(rest)  # also of what a save that was under way has freed since
            return run.log("learner").count(unwritten) >= 3
        harness.wait_until("saves fail", no_room_is_left)
        run.expect_progress()
        mounts.fill(rest)
        run.signal(told, signal.SIGTERM)
        self.assertEqual(run.wait_exit("up"), UNSAVED)
        self.assertIn("learner failed", run.log("up"))
        self.assertRegex(run.log("up"), "No space left on device.* is lost")

    def test_a_closed_terminal_drains_and_saves(self):
        run = self.new_run().start_up()
        run.expect_progress()
        run.signal("up", signal.SIGHUP)
        harness.wait_until("it drains", lambda: "draining: asked to" in run.log("up"))
        run.signal("up", signal.SIGHUP)  # kernel and shell both send one
        self.assertEqual(run.wait_exit("up"), 0)
        run.check_ended()
        self.assert_last_update_is_saved(run)

    def test_after_a_kill_of_up_the_services_drain_by_themselves(self):
        run = self.new_run().start_up(actors=2)
        run.expect_progress()
        run.signal("up", signal.SIGKILL)
        self.assertEqual(run.wait_exit("up"), -signal.SIGKILL)
        self.assertEqual(harness.wait_until_gone(run.base, harness.DEADLINE_S), [])
        self.assertEqual([path.name for path in run.shm.iterdir()], [".lock"])
        figures, violations = harness.check_account.check(run.folder / "tetrion.db")
        self.assertEqual(violations, [])
        self.assertEqual(figures["outstanding"], 0)
        self.assertTrue(list((run.folder / "checkpoints").glob("*.safetensors")))

        run.start_up(resume=True, actors=2)
        run.expect_progress()
        run.drain()

    def test_the_region_of_a_learner_that_ended_before_the_run_goes_with_the_run(self):
        run = self.new_run().start_by_hand()
        run.expect_progress()
        run.signal("actor-0", signal.SIGTERM)
        self.assertEqual(run.wait_exit("actor-0"), 0)
        run.signal("learner", signal.SIGTERM)
        self.assertEqual(run.wait_exit("learner"), 0)
        self.assertEqual(sorted(path.suffix for path in run.shm.iterdir()), ["", ".learner"])
        run.signal("coordinator", signal.SIGTERM)
        self.assertEqual(run.wait_exit("coordinator"), 0)
        self.assertEqual([path.name for path in run.shm.iterdir()], [".lock"])

    def assert_last_update_is_saved(self, run):
        log = run.log("learner")
        updates = int(re.findall(r"drained: .*, (\d+) updates", log)[-1])
        saved = int(re.findall(r"checkpoint at update (\d+)", log)[-1])
        self.assertEqual(saved, updates)
        self.assertTrue((run.folder / "checkpoints" / f"{saved:012}.safetensors").exists())


if __name__ == "__main__":
    harness.main()
