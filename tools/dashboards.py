"""Draws the panels of deploy/grafana with matplotlib from the data of a Prometheus:

    .deps/py/bin/python tools/dashboards.py http://127.0.0.1:9090 [--minutes 10] [--out FOLDER]

For a look without Grafana. The queries and the places of the panels are those of the dashboards'
JSON; it writes dashboard_<name>.png for each.
"""

import argparse
import json
import pathlib
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from plot import BLUE, GREEN, GRID, INK, ORANGE, PURPLE, RED, SOFT, short

ROOT = pathlib.Path(__file__).resolve().parent.parent
BOARDS = ROOT / "deploy" / "grafana" / "dashboards"
COLOURS = (BLUE, ORANGE, GREEN, RED, PURPLE, "#8c6d46", "#d177a8", "#4fa8a8", "#98a53a", SOFT)
OF_THRESHOLDS = {"red": RED, "orange": ORANGE, "green": GREEN, "blue": BLUE}
POINTS = 240
RATE_WINDOW = "30s"
CELL_W, CELL_H = 0.62, 0.36  # inches of one cell of Grafana's grid of 24 columns


class DrawError(Exception):
    """What is wrong, where, and what to do: one sentence."""


def ask(url, query, start, end):
    """Series of a range query: [(labels, times, values)]."""
    query = query.replace("$__rate_interval", RATE_WINDOW).replace("$run", ".*")
    step = max(1.0, (end - start) / POINTS)
    form = urllib.parse.urlencode({"query": query, "start": start, "end": end, "step": step})
    try:
        with urllib.request.urlopen(f"{url}/api/v1/query_range?{form}", timeout=30) as answer:
            found = json.loads(answer.read())["data"]["result"]
    except urllib.error.HTTPError as error:
        raise DrawError(f"{url} refuses {query}: {error.read().decode()}") from error
    except OSError as error:
        raise DrawError(f"no Prometheus answers at {url} ({error}); docs/MONITORING.md says how "
                        "to start one") from error
    return [(series["metric"], [float(at) for at, _ in series["values"]],
             [float(value) for _, value in series["values"]]) for series in found]


def legend(template, labels):
    return re.sub(r"\{\{(\w+)\}\}", lambda found: labels.get(found.group(1), ""), template)


def in_unit(value, unit):
    """A figure as Grafana would show it in the units that the dashboards use."""
    if value != value:
        return "-"
    if unit == "percentunit":
        return f"{100 * value:.3g} %"
    if unit == "decbytes":
        return short(value) + "B"
    if unit == "s" and value:
        for limit, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
            if abs(value) >= limit:
                return f"{value / limit:.3g} {name}"
    return short(value) + (" s" if unit == "s" else "")


def threshold_colour(steps, value):
    reached = [step["color"] for step in steps if step["value"] is None or value >= step["value"]]
    return OF_THRESHOLDS[reached[-1]]


def draw_figure(axis, panel, series):
    """A number, coloured by its thresholds, over its faint curve."""
    axis.axis("off")
    axis.set_title(panel["title"], loc="left", fontsize=9.5, color=INK, pad=4)
    if not series:
        axis.text(0.5, 0.45, "no data", ha="center", va="center", color=SOFT,
                  transform=axis.transAxes)
        return
    defaults = panel["fieldConfig"]["defaults"]
    _, times, values = series[0]
    colour = threshold_colour(defaults["thresholds"]["steps"], values[-1])
    axis.fill_between(times, values, min(values), color=colour, alpha=0.13, linewidth=0)
    axis.plot(times, values, color=colour, alpha=0.35, linewidth=1)
    axis.text(0.5, 0.45, in_unit(values[-1], defaults["unit"]), ha="center", va="center",
              fontsize=21, color=colour, fontweight="bold", transform=axis.transAxes)


