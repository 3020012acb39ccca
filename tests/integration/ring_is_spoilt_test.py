"""Rows of a live ring that another process overwrites: the learner gives that ring up, its actor
ends and says why, a supervisor starts it again. One that is cut off: both end and name its file.

Before, the actor was taken for dead, registered the ring that was gone, and so on without end; and
rows that changed between the look at them and the copy ended the learner.
"""

import os
import re
import signal

import harness

TRY_AGAIN = 75
HEAD_BYTES = 8192  # of region and ring: spoilt are the rows only
HEAD_AT, TAIL_AT = 4096 + 128, 4096 + 256  # the ring's cursors, lib/shm/spsc_ring.h
RING_ROWS, NUMBER_BYTES = 256, 8  # a row begins with its number


class RingIsSpoilt(harness.Case):
    def spoil(self, run, path):
        """Overwrites rows' numbers until one of them was taken: those that wait are made anew
        meanwhile. Other columns the actor reads again before it publishes their row."""
        run.quarantined += 1
        with open(path, "r+b", buffering=0) as ring:
            row_bytes = (os.fstat(ring.fileno()).st_size - HEAD_BYTES) // RING_ROWS
            def taken():
                for row in range(RING_ROWS):
                    os.pwrite(ring.fileno(), os.urandom(NUMBER_BYTES), HEAD_BYTES + row * row_bytes)
                return f"quarantined ring {path}" in run.log("learner")
            harness.wait_until("the learner gives the ring up", taken)

    def test_its_actor_ends_with_the_reason_and_another_plays_on(self):
        run = self.new_run().start_by_hand(actors=1)
        run.expect_progress()
        ring, = run.rings()
        run.start_actor("actor-1")
        run.wait_for("two rings", lambda s: s["learner"].get("rings") == 2)
        run.killed.add("actor-0")  # it cannot say what it played
        self.spoil(run, run.shm / ring)
        self.assertEqual(run.wait_exit("actor-0"), TRY_AGAIN)
        errors = [line for line in run.log("actor-0").splitlines() if "error:" in line]
        self.assertEqual(len(errors), 1, errors)
        self.assertRegex(errors[0], r"cannot use the ring .*: row \d+: .*start the actor again")
        run.wait_for("its session ends", lambda s: s["actors"] == 1)
        self.assertNotIn(ring, run.rings())
        run.expect_progress()
        self.assertNotIn("fenced;", run.log("actor-1"))
        run.finish_and_check()

    def test_a_ring_that_is_cut_off_is_named_by_those_it_ends_and_the_run_goes_on(self):
        run = self.new_run().start_up()
        run.expect_progress()
        ring, = run.rings()
        path = run.shm / ring

        def rows_wait():
            head, tail = (int.from_bytes(path.read_bytes()[at:at + 8], "little")
                          for at in (HEAD_AT, TAIL_AT))
            return head > tail
        run.killed.add("actor-0")
        with run.a_learner_resumes():
            learner = run.signal("learner", signal.SIGSTOP)  # so that rows wait that it must read
            harness.wait_until("rows wait", rows_wait)
            os.truncate(path, HEAD_BYTES)
            os.kill(learner, signal.SIGCONT)
        self.assertIn(f"error: {path} was cut off", run.log("learner"))
        # It may not have touched the rows before the learner's successor gave the ring up.
        run.wait_for("its actor ends", lambda _: re.search(
            f"error: {path} was cut off|cannot use the ring", run.log("actor-0")))
        run.wait_for("a new ring", lambda _: run.rings() and ring not in run.rings())
        run.expect_progress()
        run.drain()  # how many rows the ring had held is not known
        self.assertEqual([path.name for path in run.shm.iterdir()], [".lock"])
        self.assertEqual(harness.check_account.check(run.folder / "tetrion.db")[1], [])

    def test_the_supervisor_starts_it_again(self):
        run = self.new_run().start_up()
        run.expect_progress()
        first, = run.rings()
        run.killed.add("actor-0")
        self.spoil(run, run.shm / first)
        run.wait_for("a new ring", lambda _: run.rings() and first not in run.rings())
        run.expect_progress()
        log = run.log("actor-0")
        self.assertEqual(len(re.findall(r"session \d+ begun", log)), 2, "one session a process")
        run.finish_and_check()


if __name__ == "__main__":
    harness.main()
