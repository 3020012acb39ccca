"""kill -9 of the learner: it goes on from its last checkpoint, rings stay, versions never fall."""

import itertools
import re

import harness

HEADER_BYTES = 4096  # of a region


class LearnerIsKilled(harness.Case):
    def test_it_resumes_from_its_checkpoint_and_reattaches_the_rings(self):
        run = self.new_run().start_by_hand()
        for _ in range(3):
            run.replace_learner()
        self.assertEqual(len(re.findall(r"session \d+ begun", run.log("actor-0"))), 1)
        self.check_resumes(run, 3)
        run.finish_and_check()

    def test_its_successor_makes_a_damaged_region_anew(self):
        run = self.new_run().start_by_hand()
        run.expect_progress()
        run.wait_for("a checkpoint", lambda s: s["learner"].get("checkpoints", 0) >= 1)
        region, = run.shm.glob("*.learner")
        with run.a_learner_resumes():
            run.kill("learner")
            with open(region, "r+b") as file:
                file.write(b"\xa5" * HEADER_BYTES)
            run.start_actor("actor-1")  # finds the damaged one, and waits
            run.wait_joined("actor-1")
            run.start_learner(resume=True)
        run.expect_progress()
        self.assertIn(f"{region} is damaged and its owner dead", run.log("learner"))
        self.assertEqual(len(re.findall(r"session \d+ begun", run.log("actor-0"))), 1)
        run.finish_and_check()

    def test_the_supervisor_brings_it_back(self):
        run = self.new_run().start_up()
        for _ in range(2):
            run.expect_progress()
            run.wait_for("a checkpoint", lambda s: s["learner"].get("checkpoints", 0) >= 1)
            with run.a_learner_resumes():
                run.kill("learner")
            run.expect_progress()
        self.check_resumes(run, 2)
        run.finish_and_check()

    def check_resumes(self, run, kills):
        # What a killed learner reported last may have passed for progress of its successor.
        harness.wait_until("the last successor has attached a ring", lambda: re.search(
            rf"(resumed from .*){{{kills}}}attached \S+ to shard", run.log("learner"), re.DOTALL))
        log = run.log("learner")
        steps = re.findall(r"(checkpoint at update|resumed from \S+ at update) (\d+)", log)
        resumes = 0
        for (_, written), (kind, update) in itertools.pairwise(steps):
            if kind.startswith("resumed"):
                resumes += 1
                self.assertGreaterEqual(int(update), int(written), "not before the last one")
        self.assertEqual(resumes, kills)
        tails = [int(row) for row in re.findall(r"attached \S+ to shard \d+ at row (\d+)", log)]
        self.assertEqual(tails, sorted(tails), "rings go on at their tails")
        self.assertGreater(tails[-1], 0)
        versions = [int(v) for v in re.findall(r"begun, versions from (\d+)", log)]
        self.assertEqual(versions, sorted(set(versions)), "every learner has versions of its own")


if __name__ == "__main__":
    harness.main()
