"""Draws the learning curves of a run: ./tetrion plot RUN [--out FILE.png].

RUN is a run's name, a path to its folder, or "latest". Reads metrics.jsonl (one JSON object per
5 s, written by the coordinator) and writes a PNG, by default metrics.png in the run's folder.
"""

import argparse
import json
import os
import pathlib
import shlex
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INK, SOFT, GRID = "#22303c", "#6b7a88", "#e3e8ec"
MOST_NAMED = 8  # runs in a message
BLUE, ORANGE, GREEN, RED, PURPLE = "#2f6fbb", "#e08a1e", "#3c9a5f", "#c8443f", "#7d5bb5"


class PlotError(Exception):
    """What is wrong, where, and what to do: one sentence."""


def newest_first(runs_dir):
    """The config.toml of each run, which is written when a run is begun or gone on with."""
    def age(file):
        try:
            return -file.stat().st_mtime
        except FileNotFoundError:  # the run was removed meanwhile
            return 0
    return sorted(runs_dir.glob("*/config.toml"), key=age)


def refuse_locked(runs_dir):
    """PlotError where a folder of `runs_dir` may hold a run that this user cannot read."""
    for folder in sorted(runs_dir.iterdir()) if runs_dir.is_dir() else []:
        if folder.is_dir() and not os.access(folder, os.R_OK | os.X_OK):
            raise PlotError(f"no run in {runs_dir} that you can read, and {folder} is locked: is "
                            "it a run of another user?")


def find_run(runs_dir, name):
    """The folder of a run: a name below runs_dir, a path, or the newest one for "latest"."""
    if name == "latest":
        runs = newest_first(runs_dir)
        if not runs:
            refuse_locked(runs_dir)
            raise PlotError(f"no run in {runs_dir}; start one with ./tetrion up")
        return runs[0].parent
    folders = [runs_dir / name, pathlib.Path(name)]
    for folder in reversed(folders) if "/" in name else folders:
        if folder.is_dir():
            return folder
    known = [file.parent.name for file in newest_first(runs_dir)]
    are = "there are" if len(known) <= MOST_NAMED else "the newest are"
    raise PlotError(f"no run \"{name}\" in {runs_dir}; "
                    f"{are + ' ' + ', '.join(known[:MOST_NAMED]) if known else 'there is none'}")


def read_samples(folder):
    """The samples of a run in order of time. A half-written last line is left out."""
    path = folder / "metrics.jsonl"
    if not path.exists():
        raise PlotError(f"{path} is not there; the first line is written 5 s after the start")
    samples = []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            sample = json.loads(line)
        except json.JSONDecodeError as error:
            if number == len(lines):
                continue
            raise PlotError(f"{path}:{number} is not JSON ({error.msg})") from error
        if isinstance(sample, dict):
            samples.append(sample)
    if len(samples) < 2:
        raise PlotError(f"{path} has {too_few(folder, samples)}")
    return samples


def too_few(folder, samples):
    """How many samples there are, and what to do for a curve."""
    told = f"{len(samples)} sample{'' if len(samples) == 1 else 's'}; a curve needs 2: "
    if samples and samples[-1].get("phase") == "finished":
        run = shlex.quote(f"{folder.parent}/{folder.name}")  # a path, whatever --runs-dir is
        return (f"{told}the run ended before its second; to go on with it: "
                f"./tetrion up --resume {run}")
    return told + "wait 10 s"


def value(sample, key):
    """sample["a"]["b"] for "a.b" (or a flat "a.b" or "a_b"); NaN when absent or no number."""
    found = sample
    for part in key.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    for flat in (key, key.replace(".", "_")):
        if found is None:
            found = sample.get(flat)
    is_number = isinstance(found, (int, float)) and not isinstance(found, bool)
    return float(found) if is_number else float("nan")


def column(samples, key):
    """One figure over time."""
    return [value(sample, key) for sample in samples]


def present(values):
    """True when there is anything to draw."""
    return any(v == v for v in values)


def minutes(samples):
    """Minutes of running, resumed runs joined end to end."""
    elapsed, epochs = column(samples, "elapsed_s"), column(samples, "epoch")
    if not present(elapsed):
        epochs = [float("nan")] * len(samples)  # the clock on the wall goes on
        wall = column(samples, "time")
        elapsed = [t - wall[0] for t in wall]
    if not present(elapsed):
        raise PlotError("the samples hold neither elapsed_s nor time")
    out, before, last, start = [], 0.0, 0.0, epochs[0]
    for seconds, epoch in zip(elapsed, epochs, strict=True):
        # A resumed run counts from 0 again, in the next epoch; samples of before say no epoch.
        if seconds < last or start < epoch:
            before += last
        last, start = seconds, epoch if epoch == epoch else start
        out.append((before + seconds) / 60)
    return out


