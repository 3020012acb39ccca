"""kill -9 of the coordinator: sessions keep their ranges, nothing is counted twice, and neither
steps nor episodes ever go back."""

import re

import harness


class CoordinatorIsKilled(harness.Case):
    def wait_for_renewal(self, run, kills):
        """Another actor may have brought the progress that a test saw after kill number `kills`."""
        harness.wait_until(
            f"actor-0 renews its session {kills} times",
            lambda: len(re.findall(r"session \d+ renewed", run.log("actor-0"))) >= kills)

    def check_sessions_were_kept(self, run):
        begun = re.findall(r"session \d+ begun", run.log("actor-0"))
        self.assertEqual(len(begun), 1, "one session all along")

    def test_restarted_by_hand_the_sessions_go_on(self):
        run = self.new_run().start_by_hand()
        before = run.expect_progress()
        epoch = before["epoch"]
        for kill in range(1, 4):
            run.kill("coordinator")
            stored, violations = harness.check_account.check(run.folder / "tetrion.db")
            self.assertEqual(violations, [])
            run.start_coordinator(resume=True)
            status = run.wait_for("a new epoch", lambda s, kill=kill: s["epoch"] == epoch + kill)
            # What was shown may be half a second ahead of the store, what is stored is not lost.
            self.assertGreaterEqual(status["env_steps"], stored["env_steps"])
            self.assertGreaterEqual(status["episodes"], stored["done"])
            before, last = run.expect_progress(), before
            self.assertGreater(before["env_steps"], last["env_steps"])
            self.wait_for_renewal(run, kill)
        self.check_sessions_were_kept(run)
        run.finish_and_check()

    def test_restarted_by_the_supervisor_the_run_goes_on(self):
        run = self.new_run().start_up()
        before = run.expect_progress()
        for kill in range(1, 3):
            run.kill("coordinator")
            after = run.wait_for("a new epoch",
                                 lambda s, kill=kill: s["epoch"] == before["epoch"] + kill)
            self.assertGreaterEqual(after["tokens"]["issued"], before["tokens"]["issued"])
            run.expect_progress()
            self.wait_for_renewal(run, kill)
        self.check_sessions_were_kept(run)
        run.finish_and_check()

    def test_members_wait_while_it_is_away_longer_than_a_lease(self):
        run = self.new_run().start_by_hand()
        run.expect_progress()
        run.kill("coordinator")
        problem = harness.wait_until(
            "the actor notices", lambda: re.search("the coordinator is silent", run.log("actor-0")))
        self.assertTrue(problem)
        run.start_coordinator(resume=True)
        run.expect_progress()
        self.wait_for_renewal(run, 1)
        self.check_sessions_were_kept(run)
        run.finish_and_check()


if __name__ == "__main__":
    harness.main()
