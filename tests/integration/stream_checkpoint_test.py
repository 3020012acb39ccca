"""A trained run's checkpoint plays the kernel of a streamed region."""

import pathlib

import harness
import stream_harness
from stream_harness import CONFIG, USAGE


class Checkpoint(stream_harness.Case):
    def train(self, **settings):
        run = self.new_run().start_up(settings=settings, stop_after="20000steps")
        harness.wait_until("the run ends by itself",
                           lambda: run.processes["up"].poll() is not None, deadline_s=120)
        self.assertEqual(run.wait_exit("up"), 0)
        return ["--policy", "checkpoint:x", "--runs-dir", run.runs]

    def play(self, policy, *options):
        """The kernel's summary of some episodes from the same starts."""
        self.region.unlink(missing_ok=True)
        host = self.host("--seed", 5, "--max-steps", 200)
        kernel = self.kernel(*policy, "--episodes", 10, *options).finish()
        self.assertEqual(host.end()["steps"], kernel["steps"])
        return kernel

    def test_the_newest_checkpoint_chooses_the_same_actions_every_time(self):
        policy = self.train(max_steps=200)
        first = self.play(policy)
        self.assertEqual((first["episodes"], first["errors"], first["streamed"]), (10, 0, True))
        self.assertEqual(self.play(policy)["steps"], first["steps"])
        by_steps = self.play(policy, "--no-stream")
        self.assertEqual((by_steps["steps"], by_steps["streamed"]), (first["steps"], False))
        self.assertNotEqual(self.play(["--policy", "random"])["steps"], first["steps"])
        print(f"mean return {first['mean_return']:.0f}")
        self.refused(policy)

    def refused(self, policy):
        """What is no such checkpoint is named, and no region is left behind."""
        self.region.unlink()
        runs = pathlib.Path(policy[-1])
        self.kernel("--policy", "checkpoint:y", "--runs-dir", runs).fail(USAGE, "y")
        for manifest in sorted((runs / "x" / "checkpoints").rglob("*")):
            if manifest.is_file():
                manifest.unlink()
        self.kernel(*policy).fail(CONFIG, "no checkpoint")
        self.assertFalse(self.region.exists())

    def test_a_run_of_another_environment_is_refused_by_name(self):
        policy = self.train(env="tetris-placement", max_steps=50)
        self.kernel(*policy).fail(CONFIG, "plays tetris-placement", "cartpole")


if __name__ == "__main__":
    stream_harness.main()
