"""What a run of the bundle measured, as docs/benchmarks.md has it: report.py RESULTS."""

import pathlib
import sys

sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent),
                str(pathlib.Path(__file__).resolve().parents[2] / "tools")]

import bench_program  # noqa: E402

import bench  # noqa: E402  (in a bundle these lie beside this file)

HEADER = ("what", "unit", "ours", "rival in the same run", "ratio", "target", "verdict")


def row(figure):
    """The cells of one figure."""
    rival, ratio = figure.get("rival"), figure.get("ratio")
    against = f"{rival['name']} {bench.spread(rival)}" if rival else ""
    return (figure["what"], figure.get("unit", ""), bench.spread(figure["ours"]), against,
            bench.spread(ratio, "x") if ratio else "", str(figure.get("target") or ""),
            bench.verdict(figure) if figure.get("target") else "")


def report(results):
    """Markdown: machine, then a table of all figures."""
    machine = (results / "machine.txt").read_text(encoding="utf-8").splitlines()
    figures = []
    for file in sorted(results.glob("*.json")):
        found, unreadable = bench_program.figures_of(file.read_text(encoding="utf-8"), file.stem)
        figures += found
        for line in unreadable:
            print(f"{file.stem}: unreadable line: {line}", file=sys.stderr)
    lines = ["; ".join(machine) + ".", ""]
    if not figures:
        return "\n".join([*lines, "No benchmark ran: not measured."])
    for cells in (HEADER, ("---",) * len(HEADER), *map(row, figures)):
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(report(pathlib.Path(sys.argv[1])))
