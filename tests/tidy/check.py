"""Checks the tree against one rule (or all) of tests/tidy/rules.py: check.py [RULE...].

Prints a line per finding; exit status 1 when an enforced rule finds something.
"""

import pathlib
import subprocess
import sys

import rules

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIPPED = {".git", ".deps", "build", "runs", "__pycache__", ".venv"}


def paths():
    """Files of the tree: git's view (tracked or not yet, never ignored), else everything here."""
    listing = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=False)
    if listing.returncode == 0 and listing.stdout:
        return [path for path in listing.stdout.split("\0") if path and (ROOT / path).is_file()]
    return [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
            if path.is_file() and not SKIPPED & set(path.relative_to(ROOT).parts)]


def read_tree():
    """{path from the root: text}; files that are not text (pictures) are there with empty text."""
    tree = {}
    for path in paths():
        try:
            tree[path] = (ROOT / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            tree[path] = ""
    return tree


def main(names):
    tree = read_tree()
    if not any(path.startswith("lib/") for path in tree):
        print(f"no lib/ below {ROOT}: nothing was checked")
        return 1
    chosen = [r for r in rules.ENFORCED if not names or r.__name__ in names]
    if len(chosen) < len(names):
        print("known rules:", *(r.__name__ for r in rules.ENFORCED))
        return 2
    findings = [finding for rule in chosen for finding in rule(tree)]
    print(*findings, sep="\n")
    if not names:
        for rule in rules.REPORTED:
            print(*(f"note: {finding}" for finding in rule(tree)), sep="\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
