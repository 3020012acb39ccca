"""kill -9 of random services in one run; then the faults stop and the run must go on."""

import random
import signal
import sys
import time

import harness

KILLS = 15


class RandomKills(harness.Case):
    def test_by_hand_nothing_is_lost_and_the_run_goes_on(self):
        draw = self.seeded()
        # A killed actor's slot is free again when its lease is over, and a restarted coordinator
        # begins all leases anew: in the worst draw every actor that ever ran has its slot.
        run = self.new_run().start_by_hand(actors=2, settings={"max_workers": 2 + 2 * KILLS})
        restart = {"coordinator": lambda: run.start_coordinator(resume=True),
                   "learner": lambda: run.start_learner(resume=True),
                   "actor-0": lambda: run.start_actor("actor-0"),
                   "actor-1": lambda: run.start_actor("actor-1")}
        run.expect_progress()
        for _ in range(KILLS):
            victims = draw.sample(sorted(restart), draw.choice([1, 1, 1, 2]))
            time.sleep(draw.uniform(0, 0.4))  # when a fault comes; decides nothing
            for victim in victims:
                run.kill(victim)
            time.sleep(draw.uniform(0, 0.3))
            for victim in victims:
                restart[victim]()
        self.check_healed(run)

    def test_under_the_supervisor_the_run_goes_on(self):
        draw = self.seeded()
        run = self.new_run().start_up(actors=2)
        for victim in ["coordinator", "learner", "actor-0", "actor-1"] * 2:
            run.expect_progress(episodes=draw.randrange(1, 100), batches=1)
            run.kill(victim)
        self.check_healed(run)

    def test_without_a_killed_actor_every_step_is_counted_exactly_once(self):
        """Actors are frozen for longer than their lease, everything else is killed: what the actors
        say that they made is what the account has, to the step."""
        draw = self.seeded()
        run = self.new_run().start_by_hand(actors=2, session_lease=1)
        run.expect_progress()
        for victim in draw.sample(["coordinator", "learner", "actor-0", "actor-1"] * 2, 6):
            if victim.startswith("actor"):
                run.signal(victim, signal.SIGSTOP)
                run.wait_for("it is fenced", lambda s: s["actors"] == 1)
                if draw.random() < 0.5:
                    run.kill("coordinator")
                    run.start_coordinator(resume=True, session_lease=1)
                run.signal(victim, signal.SIGCONT)
                run.wait_for("it is back", lambda s: s["actors"] == 2)
            else:
                run.kill(victim)
                time.sleep(draw.uniform(0, 0.3))
                if victim == "coordinator":
                    run.start_coordinator(resume=True, session_lease=1)
                else:
                    run.start_learner(resume=True)
                run.wait_for("all are back", lambda s: s["actors"] == 2 and s["learner_up"])
            run.expect_progress(episodes=draw.randrange(1, 100), batches=1)
        self.check_healed(run)

    def seeded(self):
        seed = random.randrange(1 << 32)
        print(f"seed {seed}", file=sys.stderr)
        return random.Random(seed)

    def check_healed(self, run):
        run.wait_joined("learner", "actor-0", "actor-1")
        run.wait_for("all are back", lambda s: s["actors"] == 2 and s["learner_up"])
        run.expect_progress(episodes=1000, batches=100)
        self.assertEqual(len(run.rings()), 2, "no ring of a dead actor is left")
        run.finish_and_check()


if __name__ == "__main__":
    harness.main()
