"""An actor that is stopped longer than its lease: fenced, its tokens go on, it registers anew."""

import re
import signal

import harness


class ActorIsFrozen(harness.Case):
    def test_it_is_fenced_and_goes_on_under_a_new_session(self):
        run = self.new_run().start_by_hand(actors=2, session_lease=1)
        ring = set()
        for fences in range(1, 3):
            run.wait_for("two actors", lambda s: s["actors"] == 2)
            ring = ring or set(run.rings())
            run.expect_progress()
            run.signal("actor-1", signal.SIGSTOP)
            before = run.wait_for("it is fenced", lambda s: s["actors"] == 1)
            self.assertGreater(before["tokens"]["freed"], 0, "its tokens are free again")
            run.expect_progress()
            run.signal("actor-1", signal.SIGCONT)
            run.wait_for("it has registered anew", lambda s, n=fences: len(
                re.findall(r"session \d+ begun", run.log("actor-1"))) == n + 1)
            run.expect_progress()
            self.assertEqual(set(run.rings()), ring, "it keeps its ring")
        played = {session for session, _ in run.episodes()}
        run.finish_and_check()
        self.assertEqual(len(re.findall(r"session \d+ was fenced", run.log("actor-1"))), 2)
        self.assertEqual(self.fenced_by(run, "actor-0"), 0)
        self.assertGreaterEqual(len(played), 3, "it plays again after each fence")

    def fenced_by(self, run, name):
        return int(re.search(r"acknowledged, (\d+) fenced", run.log(name)).group(1))


if __name__ == "__main__":
    harness.main()
