"""A Catch run with V-trace and the environment's preset learns, counted in environment steps."""

import re

import harness

# Mean return of greedy play, of 1; the random policy has -0.78. Three runs had 1.00 each after half
# as many steps; with the default of --entropy-coef the best of three had -0.50 after these.
GREEDY = 0.7


class CatchLearns(harness.Case):
    def test_greedy_play_catches_most_balls_after_2000000_steps_from_three_seeds(self):
        for seed in (1, 2, 3):
            with self.subTest(seed=seed):
                run = self.new_run(folder=f"seed-{seed}").start_up(
                    settings={"env": "catch", "lanes": 16, "max_steps": 0, "seed": seed},
                    stop_after="2000000steps")
                self.assertEqual(run.wait_exit("up", deadline_s=120), 0)
                code, said = self.call("tetrion-eval", "eval", "x", "--runs-dir", run.runs,
                                       "--episodes", 200)
                self.assertEqual(code, 0, said)
                greedy = float(re.search(r"return +(-?[\d.]+)", said).group(1))
                print(f"greedy {greedy:.2f}")
                self.assertGreaterEqual(greedy, GREEDY, said)
                self.assertGreaterEqual(run.check_ended()["env_steps"], 2_000_000)


if __name__ == "__main__":
    harness.main()
