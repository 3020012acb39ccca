"""kill -9 of a coordinator with hundreds of sessions: all come back as who they were."""

import json
import re
import socket

import harness

SESSIONS = 500


class ManySessions(harness.Case):
    def start_load(self, run):
        run.start_process("load", "tetrion-load",
                          ["--run-folder", str(run.folder), "--sessions", str(SESSIONS),
                           "--seconds", "0", "--grants"])

    def wait_for_load(self, run, what, condition):
        """The first line of the load that meets the condition."""
        def look():
            lines = run.log("load").split("\n")[:-1]
            states = [json.loads(line) for line in lines if line.startswith("{")]
            return next((state for state in states if condition(state)), None)
        return harness.wait_until(what, look)

    def test_they_come_back_under_their_old_sessions(self):
        run = self.new_run()
        run.start_coordinator(session_lease=10, heartbeat=1)
        run.wait_for("the run folder", lambda _: True)
        self.start_load(run)
        self.wait_for_load(run, "everybody's tokens", lambda s: s["granted"] == SESSIONS)
        run.wait_for("the sessions", lambda s: s["actors"] == SESSIONS)
        run.kill("coordinator")
        run.start_coordinator(resume=True, session_lease=10, heartbeat=1)
        state = self.wait_for_load(run, "everybody's return",
                                   lambda s: s["epoch"] == 2 and s["in_epoch"] == SESSIONS)
        self.assertEqual(state["granted"], SESSIONS, "a renewed session keeps its tokens")
        status = run.wait_for("the sessions", lambda s: s["actors"] == SESSIONS)
        self.assertEqual(status["tokens"]["outstanding"], SESSIONS * 256)
        run.drain()
        self.check(run)

    def test_a_coordinator_that_never_answers_is_no_success(self):
        with socket.socket() as taken:  # bound, so that nobody else listens there
            taken.bind(("127.0.0.1", 0))
            address = f"tcp://127.0.0.1:{taken.getsockname()[1]}"
            code, said = self.call("tetrion-load", "--coordinator", address, "--sessions", "2",
                                   "--seconds", "0.3")
        self.assertEqual(code, 75, said)
        self.assertIn(f"no session has registered with the coordinator at {address}", said)

    def check(self, run):
        log = run.log("coordinator")
        begun = {int(n) for n in re.findall(r"registered as session (\d+)", log)}
        renewed = {int(n) for n in re.findall(r"registered again as session (\d+)", log)}
        self.assertEqual(len(begun), SESSIONS, "no session begins twice")
        self.assertEqual(renewed, begun)
        self.assertNotIn("its lease is over", log)
        last = json.loads(run.log("load").split("\n")[-2])
        self.assertEqual((last["fenced"], last["gone"]), (0, SESSIONS))
        figures, violations = harness.check_account.check(run.folder / "tetrion.db")
        self.assertEqual(violations, [])
        self.assertEqual(figures["outstanding"], 0)


if __name__ == "__main__":
    harness.main()
