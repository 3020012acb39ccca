"""clang_tidy.py: which files it reads, and what makes it read a file again."""

import pathlib
import random
import unittest
from unittest import mock

import clang_tidy

TREE = {".clang-tidy": "Checks: a", "lib/a/a.cc": '#include "lib/a/a.h"\n#include <vector>\n',
        "lib/a/a.h": '#include "lib/b/b.h"\n', "lib/b/b.h": "int B();\n", "lib/c/c.h": ""}


class ClangTidyTest(unittest.TestCase):

    def key(self, changes=None, words=("-O2",)):
        return clang_tidy.key("lib/a/a.cc", list(words), {**TREE, **(changes or {})})

    def test_a_file_is_read_again_when_anything_it_is_made_of_changes(self):
        for path in (".clang-tidy", "lib/a/a.cc", "lib/a/a.h", "lib/b/b.h"):
            self.assertNotEqual(self.key(), self.key({path: TREE[path] + "\n"}), path)
        self.assertNotEqual(self.key(), self.key(words=("-O3",)))
        self.assertEqual(self.key(), self.key({"lib/c/c.h": "int c;\n"}))

    def test_headers_that_include_each_other_end(self):
        self.key({"lib/b/b.h": '#include "lib/a/a.h"\n'})

    def test_touched_files_come_first_and_others_by_lot(self):
        paths = [f"lib/a/f{i}.cc" for i in range(20)]
        touched = {"lib/a/f7.h", "lib/a/f3.cc", "docs/a.md"}
        picks = [clang_tidy.chosen(paths, touched, 6, random.Random(s)) for s in ("1", "1", "2")]
        self.assertEqual([set(pick[:2]) for pick in picks], [{"lib/a/f3.cc", "lib/a/f7.cc"}] * 3)
        self.assertEqual([len(set(pick)) for pick in picks], [6, 6, 6])
        self.assertEqual(picks[0], picks[1])
        self.assertNotEqual(picks[0], picks[2])
        self.assertEqual(sorted(clang_tidy.chosen(paths, touched, 99, random.Random(1))),
                         sorted(paths))

    def test_a_machine_without_git_draws_by_the_week(self):
        with mock.patch.object(clang_tidy.subprocess, "run", side_effect=FileNotFoundError):
            self.assertEqual(clang_tidy.changed(), set())
            self.assertRegex(clang_tidy.seed(), r"^20\d{4}$")

    def test_exceptions_are_of_sources_that_are_there(self):
        for path, name in clang_tidy.ALLOWED:
            self.assertTrue((clang_tidy.ROOT / path).is_file(), path)
            self.assertEqual(clang_tidy.switched_off(path), [f"--checks=-{name}"])
        self.assertEqual(clang_tidy.switched_off("lib/shm/bell.cc"), [])

    def test_every_switched_off_check_has_its_reason(self):
        text = (pathlib.Path(clang_tidy.ROOT) / ".clang-tidy").read_text(encoding="utf-8")
        comment, _, rest = text.partition("Checks:")
        off = [word.strip()[1:] for word in rest.partition("WarningsAsErrors")[0].split(",")
               if word.strip().startswith("-") and "*" not in word]
        self.assertTrue(off)
        for name in off:
            self.assertRegex(comment, rf"#   {name}\s+\w+")


if __name__ == "__main__":
    unittest.main()
