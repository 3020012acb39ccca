"""What a sweep has tried, as options and as a table."""

import statistics


def flags_of(values):
    """{"learning_rate": "0.001"} as options of up."""
    return [word for key, value in values.items()
            for word in ("--" + key.replace("_", "-"), value)]


def spread(scores):
    """"1203 (1100-1410)"."""
    text = f"{statistics.median(scores):.4g}"
    return text if len(scores) == 1 else f"{text} ({min(scores):.4g}-{max(scores):.4g})"


def table(tried):
    """Lines of a table, the best first, those that trained longest before the others."""
    lines = ["| trial | seconds | score, median (min-max) | settings |", "|---|---|---|---|"]
    order = sorted(tried, key=lambda one: (-one["seconds"], -statistics.median(one["scores"])))
    for one in order:
        settings = " ".join(flags_of(one["values"]))
        lines.append(f"| {one['trial']} | {one['seconds']:.0f} | {spread(one['scores'])} | "
                     f"`{settings}` |")
    return lines


def best_of(tried):
    """The best of those that trained longest; None before the first score."""
    return max(tried, key=lambda one: (one["seconds"], statistics.median(one["scores"])),
               default=None)
