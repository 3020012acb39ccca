"""tests/support/check_account.py where there is no account; runs and their violations are read by
the tests of the coordinator and by those of tests/integration."""

import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

from check_account import episodes_of  # noqa: E402

# Of the three episodes below, as tests/services/coordinator/episode_blob_test.cc has it.
COLUMNS = bytes.fromhex(
    "0101020101040200e803000000000000010000001400000000000000070000000000a04104000100"
    "00020100000100000100180103000100000200000000000008000000e07d010000002801")
EPISODES = [(1000, 1, 20, 3, 7, 20.0, 5, 1), (1002, 1, 21, 0, 7, 21.0, 4, 1),
            (1001, 2, 300, 1, 9, -1.0, 300, 1)]


class CheckAccount(unittest.TestCase):

    def test_a_report_by_columns_is_read_and_a_damaged_one_refused(self):
        self.assertEqual(episodes_of(COLUMNS, 3), EPISODES)
        for blob, count in ((b"", 3), (COLUMNS[:39], 3), (COLUMNS[:-1], 3), (COLUMNS + b"0", 3),
                            (COLUMNS, 4), (b"\3" + bytes(39 + 3), 1), (bytes(40), 1 << 60)):
            with self.assertRaisesRegex(ValueError, f"{len(blob)} bytes for {count} episodes"):
                episodes_of(blob, count)

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
