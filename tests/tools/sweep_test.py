"""tools/sweep.py with programs that train and play nothing: what it runs, keeps and finds."""

import contextlib
import functools
import io
import json
import math
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import sweep  # noqa: E402

# Keeps its options in the run's config.toml, and adds up the seconds that it was given.
UP = r"""#!/bin/bash
set -eu
all=$*
declare -A given
while (($#)); do given[$1]=$2; shift 2; done
echo "$all" >>"${given[--runs-dir]}/calls"
run=${given[--runs-dir]}/${given[--resume]:-${given[--run]:-}}
if [[ -z ${given[--resume]:-} ]]; then
  mkdir "$run"
  echo "$all" >"$run/config.toml"
  case ${given[--learning-rate]} in 0.9 | 0.8) echo "error: diverged"; exit 1 ;; esac
  echo 0 >"$run/seconds"
elif [[ ${given[--learning-rate]} == 0.7 ]]; then
  echo "error: diverged late"
  exit 1
fi
seconds=${given[--stop-after]%s}
echo $(($(cat "$run/seconds") + seconds)) >"$run/seconds"
"""
# The closer the learning rate is to 0.01, and the longer the run, the better.
EVAL = r"""#!/bin/bash
run=$4/$2
[[ "$(cat "$run/config.toml")" =~ --seed\ ([0-9]+).*--learning-rate\ ([^ ]+) ]]
awk -v seed="${BASH_REMATCH[1]}" -v rate="${BASH_REMATCH[2]}" -v seconds="$(cat "$run/seconds")" \
  'BEGIN { off = log((rate == 0.7 ? 0.01 : rate) / 0.01); if (off < 0) off = -off
           score = seconds * exp(-off) + 0.001 * seed
           printf "{\"lines\": {\"mean\": %g}, \"return\": {\"mean\": 0}}\n", score }'
"""


def options(**given):
    """Those of a small sweep."""
    return types.SimpleNamespace(**{"trials": 12, "seeds": 2, "seconds": 90.0, "tune": None,
                                    **given})


