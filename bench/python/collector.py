"""The batched collector with random actions, against a loop over single environments.

collector.py FOLDER [--quick] [--picture FILE]: FOLDER holds the built package
(build/release/python). Windows of collector and loop take turns, so that a busy machine slows both.
Prints one JSON line a figure. With --picture it measures over workers, K and B as well and draws
that (matplotlib).
"""

import argparse
import json
import resource
import statistics
import sys
import time

try:
    import gymnasium
    import numpy as np
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(0)

STEPS, EPISODES = 128, 512  # K, B
LANES = 16
WINDOWS = 7


def collected(collector, episodes, seconds):
    """Steps a second over requests that fill `seconds`."""
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        steps += int(collector.request_episodes(episodes).lengths.sum())
    return steps / (time.perf_counter() - start)


def looped(env, seconds):
    """Steps a second of one environment, its observations kept as a trainer would."""
    actions = np.random.default_rng(1).integers(env.action_space.n, size=4096)
    kept = np.zeros((STEPS, *env.observation_space.shape), np.float32)
    env.reset(seed=1)
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        for _ in range(64):
            at = steps % STEPS
            kept[at], _, terminated, truncated, _ = env.step(int(actions[steps % 4096]))
            steps += 1
            if terminated or truncated or at == STEPS - 1:
                env.reset()
    return steps / (time.perf_counter() - start)


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def compare(tetrion, obs, rival, rival_env, target, seconds, windows):
    """One figure: the collector, and the rival in turns with it."""
    collector = tetrion.BatchedTetrisCollector(2, STEPS, lanes_per_worker=LANES, obs=obs)
    collected(collector, EPISODES, seconds)  # touches its pages
    ours, theirs = [], []
    for _ in range(windows):
        ours.append(collected(collector, EPISODES, seconds))
        if rival_env is not None:
            theirs.append(looped(rival_env, seconds))
    collector.close()
    rivals = {"name": rival, **spread(theirs)} if theirs else None
    ratio = spread([a / b for a, b in zip(ours, theirs, strict=True)]) if theirs else None
    what = f"collector, {obs}, K={STEPS}, B={EPISODES}, random actions"
    print(
        json.dumps(
            {
                "what": what,
                "unit": "steps/s",
                "ours": spread(ours),
                "rival": rivals,
                "ratio": ratio,
                "target": target,
            }
        ),
        flush=True,
    )


def resident_mb():
    """Memory of this process."""
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() / 1e6


def long_rows(tetrion, seconds, windows):
    """Two figures of K = 10,000, where all but 1 % of a batch is padding: requests that hand their
    arrays over against such that lend them, in turns, and the memory of the first."""
    steps, episodes = 10_000, 64
    start_mb = resident_mb()
    collector = tetrion.BatchedTetrisCollector(2, steps, lanes_per_worker=LANES)
    for _ in range(4):  # the storage of the first comes back
        collector.request_episodes(episodes)
    grown_mb = resident_mb() - start_mb
    lending = tetrion.BatchedTetrisCollector(2, steps, lanes_per_worker=LANES, copy=False)
    collected(lending, episodes, seconds)
    ours, theirs = [], []
    for _ in range(windows):
        ours.append(collected(collector, episodes, seconds))
        theirs.append(collected(lending, episodes, seconds))
    lending.close()
    collector.close()
    what = f"collector, flat, K={steps}, B={episodes}, random actions"
    ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
    rate = {
        "what": what,
        "unit": "steps/s",
        "ours": spread(ours),
        "rival": {"name": "copy=False", **spread(theirs)},
        "ratio": spread(ratios),
        "target": ">= 0.2x",
    }
    memory = {
        "what": f"{what}: memory",
        "unit": "MB",
        "ours": spread([grown_mb]),
        "rival": None,
        "ratio": None,
        "target": "<= 300",
    }
    print(json.dumps(rate), json.dumps(memory), sep="\n", flush=True)


def package_env():
    """tetris-gymnasium, flattened by gymnasium; None where it is not installed."""
    try:
        from gymnasium.wrappers import FlattenObservation
        from tetris_gymnasium.envs import Tetris
    except ImportError:
        print("without tetris-gymnasium: not installed")
        return None
    return FlattenObservation(Tetris())


def sweep(tetrion, seconds, windows):
    """{axis: {obs: [(value, steps/s median, min, max)]}}: one of workers, K, B varied at a time."""
    axes = {
        "worker threads": [(n, STEPS, EPISODES) for n in (0, 1, 2, 4, 8)],
        "K, steps an episode": [(2, k, EPISODES) for k in (8, 32, 128, 512)],
        "B, episodes a request": [(2, STEPS, b) for b in (1, 8, 32, 128, 512, 1024)],
    }
    found = {}
    for column, (axis, points) in enumerate(axes.items()):
        found[axis] = {}
        for obs in ("compact", "flat"):
            rows = found[axis][obs] = []
            for point in points:
                workers, steps, episodes = point
                lanes = max(1, min(LANES, episodes // max(workers, 1)))
                with tetrion.BatchedTetrisCollector(
                    workers, steps, lanes_per_worker=lanes, obs=obs
                ) as collector:
                    collected(collector, episodes, seconds)
                    rates = [collected(collector, episodes, seconds) for _ in range(windows)]
                rows.append((point[column], statistics.median(rates), min(rates), max(rates)))
    return found


def draw(found, path):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    colours = {"compact": "#1b6ca8", "flat": "#c8553d"}
    named = {"compact": "compact (64 B a step)", "flat": "flat (3,776 B a step)"}
    figure, plots = plt.subplots(1, len(found), figsize=(11, 3.8), sharey=True)
    for plot, (axis, lines) in zip(plots, found.items(), strict=True):
        for obs, rows in lines.items():
            x = range(len(rows))
            low = [(m - lo) / 1e6 for _, m, lo, _ in rows]
            high = [(hi - m) / 1e6 for _, m, _, hi in rows]
            middle = [m / 1e6 for _, m, _, _ in rows]
            plot.errorbar(
                x, middle, [low, high], marker="o", capsize=3, color=colours[obs], label=named[obs]
            )
        plot.set_xticks(list(x), [str(row[0]) for row in rows])
        plot.set_yscale("log")
        plot.set_xlabel(axis)
        plot.grid(True, which="both", alpha=0.25)
    plots[0].set_ylabel("million steps a second")
    plots[0].legend()
    figure.suptitle(
        f"request_episodes with random actions; where not varied, 2 threads, K = {STEPS}, "
        f"B = {EPISODES}. Medians and ranges"
    )
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--picture")
    options = parser.parse_args()
    sys.path.insert(0, options.folder)
    import tetrion

    seconds, windows = (0.05, 3) if options.quick else (0.4, WINDOWS)
    single = gymnasium.make("tetrion/Tetris-v0", obs="flat") if not options.quick else None
    package = None if options.quick else package_env()
    compare(tetrion, "flat", "loop over tetrion/Tetris-v0", single, ">= 2M", seconds, windows)
    if package is not None:
        compare(tetrion, "flat", "loop over tetris-gymnasium", package, None, seconds, windows)
    compare(tetrion, "compact", "", None, ">= 10M", seconds, windows)
    long_rows(tetrion, seconds, windows)
    if options.picture:
        found = sweep(tetrion, seconds / 2, 3)
        print(json.dumps(found), file=sys.stderr)
        draw(found, options.picture)


if __name__ == "__main__":
    main()
