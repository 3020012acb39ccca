"""tools/bench.py and its parts: what they make of good, odd and missing input."""

import contextlib
import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import bench_picture  # noqa: E402
import bench_program  # noqa: E402

import bench  # noqa: E402


def figure(median, ratio=None, target=None):
    spread = {"median": median, "min": median, "max": median}
    return {"what": "w", "unit": "u", "ours": spread, "rival": None, "target": target,
            "ratio": ratio and {"median": ratio, "min": ratio, "max": ratio}}


def can_draw(path):
    """Whether this Python has matplotlib."""
    with contextlib.redirect_stderr(io.StringIO()):
        return bench.can_draw(path)


class Bench(unittest.TestCase):

    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-bench-"))
        self.addCleanup(shutil.rmtree, self.base)

    def program(self, name, body):
        path = self.base / "programs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{body}\n")
        path.chmod(0o755)

    def run_it(self, *args):
        done = subprocess.run([sys.executable, "-B", str(ROOT / "tools" / "bench.py"),
                               "--folder", str(self.base / "programs"),
                               "--out", str(self.base / "result.json"), *args],
                              capture_output=True, text=True, timeout=60, check=False)
        result = self.base / "result.json"
        return done, json.loads(result.read_text()) if result.exists() else None

    def test_targets_with_x_judge_the_ratio_and_others_our_figure(self):
        self.assertEqual(bench.verdict(figure(10, 1.3, ">= 1.2x")), "met")
        self.assertEqual(bench.verdict(figure(10, 1.1, ">= 1.2x")), "MISSED")
        self.assertEqual(bench.verdict(figure(10, 0.7, "<= 0.75x")), "met")
        self.assertEqual(bench.verdict(figure(10, 0.8, "<= 0.75x")), "MISSED")
        self.assertEqual(bench.verdict(figure(26e6, None, ">= 25M")), "met")
        self.assertEqual(bench.verdict(figure(24e6, 100, ">= 25M")), "MISSED")
        self.assertEqual(bench.verdict(figure(25e6, None, ">= 25e6")), "met")

    def test_no_target_or_nothing_to_compare_gives_no_verdict(self):
        self.assertEqual(bench.verdict(figure(10)), "-")
        self.assertEqual(bench.verdict(figure(10, None, ">= 2x")), "-")
        self.assertEqual(bench.verdict(figure(10, None, "as fast as possible")), "-")

    def test_remarks_between_the_json_lines_are_left_out(self):
        output = "warming up\n" + json.dumps(figure(1)) + "\n{broken\n[1]\n{\"other\": 1}\n"
        figures, unreadable = bench_program.figures_of(output, "p")
        self.assertEqual([f["program"] for f in figures], ["p"])
        self.assertEqual(unreadable, ["{broken"])

    def test_a_figure_that_is_no_number_is_an_error(self):
        self.program("divides", f"echo '{json.dumps(figure(3, 2.0))}'; "
                                "echo '{\"what\": \"w\", \"ours\": {\"median\": inf}}'")
        self.program("doubts", "echo '{\"what\": \"w\", \"ours\": {\"median\": NaN}}'")
        done, result = self.run_it()
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(result["figures"]), 1)
        self.assertEqual([error.split(" line:")[0] for error in result["errors"]],
                         ["divides: unreadable", "doubts: unreadable"])

    def test_flags_are_those_of_the_build_whose_programs_ran(self):
        with tempfile.TemporaryDirectory() as name:
            build = pathlib.Path(name)
            cache = build / "CMakeCache.txt"
            for kind, flags in (("Release", "-O3"), ("RelWithDebInfo", "-O2"), ("", "unknown")):
                cache.write_text(f"CMAKE_BUILD_TYPE:STRING={kind}\nTETRION_NATIVE:BOOL=OFF\n")
                self.assertIn(flags, bench.machine(build)["flags"])

    def test_a_result_is_written_whole_or_not_at_all(self):
        with tempfile.TemporaryDirectory() as name, \
                contextlib.redirect_stderr(io.StringIO()) as told:
            out = pathlib.Path(name) / "result.json"
            self.assertTrue(bench.write_whole(out, "1"))
            with unittest.mock.patch.object(pathlib.Path, "write_text",
                                            side_effect=OSError(28, "No space left on device")):
                self.assertFalse(bench.write_whole(out, "2"))
            self.assertEqual(out.read_text(), "1")
            self.assertEqual([path.name for path in out.parent.iterdir()], ["result.json"])
        self.assertIn("result.json cannot be written: No space left on device", told.getvalue())

    def test_a_run_writes_figures_machine_and_errors(self):
        self.program("good", f"echo '{json.dumps(figure(3, 2.0, '>= 1x'))}'; echo \"$1\" >&2")
        self.program("silent", "exit 0")
        self.program("crash", "echo no memory >&2; exit 3")
        done, result = self.run_it("--quick")
        self.assertEqual(done.returncode, 1)
        self.assertIn("met", done.stdout)
        self.assertEqual([f["verdict"] for f in result["figures"]], ["met"])
        self.assertEqual(result["errors"], ["crash: exit status 3: no memory",
                                            "silent: printed no figure"])
        self.assertTrue(result["machine"]["cpu"] and result["machine"]["cores"])
        self.assertTrue(result["quick"])

    def test_programs_are_told_to_be_quick_and_may_be_chosen(self):
        self.program("ring_bench", f"[[ $1 == --quick ]] && echo '{json.dumps(figure(1))}'")
        self.program("other", "exit 1")
        done, result = self.run_it("--quick", "--only", "ring")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(result["figures"]), 1)

    def test_nothing_to_run_is_said(self):
        done, _ = self.run_it()
        self.assertEqual(done.returncode, 2)
        self.assertIn("no program", done.stderr)
        self.program("ring_bench", "exit 1")
        done, _ = self.run_it("--only", "rope")
        self.assertEqual(done.returncode, 2)
        self.assertIn("no program is named like 'rope'; choose a part of: ring_bench", done.stderr)

    def result(self, ratio, quick=False, cores=2, target=None):
        return {"machine": {"cpu": "c", "cores": cores, "flags": "-O3", "revision": "r"},
                "quick": quick, "figures": [{**figure(1, ratio, target), "program": "p"}]}

    def store(self, name, result):
        path = self.base / name
        path.write_text(json.dumps(result))
        return path

    def fallen(self, old, new):
        return list(bench.fallen(bench.ratios(old), bench.ratios(new)).values())

    def test_a_ratio_that_fell_by_a_tenth_is_told(self):
        old = self.result(2.0)
        self.assertEqual(self.fallen(old, self.result(1.81)), [])
        self.assertEqual(self.fallen(old, self.result(3.0)), [])
        self.assertIn("was 2x, it is 1.8x (10 % worse)", self.fallen(old, self.result(1.8))[0])

    def test_where_less_is_better_a_higher_ratio_is_worse(self):
        old = self.result(0.5, target="<= 0.75x")
        self.assertEqual(self.fallen(old, self.result(0.4, target="<= 0.75x")), [])
        self.assertEqual(len(self.fallen(old, self.result(0.6, target="<= 0.75x"))), 1)

    def test_a_time_without_a_target_is_better_where_it_is_less(self):
        old, fell, rose = ({**self.result(ratio), "figures": [{**figure(1, ratio), "unit": "ns"}]}
                           for ratio in (0.5, 0.4, 0.6))
        self.assertEqual(self.fallen(old, fell), [])
        self.assertEqual(len(self.fallen(old, rose)), 1)

    def test_ratios_that_only_one_result_has_are_left_out(self):
        self.assertEqual(self.fallen(self.result(None), self.result(1.0)), [])
        self.assertEqual(self.fallen(self.result(1.0), self.result(None)), [])

    def test_the_newest_ratio_of_the_same_kind_of_machine_counts(self):
        self.store("20260101-a.json", self.result(1.0))
        self.store("20260102-a.json", self.result(1.1))
        self.store("20260103-a.json", self.result(None))  # measured something else
        self.store("20260104-a.json", self.result(1.2, quick=True))
        self.store("20260105-a.json", self.result(1.3, cores=8))
        (self.base / "20260106-a.json").write_text("{broken")
        with contextlib.redirect_stderr(io.StringIO()) as told:
            found = bench.stored(self.result(1.0), self.base)
        self.assertEqual(list(found.values()), [(1.1, False)])
        self.assertIn("20260106-a.json: left out", told.getvalue())
        with contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual(bench.stored(self.result(1.0, cores=3), self.base), {})

    def test_a_run_is_compared_with_a_file(self):
        self.program("good", f"echo '{json.dumps(figure(3, 2.0))}'")
        old = self.result(2.5)
        old["figures"][0]["program"] = "good"
        done, result = self.run_it("--compare", str(self.store("old.json", old)))
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("worse: w: the ratio was 2.5x, it is 2x (20 % worse)", done.stdout)
        self.assertIn("1 of 1 ratios were measured before, 1 are worse", done.stdout)
        self.assertEqual(len(result["figures"]), 1)
        old["figures"][0]["ratio"]["median"] = 2.1
        done, _ = self.run_it("--compare", str(self.store("old.json", old)))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("0 are worse", done.stdout)

    def compare(self, ratio, old=None, what="w"):
        """(exit status, what was printed) of a run of this ratio, whose result is stored."""
        new = self.result(ratio)
        new["figures"][0]["what"] = what
        with unittest.mock.patch.object(bench, "RESULTS", self.base), \
                contextlib.redirect_stdout(io.StringIO()) as told:
            status = bench.compare(new, old)
        self.store(f"2026010{len(list(self.base.glob('2026*')))}-a.json", new)
        return status, told.getvalue()

    def test_a_ratio_that_fell_is_worse_in_the_next_run_too_until_its_mark_is_gone(self):
        self.store("20260100-a.json", self.result(10.0))
        for _ in range(2):
            status, told = self.compare(6.0)
            self.assertEqual(status, 1)
            self.assertIn("the ratio was 10x, it is 6x (40 % worse)", told)
        newest = max(self.base.glob("2026*"))
        marked = json.loads(newest.read_text())
        self.assertIs(marked["figures"][0].pop("worse"), True)
        newest.write_text(json.dumps(marked))
        self.assertEqual(self.compare(6.0)[0], 0, "the loss was accepted")

    def test_a_ratio_that_was_worse_than_on_another_machine_is_not_marked(self):
        status, told = self.compare(6.0, self.result(10.0, cores=3))
        self.assertEqual(status, 1)
        self.assertIn("another kind of machine", told)
        self.assertEqual(list(bench.stored(self.result(1.0), self.base).values()), [(6.0, False)])

    def test_a_ratio_that_is_no_longer_measured_is_told(self):
        self.store("20260100-a.json", self.result(10.0))
        status, told = self.compare(None)
        self.assertEqual(status, 0)
        self.assertIn("not measured now: w, beside no rival", told)

    def test_a_file_that_has_none_of_the_ratios_is_a_failed_comparison(self):
        status, told = self.compare(10.0, self.result(10.0), what="another")
        self.assertEqual(status, 1)
        self.assertIn("0 of 1 ratios were measured before", told)

    def test_what_cannot_be_written_is_refused_before_anything_is_measured(self):
        self.program("good", f"touch {self.base}/ran; echo '{json.dumps(figure(3, 2.0))}'")
        (self.base / "file").write_text("")
        for flag, path in (("--out", self.base), ("--out", self.base / "file" / "o.json"),
                           ("--out", "/proc/none/o.json")):
            done, _ = self.run_it(flag, str(path))
            self.assertEqual(done.returncode, 2, done.stderr)
            self.assertRegex(done.stderr, f"^tetrion bench: {flag} {path} cannot be written: .*\n$")
        self.assertFalse((self.base / "ran").exists())

    def test_programs_are_found_from_the_callers_folder(self):
        self.program("good", f"echo '{json.dumps(figure(3, 2.0))}'")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.base)
        done, result = self.run_it("--folder", "programs")
        self.assertEqual((done.returncode, len(result["figures"])), (0, 1), done.stderr)

    def test_a_file_that_is_no_result_is_refused(self):
        self.program("good", f"touch {self.base}/ran; echo '{json.dumps(figure(3, 2.0))}'")
        for text in ("{}", "[]", "broken"):
            (self.base / "x.json").write_text(text)
            done, _ = self.run_it("--compare", str(self.base / "x.json"))
            self.assertEqual(done.returncode, 2, text)
            self.assertIn("is no result to compare with", done.stderr)
        self.assertEqual(self.run_it("--compare", "/not/there.json")[0].returncode, 2)
        self.assertFalse((self.base / "ran").exists(), "refused before anything is measured")

    def test_a_picture_that_cannot_be_drawn_is_refused_before_anything_is_measured(self):
        self.program("good", f"touch {self.base}/ran; echo '{json.dumps(figure(3, 2.0))}'")
        (self.base / "matplotlib.py").write_text("raise ImportError('none here')\n")
        with unittest.mock.patch.dict(os.environ, {"PYTHONPATH": str(self.base)}):
            done, result = self.run_it("--picture", str(self.base / "bars.png"))
        self.assertEqual((done.returncode, result), (2, None))
        self.assertIn("no picture: none here", done.stderr)
        (self.base / "matplotlib.py").unlink()
        for path, text in ((self.base / "bars.xyz", "bars.xyz is of no known kind: end it with"),
                           (self.base / "bars", "bars is of no known kind"),
                           (pathlib.Path("/proc/none/bars.png"), "bars.png cannot be written")):
            if can_draw(self.base / "bars.png"):
                done, _ = self.run_it("--picture", str(path))
                self.assertIn(text, done.stderr)
                self.assertEqual(done.returncode, 2)
        self.assertFalse((self.base / "ran").exists())


