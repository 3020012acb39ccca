"""An actor that writes its rings where the learner cannot see them, as from another container.

The learner's "cannot attach" used to end the session as if the actor were dead: it registered anew
forty times a second for as long as it lived, and every time left a row in the database.
"""

import re
import sqlite3

import harness
import mounts

TRY_AGAIN = 75


class ActorWithoutSharedFolder(harness.Case):
    def test_it_ends_with_the_remedy_and_the_others_go_on(self):
        command = mounts.private_command()
        if not command:
            self.skipTest("this machine lets no user mount a folder")
        run = self.new_run().start_by_hand()
        run.expect_progress()
        run.killed.add("actor-1")  # it cannot say what it played
        run.start_process(
            "actor-1", f"/usr/bin/{command[0]}",
            [*command[1:], "sh", "-c", f'mount -t tmpfs -o mode=0700 none {run.shm} && exec "$@"',
             "sh", str(harness.BIN / "tetrion-actor"), "--run-folder", str(run.folder),
             "--name", "actor-1", "--workers", "1"])
        self.assertEqual(run.wait_exit("actor-1"), TRY_AGAIN)
        log = run.log("actor-1")
        errors = [line for line in log.splitlines() if "error:" in line]
        self.assertEqual(len(errors), 1, log)
        for words in ["cannot use the ring", "no such file", "--shm-dir"]:
            self.assertIn(words, errors[0])
        registrations = re.findall(r"actor-1 registered", run.log("coordinator"))
        self.assertLessEqual(len(registrations), 2)
        run.wait_for("it is gone", lambda s: s["actors"] == 1)
        self.assertEqual(self.rows(run, "sessions"), 2)
        self.assertLessEqual(self.rows(run, "processes"), 3)
        run.expect_progress()
        self.assertNotIn("fenced;", run.log("actor-0"))
        run.finish_and_check()

    def rows(self, run, table):
        database = sqlite3.connect(f"file:{run.folder / 'tetrion.db'}?mode=ro", uri=True)
        try:
            return database.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
        finally:
            database.close()


if __name__ == "__main__":
    harness.main()
