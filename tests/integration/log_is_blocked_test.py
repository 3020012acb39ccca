"""A coordinator whose log is not read, as behind a terminal that was stopped with Ctrl-S.

A full pipe used to stop the control thread at its next line: no member was answered any more, while
/livez and /readyz said that all was well.
"""

import fcntl
import json
import os
import re
import signal

import harness


class LogIsBlocked(harness.Case):
    def fill(self, pipe):
        """To the last byte, without waiting."""
        flags = fcntl.fcntl(pipe, fcntl.F_GETFL)
        fcntl.fcntl(pipe, fcntl.F_SETFL, flags | os.O_NONBLOCK)
        for size in (1024, 1):
            try:
                while os.write(pipe, b"x" * size):
                    pass
            except BlockingIOError:
                pass
        fcntl.fcntl(pipe, fcntl.F_SETFL, flags)

    def lost_lines(self, run):
        endpoints = json.loads((run.folder / "endpoints.json").read_text())
        text = harness.get(endpoints["http"]["coordinator"], "/metrics")[1]
        return float(re.search(r"^tetrion_log_lines_lost_total (\S+)", text, re.M).group(1))

    def test_members_are_answered_and_the_run_goes_on_and_ends(self):
        run = self.new_run()
        unread, pipe = os.pipe()
        run.start_coordinator(output=pipe)
        run.wait_for("the run", lambda _: True)
        run.start_learner()
        run.start_actor()
        run.expect_progress()
        self.fill(pipe)
        for i in range(1, 4):  # each coming and going is worth some lines
            name = f"actor-{i}"
            run.start_actor(name)
            run.wait_for("it has come", lambda s: s["actors"] == 2)
            run.signal(name, signal.SIGTERM)
            self.assertEqual(run.wait_exit(name), 0)
            run.wait_for("it has gone", lambda s: s["actors"] == 1)
        run.expect_progress()
        for name in ["actor-0", "learner"]:
            self.assertNotRegex(run.log(name), "is silent|was fenced")
        self.assertGreater(self.lost_lines(run), 0)
        run.finish_and_check()
        os.close(pipe)
        with open(unread, "rb") as reader:
            said = reader.read()
        self.assertIn(b"registered as session 2", said, "what was said before it was full")
        self.assertNotIn(b"actor-3", said, "what was said after")


if __name__ == "__main__":
    harness.main()
