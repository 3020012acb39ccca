"""The runner of the mutants: what it reads, chooses and concludes, and runs of it in a tree of its
own, whose cmake and ninja are shell scripts."""

import fnmatch
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import mutants

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
HEADER = "The sum is wrong.\ntarget: sum_test\ntest: Sum.Adds\n"
PASSES = "[ RUN      ] Sum.Adds\n[       OK ] Sum.Adds (0 ms)\n"
FAILS = "[ RUN      ] Sum.Adds\n[  FAILED  ] Sum.Adds (0 ms)\n[  FAILED  ] 1 test, listed below:\n"


def diff(path, old, new):
    return f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+{new}\n"


def targets():
    """{ninja target: (sources, whether only builds with libtorch have it)} of the tests here."""
    found = {}
    for lists in ROOT.glob("tests/**/CMakeLists.txt"):
        text = re.sub(r"#.*", "", lists.read_text(encoding="utf-8"))
        text = text.replace("${CMAKE_SOURCE_DIR}", str(ROOT))
        torch = [match.span() for match in
                 re.finditer(r"^if\(TETRION_TORCH\)$.*?^endif", text, re.DOTALL | re.MULTILINE)]
        for match in re.finditer(r"tetrion(_cuda)?_test\(\s*(\w+)([^)]*)\)", text):
            sources = [lists.parent / word for word in match[3].split()
                       if word.endswith((".cc", ".cu"))]
            found[match[2] + ("_sim" if match[1] else "")] = (
                sources, any(begin < match.start() < end for begin, end in torch))
    return found


def tests_in(sources):
    """(suite, name) of the tests in these files and in the headers of tests that they include."""
    found = set()
    for source in sources:
        text = source.read_text(encoding="utf-8")
        headers = [ROOT / path for path in re.findall(r'#include "(tests/[^"]+)"', text)]
        for part in (text, *(path.read_text(encoding="utf-8") for path in headers)):
            found.update(re.findall(r"\b(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)", part))
    return found


class Patches(unittest.TestCase):

    def read(self, text):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-mutants-"))
        self.addCleanup(shutil.rmtree, folder)
        (folder / "math").mkdir()
        (folder / "math" / "sum.patch").write_text(text, encoding="utf-8")
        return mutants.load(folder)[0]

    def test_header_says_fault_target_tests_and_defaults(self):
        mutant = self.read(HEADER + "test: Sum.Carries\n\n" + diff("lib/sum", "1", "2"))
        self.assertEqual(mutant.name, "math/sum")
        self.assertEqual(mutant.fault, "The sum is wrong.")
        self.assertEqual(mutant.target, "sum_test")
        self.assertEqual(mutant.tests, ("Sum.Adds", "Sum.Carries"))
        self.assertEqual((mutant.preset, mutant.timeout_s), ("asan", 30))
        self.assertEqual(mutants.touched(mutant), ["lib/sum"])

    def test_header_may_name_preset_and_time_out(self):
        mutant = self.read(HEADER + "preset: tsan\ntimeout_s: 5\n" + diff("lib/sum", "1", "2"))
        self.assertEqual((mutant.preset, mutant.timeout_s), ("tsan", 5))

    def test_incomplete_headers_are_refused(self):
        for header in ("target: t\ntest: A.B\n", "A fault.\ntest: A.B\n", "A fault.\ntarget: t\n",
                       HEADER + "preset: fast\n"):
            with self.assertRaises(mutants.BadPatchError):
                self.read(header + diff("lib/sum", "1", "2"))

    def test_every_patch_here_is_complete(self):
        names = [mutant.name for mutant in mutants.load(HERE)]
        self.assertGreater(len(names), 0)
        self.assertEqual(len(names), len(list(HERE.glob("*/*.patch"))))

    # A patch of several hunks applies as a whole or not at all; CI builds a sample of the mutants.
    def test_every_patch_here_applies(self):
        broken = [mutant.name for mutant in mutants.load(HERE) if subprocess.run(
            ["git", "apply", "--check", "-p1", str(mutant.patch)], cwd=ROOT,
            capture_output=True, check=False).returncode != 0]
        self.assertEqual(broken, [], "git apply them by hand, and diff anew")

    # Of a filter's Prefix/Suite/0.Name/1 the macros know Suite and Name.
    def test_every_patch_here_names_tests_of_its_target(self):
        there = targets()
        for mutant in mutants.load(HERE):
            with self.subTest(mutant.name):
                sources, needs_torch = there[mutant.target]
                self.assertTrue(mutant.preset == "cpu" or not needs_torch, "not built there")
                known = tests_in(sources)
                for test in mutant.tests:
                    suites, _, name = test.rpartition(".")
                    self.assertTrue(
                        [1 for suite, known_name in known
                         if fnmatch.fnmatch(known_name, name.split("/")[0]) and
                         any(fnmatch.fnmatch(suite, part) for part in suites.split("/"))],
                        f"{mutant.target} has no {test}")


