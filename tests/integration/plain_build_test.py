"""A build without the tensor library: it trains and evaluates, and what it cannot do it says before
anything is made, or becomes ./tetrion, which builds with the library."""

import json

import harness


class PlainBuild(harness.Case):
    def test_it_trains_evaluates_and_tells_its_regions(self):
        run = self.new_run().start_up(
            settings={"env": "catch", "lanes": 16, "max_steps": 0, "seed": 1},
            stop_after="100000steps")
        self.assertEqual(run.wait_exit("up", deadline_s=240), 0)
        self.assertGreaterEqual(run.check_ended()["env_steps"], 100_000)
        code, said = self.call("tetrion-eval", "eval", run.name, "--runs-dir", run.runs,
                               "--episodes", 20, "--json")
        self.assertEqual(code, 0, said)
        self.assertEqual(json.loads(said)["episodes"], 20)
        for settings in (["--env", "catch"], ["--env", "tetris", "--view", "planes", "--network",
                                              "conv"]):
            code, said = self.call("tetrion-shm-size", *settings)
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

    def script(self):
        """In the place of ./tetrion: says what it is called with and which signals it blocks. It
        starts no program: for that dash blocks all of them for a moment."""
        script = self.base / "tetrion"
        script.write_text('#!/bin/sh\nwhile read -r name value; do\n'
                          '  [ "$name" != SigBlk: ] || echo "blocked $value"\n'
                          'done </proc/$$/status\n'
                          'echo "lanes $TETRION_LANES"\necho "pid $$: $*"\n')
        script.chmod(0o755)
        return str(script)

    def test_up_becomes_the_script_that_has_started_it_with_all_that_it_was_told(self):
        run = self.new_run()
        run.environment.update(TETRION_SCRIPT=self.script(), TETRION_ALGO="dreamer",
                               TETRION_LANES="4")
        words = ["--run", run.name, "--runs-dir", str(run.runs), "--env", "cartpole"]
        process = run.start_process("up", "tetrion-up", words)
        self.assertEqual(run.wait_exit("up"), 0)
        said = run.log("up")
        self.assertIn(f"pid {process.pid}: with-tensor-library tetrion-up {' '.join(words)}\n",
                      said)
        self.assertIn("lanes 4\n", said)
        self.assertRegex(said, r"blocked 0+\n")
        self.assertFalse(run.folder.exists())

    def test_learner_and_eval_of_such_a_run_say_what_they_lack(self):
        run = self.new_run()
        run.start_coordinator(algo="dreamer")
        run.wait_for("the run folder", lambda _: True)
        run.start_learner()
        self.assertEqual(run.wait_exit("learner"), 2)
        self.assertIn("algo dreamer needs the tensor library", run.log("learner"))
        for verb in ("eval", "play", "dream"):
            words = [verb, run.name, "--runs-dir", str(run.runs)]
            code, said = self.call("tetrion-eval", *words)
            self.assertEqual(code, 2, said)
            self.assertIn("algo dreamer needs the tensor library", said)
            code, said = self.call("tetrion-eval", *words,
                                   environment={"TETRION_SCRIPT": self.script()})
            self.assertEqual(code, 0, said)
            self.assertIn(f": with-tensor-library tetrion-eval {' '.join(words)}\n", said)
            self.assertRegex(said, r"blocked 0+\n")


if __name__ == "__main__":
    harness.main()
