"""Collects random episodes of Tetris and draws how long they are and what they earn.

python collect_random.py [--episodes 2000] [--out random.png]      (needs matplotlib)
"""

import argparse
import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import tetrion


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--out", default="random.png")
    options = parser.parse_args()

    start = time.perf_counter()
    with tetrion.BatchedTetrisCollector(2, 1000, lanes_per_worker=16, obs="compact") as collector:
        batch = collector.request_episodes(options.episodes)
    seconds = time.perf_counter() - start
    steps = int(batch.lengths.sum())
    print(f"{options.episodes} episodes, {steps} steps in {seconds:.2f} s")
    print(f"lines cleared: {batch.lines.sum()}, mean return {batch.returns.mean():.2f}")

    figure, (lengths, returns) = plt.subplots(1, 2, figsize=(9, 3.5))
    lengths.hist(batch.lengths, bins=50, color="#1b6ca8")
    lengths.set_xlabel("steps an episode")
    lengths.set_ylabel("episodes")
    returns.hist(batch.returns, bins=50, color="#c8553d")
    returns.set_xlabel("return")
    figure.suptitle("Tetris, uniformly random actions")
    figure.tight_layout()
    figure.savefig(options.out, dpi=110)
    print(f"wrote {options.out}")


if __name__ == "__main__":
    main()
