"""Actors join and leave a running run as they like."""

import signal

import harness


def players(run):
    """Sessions whose episodes are stored."""
    return {session for session, _ in run.episodes()}


class ActorComesAndGoes(harness.Case):
    def test_a_second_actor_joins_and_leaves_and_the_run_goes_on(self):
        run = self.new_run().start_by_hand()
        run.expect_progress()
        first_rings = run.rings()
        run.start_actor("actor-1")
        run.wait_for("two actors, two rings attached",
                     lambda s: s["actors"] == 2 and s["learner"].get("rings") == 2)
        self.assertEqual(len(run.rings()), 2)
        run.expect_progress()
        # On a loaded machine all of that may be the first actor's.
        harness.wait_until("both actors have played", lambda: len(players(run)) == 2)
        run.signal("actor-1", signal.SIGTERM)
        self.assertEqual(run.wait_exit("actor-1"), 0)
        run.wait_for("one actor, one ring attached",
                     lambda s: s["actors"] == 1 and s["learner"].get("rings") == 1)
        self.assertEqual(run.rings(), first_rings)
        run.expect_progress()
        # The rows of the ring that has ended are still there to be sampled.
        learner = run.status()["learner"]
        self.assertLessEqual(learner["replay_rows"], learner["replay_capacity_rows"])
        self.assertEqual(len(players(run)), 2)
        run.finish_and_check()

    def test_a_run_without_actors_waits_for_the_next_one(self):
        run = self.new_run().start_by_hand()
        run.expect_progress()
        run.signal("actor-0", signal.SIGTERM)
        self.assertEqual(run.wait_exit("actor-0"), 0)
        run.wait_for("no actor plays", lambda s: s["actors"] == 0 and not run.rings())
        run.start_actor("actor-0")
        run.expect_progress()
        run.finish_and_check()


if __name__ == "__main__":
    harness.main()
