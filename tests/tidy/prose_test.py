"""Every rule of prose_rules.py refuses what it exists to refuse, and nothing else."""

import unittest
from unittest import mock

import prose_rules
from rule_case import RuleCase

WIDE = "// " + "word " * 17 + "end"


class ProseTest(RuleCase):

    def test_orphan_comments(self):
        torn = f"{WIDE}\n// of it.\n// The next sentence of the paragraph.\n"
        self.refuses(prose_rules.orphan_comments, {"lib/a/a.h": torn})
        self.refuses(prose_rules.orphan_comments, {"tests/a.py": torn.replace("//", "#")})
        self.passes(prose_rules.orphan_comments, {"lib/a/a.h": f"{WIDE}\n// of it.\nint x;\n"})
        for after in ("//", "// - an item", "// 2. an item", "//   a picture"):
            self.passes(prose_rules.orphan_comments, {"a.h": f"{WIDE}\n// of it.\n{after}\n"})
        self.passes(prose_rules.orphan_comments, {"a.h": f"// Short.\n// Too.\n{WIDE}\n"})
        self.passes(prose_rules.orphan_comments, {"README.md": torn})

    def test_named_files(self):
        for path, text in (("lib/a/a.h", "// see gone.h\n"), ("README.md", "`lib/gone.cc` does\n"),
                           ("proto/a.fbs", "// lib/a/gone.cc reads\n"), ("t.py", "# gone.md\n"),
                           ("lib/a/a.h", "// see b/a.h\n")):
            self.refuses(prose_rules.named_files, {path: text})
        self.passes(prose_rules.named_files, {
            "lib/a/a.h": '// a.h, a/a.h, ../a/a.h and lib/a/a.h.\nf("gone.h");\n'
                         "// *_test.cc, <f>.cc, lib/a/a.{h,cc}, a.h(3), e.html\n"
                         "// control_generated.h\n",
            "CHANGELOG.md": "gone.cc is gone"})
        excuse = {"gone.h": "reason"}
        with mock.patch.object(prose_rules, "NOT_IN_THE_TREE", excuse):
            self.passes(prose_rules.named_files, {"a.md": "gone.h", prose_rules.HERE: ""})
            self.refuses(prose_rules.named_files, {"a.md": "-", prose_rules.HERE: ""})

    def test_named_tests(self):
        there = {"tests/a_test.cc": "TEST(A, One) {}\nTEST_F(A,\n       Two) {}\n"}
        self.passes(prose_rules.named_tests,
                    {**there, "tests/b/README.md": "| x | `A.One`, `A.Two` in tests/a_test.cc |"})
        for text in ("`A.One`, `A.Three` in tests/a_test.cc", "`B.One` in tests/a_test.cc",
                     "`A.One` in tests/gone_test.cc"):
            self.refuses(prose_rules.named_tests, {**there, "tests/b/README.md": text})

    def test_folder_readmes(self):
        many = {f"lib/core/a{i}.{suffix}": "" for i in range(4) for suffix in ("h", "cc")}
        with mock.patch.object(prose_rules, "WITHOUT_README", {}):
            self.refuses(prose_rules.folder_readmes, many)
            named = "| `a0` | `a1.h`, `a1.cc` | `a2.{h,cc}` |"
            self.refuses(prose_rules.folder_readmes, {**many, "lib/core/README.md": named})
            self.passes(prose_rules.folder_readmes,
                        {**many, "lib/core/README.md": named + " `a3`"})
            self.passes(prose_rules.folder_readmes, {
                **{f"lib/core/a{i}.h": "" for i in range(6)}, "lib/core/CMakeLists.txt": "",
                **{f"tests/lib/core/a{i}.h": "" for i in range(9)}})
        inner = {path.replace("core/", "core/part/"): text for path, text in many.items()}
        around = "| `part/a0.h` | `a1.h` | `part/a2` |"
        with mock.patch.object(prose_rules, "WITHOUT_README", {}):
            self.refuses(prose_rules.folder_readmes, {**inner, "lib/core/README.md": named})
            self.passes(prose_rules.folder_readmes,
                        {**inner, "lib/core/README.md": around + " `a3`"})
        self.refuses(prose_rules.folder_readmes, {f"tools/a{i}.py": "" for i in range(7)})
        for folder in ("`part/`", "`part/` (`a0`)"):
            self.refuses(prose_rules.folder_readmes, {**inner, "lib/core/README.md": folder},
                         count=4 - folder.count("a0"))
            self.passes(prose_rules.folder_readmes, {
                "lib/core/part/a0.h": "", "lib/core/part/a1.h": "", "lib/core/README.md": folder})
        with mock.patch.object(prose_rules, "WITHOUT_README", {"lib/core": "reason"}):
            self.passes(prose_rules.folder_readmes, many)
            self.refuses(prose_rules.folder_readmes, {"lib/core/a0.h": ""})
            self.refuses(prose_rules.folder_readmes, {prose_rules.HERE: ""})
            self.refuses(prose_rules.folder_readmes,
                         {"lib/core/a0.h": "", "lib/core/README.md": "`a0`"}, count=2)

    def test_folder_readmes_name_what_is_there(self):
        files = {"lib/core/a.h": "", "lib/core/a.cc": "", "lib/core/part/b.cc": ""}
        table = "`a`, `part/b`\n\n| file | holds |\n|---|---|\n| CELL | `gone` |\n"
        others = "\n| asks | for |\n|---|---|\n| `gone` | `a` |\n"
        for cell in ("`a`", "`a.h`, `part/`", "`a.{h,cc}`, `part/b`, `b.cc`"):
            self.passes(prose_rules.folder_readmes, {
                **files, "lib/core/README.md": table.replace("CELL", cell) + others})
        for cell in ("`gone`", "`a.py`", "`a.{h,py}`", "`gone/`", "`part/a`"):
            self.refuses(prose_rules.folder_readmes, {
                **files, "lib/core/README.md": table.replace("CELL", cell) + others})


if __name__ == "__main__":
    unittest.main()
