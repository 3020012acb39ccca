"""The tree in a folder of an odd name, with the cmake that there is."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CONFIGURED = ("bench", "cmake", "deploy", "docs", "lib", "proto", "python", "services", "tests",
              "tools")


class OddFolder(unittest.TestCase):

    def test_spaces_and_brackets_can_be_configured(self):
        base = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-odd-"))
        self.addCleanup(shutil.rmtree, base)
        root = base / "a (b"
        for name in CONFIGURED:
            shutil.copytree(ROOT / name, root / name,
                            ignore=shutil.ignore_patterns("__pycache__", ".*"))
        for name in ("CMakeLists.txt", "CMakePresets.json"):
            shutil.copy(ROOT / name, root)
        done = subprocess.run(["cmake", "--preset", "asan"], cwd=root, capture_output=True,
                              text=True, timeout=250, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue((root / "build/asan/sim_tests.txt").read_text(encoding="utf-8"))


if __name__ == "__main__":
    unittest.main()