class Picture(unittest.TestCase):

    def bar(self, ratio, target=None, unit="rows/s"):
        found = bench_picture.bars([{**figure(1, ratio, target), "unit": unit}], bench.verdict)
        self.assertEqual(len(found), 1)
        return found[0]

    def test_a_bar_is_longer_the_better_we_are(self):
        self.assertEqual(self.bar(4.0)["value"], 4.0)
        self.assertEqual(self.bar(0.25, unit="ns")["value"], 4.0)
        self.assertEqual(self.bar(0.25, "<= 0.5x", unit="things")["value"], 4.0)

    def test_targets_of_a_ratio_are_told_on_the_same_axis(self):
        bar = self.bar(0.25, "<= 0.5x")
        self.assertEqual((bar["target"], bar["verdict"]), (2.0, "met"))
        bar = self.bar(1.1, ">= 1.2x")
        self.assertEqual((bar["target"], bar["verdict"]), (1.2, "MISSED"))
        bar = self.bar(1.1, ">= 25M")
        self.assertEqual((bar["target"], bar["verdict"]), (None, "-"))

    def test_figures_without_a_ratio_have_no_bar(self):
        self.assertEqual(bench_picture.bars([figure(1)], bench.verdict), [])

    def test_numbers_are_short(self):
        self.assertEqual([bench_picture.times(x) for x in (0.0213, 1.0, 13.4, 1253.7)],
                         ["0.021x", "1x", "13x", "1250x"])

    def stored_twice(self):
        """(folder, machine) of two results of a program p, the second without figure `old`."""
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-bench-"))
        self.addCleanup(shutil.rmtree, folder)
        where = {"cpu": "c", "cores": 2, "flags": "-O3"}

        def store(day, *named):
            figures = [{**figure(1, 2.0), "what": what, "program": "p"} for what in named]
            (folder / f"2026010{day}-a.json").write_text(json.dumps(
                {"date": f"2026-01-0{day} 10:00:00", "machine": {**where, "revision": f"r{day}"},
                 "quick": False, "figures": figures}))

        store(1, "old", "kept")
        store(2, "kept", "new")
        return folder, where

    def test_stored_figures_of_a_programs_newest_result_are_drawn(self):
        folder, where = self.stored_twice()
        drawn = []
        with unittest.mock.patch.object(bench, "RESULTS", folder), \
                unittest.mock.patch.object(bench, "picture",
                                           lambda figures, *rest: drawn.extend(figures) or 0):
            self.assertEqual(bench.show_stored(where, False, "", folder / "a.png"), 0)
        self.assertEqual([f["what"] for f in drawn], ["kept", "new"])

    def test_stored_figures_are_printed_with_their_date_and_revision(self):
        folder, where = self.stored_twice()
        with unittest.mock.patch.object(bench, "RESULTS", folder), \
                contextlib.redirect_stdout(io.StringIO()) as printed, \
                contextlib.redirect_stderr(io.StringIO()) as told:
            self.assertEqual(bench.show_stored(where, False, "", None), 0)
            self.assertEqual(bench.show_stored(where, False, "other", None), 2)
            self.assertEqual(bench.show_stored({**where, "cores": 3}, False, "", None), 2)
        lines = printed.getvalue().splitlines()
        self.assertEqual(lines[0], "c, 2 cores, -O3")
        self.assertEqual([line.split()[0] for line in lines[4:6]], ["kept", "new"])
        self.assertEqual(lines[-1], "p: measured 2026-01-02 10:00, revision r2")
        self.assertNotIn("old", printed.getvalue())
        self.assertIn("has no figure of other on this kind of machine: c, 2 cores, -O3; leave out "
                      "--stored to measure", told.getvalue())
        self.assertIn("no figure of any program on this kind of machine: c, 3 cores",
                      told.getvalue())

    def test_a_picture_is_drawn_and_nothing_to_draw_is_said(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-bench-"))
        self.addCleanup(shutil.rmtree, folder)
        where = {"cpu": "c", "cores": 2, "flags": "-O3"}
        if not can_draw(folder / "a" / "bars.png"):
            self.skipTest("matplotlib is in .deps/py only after ./tetrion test or plot")
        with contextlib.redirect_stderr(io.StringIO()) as told, \
                contextlib.redirect_stdout(io.StringIO()):
            status = bench.picture([figure(1, 2.0, ">= 1x"), figure(1, 0.5)], where, "now",
                                   folder / "a" / "bars.png")
            self.assertEqual(status, 0)
            self.assertTrue((folder / "a" / "bars.png").read_bytes().startswith(b"\x89PNG"))
            self.assertEqual(bench.picture([figure(1)], where, "now", folder / "b.png"), 2)
        self.assertIn("no ratio to draw", told.getvalue())


if __name__ == "__main__":
    unittest.main()
