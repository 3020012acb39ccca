"""Ctrl-C: once drains and saves, twice ends at once; --resume goes on."""

import re
import signal

import harness


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
        run = self.new_run().start_up(actors=2)
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


if __name__ == "__main__":
    harness.main()
