"""run.sh of the bundle with made-up programs: with and without a device, with tests that fail or do
not run."""

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
PASSES = "echo '[  PASSED  ] 2 tests.'"
SKIPS = "echo '[  SKIPPED ] 12 tests, listed below:'; echo '[  PASSED  ] 0 tests.'"
FIGURE = json.dumps({
    "what": "gather 16x64", "unit": "frames/s",
    "ours": {"median": 2e9, "min": 1e9, "max": 3e9},
    "rival": {"name": "copy", "median": 4e9, "min": 4e9, "max": 4e9},
    "ratio": {"median": 0.5, "min": 0.4, "max": 0.6}, "target": ">= 0.4x"})


class RunTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.bundle = pathlib.Path(folder.name)
        for name in ("run.sh", "report.py"):
            shutil.copy(HERE / name, self.bundle)
        for name in ("bench.py", "bench_program.py"):
            shutil.copy(HERE.parents[1] / "tools" / name, self.bundle)
        (self.bundle / "build.txt").write_text("revision abc\nflags -O2\n", encoding="utf-8")
        self.program("device_info", "echo A device, 80 MiB")

    def program(self, name, script):
        path = self.bundle / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def in_front_of_path(self, folder):
        self.addCleanup(os.environ.__setitem__, "PATH", os.environ["PATH"])
        os.environ["PATH"] = f"{self.bundle / folder}:{os.environ['PATH']}"

    def run_it(self, *arguments):
        done = subprocess.run([self.bundle / "run.sh", *arguments], capture_output=True, text=True,
                              env={**os.environ, "CUDA_HOME": str(self.bundle / "cuda")},
                              check=False)
        return done.returncode, done.stdout + done.stderr

    def test_without_a_device_nothing_is_measured(self):
        self.program("device_info", "exit 3")
        self.program("tests/some_device", "exit 1")
        self.assertEqual(self.run_it(), (0, "no CUDA device: not measured\n"))

    def test_a_device_that_fails_is_an_error(self):
        self.program("device_info", "echo the driver is too old; exit 1")
        code, text = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("the driver is too old", text)

    def test_tests_and_figures_are_reported(self):
        self.program("tests/some_device", PASSES)
        self.program("bench/bench_device", f"echo a remark; echo '{FIGURE}'")
        code, text = self.run_it()
        self.assertEqual(code, 0, text)
        self.assertIn("passed some_device: PASSED 2 tests.", text)
        self.assertIn("device A device, 80 MiB", text)
        self.assertIn("revision abc; flags -O2.", text)
        self.assertIn("| gather 16x64 | frames/s | 2G (1G-3G) | copy 4G (4G-4G) "
                      "| 0.5x (0.4-0.6) | >= 0.4x | met |", text)

    def test_programs_of_another_torch_are_not_run_and_the_report_says_so(self):
        (self.bundle / "build.txt").write_text("revision abc\nflags -O2\ntorch 0.0.1\n",
                                               encoding="utf-8")
        self.program("fake/ldd", 'case $1 in *dreamer*) echo "libtorch.so => x";; esac')
        self.program("tests/dreamer_device", "exit 1")
        self.program("tests/other_device", PASSES)
        self.in_front_of_path("fake")
        code, text = self.run_it()
        self.assertEqual(code, 0, text)
        self.assertIn("not run dreamer_device: built with torch 0.0.1, here is ", text)
        self.assertIn("passed other_device", text)

    def test_a_test_that_fails_fails_the_run(self):
        self.program("tests/bad_device", "echo what was wrong; exit 7")
        self.program("tests/good_device", PASSES)
        code, text = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("FAILED bad_device (exit status 7)", text)
        self.assertIn("what was wrong", text)
        self.assertIn("passed good_device", text)
        self.assertIn("No benchmark ran: not measured.", text)

    def test_a_bundle_in_which_nothing_runs_fails(self):
        code, text = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("FAILED: no test ran", text)
        self.program("tests/one_device", PASSES)
        self.program("tests/lost_device", PASSES)
        (self.bundle / "tests/lost_device").chmod(0o644)
        code, text = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("passed one_device", text)
        self.assertIn("left out lost_device: not executable", text)

    def test_a_program_whose_tests_are_all_skipped_has_not_run(self):
        self.program("tests/other_device", PASSES)
        self.program("tests/update_device", SKIPS)
        self.program("fake/ldd", 'case $1 in *update*) echo "libtorch.so => x";; esac')
        self.program("fake/python3", f"echo {self.bundle}/torch")
        (self.bundle / "torch").mkdir()
        (self.bundle / "torch/version.py").write_text("__version__ = '0.0.1+a'\n", encoding="utf-8")
        self.in_front_of_path("fake")
        (self.bundle / "build.txt").write_text("torch 0.0.1\n", encoding="utf-8")
        code, text = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("NOT RUN update_device: SKIPPED 12 tests, listed below: PASSED 0", text)
        (self.bundle / "build.txt").write_text("torch 0.0.1\nwithout CUDA in torch\n",
                                               encoding="utf-8")
        code, text = self.run_it()
        self.assertEqual(code, 0, text)
        self.assertIn("not run update_device: built without CUDA in torch", text)
        self.program("tests/other_device", SKIPS)  # needs no torch
        code, text = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("NOT RUN other_device", text)

    def test_tools_of_the_sanitizer_run_the_same_tests(self):
        self.program("tests/some_device", PASSES)
        self.program("tests/some_cupti_test_device", PASSES)
        self.program("cuda/bin/compute-sanitizer", f"[ $2 != racecheck ] || exit 9; {PASSES}")
        code, text = self.run_it()
        self.assertEqual(code, 1)
        self.assertIn("passed memcheck-some_device", text)
        self.assertIn("FAILED racecheck-some_device (exit status 9)", text)
        self.assertNotIn("memcheck-some_cupti", text)
        code, text = self.run_it("--quick")
        self.assertEqual(code, 0, text)
        self.assertIn("compute-sanitizer: not run", text)


if __name__ == "__main__":
    unittest.main()
