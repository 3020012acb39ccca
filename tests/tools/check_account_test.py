"""tests/support/check_account.py where there is no account; runs and their violations are read by
the tests of the coordinator and by those of tests/integration."""

import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


class CheckAccount(unittest.TestCase):

    def test_a_folder_without_an_account_is_told_in_a_sentence(self):
        with tempfile.TemporaryDirectory(prefix="tetrion-account-") as base:
            none, other, broken = (pathlib.Path(base) / str(number) for number in range(3))
            for folder in (none, other, broken):
                folder.mkdir()
            sqlite3.connect(other / "tetrion.db").execute("CREATE TABLE another (x)")
            (broken / "tetrion.db").write_text("this is no database of SQLite's")
            for folder, why in ((none, "unable to open"), (other, "no such table"),
                                (broken, "file is not a database")):
                done = subprocess.run(
                    [sys.executable, "-B", str(ROOT / "tests/support/check_account.py"), folder],
                    capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertRegex(done.stderr, f"^check_account: {folder}/tetrion.db cannot be read "
                                              f"as the account of a run: {why}.*; give the folder")


if __name__ == "__main__":
    unittest.main()
