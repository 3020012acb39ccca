""".ci/stages.sh in a folder of its own: what fails a run, what a deadline leaves out, and that
nothing goes on after the run."""

import os
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FOREVER_S = 600
WAIT_S = 120
SOON = "limit=$((SECONDS + 4))\n"  # a program has printed its line by then


class StagesTest(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        (self.folder / "build/ci").mkdir(parents=True)
        (self.folder / "build/ci/tests.log").write_text("100% tests passed\n")

    def begin(self, body, seconds=FOREVER_S):
        """A run of these stages in `seconds`. `slow` is a program that notes its process."""
        script = self.folder / "run"
        script.write_text(f"""
slow() {{ echo $BASHPID >>pids; echo "$*"; sleep {FOREVER_S}; }}
. {ROOT}/.ci/stages.sh
{body}
finish
""")
        return subprocess.Popen(["bash", script], cwd=self.folder, text=True,
                                env={**os.environ, "TETRION_CI_SECONDS": str(seconds)},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                start_new_session=True)

    def run_stages(self, body, seconds=FOREVER_S):
        """(exit status, what the run printed); all that it began has ended."""
        run = self.begin(body, seconds)
        self.addCleanup(run.kill)
        said, _ = run.communicate(timeout=WAIT_S)
        self.require_all_ended()
        return run.returncode, said

    def pids(self):
        file = self.folder / "pids"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def require_all_ended(self):
        deadline = time.monotonic() + WAIT_S
        for pid in self.pids():
            while pathlib.Path(f"/proc/{pid}").exists():
                self.assertLess(time.monotonic(), deadline, f"process {pid} goes on")
                time.sleep(0.05)

    def test_stages_that_pass_pass_and_the_tests_summary_comes_last(self):
        status, said = self.run_stages("stage build true\nwithin 50 format echo well\n"
                                       "beside wheel echo made\nwithin 50 wheel ended wheel")
        self.assertEqual(status, 0, said)
        for line in ("=== format\nwell\n", "=== wheel\nmade\n"):
            self.assertIn(line, said)
        self.assertRegex(said, r"(?m)^build +\d+ s  ok$")
        self.assertTrue(said.endswith("100% tests passed\n"), said)

    def test_each_failed_stage_is_named_and_what_it_complained_of_is_said_again(self):
        status, said = self.run_stages(
            "no() { echo 'x.cc:1: error: expected'; return 3; }\n"
            "stage build no\nbeside wheel no\nwithin 50 wheel ended wheel\nstage last true")
        self.assertEqual(status, 1)
        self.assertEqual(said.count("x.cc:1: error: expected"), 4, said)
        self.assertIn("FAILED (exit status 3)", said)
        self.assertIn("failed stages: build wheel\n", said)

    def test_what_the_machine_lacks_is_no_failure(self):
        status, said = self.run_stages("within 50 cuda bash -c 'exit 77'")
        self.assertEqual(status, 0)
        self.assertIn("not run: this machine lacks what it needs", said)

    def test_a_stage_that_its_deadline_ends_is_not_finished_and_no_failure(self):
        status, said = self.run_stages(SOON + "within 100 asan bounded slow 'x_test ***Skipped'\n"
                                       "within 100 tsan bounded true\nstage needed echo done")
        self.assertEqual(status, 0, said)
        self.assertRegex(said, r"(?m)^asan .*NOT FINISHED: no time left")
        self.assertRegex(said, r"(?m)^tsan +0 s  NOT RUN: no time left")
        self.assertRegex(said, r"(?m)^needed .*ok$")

    def test_what_had_failed_by_the_deadline_fails_the_run(self):
        for complaint in ("1/2 Test #1: x_test ....***Failed  1.00 sec", "a/mutant   survived  5 s",
                          "x.cc:1:2: error: unused", "CMake Error at x:1", "Segmentation fault"):
            status, said = self.run_stages(SOON + f"within 100 asan bounded slow '{complaint}'")
            self.assertEqual(status, 1, said)
            self.assertRegex(said, r"(?m)^asan .*FAILED")

    def test_what_was_begun_beside_ends_at_the_deadline_and_its_failure_is_not_lost(self):
        status, said = self.run_stages(
            SOON + "beside good slow [1/2] Building\nwithin 100 good ended good")
        self.assertEqual(status, 0, said)
        self.assertIn("[1/2] Building", said)
        status, said = self.run_stages(
            "many() { echo 'x.cc:1: error: no'; seq 100; slow; }\n"
            "beside bad many\n" + SOON + "within 100 bad ended bad")
        self.assertEqual(status, 1, said)

    def test_a_failed_build_beside_fails_a_stage_that_has_no_time_left(self):
        status, said = self.run_stages(
            "beside build-asan false\n"
            "until [[ -s build/ci/build-asan.status ]]; do sleep 0.1; done; limit=$SECONDS\n"
            "within 50 asan ended build-asan\nwithin 50 tsan ended build-tsan")
        self.assertEqual(status, 1, said)
        self.assertRegex(said, r"(?m)^asan .*FAILED")
        self.assertRegex(said, r"(?m)^tsan .*NOT RUN")

    def test_a_program_beside_that_is_killed_is_a_failure(self):
        status, said = self.run_stages("beside wheel eval 'kill -9 $BASHPID'\n"
                                       "within 100 wheel ended wheel")
        self.assertEqual(status, 1)
        self.assertIn("error: wheel was killed", said)

    def test_a_program_that_times_out_by_itself_is_a_failure(self):
        status, _ = self.run_stages("within 50 capabilities bounded timeout 0.1 sleep 60")
        self.assertEqual(status, 1)

    def test_nothing_goes_on_after_a_run_that_is_interrupted(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            run = self.begin("beside build slow\nwithin 100 asan bounded slow")
            self.addCleanup(run.kill)
            deadline = time.monotonic() + WAIT_S
            while len(self.pids()) < 2:
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.05)
            os.killpg(run.pid, number)  # as a terminal does
            run.communicate(timeout=WAIT_S)
            self.require_all_ended()
            (self.folder / "pids").unlink()

    def test_seconds_that_are_no_number_are_refused(self):
        status, said = self.run_stages("true", "soon")
        self.assertEqual(status, 2)
        self.assertIn("TETRION_CI_SECONDS=soon: expected seconds from 1", said)


if __name__ == "__main__":
    unittest.main()
