"""--threads auto: trial runs choose the split of the cores, a second start remembers it, and
neither trials nor a Ctrl-C among them leave anything, or take what is another run's. What
is chosen depends on the machine."""

import json
import os
import signal

import harness

CORES = 2  # as on a small machine: two trials, since --workers is given
END = ("--stop-after", "20000steps")
TRIED = "steps trained a second"


class ThreadsAuto(harness.Case):
    def setUp(self):
        self.one = self.new_run()
        # So long that a trial's socket does not fit in it.
        self.temporary, self.cache = self.base / ("tmp" * 20), self.base / "cache"
        self.temporary.mkdir()
        self.one.environment = {"TMPDIR": str(self.temporary), "XDG_CACHE_HOME": str(self.cache)}

    def start_auto(self, name, *more, settings=harness.SETTINGS, which="--run"):
        cores = sorted(os.sched_getaffinity(0))[:CORES]
        self.one.start_process(
            "up", "tetrion-up",
            [which, name, "--runs-dir", str(self.one.runs), "--shm-dir", str(self.one.shm),
             "--threads", "auto", "--workers", "1", *more, *harness.flags(settings)],
            before=lambda: os.sched_setaffinity(0, cores))
        harness.wait_until("up says what it does", lambda: "auto: " in self.one.log("up"))
        if "nothing to choose" in self.one.log("up"):
            self.skipTest("one core leaves no choice")

    def assert_nothing_is_left(self, beside=()):
        self.assertEqual(harness.wait_until_gone(self.base), [])
        self.assertEqual(list(self.temporary.iterdir()), [])
        left = sorted(path.name for path in self.one.shm.iterdir())
        self.assertEqual(left, [".lock", *beside])

    def test_split_is_measured_once(self):
        self.start_auto("x", *END)
        self.assertEqual(self.one.wait_exit("up", 4 * harness.DEADLINE_S), 0)
        said = self.one.log("up")
        self.assertEqual(said.count(TRIED), 2, said)
        self.assert_nothing_is_left()
        file = self.cache / "tetrion" / "core-splits.json"
        self.assertIn(f"remembered in {file}", said)
        [split] = json.loads(file.read_text())["splits"]
        self.assertEqual(split["workers"], 1)
        self.assertIn(split["threads"], (1, 2))
        self.assertEqual([path.name for path in self.one.runs.iterdir()], ["x"])

        self.start_auto("y", *END)
        self.assertEqual(self.one.wait_exit("up"), 0)
        again = self.one.log("up").removeprefix(said)
        self.assertNotIn(TRIED, again)
        self.assertRegex(again, rf"takes 1 worker .*{split['threads']} thread.* remove {file}")
        self.assert_nothing_is_left()

    def test_ctrl_c_among_the_trials_ends_at_once(self):
        self.start_auto("x")
        harness.wait_until("a trial plays", self.one.rings)
        self.one.signal("up", signal.SIGINT)
        self.assertEqual(self.one.wait_exit("up"), 0)
        said = self.one.log("up")
        self.assertIn("the run was not begun", said)
        self.assertNotIn("takes", said)
        self.assert_nothing_is_left()
        self.assertFalse(self.one.runs.exists() or self.cache.exists())

    def test_rings_of_the_run_that_is_resumed_wait_for_it(self):
        self.one.start_by_hand()
        self.one.expect_progress()
        self.one.drain()
        run_id = json.loads((self.one.folder / "endpoints.json").read_text())["run_id"]
        ring = f"{int(run_id):016x}.ring.1-00000000.0"
        (self.one.shm / ring).write_text("rows that no learner has taken")
        self.start_auto("x", which="--resume", settings={})
        harness.wait_until("a trial has been played", lambda: TRIED in self.one.log("up"))
        self.one.signal("up", signal.SIGINT)
        self.assertEqual(self.one.wait_exit("up"), 0)
        self.assertIn("the run was not begun", self.one.log("up"))
        self.assert_nothing_is_left(beside=[ring])

    def test_trial_of_a_run_whose_rows_take_the_network(self):
        config = self.base / "config.toml"
        config.write_text('[actor]\nrows = "tcp"\n'
                          '[learner]\nrows_bind = "tcp://127.0.0.1:0"\n')
        self.start_auto("x", "--config", str(config))
        harness.wait_until("a trial has been played", lambda: TRIED in self.one.log("up"))
        self.one.signal("up", signal.SIGINT)
        self.assertEqual(self.one.wait_exit("up"), 0)
        self.assert_nothing_is_left()

    def start_auto_where_trials_fail(self, code):
        """The coordinator of every trial ends so, the run's does not."""
        programs = self.base / "bin"
        programs.mkdir()
        for name in ("tetrion-learner", "tetrion-actor"):
            (programs / name).symlink_to(harness.BIN / name)
        coordinator = programs / "tetrion-coordinator"
        coordinator.write_text(f'#!/bin/sh\ncase "$*" in *tetrion-trial*) exit {code};; esac\n'
                               f'exec {harness.BIN}/tetrion-coordinator "$@"\n')
        coordinator.chmod(0o755)
        self.start_auto("x", "--bin-dir", str(programs), *END)

    def test_what_may_be_the_temporary_folders_fault_keeps_no_run_from_its_start(self):
        self.start_auto_where_trials_fail(1)
        self.assertEqual(self.one.wait_exit("up", 4 * harness.DEADLINE_S), 0)
        self.assertIn("set TMPDIR", self.one.log("up"))
        self.assertFalse(self.cache.exists())
        self.assert_nothing_is_left()

    def test_what_a_service_refuses_is_the_runs_failure(self):
        self.start_auto_where_trials_fail(78)
        self.assertEqual(self.one.wait_exit("up"), 78)
        self.assertFalse(self.one.runs.exists())


if __name__ == "__main__":
    harness.main()
