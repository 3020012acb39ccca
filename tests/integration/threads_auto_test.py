"""--threads auto: trial runs choose the split of the cores, a second start remembers it, and
neither trials nor a Ctrl-C among them leave anything. What is chosen depends on the machine."""

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
        self.temporary, self.cache = self.base / "tmp", self.base / "cache"
        self.temporary.mkdir()
        self.one.environment = {"TMPDIR": str(self.temporary), "XDG_CACHE_HOME": str(self.cache)}

    def start_auto(self, name, *more):
        cores = sorted(os.sched_getaffinity(0))[:CORES]
        self.one.start_process(
            "up", "tetrion-up",
            ["--run", name, "--runs-dir", str(self.one.runs), "--shm-dir", str(self.one.shm),
             "--threads", "auto", "--workers", "1", *more, *harness.flags(harness.SETTINGS)],
            before=lambda: os.sched_setaffinity(0, cores))
        harness.wait_until("up says what it does", lambda: "auto: " in self.one.log("up"))
        if "nothing to choose" in self.one.log("up"):
            self.skipTest("one core leaves no choice")

    def assert_nothing_is_left(self):
        self.assertEqual(harness.wait_until_gone(self.base), [])
        self.assertEqual(list(self.temporary.iterdir()), [])
        self.assertEqual([path.name for path in self.one.shm.iterdir()], [".lock"])

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


if __name__ == "__main__":
    harness.main()