def draw_curves(axis, panel, series, start):
    defaults = panel["fieldConfig"]["defaults"]
    axis.set_title(panel["title"], loc="left", fontsize=10, color=INK, fontweight="bold", pad=6)
    axis.grid(color=GRID, linewidth=0.8)
    axis.set_axisbelow(True)
    axis.tick_params(colors=SOFT, labelsize=8, length=0)
    axis.yaxis.set_major_formatter(lambda value, _: in_unit(value, defaults["unit"]))
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    axis.spines["bottom"].set_color(GRID)
    if not series:
        axis.text(0.5, 0.5, "no data", ha="center", color=SOFT, transform=axis.transAxes)
    minutes = [[(at - start) / 60 for at in times] for _, times, _ in series]
    names = [name for name, _, _ in series]
    if defaults["custom"]["stacking"]["mode"] == "normal" and series:
        draw_stack(axis, minutes, [values for _, _, values in series], names)
    else:
        for i, (name, _, values) in enumerate(series):
            axis.plot(minutes[i], values, color=COLOURS[i % len(COLOURS)], linewidth=1.5,
                      label=name)
    low, high = axis.get_ylim()
    if not any(value == value and value for _, _, values in series for value in values):
        low, high = 0, 1
    axis.set_ylim(defaults.get("min", low), defaults.get("max", high))
    if series:
        axis.legend(frameon=False, fontsize=7.5, labelcolor=INK, loc="upper center",
                    bbox_to_anchor=(0.5, -0.1),
                    ncols=min(len(series), 3 if panel["gridPos"]["w"] < 12 else 6),
                    handlelength=1.2, columnspacing=1.2)


def draw_stack(axis, minutes, columns, names):
    """Series that begin later are 0 before."""
    every = sorted({at for times in minutes for at in times})
    filled = []
    for times, values in zip(minutes, columns, strict=True):
        at = dict(zip(times, values, strict=True))
        filled.append([at.get(x, 0.0) for x in every])
    axis.stackplot(every, filled, colors=COLOURS, labels=names, alpha=0.75, linewidth=0)


def draw(url, board, start, end, out):
    try:
        import matplotlib
        matplotlib.use("Agg")
        import matplotlib.pyplot as plt
    except ModuleNotFoundError as error:
        raise DrawError(f"{error.name} is missing; run it with .deps/py/bin/python, which "
                        "./tetrion test makes") from error

    rows = max(panel["gridPos"]["y"] + panel["gridPos"]["h"] for panel in board["panels"])
    width, height = 24 * CELL_W, (rows + 2) * CELL_H
    figure = plt.figure(figsize=(width, height))
    figure.text(0.012, 1 - 0.9 * CELL_H / height, board["title"], fontsize=15, color=INK,
                fontweight="bold", va="center")
    figure.text(0.988, 1 - 0.9 * CELL_H / height, "across: minutes", fontsize=8.5, color=SOFT,
                ha="right", va="center")
    for panel in board["panels"]:
        at = panel["gridPos"]
        left, top = at["x"] / 24, 1 - (at["y"] + 1.6) * CELL_H / height
        if panel["type"] == "row":
            figure.text(0.012, top - 0.5 * CELL_H / height, panel["title"], fontsize=11,
                        color=SOFT, va="center")
            continue
        series = [(legend(target["legendFormat"], labels), times, values)
                  for target in panel["targets"]
                  for labels, times, values in ask(url, target["expr"], start, end)]
        is_figure = panel["type"] == "stat"
        below, above = (0.3, 1.2) if is_figure else (2.0, 1.3)  # cells for legend and title
        box = (left + (0.4 if is_figure else 1.3) / 24,
               top - (at["h"] - below) * CELL_H / height,
               (at["w"] - (0.8 if is_figure else 1.8)) / 24,
               (at["h"] - below - above) * CELL_H / height)
        axis = figure.add_axes(box)
        if is_figure:
            draw_figure(axis, panel, series)
        else:
            draw_curves(axis, panel, series, start)
    figure.savefig(out, dpi=90, facecolor="white")
    plt.close(figure)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url", help="the Prometheus, http://127.0.0.1:9090")
    parser.add_argument("--minutes", type=float, default=10, help="how far back")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "docs" / "pictures")
    args = parser.parse_args()
    end = time.time()
    try:
        args.out.mkdir(parents=True, exist_ok=True)
        for path in sorted(BOARDS.glob("*.json")):
            out = args.out / f"dashboard_{path.stem}.png"
            draw(args.url.rstrip("/"), json.loads(path.read_text(encoding="utf-8")),
                 end - 60 * args.minutes, end, out)
            print(out)
    except DrawError as error:
        sys.exit(f"dashboards: {error}")
    except OSError as error:
        sys.exit(f"dashboards: --out {args.out} cannot be written: {error.strerror}")


if __name__ == "__main__":
    main()