def smooth(values, window):
    """Centred moving average over the values that are there."""
    out, half = [], window // 2
    for i in range(len(values)):
        near = [v for v in values[max(0, i - half):i + half + 1] if v == v]
        out.append(sum(near) / len(near) if near else float("nan"))
    return out


def shares(samples, key, scale=1.0):
    """Growth of a counter of seconds per second of the run. One that fell began again from 0, as
    Prometheus counts it; what a sum over actors grew by is not known (NaN) when one has left."""
    counts, time = column(samples, key), [60 * m for m in minutes(samples)]
    out = [float("nan")]
    for i in range(1, len(counts)):
        span = time[i] - time[i - 1]
        grown = counts[i] - counts[i - 1]
        if grown < 0:
            grown = float("nan") if key.startswith("actor.") else counts[i]
        out.append(grown / span * scale if span > 0 else float("nan"))
    return out


def short(number, _=None):
    """1500000 as 1.5M."""
    for limit, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= limit:
            return f"{number / limit:.3g}{unit}"
    return f"{number:.3g}"


class Panels:
    """A grid of panels that share the x axis: minutes below, environment steps above."""

    def __init__(self, plt, samples, count):
        self.samples, self.x = samples, minutes(samples)
        rows = (count + 1) // 2
        self.figure, axes = plt.subplots(rows, 2, figsize=(13, 3.1 * rows + 0.9), squeeze=False)
        self.axes = list(axes.flat)
        self.used = 0
        for spare in self.axes[count:]:
            spare.remove()

    def next(self, title):
        """The next free panel, dressed."""
        axis = self.axes[self.used]
        axis.set_title(title, loc="left", fontsize=11, color=INK, fontweight="bold", pad=8)
        axis.grid(color=GRID, linewidth=0.8)
        axis.set_axisbelow(True)
        axis.tick_params(colors=SOFT, labelsize=9, length=0)
        axis.yaxis.set_major_formatter(short)
        for side in ("top", "right", "left"):
            axis.spines[side].set_visible(False)
        axis.spines["bottom"].set_color(GRID)
        axis.set_xlim(min(self.x), max(self.x) if max(self.x) > min(self.x) else min(self.x) + 1)
        self.used += 1
        return axis

    def line(self, axis, values, colour, label=None, faint=True):
        """A figure over time: the samples faint, their moving average strong."""
        window = max(1, len(values) // 40)
        if faint and window > 1:
            axis.plot(self.x, values, color=colour, alpha=0.25, linewidth=0.9)
        axis.plot(self.x, smooth(values, window) if faint else values, color=colour,
                  linewidth=1.8, label=label, solid_capstyle="round")

    def steps_axis(self, axis):
        """Environment steps along the top of a panel."""
        steps = column(self.samples, "env_steps")
        if not present(steps):
            return
        top = axis.twiny()
        top.set_xlim(axis.get_xlim())
        ticks = [t for t in axis.get_xticks() if axis.get_xlim()[0] <= t <= axis.get_xlim()[1]]
        top.set_xticks(ticks)
        nearest = [min(range(len(self.x)), key=lambda i, t=t: abs(self.x[i] - t)) for t in ticks]
        top.set_xticklabels([short(steps[i]) for i in nearest])
        top.tick_params(colors=SOFT, labelsize=8, length=0, pad=1)
        top.set_xlabel("environment steps", fontsize=8, color=SOFT, labelpad=4)
        for side in top.spines.values():
            side.set_visible(False)
        axis.set_title(axis.get_title(loc="left"), loc="left", fontsize=11, color=INK,
                       fontweight="bold", pad=30)


# Panels of one or more figures: (title, [(key, label, colour)]).
SIMPLE = (
    ("Return per episode", (("return_mean", None, BLUE),)),
    ("Lines per episode", (("lines_mean", None, GREEN),)),
    ("Environment steps per second", (("env_steps_per_s", None, ORANGE),)),
    ("Episode length (steps)", (("length_mean", None, PURPLE),)),
    ("Losses", (("learner.policy_loss", "policy", BLUE), ("learner.value_loss", "value", ORANGE))),
    ("Entropy of the policy (nats)", (("learner.entropy", None, PURPLE),)),
    ("Explained variance of the value", (("learner.explained_variance", None, GREEN),)),
    ("Policy lag of the trained rows (versions)",
     (("learner.lag_p50", "median", BLUE), ("learner.lag_p99", "99 %", ORANGE))),
)
WAITS = (
    ("actor.wait_token_s", "actors: token", BLUE), ("actor.wait_ring_s", "actors: ring", ORANGE),
    ("actor.wait_weights_s", "actors: weights", GREEN),
    ("actor.wait_answer_s", "actors: answer", PURPLE),
    ("learner.limiter_wait_s", "learner: ingest held back", RED),
)
HEADLINE = (("env_steps", "steps"), ("episodes", "episodes"), ("learner.updates", "updates"))


def draw(samples, title, out):
    """Writes the PNG."""
    import matplotlib
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    panels = [(name, [f for f in figures if present(column(samples, f[0]))])
              for name, figures in SIMPLE]
    panels = [(name, figures) for name, figures in panels if figures]
    # A run without lines (CartPole) reports 0 throughout.
    panels = [(name, figures) for name, figures in panels
              if figures[0][0] != "lines_mean" or any(v > 0 for v in column(samples, "lines_mean"))]
    waits = [f for f in WAITS if present(column(samples, f[0]))]
    if not panels and not waits:
        raise PlotError("the samples hold none of the figures that are drawn")
    grid = Panels(plt, samples, len(panels) + bool(waits))
    for name, figures in panels:
        axis = grid.next(name)
        for key, label, colour in figures:
            grid.line(axis, column(samples, key), colour, label)
        if len(figures) > 1:
            axis.legend(frameon=False, fontsize=9, labelcolor=INK)
    if waits:
        axis = grid.next("Waiting (seconds per second, summed over threads)")
        for key, label, colour in waits:
            grid.line(axis, shares(samples, key), colour, label)
        axis.legend(frameon=False, fontsize=9, labelcolor=INK)
    for axis in grid.axes[:min(2, grid.used)]:
        grid.steps_axis(axis)
    for axis in grid.axes[max(0, grid.used - 2):grid.used]:
        axis.set_xlabel("minutes", fontsize=9, color=SOFT)
    grid.figure.suptitle(title, x=0.012, ha="left", fontsize=14, color=INK, fontweight="bold")
    grid.figure.tight_layout(rect=(0, 0, 1, 0.985), h_pad=1.6, w_pad=2.0)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        grid.figure.savefig(out, dpi=120, facecolor="white")
    except (OSError, ValueError) as error:  # a folder that is not writable, an unknown suffix
        raise PlotError(f"--out {out} cannot be written: {error}") from error


def headline(folder, samples):
    """Name of the run and where it stands."""
    last = samples[-1]
    parts = [folder.resolve().name, f"{minutes(samples)[-1]:.1f} min"]
    for key, unit in HEADLINE:
        if value(last, key) == value(last, key):
            parts.append(f"{short(value(last, key))} {unit}")
    return "   ".join(parts)


def found(runs_dir, name):
    """The folder of a run and its samples."""
    try:
        folder = find_run(runs_dir, name)
        return folder, read_samples(folder)
    except PermissionError as error:
        raise PlotError(f"{error.filename} cannot be read: is it a run of another user?") from error


def place_of(out):
    """The file for --out, which may be a folder or lack its suffix."""
    try:
        if out.is_dir():
            return out / "metrics.png"
    except OSError as error:
        raise PlotError(f"--out {out} cannot be written: {error}") from error
    return out if out.suffix else out.with_name(out.name + ".png")


def main():
    parser = argparse.ArgumentParser(prog="./tetrion plot", description=__doc__.split("\n")[0])
    parser.add_argument("run", help='a run\'s name, a path to its folder, or "latest"')
    parser.add_argument("--out", type=pathlib.Path, help="the PNG; default: metrics.png in the run")
    parser.add_argument("--runs-dir", type=pathlib.Path,
                        default=os.environ.get("TETRION_RUNS_DIR") or ROOT / "runs",
                        help="the folder with the runs; TETRION_RUNS_DIR unless given")
    args = parser.parse_args()
    try:
        folder, samples = found(args.runs_dir, args.run)
        out = place_of(args.out or folder / "metrics.png")
        draw(samples, headline(folder, samples), out)
    except ModuleNotFoundError as error:
        sys.exit(f"tetrion plot: {error.name} is missing; ./tetrion plot installs it from "
                 "deploy/python.txt into .deps/py")
    except PlotError as error:
        print(f"tetrion plot: {error}", file=sys.stderr)
        sys.exit(2)
    print(out)


if __name__ == "__main__":
    main()
