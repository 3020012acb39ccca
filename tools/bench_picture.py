"""Draws ratios to rivals as bars: a PNG for ./tetrion bench --picture FILE.

A bar ends where we are: 2 on the axis is twice as good as the rival, be it twice the rate or half
the time. A tick marks the target where it is a ratio; the line at 1 is the rival.
"""

import re

from bench import less_is_better

INK, SOFT, GRID = "#22303c", "#6b7a88", "#e3e8ec"
COLOURS = {"met": "#3c9a5f", "MISSED": "#c8443f", "-": "#2f6fbb"}
MEANINGS = {"met": "target met", "MISSED": "target missed", "-": "no target of a ratio"}
ROW_INCHES = 0.24


def advantage(figure, ratio):
    """How much better we are than the rival; 1: equal."""
    return 1.0 / ratio if less_is_better(figure) else ratio


def target_of(figure):
    """The target on the picture's axis; None where it is no ratio."""
    match = re.match(r"\s*(?:>=|<=|≥|≤)?\s*([0-9.]+)x\s*$", str(figure.get("target") or ""))
    return advantage(figure, float(match.group(1))) if match else None


def bars(figures, verdict):
    """[{label, value, low, high, target, verdict}] of the figures with a ratio, in their order."""
    found = []
    for figure in figures:
        ratio, rival = figure.get("ratio"), figure.get("rival") or {}
        if not ratio or not ratio.get("median"):
            continue
        values = sorted(advantage(figure, ratio[key]) for key in ("min", "max") if ratio.get(key))
        target = target_of(figure)
        found.append({"label": "  |  ".join(filter(None, (figure["what"], rival.get("name")))),
                      "value": advantage(figure, ratio["median"]),
                      "low": values[0] if values else None,
                      "high": values[-1] if values else None,
                      "target": target, "verdict": verdict(figure) if target else "-"})
    return found


def times(value):
    """0.0213 as 0.021x, 1253.7 as 1250x."""
    return f"{float(f'{value:.2g}' if value < 100 else f'{value:.3g}'):g}x"


def draw(figures, verdict, title, out):
    """Writes the picture; returns how many bars it has, 0: nothing is written."""
    rows = bars(figures, verdict)
    if not rows:
        return 0
    import matplotlib  # not at the top: the tests of the rest run without it
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axis = pyplot.subplots(figsize=(13, 1.4 + ROW_INCHES * len(rows)))
    places = range(len(rows), 0, -1)
    for place, row in zip(places, rows, strict=True):
        low, high = sorted((1.0, row["value"]))
        axis.barh(place, high - low, left=low, height=0.62, color=COLOURS[row["verdict"]])
        if row["low"] is not None:
            axis.plot([row["low"], row["high"]], [place, place], color=INK, linewidth=0.8)
        if row["target"] is not None:
            axis.plot([row["target"]] * 2, [place - 0.42, place + 0.42], color=INK, linewidth=1.6)
        beside = max(high, row["high"] or high, row["target"] or high)
        axis.text(beside * 1.06, place, times(row["value"]), va="center",
                  fontsize=8, color=INK)
    axis.set_xscale("log")
    axis.axvline(1.0, color=SOFT, linewidth=1)
    axis.set_yticks(list(places), [row["label"] for row in rows], fontsize=8, color=INK)
    axis.set_ylim(0.3, len(rows) + 0.7)
    ends = [row[key] for row in rows for key in ("value", "low", "high", "target") if row[key]]
    axis.set_xlim(min(0.5, 0.8 * min(ends)), 2.2 * max(2.0, *ends))
    axis.xaxis.set_major_formatter(lambda value, _: times(value))
    axis.grid(axis="x", color=GRID)
    axis.set_axisbelow(True)
    axis.tick_params(colors=SOFT, length=0)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    axis.set_title(title, loc="left", fontsize=10, color=INK)
    axis.set_xlabel("times as good as the rival behind a bar's name; ticks are targets",
                    fontsize=9, color=SOFT)
    shown = [name for name in COLOURS if any(row["verdict"] == name for row in rows)]
    axis.legend([pyplot.Rectangle((0, 0), 1, 1, color=COLOURS[name]) for name in shown],
                [MEANINGS[name] for name in shown], loc="upper right", ncols=len(shown),
                bbox_to_anchor=(1.0, -0.02), fontsize=8, frameon=False)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=75, bbox_inches="tight", facecolor="white")
    pyplot.close(figure)
    return len(rows)
