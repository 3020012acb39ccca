"""A store that cannot be written pauses the run and ends nothing; one that contradicts itself is
not resumed.

Before, a lock held for more than 5 s aborted the coordinator, a full disk ended it with the next
member that came or left, and edited counters were believed.
"""

import json
import shutil
import sqlite3
import time

import harness
import mounts

CONFIG = 78
LOCKED_S = 7  # longer than SQLite was told to wait for others


class Faults(harness.Case):
    def not_ready(self, run):
        """The reason, once the coordinator is not ready."""
        endpoints = json.loads((run.folder / "endpoints.json").read_text())
        code, reason = harness.get(endpoints["http"]["coordinator"], "/readyz")
        return reason if code == 503 else None

    def expect_paused(self, run):
        reason = harness.wait_until("not ready", lambda: self.not_ready(run))
        self.assertIn("cannot", reason)
        self.assertNotIn("busy for", reason, "the control thread goes on")

    def expect_healed(self, run, members):
        ended = [name for name in members if run.pid_of(name) is None]
        self.assertEqual(ended, [], "no process ended meanwhile")
        harness.wait_until("ready again", lambda: not self.not_ready(run))
        run.expect_progress()


class HeldDatabase(Faults):
    def test_a_lock_of_another_process_is_waited_for(self):
        run = self.new_run().start_by_hand(actors=2)
        run.expect_progress()
        other = sqlite3.connect(run.folder / "tetrion.db", timeout=30, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        since = time.monotonic()
        self.expect_paused(run)
        time.sleep(max(0.0, since + LOCKED_S - time.monotonic()))
        other.execute("ROLLBACK")
        other.close()
        self.expect_healed(run, ["coordinator", "learner", "actor-0", "actor-1"])
        self.assertNotIn("was fenced", run.log("actor-0") + run.log("actor-1"))
        run.finish_and_check()


class FullDisk(Faults):
    def setUp(self):
        if not mounts.mine():
            self.skipTest("this machine lets no user mount a folder")

    def test_members_come_and_go_on_a_full_disk(self):
        run = self.new_run()
        if not mounts.tmpfs(run.runs, "64m"):
            self.skipTest("this machine mounts no file system for a test")
        self.addCleanup(mounts.unmount, run.runs)
        run.start_by_hand(actors=2)
        run.expect_progress()
        rest = run.runs / "rest"
        def full():
            mounts.fill(rest)
            return self.not_ready(run)
        harness.wait_until("not ready", full)
        run.kill("actor-1")
        run.start_actor("actor-2")
        self.expect_paused(run)
        time.sleep(3 * harness.SESSION_LEASE_S)  # the dead one's lease is over
        self.expect_paused(run)
        rest.unlink()
        self.expect_healed(run, ["coordinator", "learner", "actor-0", "actor-2"])
        run.wait_for("one has come, one has gone", lambda s: s["actors"] == 2)
        self.assertEqual(len(run.rings()), 2)
        endpoints = run.folder / "endpoints.json"
        harness.wait_until("the list is right", lambda: "actor-2" in json.loads(
            endpoints.read_text())["http"])
        self.assertNotIn("was fenced", run.log("actor-0"))
        run.finish_and_check()


class Contradictions(harness.Case):
    EDITS = {
        "episodes": "UPDATE counts SET done = done + 1",
        "tokens": "UPDATE counts SET next_token = next_token - 256",
        "free tokens": "UPDATE counts SET free_again = free_again + 1",
        "steps": "UPDATE counts SET env_steps = env_steps + 1",
        "a range": "DELETE FROM ranges WHERE first_id = (SELECT max(first_id) FROM ranges)",
        "a report": "DELETE FROM reports WHERE id = (SELECT min(id) FROM reports)",
    }

    def test_a_store_that_was_edited_is_not_resumed(self):
        run = self.new_run().start_by_hand()
        run.expect_progress()
        run.finish_and_check()
        store, copy = run.folder / "tetrion.db", self.base / "copy.db"
        shutil.copy(store, copy)
        for what, edit in self.EDITS.items():
            with self.subTest(what):
                database = sqlite3.connect(store)
                database.execute(edit)
                database.commit()
                database.close()
                code, said = self.call("tetrion-coordinator", "--resume", run.name, "--runs-dir",
                                       run.runs, "--shm-dir", run.shm)
                self.assertEqual(code, CONFIG, said)
                errors = [line for line in said.splitlines() if "error:" in line]
                self.assertEqual(len(errors), 1, said)
                self.assertIn(str(store), errors[0])
                for file in run.folder.glob("tetrion.db*"):
                    file.unlink()
                shutil.copy(copy, store)
        run.start_coordinator(resume=True)
        run.wait_for("the honest copy is resumed", lambda s: s["epoch"] == 2)
        run.drain()

    def test_one_older_than_the_checkpoints_is_resumed_and_told_of(self):
        def saved(status):
            return status["learner"].get("checkpoints", 0) >= 1
        run = self.new_run().start_up()
        run.wait_for("a checkpoint", saved)
        run.finish_and_check()
        self.assertNotIn("newer than the run's account", run.log("learner"))
        store, copy = run.folder / "tetrion.db", self.base / "copy.db"
        shutil.copy(store, copy)
        run.start_up(resume=True)
        run.wait_for("a newer checkpoint", saved)
        run.drain()
        self.assertNotIn("newer than the run's account", run.log("learner"))
        for file in run.folder.glob("tetrion.db*"):
            file.unlink()
        shutil.copy(copy, store)
        run.start_up(resume=True)
        run.expect_progress()
        run.drain()
        self.assertIn("newer than the run's account", run.log("learner"))


if __name__ == "__main__":
    harness.main()