class Choice(unittest.TestCase):

    ALL = [mutants.Mutant(f"{group}/{i}", "", "", (), "asan", 1.0, None)
           for group in "ab" for i in range(20)]

    def chosen(self, patterns, sample=None, seed=0):
        return [m.name for m in mutants.choose(self.ALL, patterns, sample, seed)]

    def test_names_and_globs(self):
        self.assertEqual(len(self.chosen([])), 40)
        self.assertEqual(self.chosen(["a/3", "b/1?"])[0], "a/3")
        self.assertEqual(len(self.chosen(["a/*"])), 20)
        with self.assertRaises(mutants.BadPatchError):
            self.chosen(["a/*", "c/*"])

    def test_sample_follows_its_seed(self):
        self.assertEqual(self.chosen([], 6, 4), self.chosen([], 6, 4))
        self.assertNotEqual(self.chosen([], 6, 4), self.chosen([], 6, 5))
        self.assertEqual(len(set(self.chosen([], 6, 4))), 6)
        self.assertEqual(len(self.chosen([], 100)), 40)


class Verdict(unittest.TestCase):

    def judge(self, status, output):
        return mutants.judge("Sum.Adds", status, output)[0]

    def test_only_a_failure_by_name_counts(self):
        self.assertFalse(self.judge(0, PASSES))
        self.assertTrue(self.judge(1, FAILS))
        self.assertFalse(self.judge(1, FAILS.replace("Adds", "Carries")))

    def test_reports_count_when_they_interrupt_the_test(self):
        begun = "[ RUN      ] Sum.Adds\n"
        for report in ("==7==ERROR: AddressSanitizer: heap-buffer-overflow on",
                       "WARNING: ThreadSanitizer: data race (pid=7)",
                       "a.cc:3:4: runtime error: signed integer overflow",
                       "a.cc:3: CHECK failed: a == b: why"):
            self.assertTrue(self.judge(134, begun + report + "\n"), report)
            self.assertFalse(self.judge(134, PASSES + report + "\n"), report)
        self.assertFalse(self.judge(-11, begun))

    def test_a_hang_survives(self):
        noticed, how = mutants.judge("Sum.Adds", None, "[ RUN      ] Sum.Adds\n")
        self.assertFalse(noticed)
        self.assertIn("hang", how)

    def test_patterns_match_parameters_and_skipped_tests_did_not_run(self):
        output = "[ RUN      ] All/Sum.Adds/3\n[  FAILED  ] All/Sum.Adds/3, where GetParam() = 3\n"
        self.assertEqual(mutants.judge("All/Sum.Adds/*", 1, output), (True, "All/Sum.Adds/3"))
        self.assertEqual(mutants.ran("[ RUN      ] A.B\n[  SKIPPED ] A.B (0 ms)\n"), [])


# Ninja "builds" the test program: a script with the tree's sum in it.
NINJA = r'''#!/bin/bash
tree=$(dirname "$(dirname "$2")")
[[ $(cat "$tree/lib/sum") == broken ]] && { echo "error: no sum"; exit 1; }
mkdir -p "$2/tests"
cat >"$2/tests/sum_test" <<END
#!/bin/bash
[[ \$1 == *=Sum.Adds ]] || exit 0
echo "[ RUN      ] Sum.Adds"
case $(cat "$tree/lib/sum") in
  2) echo "[       OK ] Sum.Adds (0 ms)" ;;
  hang) sleep 60 ;;
  *) echo "[  FAILED  ] Sum.Adds (0 ms)"; exit 1 ;;
esac
END
chmod +x "$2/tests/sum_test"
'''
CMAKE = '#!/bin/bash\nmkdir -p "build/$2" && touch "build/$2/build.ninja"\n'


