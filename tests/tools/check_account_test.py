"""tests/support/check_account.py where there is no account; runs and their violations are read by
the tests of the coordinator and by those of tests/integration."""

import pathlib
import sqlite3
import struct
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

from check_account import check, episodes_of  # noqa: E402

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

    def test_an_account_of_an_earlier_build_is_read_with_its_ranges_that_are_all_done(self):
        # In a path that would be taken for more than a path within an address.
        with tempfile.TemporaryDirectory(prefix="tetrion-account#1?a=%41-") as base:
            path = pathlib.Path(base) / "tetrion.db"
            database = sqlite3.connect(path)
            database.execute("PRAGMA journal_mode=WAL")
            numbers = {"issued": 512, "done": 257, "free_again": 255, "duplicates": 0, "refused": 0,
                       "next_token": 512, "next_session": 1, "env_steps": 0, "steps_forgotten": 0,
                       "episodes_pruned": 256, "ranges_pruned": 0}
            database.execute(f"CREATE TABLE counts ({', '.join(numbers)})")
            database.execute(f"INSERT INTO counts VALUES ({', '.join(map(str, numbers.values()))})")
            database.executescript(
                "CREATE TABLE run (run_id); INSERT INTO run VALUES (5);"
                "CREATE TABLE sessions (session, process);"
                "CREATE TABLE processes (process, env_steps, steps_base);"
                "CREATE TABLE reports (id, run_id, count, episodes);"
                "CREATE TABLE ranges (first_id, attempt, session, complete, done, abandoned);")
            episode = struct.pack("<QIIIIfHH", 256, 2, 20, 3, 7, 20.0, 5, 1)
            database.execute("INSERT INTO reports VALUES (1, 5, 1, ?)", (episode,))
            ranges = [(0, 1, 0, 1, b"\xff" * 32, bytes(32)),
                      (256, 2, 0, 0, b"\1" + bytes(31), bytes(32))]
            database.executemany("INSERT INTO ranges VALUES (?, ?, ?, ?, ?, ?)", ranges)
            database.commit()
            figures, violations = check(path)
            self.assertEqual((violations, figures["done"]), ([], 257))
            database.execute("UPDATE ranges SET done = ? WHERE first_id = 256", (bytes(32),))
            database.commit()
            self.assertTrue(check(path)[1])

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
