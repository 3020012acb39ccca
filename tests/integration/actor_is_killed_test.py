"""kill -9 of an actor: its ring is drained and removed, its session ends, its tokens go on."""

import contextlib
import os
import pathlib
import re

import harness

KILLS = 4


def open_files(run):
    """How many the learner has open, those of the run's folder apart: checkpoints come and go."""
    files = 0
    for descriptor in pathlib.Path(f"/proc/{run.pid_of('learner')}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            files += not os.readlink(descriptor).startswith(str(run.folder))
    return files


class ActorIsKilled(harness.Case):
    def test_its_ring_goes_and_its_tokens_are_played_by_others(self):
        run = self.new_run().start_by_hand()
        most = None
        for _ in range(KILLS):
            run.expect_progress()
            ring = run.rings()
            self.assertEqual(len(ring), 1)
            run.kill("actor-0")
            run.wait_for("ring, session and tokens are free",
                         lambda s: not run.rings() and s["actors"] == 0
                         and s["tokens"]["outstanding"] == 0)
            most = most or open_files(run)
            harness.wait_until(f"the learner has at most {most} files open again",
                               lambda most=most: open_files(run) <= most)
            run.start_actor("actor-0")
        run.expect_progress()
        attempts = {episode[1] for _, episode in run.episodes()}
        self.assertGreater(max(attempts), 1, "tokens of a killed actor were granted again")
        run.finish_and_check()
        died = re.findall(r"ended at row \d+: its actor died", run.log("learner"))
        self.assertEqual(len(died), KILLS)

    def test_the_supervisor_replaces_it_while_another_plays_on(self):
        run = self.new_run().start_up(actors=2)
        for _ in range(2):
            run.wait_for("two actors", lambda s: s["actors"] == 2)
            run.expect_progress()
            run.kill("actor-1")
            run.expect_progress()
        run.wait_joined("actor-1")
        run.finish_and_check()


if __name__ == "__main__":
    harness.main()