class Run(unittest.TestCase):

    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-mutants-"))
        self.addCleanup(shutil.rmtree, self.base)
        self.root = self.base / "a tree"
        self.write("lib/sum", "2\n")
        self.write(".gitignore", "/build/\n__pycache__/\n")
        for name in ("run.py", "mutants.py"):
            self.write(f"tests/mutants/{name}", (HERE / name).read_text(encoding="utf-8"))
        subprocess.run(["git", "init", "-q", str(self.root)], check=True)
        for name, text in (("cmake", CMAKE), ("ninja", NINJA)):
            self.write(f"../bin/{name}", text)
            (self.base / "bin" / name).chmod(0o755)

    def write(self, path, text):
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")

    def mutant(self, name, new, header=HEADER, old="2"):
        self.write(f"tests/mutants/{name}.patch", header + "\n" + diff("lib/sum", old, new))

    def run_it(self, *args):
        done = subprocess.run(
            ["/usr/bin/python3", "-B", str(self.root / "tests/mutants/run.py"), *args],
            env={**os.environ, "PATH": f"{self.base}/bin:{os.environ['PATH']}"},
            capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    def test_a_noticed_fault_passes_and_leaves_tree_and_copy_as_they_were(self):
        self.mutant("math/off_by_one", "3")
        status, output = self.run_it()
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"math/off_by_one +killed .* Sum\.Adds")
        self.assertTrue(output.endswith("\n1 passed, 0 failed\n"), output)
        for tree in (self.root, self.root / "build/mutants/tree"):
            self.assertEqual((tree / "lib/sum").read_text(), "2\n")

    def test_what_proves_nothing_fails_and_says_why(self):
        self.write("tests/mutants/math/harmless.patch", HEADER + diff("lib/other", "a", "b"))
        self.write("lib/other", "a\n")
        self.mutant("math/hangs", "hang", HEADER + "timeout_s: 0.5\n")
        self.mutant("math/old", "3", old="1")
        self.mutant("math/no_code", "broken")
        self.mutant("math/no_test", "3", HEADER.replace("Adds", "Carries"))
        self.mutant("math/noticed", "3")
        status, output = self.run_it()
        self.assertEqual(status, 1, output)
        for line in (r"harmless +survived .* passes", r"hangs +survived .* hang",
                     r"old +broken .* does not apply", r"no_code +broken .* does not build",
                     r"no_test +broken .* is not there", r"noticed +killed"):
            self.assertRegex(output, line)
        self.assertTrue(output.endswith("\n1 passed, 5 failed\n"), output)

    def test_a_test_that_fails_anyway_proves_nothing(self):
        self.write("lib/sum", "5\n")
        self.mutant("math/off_by_one", "3", old="5")
        status, output = self.run_it()
        self.assertEqual(status, 1)
        self.assertIn("fails without the fault", output)

    def test_a_tree_without_git_is_copied_as_it_lies_there(self):
        shutil.rmtree(self.root / ".git")
        self.mutant("math/off_by_one", "3")
        status, output = self.run_it()
        self.assertEqual(status, 0, output)

    def test_list_and_sample_say_which(self):
        self.mutant("math/one", "3")
        self.mutant("math/two", "4")
        self.assertIn("math/one: The sum is wrong.", self.run_it("--list")[1])
        status, output = self.run_it("--sample", "1", "--seed", "7")
        self.assertEqual(status, 0, output)
        self.assertRegex(output, r"sample of 1, seed 7: math/(one|two)\n")
        self.assertEqual(self.run_it("none/*")[0], 2)
        self.assertEqual(self.run_it("--preset", "tsan", "--list")[1].strip(), "")


if __name__ == "__main__":
    unittest.main()
