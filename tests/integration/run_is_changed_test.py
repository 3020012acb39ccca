"""A run goes on with other settings of learning, and a new one begins with another's weights."""

import json
import re
import tomllib

import harness

USAGE = 2
# Lanes that 5 minibatches divide, unlike those of the default environment.
TRAINING = {"lanes": 10, "max_steps": 500, "learning_rate": 1e-3, "entropy_coef": 1e-3}


class RunIsChanged(harness.Case):
    def trained(self):
        """A run of CartPole that has learnt something and ended."""
        run = self.new_run().start_up(settings=TRAINING)
        run.wait_for("a return of 100 and a checkpoint", lambda s: s["return_mean"] >= 100
                     and s["learner"].get("checkpoints", 0) >= 1, deadline_s=90)
        run.finish_and_check()
        return run

    def greedy(self, run, name):
        code, said = self.call("tetrion-eval", "eval", name, "--runs-dir", run.runs,
                               "--episodes", 20)
        self.assertEqual(code, 0, said)
        return float(re.search(r"return +([\d.]+)", said).group(1))

    def config(self, folder):
        """All settings, those of the algorithm among the others."""
        run = tomllib.loads((folder / "config.toml").read_text())["run"]
        algorithm = run.pop(run["algo"])
        return {**run, **algorithm}

    def test_settings_of_learning_change_with_a_resume_and_are_recorded(self):
        run = self.trained()
        before = self.config(run.folder)
        trained = json.loads((run.folder / "checkpoints" / "manifest.json").read_text())
        updates = max(int(entry["updates"]) for entry in trained["checkpoints"])
        run.start_up(resume=True, learning_rate=1e-4, entropy_coef=0.05, max_steps=300,
                     minibatches=5)
        run.wait_for("the new rate is in force", lambda s: s["learner"].get("learning_rate") == 1e-4
                     and s["learner"]["updates"] > updates)
        run.finish_and_check()
        recorded = {(c["key"], c["before"], c["after"], c["update"]) for c in run.changes()}
        self.assertEqual(recorded, {("learning_rate", "0.001", "1e-04", updates),
                                    ("entropy_coef", "0.001", "0.05", updates),
                                    ("max_steps", "500", "300", updates),
                                    ("minibatches", "1", "5", updates)})
        for line in [f"learning_rate 0.001 -> 1e-04 at update {updates}",
                     f"entropy_coef 0.001 -> 0.05 at update {updates}"]:
            self.assertIn(line, run.log("coordinator"))
        changed = {"learning_rate": 1e-4, "entropy_coef": 0.05, "max_steps": 300,
                   "minibatches": 5}
        self.assertEqual(self.config(run.folder), {**before, **changed})
        # Without flags it stays so, and nothing more is recorded; also where the settings stand as
        # older versions wrote them, without a section of the algorithm.
        older = (run.folder / "config.toml").read_text().replace("[run.vtrace]\n", "")
        (run.folder / "config.toml").write_text(older)
        run.start_up(resume=True)
        run.wait_for("the rate stays", lambda s: s["learner"].get("learning_rate") == 1e-4)
        run.finish_and_check()
        self.assertEqual(len(run.changes()), 4)

    def test_environment_and_shapes_do_not_change(self):
        run = self.new_run().start_by_hand()
        run.expect_progress()
        run.finish_and_check()
        before = (run.folder / "config.toml").read_text()
        for words, given in [(["view", "planes", "vector"], "--view=planes"),
                             (["lanes", "3", "8"], "--lanes=3"),
                             (["seed", "7", "8"], "--seed=8")]:
            for program in ["tetrion-up", "tetrion-coordinator"]:
                code, said = self.call(program, "--resume", "x", "--runs-dir", run.runs,
                                       "--shm-dir", run.shm, given, "--learning-rate=0.5")
                self.assertEqual(code, USAGE, said)
                for word in words:
                    self.assertIn(word, said)
        self.assertEqual((run.folder / "config.toml").read_text(), before)
        self.assertFalse((run.folder / "changes.jsonl").exists())

    def test_a_member_that_outlives_a_change_ends_and_comes_back_with_it(self):
        run = self.new_run().start_by_hand()
        run.expect_progress()
        run.kill("coordinator")
        run.start_coordinator(resume=True, learning_rate=0.5)
        for name in ["actor-0", "learner"]:
            self.assertEqual(run.wait_exit(name), 75)
            self.assertIn("resumed with other settings", run.log(name))
        run.killed |= {"actor-0", "learner"}
        run.start_learner(resume=True)
        run.start_actor("actor-1")
        run.wait_for("the new rate", lambda s: s["learner"].get("learning_rate") == 0.5)

    def test_a_new_run_begins_with_the_weights_of_another(self):
        run = self.trained()
        level = self.greedy(run, "x")
        self.assertGreater(level, 100)
        new = ["--runs-dir", run.runs, "--shm-dir", run.shm, "--run", "y", "--init-from", "x",
               "--workers", "1", "--threads", "1", "--stop-after", "2000steps"]
        code, said = self.call("tetrion-up", *new, "--env", "tetris")
        self.assertEqual(code, USAGE, said)
        self.assertIn("over view vector of 4 numbers", said)
        self.assertFalse((run.runs / "y").exists())
        # A rate of 0: what it has at the end is what it began with.
        code, said = self.call("tetrion-up", *new, "--env", "cartpole", "--learning-rate", "0",
                               "--lanes", "4", "--seed", "99")
        self.assertEqual(code, 0, said)
        self.assertEqual(self.greedy(run, "y"), level)
        self.assertRegex((run.runs / "y" / "logs" / "learner.log").read_text(),
                         r"began with the weights of run x at its update \d+")
        change = json.loads((run.runs / "y" / "changes.jsonl").read_text())
        self.assertEqual((change["key"], change["update"]), ("init_from", 0))
        self.assertIn("/x/checkpoints/", change["after"])


if __name__ == "__main__":
    harness.main()
