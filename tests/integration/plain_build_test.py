"""A build without the tensor library: it trains and evaluates, and what it cannot do it says before
anything is made, or becomes ./tetrion, which builds with the library."""

import harness


class PlainBuild(harness.Case):
    def test_it_trains_evaluates_and_tells_its_regions(self):
        run = self.new_run().start_up(
            settings={"env": "catch", "lanes": 16, "max_steps": 0, "seed": 1},
            stop_after="100000steps")
        self.assertEqual(run.wait_exit("up", deadline_s=240), 0)
        self.assertGreaterEqual(run.check_ended()["env_steps"], 100_000)
        code, said = self.call("tetrion-eval", "eval", run.name, "--runs-dir", run.runs,
                               "--episodes", 20)
        self.assertEqual(code, 0, said)
        self.assertIn("20 ", said)
        code, said = self.call("tetrion-shm-size", "--env", "catch")
        self.assertEqual(code, 0, said)

    def test_what_needs_the_library_is_refused_and_leaves_nothing_behind(self):
        run = self.new_run()
        for needs, options in (("algo dreamer", ["--env=cartpole", "--algo=dreamer"]),
                               ("network conv", ["--env=tetris", "--view=planes",
                                                 "--network=conv"])):
            with self.subTest(needs):
                code, said = self.call("tetrion-up", "--run", run.name, "--runs-dir", run.runs,
                                       "--shm-dir", run.shm, *options)
                self.assertEqual(code, 2, said)
                self.assertIn(f"{needs} needs the tensor library", said)
                self.assertIn("./tetrion install wheels", said)
                self.assertFalse(run.folder.exists())

    def test_programs_become_the_script_that_has_started_them(self):
        run = self.new_run()
        script = self.base / "tetrion"
        script.write_text('#!/bin/sh\necho "pid $$: $*"\n')
        script.chmod(0o755)
        run.environment["TETRION_SCRIPT"] = str(script)
        words = ["--run", run.name, "--runs-dir", str(run.runs), "--algo", "dreamer", "--env",
                 "cartpole"]
        process = run.start_process("up", "tetrion-up", words)
        self.assertEqual(run.wait_exit("up"), 0)
        self.assertIn(f"pid {process.pid}: with-tensor-library tetrion-up {' '.join(words)}\n",
                      run.log("up"))
        self.assertFalse(run.folder.exists())


if __name__ == "__main__":
    harness.main()
