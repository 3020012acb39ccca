"""tools/plot.py: what it makes of good, odd and missing runs."""

import ast
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import plot  # noqa: E402


def declared_figures():
    """The names in the tables of docs/metrics.md, which a test compares with the declarations."""
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    return set(re.findall(r"^\| `([\w.]+)` \|", text[text.index("## Figures"):], re.MULTILINE))


def figures_of(source):
    """The keys that a Python source hands to plot.py's functions as they stand."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    keys = [call.args[1] for call in calls if isinstance(call.func, ast.Name)
            and call.func.id in ("column", "value", "shares") and len(call.args) > 1]
    return {key.value for key in keys if isinstance(key, ast.Constant)}


class Plot(unittest.TestCase):

    def setUp(self):
        self.runs = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-plot-"))
        self.addCleanup(shutil.rmtree, self.runs)

    def run_folder(self, name, lines):
        folder = self.runs / name
        folder.mkdir()
        (folder / "metrics.jsonl").write_text("\n".join(lines))
        (folder / "config.toml").write_text("[run]\n")
        return folder

    def samples(self, count):
        return [json.dumps({"elapsed_s": 5 * i, "env_steps": 1000 * i, "return_mean": i,
                            "learner": {"policy_loss": 1 / i, "value_loss": i},
                            "actor": {"wait_ring_s": 2.5 * i}}) for i in range(1, count + 1)]

    def refuses(self, words, call, *args):
        with self.assertRaises(plot.PlotError) as caught:
            call(*args)
        self.assertIn(words, str(caught.exception))

    def test_a_name_is_a_runs_also_where_the_caller_has_such_a_folder(self):
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        run, elsewhere = self.run_folder("mine", []), self.runs / "elsewhere"
        (elsewhere / "mine").mkdir(parents=True)
        os.chdir(elsewhere)
        self.assertEqual(plot.find_run(self.runs, "mine"), run)
        self.assertEqual(plot.find_run(self.runs, "./mine"), pathlib.Path("mine"))
        self.assertEqual(plot.find_run(self.runs, "../elsewhere"), pathlib.Path("../elsewhere"))

    def test_a_run_that_another_user_has_locked_is_named(self):
        self.run_folder("theirs", self.samples(3))
        tools = self.runs / "tools"  # where any user may read it
        tools.mkdir()
        shutil.copy(ROOT / "tools" / "plot.py", tools)
        self.runs.chmod(0o755)
        (self.runs / "theirs").chmod(0)
        self.addCleanup((self.runs / "theirs").chmod, 0o700)
        other = {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}
        for run in ("theirs", "latest"):
            done = subprocess.run(
                ["/usr/bin/python3", "-B", str(tools / "plot.py"), run, "--runs-dir",
                 str(self.runs)], capture_output=True, text=True, timeout=60, check=False, **other)
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, r"^tetrion plot: .*/theirs\S* (cannot be read|is locked)"
                                          ": is it a run of another user")
            self.assertEqual(done.stderr.count("\n"), 1)

    def test_every_figure_that_is_drawn_is_declared(self):
        source = (ROOT / "tools" / "plot.py").read_text(encoding="utf-8")
        named = figures_of(source)
        self.assertIn("elapsed_s", named)
        named |= {key for key, *_ in (*plot.WAITS, *plot.HEADLINE)}
        named |= {key for _, figures in plot.SIMPLE for key, *_ in figures}
        self.assertEqual(named - declared_figures(), set())
        self.assertNotIn("learner.unheard_of", declared_figures())

    def test_a_half_written_last_line_is_left_out(self):
        folder = self.run_folder("a", self.samples(3) + ['{"elapsed_s": 2'])
        self.assertEqual(len(plot.read_samples(folder)), 3)

    def test_a_broken_line_in_the_middle_is_an_error_with_its_number(self):
        folder = self.run_folder("a", self.samples(1) + ["{"] + self.samples(2))
        self.refuses("metrics.jsonl:2", plot.read_samples, folder)

    def test_bytes_that_are_no_text_are_an_error_with_their_line(self):
        folder = self.run_folder("a", self.samples(1) + ["{"] + self.samples(2))
        path = folder / "metrics.jsonl"
        path.write_bytes(path.read_bytes().replace(b"\n{\n", b"\n\xff\xfe\n"))
        self.refuses("metrics.jsonl:2 is not JSON", plot.read_samples, folder)

    def test_too_few_samples_and_no_file_say_what_to_do(self):
        self.refuses("1 sample; a curve needs 2: wait 10 s", plot.read_samples,
                     self.run_folder("a", self.samples(1)))
        last = json.dumps({**json.loads(self.samples(1)[0]), "phase": "finished"})
        self.refuses("the run ended before its second; to go on with it: "
                     f"./tetrion up --resume {self.runs}/b", plot.read_samples,
                     self.run_folder("b", [last]))
        (self.runs / "empty").mkdir()
        self.refuses("is not there", plot.read_samples, self.runs / "empty")

    def test_runs_are_found_by_name_by_path_and_as_latest(self):
        self.refuses("no run in", plot.find_run, self.runs, "latest")
        old = self.run_folder("old", self.samples(2))
        new = self.run_folder("new", self.samples(2))
        for folder, seconds in ((old, 1), (new, 2)):
            os.utime(folder / "config.toml", (seconds, seconds))
        os.utime(new / "metrics.jsonl", (1, 1))
        self.assertEqual(plot.find_run(self.runs, "latest").name, "new")
        self.assertEqual(plot.find_run(self.runs, "old").name, "old")
        self.assertEqual(plot.find_run(self.runs, str(new)), new)
        self.refuses("; there are new, old", plot.find_run, self.runs, "gone")

    def test_a_run_that_is_not_there_is_told_the_newest_ones(self):
        self.refuses("; there is none", plot.find_run, self.runs, "gone")
        (self.runs / "z-no-run").mkdir()
        for number in range(9):
            config = self.run_folder(f"run-{9 - number}", []) / "config.toml"
            os.utime(config, (number, number))
        newest = ", ".join(f"run-{number}" for number in range(1, 9))
        with self.assertRaisesRegex(plot.PlotError, f"; the newest are {newest}$"):
            plot.find_run(self.runs, "gone")

    def test_figures_are_read_nested_and_flat_and_missing_is_nan(self):
        sample = {"learner": {"entropy": 1.5}, "actor_wait_ring_s": 2, "flag": True, "text": "3"}
        self.assertEqual(plot.value(sample, "learner.entropy"), 1.5)
        self.assertEqual(plot.value(sample, "actor.wait_ring_s"), 2.0)
        for key in ("learner.loss", "flag", "text", "a.b.c"):
            self.assertNotEqual(plot.value(sample, key), plot.value(sample, key))

    def test_counters_of_seconds_become_seconds_per_second(self):
        samples = [json.loads(line) for line in self.samples(3)]
        self.assertEqual(plot.shares(samples, "actor.wait_ring_s")[1:], [0.5, 0.5])

    def test_a_restarted_counter_counts_from_0(self):
        samples = [{"epoch": 1, "elapsed_s": 5, "w": 9.0}, {"epoch": 1, "elapsed_s": 10, "w": 1.0},
                   {"epoch": 2, "elapsed_s": 4, "w": 0.5}]
        self.assertEqual(plot.shares(samples, "w")[1:], [0.2, 0.125])

    def test_a_sum_that_an_actor_has_left_is_no_wait_of_none(self):
        samples = [{"elapsed_s": s, "actor": {"w": w}} for s, w in ((5, 9.0), (10, 1.0), (15, 2.0))]
        gap, after = plot.shares(samples, "actor.w")[1:]
        self.assertNotEqual(gap, gap)
        self.assertEqual(after, 0.2)

    def test_a_resumed_run_goes_on_where_it_ended(self):
        samples = [{"elapsed_s": s} for s in (60, 120, 30, 60)]
        self.assertEqual(plot.minutes(samples), [1.0, 2.0, 2.5, 3.0])

    def test_a_run_that_is_resumed_soon_goes_on_where_it_ended(self):
        starts = ((1, 5), (1, 30), (2, 60), (2, 90), (3, 5), (3, 60))
        samples = [{"epoch": epoch, "elapsed_s": s} for epoch, s in starts]
        def seconds():
            return [round(60 * minute, 6) for minute in plot.minutes(samples)]
        self.assertEqual(seconds(), [5, 30, 90, 120, 125, 180])
        for sample in samples[:2]:
            del sample["epoch"]  # as older runs have it
        self.assertEqual(seconds(), [5, 30, 60, 90, 95, 150])
        walled = [{"epoch": epoch, "time": 1000 + 60 * epoch} for epoch in (1, 2, 3)]
        self.assertEqual(plot.minutes(walled), [0, 1, 2])

    def test_a_picture_is_drawn(self):
        python = ROOT / ".deps" / "py" / "bin" / "python"
        command = [str(python) if python.exists() else sys.executable, "-B",
                   str(ROOT / "tools" / "plot.py"), "latest", "--runs-dir", str(self.runs)]
        self.run_folder("a", self.samples(50))
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        if "matplotlib is missing" in done.stderr:
            self.skipTest("matplotlib is in .deps/py only after ./tetrion test or plot")
        self.assertEqual(done.returncode, 0, done.stderr)
        picture = pathlib.Path(done.stdout.strip()).read_bytes()
        self.assertEqual(picture[:8], b"\x89PNG\r\n\x1a\n")
        self.assertGreater(len(picture), 20_000)
        odd = subprocess.run([*command, "--out", str(self.runs / "a.xyz")], capture_output=True,
                             text=True, timeout=120, check=False)
        self.assertEqual(odd.returncode, 2)
        self.assertIn("a.xyz cannot be written", odd.stderr)


if __name__ == "__main__":
    unittest.main()
