"""Actors without a policy: the learner decides their rows. Either side may be killed."""

import os
import random
import re
import signal
import time

import harness


class StreamedInference(harness.Case):
    def start(self, workers=1, groups=2):
        run = self.new_run()
        run.start_coordinator()
        run.wait_for("the run folder", lambda _: True)
        run.start_learner()
        run.start_actor(inference="streamed", groups=groups, workers=workers)
        return run

    def test_groups_are_replay_slots_and_every_row_is_answered_once(self):
        run = self.start(workers=2, groups=2)
        run.expect_progress()
        self.assertEqual(len(run.rings()), 4)
        self.assertTrue(all(".stream." in ring for ring in run.rings()))
        run.wait_for("four streams", lambda s: s["learner"].get("streams") == 4)
        figures = run.finish_and_check()
        self.assertGreater(figures["done"], 200)
        self.assertEqual(self.lost(run), 0)

    def test_local_and_streamed_actors_share_a_run(self):
        run = self.start(groups=1)
        run.start_actor("actor-1")
        run.wait_for("both kinds of rings", lambda s: s["learner"].get("rings") == 2)
        run.expect_progress()
        self.assertEqual(sorted(".stream." in ring for ring in run.rings()), [False, True])
        run.finish_and_check()

    def test_a_killed_learner_takes_over_from_itself(self):
        run = self.start()
        for _ in range(3):
            run.replace_learner()
        self.assertEqual(len(re.findall(r"session \d+ begun", run.log("actor-0"))), 1)
        firsts = [int(row) for row in re.findall(r"answering \S+ from row (\d+)",
                                                 run.log("learner"))]
        self.assertEqual(len(firsts), 2 * 4, "each learner shakes hands with each group")
        run.finish_and_check()

    def test_a_killed_actor_leaves_nothing_behind(self):
        run = self.start()
        for _ in range(3):
            run.expect_progress()
            run.kill("actor-0")
            run.wait_for("its rings have ended", lambda s: s["learner"].get("rings") == 0)
            self.assertEqual(run.rings(), [])
            run.start_actor(inference="streamed")
        run.expect_progress()
        run.finish_and_check()

    def test_either_side_killed_at_random_loses_no_episode(self):
        run = self.start()
        dice = random.Random(5)
        for _ in range(8):
            time.sleep(dice.uniform(0.0, 0.4))  # where it strikes, not whether it passes
            if dice.random() < 0.5:
                run.kill("learner")
                run.start_learner(resume=True)
            else:
                run.kill("actor-0")
                run.start_actor(inference="streamed")
        run.wait_joined("learner", "actor-0")
        run.expect_progress()
        run.finish_and_check()

    def test_a_frozen_learner_makes_the_workers_wait_without_spinning(self):
        run = self.start()
        run.expect_progress()
        pid = run.pid_of("actor-0")
        run.signal("learner", signal.SIGSTOP)
        time.sleep(0.3)  # the last answers are taken
        before = self.cpu_ticks(pid)
        time.sleep(1.0)
        spent = (self.cpu_ticks(pid) - before) / os.sysconf("SC_CLK_TCK")
        run.signal("learner", signal.SIGCONT)
        self.assertLess(spent, 0.3, "a waiting worker sleeps")
        run.expect_progress()
        run.finish_and_check()

    def test_a_drain_while_the_learner_is_dead_gives_the_tokens_back(self):
        run = self.start()
        run.expect_progress()
        run.kill("learner")
        run.signal("actor-0", signal.SIGTERM)
        self.assertEqual(run.wait_exit("actor-0"), 0)
        run.start_learner(resume=True)
        run.start_actor("actor-1", inference="streamed")
        run.wait_joined("learner", "actor-1")
        run.expect_progress()
        run.finish_and_check()

    def lost(self, run):
        return sum(int(n) for n in re.findall(r"rows ingested, (\d+) lost", run.log("learner")))

    @staticmethod
    def cpu_ticks(pid):
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            fields = stat.read().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])


if __name__ == "__main__":
    harness.main()
