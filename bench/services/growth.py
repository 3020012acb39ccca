"""How the whole system's rate grows: growth.py BIN_DIR [--seconds N] [--picture FILE.png].

Trains tetris-placement for N seconds (10) at each point of five settings, one after another, all
others as in the preset. Prints a table, placements a second in the second half of a run (median,
min-max of its seconds, by the coordinator's counter), and draws it.
"""

import argparse
import os
import pathlib
import sys

import system

# Setting -> what its options are called, points. The preset has 64 lanes, 1 worker, 64 units.
AXES = {
    "lanes a worker": ("--lanes", (16, 32, 64, 128, 256)),
    "workers of an actor": ("--workers", (1, 2, 4, 8)),
    "actors of one worker": ("--actors", (1, 2, 3, 4)),
    "replay rows a shard": ("--replay-rows", (128, 512, 2048, 8192)),
    "units of the scorer": ("--scorer-units", (16, 32, 64, 128, 256)),
}
COMMON = {"--actors": ["--workers", "1"]}


def measure(bin_dir, seconds):
    """{setting: [(point, median, min, max)]}; a point whose run did not start is left out."""
    found = {}
    for setting, (option, points) in AXES.items():
        print(f"\n| {setting} (`{option}`) | placements/s, median (min-max) | learner MB | "
              "actor MB |")
        print("|---|---|---|---|")
        found[setting] = []
        for point in points:
            _, memory, rates = system.run(
                bin_dir, ["--env", "tetris-placement", *COMMON.get(option, []), option, str(point)],
                seconds / 2, seconds / 2)
            if not rates:
                continue
            rate = system.spread(rates)
            found[setting].append((point, rate["median"], rate["min"], rate["max"]))
            megabytes = " | ".join(f"{memory.get(program, 0):.0f}"
                                   for program in ("tetrion-learner", "tetrion-actor"))
            print(f"| {point} | {rate['median'] / 1e3:.1f} k ({rate['min'] / 1e3:.1f}-"
                  f"{rate['max'] / 1e3:.1f} k) | {megabytes} |", flush=True)
    return found


def draw(found, out):
    """One panel a setting."""
    import matplotlib  # not at the top: the figures come without it, too
    matplotlib.use("Agg")
    from matplotlib import pyplot
    figure, panels = pyplot.subplots(1, len(found), figsize=(3.2 * len(found), 3), sharey=True)
    for panel, (setting, points) in zip(panels, found.items(), strict=True):
        x = [point[0] for point in points]
        low = [(p[1] - p[2]) / 1e3 for p in points]
        high = [(p[3] - p[1]) / 1e3 for p in points]
        panel.errorbar(x, [p[1] / 1e3 for p in points], yerr=[low, high], marker="o", capsize=3,
                       color="#2f6fbb")
        panel.set_xscale("log", base=2)
        panel.set_xticks(x, [str(value) for value in x])
        panel.minorticks_off()
        panel.set_xlabel(setting)
        panel.grid(color="#e3e8ec")
    panels[0].set_ylabel("thousand placements a second")
    panels[0].set_ylim(0, 1.05 * max(p[3] for points in found.values() for p in points) / 1e3)
    figure.tight_layout()
    figure.savefig(out, dpi=110)


def main():
    system.end_when_told()
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--picture", type=pathlib.Path)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, runs of {options.seconds:g} s")
    found = measure(options.bin_dir, options.seconds)
    if options.picture:
        draw(found, options.picture)
    return 0 if all(found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
