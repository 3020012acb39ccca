"""A coordinator that is stopped for longer than a lease: no member is to blame, none is fenced.

Before leases were judged by what the socket held, nearly every stop of this kind fenced all
members, and their steps were counted again. A receive high-water mark then made ZeroMQ abort the
coordinator when it went on: members had hung up behind full queues.
"""

import re
import signal
import time

import harness

ROUNDS = 3
STOP_S = 2.5 * harness.SESSION_LEASE_S


class CoordinatorIsStopped(harness.Case):
    def test_no_session_ends_by_it(self):
        run = self.new_run().start_by_hand(actors=2)
        run.wait_for("two actors", lambda s: s["actors"] == 2)
        for _ in range(ROUNDS):
            run.expect_progress()
            run.signal("coordinator", signal.SIGSTOP)
            time.sleep(STOP_S)  # every lease is over by now
            run.signal("coordinator", signal.SIGCONT)
            run.expect_progress()
        for name in ["actor-0", "actor-1", "learner"]:
            log = run.log(name)
            self.assertEqual(len(re.findall(r"session \d+ begun", log)), 1, name)
            self.assertNotIn("was fenced", log)
        self.assertNotIn("its lease is over", run.log("coordinator"))
        run.finish_and_check()


if __name__ == "__main__":
    harness.main()