class Sweep(unittest.TestCase):

    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-sweep-"))
        self.addCleanup(shutil.rmtree, self.base)
        for name, body in (("tetrion-up", UP), ("tetrion-eval", EVAL)):
            path = self.base / name
            path.write_text(body)
            path.chmod(0o755)
        self.runs = sweep.Runs(self.base / "runs", ["--env", "tetris"], [], self.base)
        self.runs.folder.mkdir()
        self.said = []

    def sweep(self, tune=("learning_rate=0.0001..0.4",), **given):
        study = sweep.make_study(self.runs.folder)
        ranges = sweep.space_of(tune)
        return sweep.sweep(study, ranges, self.runs, options(tune=list(tune), **given),
                           self.said.append)

    def test_the_best_third_trains_longer_and_the_best_settings_are_found(self):
        tried = self.sweep()
        self.assertEqual(len(tried), 12)
        longest = [one for one in tried if one["seconds"] == 90]
        self.assertTrue(0 < len(longest) < 8, len(longest))
        best = sweep.best_of(tried)
        self.assertIn(best, longest)
        rate = float(best["values"]["learning_rate"])
        self.assertTrue(0.001 < rate < 0.1, rate)
        self.assertEqual(len(best["scores"]), 2)
        kept = {path.name for path in self.runs.folder.glob("trial*/")}
        self.assertEqual(kept, {f"trial{one['trial']}-seed{seed}" for one in longest
                                for seed in (1, 2)})
        lines = sweep.table(tried)
        self.assertIn(f"| {best['trial']} | 90 |", lines[2])

    def test_a_run_goes_on_from_rung_to_rung_until_it_has_had_all_its_seconds(self):
        best = sweep.best_of(self.sweep())
        spent = (self.runs.folder / f"trial{best['trial']}-seed1" / "seconds").read_text()
        self.assertEqual(float(spent), 90)
        config = (self.runs.folder / f"trial{best['trial']}-seed2" / "config.toml").read_text()
        self.assertIn("--seed 2 --env tetris --learning-rate", config)

    def test_every_rung_has_the_options_behind_the_dashes_but_only_the_first_a_beginning(self):
        self.runs.up_options = ["--workers", "1", "--init-from", "old"]
        self.sweep(trials=3)
        calls = (self.runs.folder / "calls").read_text().splitlines()
        resumed = [call for call in calls if "--resume" in call]
        self.assertTrue(resumed)
        for call in calls:
            self.assertIn("--workers 1", call)
            self.assertIn("--learning-rate", call)
            self.assertEqual("--init-from old" in call, call not in resumed)

    def main(self, *words):
        """(exit status, what was printed, what was told) of the whole program with ours."""
        with unittest.mock.patch.object(sweep, "Runs", functools.partial(
                sweep.Runs, bin_dir=self.base)), \
                contextlib.redirect_stdout(io.StringIO()) as printed, \
                contextlib.redirect_stderr(io.StringIO()) as told:
            status = sweep.main(["--dir", str(self.runs.folder), "--seconds", "9", *words])
        return status, printed.getvalue(), told.getvalue()

    def calls(self):
        """The options of every training."""
        return (self.runs.folder / "calls").read_text().splitlines()

    def test_a_setting_that_stands_behind_the_dashes_is_not_chosen(self):
        status, printed, told = self.main("--trials", "2", "--seeds", "1", "--", "--env",
                                          "cartpole", "--learning-rate", "0.001")
        self.assertEqual(status, 0, told)
        for call in [*self.calls(), printed.splitlines()[-1]]:
            words = call.split()
            self.assertEqual(words.count("--learning-rate"), 1, call)
            self.assertEqual(words[words.index("--learning-rate") + 1], "0.001")
            self.assertIn("--reuse", words)

    def fail(self, program, status):
        """In place of the program, one that is called and ends with the status."""
        (self.base / program).write_text(
            f"#!/bin/bash\necho called >>{self.base}/failed\necho error: unknown\nexit {status}\n")
        return lambda: (self.base / "failed").read_text().count("called")

    def test_options_that_the_evaluation_refuses_end_the_sweep_at_once(self):
        self.fail("tetrion-eval", 2)
        status, _, told = self.main("--trials", "3", "--seeds", "1", "--eval", "--stepz",
                                    "--tune", "learning_rate=0.01|0.02")
        self.assertEqual(status, 2)
        self.assertRegex(told, "^sweep: --eval: .* --stepz ended with status 2: error: unknown; ")
        self.assertEqual(len(self.calls()), 1)
        self.assertEqual(list(self.runs.folder.glob("trial*/")), [])

    def test_options_that_the_first_training_refuses_end_the_sweep_at_once(self):
        self.assertEqual(len(self.sweep(trials=1, seeds=1)), 1)
        called = self.fail("tetrion-up", 2)
        with self.assertRaisesRegex(sweep.SweepError, "3 trials failed"):
            self.sweep(trials=2, seeds=1)  # one has scored: it may be these settings' fault
        self.assertEqual(called(), 3)
        self.runs.folder = self.base / "others"
        self.runs.folder.mkdir()
        with self.assertRaisesRegex(sweep.SweepError, "status 2: error: unknown; .*another --dir"):
            self.sweep(trials=2, seeds=1)
        self.assertEqual(called(), 4)

    def test_a_trial_whose_weights_cannot_be_played_ends_as_the_worst(self):
        self.fail("tetrion-eval", 78)  # they are not finite, or there is no checkpoint yet
        with self.assertRaisesRegex(sweep.SweepError, "3 trials failed"):
            self.sweep(trials=2, seeds=1)
        self.assertEqual(list(self.runs.folder.glob("trial*/")), [])
        (self.base / "tetrion-eval").write_text(EVAL)
        self.assertEqual(len(self.sweep(trials=2, seeds=1)), 2)

    def test_a_sweep_that_was_ended_goes_on_and_one_with_other_options_is_refused(self):
        first = self.sweep(trials=4)
        again = self.sweep(trials=6)
        self.assertEqual(again[:4], first)
        self.assertEqual(len(again), 6)
        rates = {one["values"]["learning_rate"] for one in again}
        self.assertEqual(len(rates), 6, "nothing is tried again")
        with self.assertRaisesRegex(sweep.SweepError, "other options; give another --dir"):
            self.sweep(trials=6, seeds=3)

    def test_a_sweep_that_was_ended_before_its_first_score_is_one_of_its_options_already(self):
        def interrupt(*_):
            raise KeyboardInterrupt
        self.runs.train = interrupt
        with self.assertRaises(KeyboardInterrupt):
            self.sweep(["reuse=1|2"])
        with self.assertRaisesRegex(sweep.SweepError, "other options; give another --dir"):
            self.sweep(["reuse=1|2|4"])

    def test_two_sweeps_do_not_share_a_folder(self):
        held = sweep.lock(self.base)
        with self.assertRaisesRegex(sweep.SweepError, "another sweep is at work in"):
            sweep.lock(self.base)
        held.close()
        sweep.lock(self.base).close()

    def test_a_trial_that_fails_is_told_of_and_left_out(self):
        tried = self.sweep(tune=("learning_rate=0.01|0.02|0.9",), trials=6)
        self.assertNotIn("0.9", {one["values"]["learning_rate"] for one in tried})
        failures = [text for text in self.said if "failed" in text]
        self.assertTrue(failures)
        self.assertIn("error: diverged", failures[0])
        with self.assertRaisesRegex(sweep.SweepError, "4 trials failed"):
            self.runs.folder = self.base / "others"
            self.runs.folder.mkdir()
            self.sweep(tune=("learning_rate=0.9|0.8",), trials=3)

    def test_a_trial_that_fails_after_a_good_beginning_is_the_worst_of_all_to_the_sampler(self):
        self.sweep(tune=("learning_rate=0.01|0.02|0.7",), trials=6)
        self.assertTrue([text for text in self.said if "diverged late" in text])
        trials = sweep.make_study(self.runs.folder).trials
        late = [one for one in trials if one.params["learning_rate"] == "0.7"
                and one.state.name == "PRUNED" and max(one.intermediate_values) == 1
                and one.intermediate_values[1] == -math.inf]
        self.assertTrue(late)
        for one in trials:
            if one.params["learning_rate"] == "0.7" and one.state.name != "PRUNED":
                self.assertEqual(one.state.name, "FAIL", "its good score counts for nothing")
        kept = {path.name for path in self.runs.folder.glob("trial*/")}
        self.assertFalse([name for name in kept
                          if "--learning-rate 0.7" in (self.runs.folder / name / "config.toml")
                          .read_text()])

    def evaluate_for_ever(self, when_asked_to_end):
        """In place of the evaluation, one that ends only when it is asked to."""
        (self.base / "tetrion-eval").write_text(
            f"#!/bin/bash\ntrap '{when_asked_to_end}' TERM\nwhile :; do sleep 0.05; done\n")
        grace, sweep.GRACE_S = sweep.GRACE_S, 2  # time enough for the trap
        self.addCleanup(setattr, sweep, "GRACE_S", grace)

    def test_an_evaluation_out_of_time_tells_what_it_has(self):
        self.evaluate_for_ever('echo "{\\"lines\\": {\\"mean\\": 7}}"; exit 0')
        self.assertEqual(self.sweep(trials=1, seeds=1)[0]["scores"], [7])

    def test_an_evaluation_that_is_too_long_counts_against_no_settings(self):
        first = self.sweep(trials=1, seeds=1)
        self.evaluate_for_ever("echo interrupted; exit 75")
        with self.assertRaisesRegex(sweep.SweepError, "did not end in 2 s: interrupted; .* "
                                                      "start a sweep in another --dir"):
            self.sweep(trials=2, seeds=1)
        states = [one.state.name for one in sweep.make_study(self.runs.folder).trials]
        self.assertEqual(states[1:], ["FAIL"] * 3)
        kept = json.loads((self.runs.folder / "sweep.json").read_text())["tried"]
        self.assertEqual(kept, first, "what has scored stays")


    def test_a_run_whose_sweep_was_killed_holds_the_folder_and_is_removed_after_it(self):
        pid = self.base / "pid"
        (self.base / "tetrion-up").write_text(
            f"#!/bin/bash\nmkdir {self.runs.folder}/trial0-seed1\necho $$ >{pid}.new\n"
            f"mv {pid}.new {pid}\nexec sleep 60\n")
        sweeping = subprocess.Popen(
            [sys.executable, "-B", "-c", "import functools, pathlib, sys\n"
             "sys.path.insert(0, sys.argv[1])\nimport sweep; base = pathlib.Path(sys.argv[2])\n"
             "sweep.Runs = functools.partial(sweep.Runs, bin_dir=base)\n"
             "sweep.main(['--dir', str(base / 'runs'), '--seconds', '9', '--seeds', '1', "
             "'--trials', '1'])", str(ROOT / "tools"), str(self.base)],
            stdout=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(sweeping.kill)
        while not pid.exists():
            self.assertIsNone(sweeping.poll())
            time.sleep(0.02)
        sweeping.kill()
        sweeping.wait()
        with self.assertRaisesRegex(sweep.SweepError, "or the run of one that was killed"):
            sweep.lock(self.runs.folder)
        os.kill(int(pid.read_text()), signal.SIGKILL)
        while True:
            with contextlib.suppress(sweep.SweepError), sweep.lock(self.runs.folder):
                break
            time.sleep(0.02)
        (self.base / "tetrion-up").write_text(UP)
        self.assertEqual(self.main("--trials", "1", "--seeds", "1")[0], 0)
        self.assertEqual([path.name for path in self.runs.folder.glob("trial*/")], ["trial1-seed1"])

    def test_an_interrupted_sweep_asks_its_run_once_and_waits_for_it(self):
        told = self.base / "told"
        (self.base / "tetrion-up").write_text(f"""#!/bin/bash
trap 'echo TERM >>{told}' TERM
trap 'echo INT >>{told}' INT
echo ready >{told}
while [[ $(wc -l <{told}) == 1 ]]; do sleep 0.02; done
sleep 0.2  # a second signal would be written
echo $$ ended >>{told}
""")
        sweeping = subprocess.Popen(
            [sys.executable, "-B", "-c", "import pathlib, sys; sys.path.insert(0, sys.argv[1])\n"
             "import sweep; base = pathlib.Path(sys.argv[2])\n"
             "try: sweep.Runs(base / 'runs', [], [], base).train('a', 1, {}, 60)\n"
             "except KeyboardInterrupt: print((base / 'told').read_text())",
             str(ROOT / "tools"), str(self.base)],
            stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.addCleanup(sweeping.kill)
        stat = pathlib.Path(f"/proc/{sweeping.pid}/stat")
        while (not told.exists() or not told.read_text()
               or stat.read_text().rsplit(")", 1)[1].split()[0] != "S"):  # it waits for its run
            self.assertIsNone(sweeping.poll())
            time.sleep(0.02)
        os.killpg(sweeping.pid, signal.SIGINT)  # as a terminal's Ctrl-C
        words = sweeping.communicate(timeout=60)[0].split()
        self.assertEqual(words[:2] + words[3:], ["ready", "TERM", "ended"])
        self.assertFalse(pathlib.Path(f"/proc/{words[2]}").exists())


class Words(unittest.TestCase):

    def test_ranges_are_whole_or_not_and_logarithmic_where_the_ends_are_far_apart(self):
        rate, lanes, clip = sweep.space_of(
            ["learning-rate=1e-4..1e-2", "lanes=8..64", "ppo_clip=0|0.2"])
        self.assertEqual((rate.key, rate.log, rate.whole), ("learning_rate", True, False))
        self.assertEqual((lanes.log, lanes.whole), (False, True))
        self.assertEqual(clip.choices, ["0", "0.2"])

    def test_a_setting_is_chosen_or_given_not_both(self):
        def keys(*up_options):
            return [one.key for one in sweep.space_of(None, up_options)]
        self.assertEqual(set(keys()) - set(keys("--learning-rate=0.1", "--reuse", "1")),
                         {"learning_rate", "reuse"})
        with self.assertRaisesRegex(sweep.SweepError, "--learning-rate after -- is what --tune"):
            sweep.space_of(["learning-rate=1e-4..1e-2"], ["--learning-rate", "0.1"])
        with self.assertRaisesRegex(sweep.SweepError, "name one to look for by --tune"):
            keys(*(f"--{key.replace('_', '-')}=1" for key in keys()))

    def test_the_default_ranges_are_refused_to_another_algorithm(self):
        for up_options in (["--algo", "dreamer"], ["--algo=dreamer"],
                           ["--algo", "vtrace", "--env", "catch", "--algo", "dreamer"]):
            with self.assertRaisesRegex(sweep.SweepError, "--algo dreamer after --, but the "
                                        "default ranges are V-trace's: name those of dreamer by"):
                sweep.space_of(None, up_options)
            [one] = sweep.space_of(["horizon=5..15"], up_options)
            self.assertEqual(one.key, "horizon")
        self.assertGreater(len(sweep.space_of(None, ["--algo", "vtrace"])), 3)

    def test_what_is_no_range_is_refused_with_its_text(self):
        for text in ("lanes", "=1..2", "lanes=", "lanes=1..", "lanes=5..2", "lanes=a..b",
                     "lanes=1..2..3", "rate=1..inf"):
            with self.assertRaisesRegex(sweep.SweepError, "--tune"):
                sweep.space_of([text])
        with self.assertRaisesRegex(sweep.SweepError, "twice"):
            sweep.space_of(["lanes=1..2", "lanes=2..3"])

    def test_a_score_is_what_the_evaluation_could_tell(self):
        spread = {"mean": 3, "estimate": 7, "low95": 5}
        self.assertEqual(sweep.score_of({"lines": spread, "return": {"mean": 9}}), 3)
        self.assertEqual(sweep.score_of({"return": {"mean": 9}}), 9)
        self.assertEqual(sweep.score_of({"lines_per_death": spread, "steps_per_death": {}}), 7)
        undying = {"estimate": None, "low95": 5}
        self.assertEqual(sweep.score_of({"lines_per_death": undying}), 5)
        with self.assertRaisesRegex(sweep.SweepError, "no score"):
            sweep.score_of({"episodes": 3})

    def test_options_of_up_follow_two_dashes_and_those_of_the_sweep_are_not_among_them(self):
        ours, ups = sweep.parse(["--trials", "3", "--", "--env", "cartpole", "--lanes", "8"])
        self.assertEqual((ours.trials, ups), (3, ["--env", "cartpole", "--lanes", "8"]))
        self.assertEqual(sweep.parse(["--eval", "--sample", "--trials", "3"])[0].eval, ["--sample"])
        for flag in ("--seed=3", "--stop-after"):
            with self.assertRaisesRegex(sweep.SweepError, "leave it out"):
                sweep.parse(["--", flag])
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(sweep.main(["--seconds", "1"]), 2)
        self.assertIn("--seconds is at least 9", said.getvalue())

    def test_odd_words_and_folders_are_told_of_in_a_sentence(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-sweep-"))
        self.addCleanup(shutil.rmtree, folder)
        (folder / "sweep.json").write_text('{"tried": [')
        (folder / "file").write_text("")
        for words, text in ((["--eval=it's"], "--eval it's: No closing quotation"),
                            (["--seconds", "nan"], "--seconds is at least 9"),
                            (["--dir", str(folder / "file")], "cannot be written"),
                            (["--dir", str(folder)], "sweep.json is no sweep's")):
            with contextlib.redirect_stderr(io.StringIO()) as said, \
                    contextlib.redirect_stdout(io.StringIO()):
                self.assertEqual(sweep.main(words), 2, words)
            self.assertIn(text, said.getvalue())

    def test_runs_lie_where_those_of_up_do_and_one_to_begin_from_is_found_there(self):
        self.assertEqual(sweep.parse([])[0].dir, sweep.RUNS / "sweep")
        self.assertTrue(sweep.RUNS.is_absolute() or "TETRION_RUNS_DIR" in os.environ)
        there = str(sweep.RUNS.resolve())
        for given, found in (("old", f"{there}/old"), ("old/best", f"{there}/old/best"),
                             ("../x/old", "../x/old"), ("/a/old/best", "/a/old/best")):
            self.assertEqual(sweep.parse(["--", "--init-from", given, "--lanes", "8"])[1],
                             ["--init-from", found, "--lanes", "8"])
            self.assertEqual(sweep.parse(["--", f"--init-from={given}"])[1],
                             [f"--init-from={found}"])
        with self.assertRaisesRegex(sweep.SweepError, "name the run"):
            sweep.parse(["--", "--init-from", "latest"])

    def test_the_default_ranges_are_of_settings_that_there_are(self):
        settings = (ROOT / "docs/options.md").read_text()
        for one in sweep.space_of(None):
            self.assertIn(f"`--{one.key.replace('_', '-')}`", settings)


if __name__ == "__main__":
    unittest.main()
