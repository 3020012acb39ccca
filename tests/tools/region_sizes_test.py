"""Sizes of shared memory that documents name are those that tetrion-shm-size tells.

Usage: region_sizes_test.py PROGRAM
"""

import os
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PROGRAM = ""


def said(*arguments):
    """What the program says of a run with these settings, and no others."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("TETRION_")}
    return subprocess.run([PROGRAM, *arguments], env=own, capture_output=True, text=True,
                          check=True, timeout=60).stdout


def bytes_of(text):
    """(of a worker's ring, of the learner's region)"""
    return tuple(int(re.search(rf"^{whose} region +(\d+) bytes", text, re.MULTILINE)[1])
                 for whose in ("a worker's", "learner's"))


def mebibytes_of(text):
    return int(re.search(r"sizeLimit: (\d+)Mi", text)[1])


class RegionSizes(unittest.TestCase):

    def test_the_run_books_table_of_regions_is_what_the_program_says(self):
        text = (DOCS / "OPERATIONS.md").read_text(encoding="utf-8")
        table = text.split("**Region volume**, bytes")[1].split("\n\n")[1]
        rows = re.findall(r"^\| ([a-z-]+) \| (\d+) \| ([\d,]+) \| ([\d,]+) \|$", table,
                          re.MULTILINE)
        self.assertEqual(len(rows), table.count("\n") - 1, "a row that is not understood")
        for env, lanes, *sizes in rows:
            with self.subTest(env=env, lanes=lanes):
                told = bytes_of(said("--env", env, "--lanes", lanes, "--max-workers", "1"))
                self.assertEqual(tuple(int(size.replace(",", "")) for size in sizes), told)

    def test_what_the_page_on_kubernetes_says_of_its_size_limit_is_what_the_program_says(self):
        manifest = (ROOT / "deploy/k8s/base/learner.yaml").read_text(encoding="utf-8")
        limit = int(re.search(r"sizeLimit: (\d+)Mi", manifest)[1])
        page = " ".join((DOCS / "KUBERNETES.md").read_text(encoding="utf-8").split())
        self.assertIn(f"`sizeLimit` of {limit}Mi", page)
        least, base = re.search(r"need (\d+)Mi, as `\./tetrion doctor --shm ([^`]*)`",
                                page).groups()
        self.assertEqual(int(least), mebibytes_of(said(*base.split())))
        cases = re.findall(r"`(--[^`]*)` \((\d+)Mi\)", page)
        self.assertEqual(len(cases), 3)
        for given, size in cases:
            with self.subTest(given=given):
                self.assertEqual(int(size), mebibytes_of(said(*base.split(), *given.split())))
        self.assertEqual([int(size) > limit for _, size in cases], [False, False, True])


if __name__ == "__main__":
    PROGRAM = sys.argv.pop(1)
    unittest.main()
