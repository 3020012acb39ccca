"""The scripts of bench/, with programs that train nothing; the targets of docs/benchmarks.md."""

import contextlib
import importlib.util
import io
import json
import math
import os
import pathlib
import re
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
for _folder in ("tools", "bench/replay", "bench/services", "bench/stream"):
    sys.path.insert(0, str(ROOT / _folder))

import bench_program  # noqa: E402
import rivals  # noqa: E402
import stream  # noqa: E402
import system  # noqa: E402
import training_rivals  # noqa: E402

import bench  # noqa: E402

FIGURE = json.dumps({"what": "w", "unit": "u", "ours": {"median": 1, "min": 1, "max": 1}})
# Has an update at once, and answers each look with two seconds and n^2 * 100 steps more. Where its
# folder has a file `mute` it answers the first look only.
UP = """#!/usr/bin/env python3
import http.server, json, os, pathlib, sys
here = pathlib.Path(__file__).parent
(here / "pid").write_text(str(os.getpid()))
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
run = pathlib.Path(given["--runs-dir"]) / given["--run"]
looks = 0

class Status(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global looks
        looks += 1
        self.send_response(500 if looks > 1 and (here / "mute").exists() else 200)
        self.end_headers()
        self.wfile.write(json.dumps({"elapsed_s": 2 * looks, "env_steps": 100 * looks * looks,
                                     "env_steps_per_s": 1e9}).encode())

    def log_message(self, *_):
        pass

server = http.server.HTTPServer(("127.0.0.1", 0), Status)
(run / "checkpoints").mkdir(parents=True)
(run / "endpoints.json").write_text(json.dumps(
    {"http": {"coordinator": f"127.0.0.1:{server.server_port}"}}))
(run / "checkpoints" / "1.safetensors").write_text("")
server.serve_forever()
"""


def is_gone(pid):
    """Whether a process has ended; one that its parent has not waited for yet, too."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text()
        # Of one that ends between open and read the kernel gives nothing.
        return not stat or stat.rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


class Folder(unittest.TestCase):

    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-bench-"))
        self.addCleanup(shutil.rmtree, self.base)

    def program(self, name, text):
        path = self.base / name
        path.write_text(text)
        path.chmod(0o755)
        return path

    def patch(self, *args, **kwargs):
        patched = unittest.mock.patch.object(*args, **kwargs)
        self.addCleanup(patched.stop)
        return patched.start()

    def pids(self):
        return (self.base / "pids").read_text().split()

    def wait_for(self, name):
        while not (self.base / name).exists():
            time.sleep(0.01)


class Programs(Folder):
    """tools/bench_program.py"""

    def run_it(self, body):
        path = self.program("p", f"#!/bin/bash\ncd {self.base}\n{body}\n")
        return bench_program.run("p", [str(path)], quick=False)

    def wait_ends_with(self, error):
        """The wait for the program ends so once it has made a file `ready`."""
        def wait(*_):
            self.wait_for("ready")
            raise error
        self.patch(subprocess.Popen, "wait", wait)

    def test_a_program_out_of_time_keeps_its_figures_and_none_of_its_processes_is_left(self):
        self.patch(bench_program, "END_S", 0.5)
        self.wait_ends_with(subprocess.TimeoutExpired("p", 600))
        figures, error = self.run_it(
            f"trap '' TERM\nsleep 600 & echo $! $$ >pids\necho '{FIGURE}'\n"
            "touch ready\nwhile :; do sleep 0.05; done")
        self.assertEqual([f["program"] for f in figures], ["p"])
        self.assertIn("p: no end within 600 s", error)
        self.assertTrue(all(is_gone(pid) for pid in self.pids()))

    def test_a_program_out_of_time_is_asked_before_it_is_killed(self):
        self.wait_ends_with(subprocess.TimeoutExpired("p", 600))
        self.run_it("trap 'echo asked >asked; exit' TERM\ntouch ready\n"
                    "while :; do sleep 0.05; done")
        self.assertTrue((self.base / "asked").exists())

    def test_an_interrupt_is_passed_on(self):
        self.wait_ends_with(KeyboardInterrupt)
        with self.assertRaises(KeyboardInterrupt):
            self.run_it("trap 'echo asked >asked; exit' TERM\necho $$ >pids\ntouch ready\n"
                        "while :; do sleep 0.05; done")
        self.assertTrue((self.base / "asked").exists())
        self.assertTrue(is_gone(*self.pids()))

    def test_who_ends_the_bench_ends_its_program(self):
        (self.base / "programs").mkdir()
        self.program("programs/p", f"#!/bin/bash\ncd {self.base}\n"
                     "trap 'echo asked >>asked; exit' TERM\necho $$ >pids\ntouch ready\n"
                     "while :; do sleep 0.05; done")
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            (self.base / "ready").unlink(missing_ok=True)
            measuring = subprocess.Popen(
                [sys.executable, "-B", str(ROOT / "tools/bench.py"), "--folder",
                 str(self.base / "programs"), "--out", str(self.base / "result.json")],
                stderr=subprocess.PIPE, text=True)
            self.addCleanup(measuring.kill)
            self.wait_for("ready")
            measuring.send_signal(number)
            told = measuring.communicate(timeout=60)[1]
            self.assertEqual(measuring.returncode, 130, told)
            self.assertIn("ended; no result is written", told)
            self.assertTrue(is_gone(*self.pids()))
        self.assertEqual((self.base / "asked").read_text(), 3 * "asked\n")

    def test_files_of_a_program_that_is_interrupted_or_killed_are_gone(self):
        make = ("{ mktemp -d; mktemp -d -p $TETRION_BENCH_SHM; } >folders\n"
                "for folder in $(<folders); do touch $folder/file; done\n")
        self.run_it(make + "kill -9 $$")
        left = (self.base / "folders").read_text().split()
        self.wait_ends_with(KeyboardInterrupt)
        with self.assertRaises(KeyboardInterrupt):
            self.run_it(make + "touch ready\nsleep 600")
        left += (self.base / "folders").read_text().split()
        self.assertEqual([len(left), *filter(os.path.exists, left)], [4])
        self.assertTrue(left[1].startswith("/dev/shm/"), left)

    def test_what_a_program_leaves_behind_is_ended(self):
        figures, error = self.run_it(f"sleep 600 & echo $! >pids\necho '{FIGURE}'")
        self.assertEqual((len(figures), error), (1, None))
        self.assertTrue(is_gone(*self.pids()))


class System(Folder):
    """bench/services/system.py and what uses it."""

    def setUp(self):
        super().setUp()
        self.program("tetrion-up", UP)

    def measured(self, intervals=3):
        with contextlib.redirect_stderr(io.StringIO()) as told:
            first, _, rates = system.run(self.base, ["--env", "e"], 0, 0.02, intervals)
        self.assertIsNotNone(first)
        self.assertTrue(is_gone((self.base / "pid").read_text()))
        return rates, told.getvalue()

    def test_rates_are_of_the_counter_over_neighbouring_intervals(self):
        self.assertEqual(self.measured()[0], [150, 250, 350])
        self.assertEqual(self.measured(1)[0], [150])

    def test_a_failed_look_is_told_of_and_the_run_is_stopped(self):
        (self.base / "mute").touch()
        rates, told = self.measured()
        self.assertEqual(rates, [])
        self.assertIn("--env e: the coordinator's /status: <HTTPError 500", told)

    def test_a_run_is_stopped_also_when_the_script_is_told_to_end(self):
        with self.assertRaises(SystemExit), system.training(self.base, []):
            self.wait_for("pid")
            raise SystemExit(143)
        self.assertTrue(is_gone((self.base / "pid").read_text()))

    def status_of(self, main, *words):
        with unittest.mock.patch.object(sys, "argv", ["x", str(self.base), *words]), \
                contextlib.redirect_stdout(io.StringIO()), \
                contextlib.redirect_stderr(io.StringIO()):
            return main()

    def test_a_system_without_a_figure_is_a_failure(self):
        for found, status in (((1.0, {}, [5.0]), 0), ((1.0, {}, []), 1), ((None, {}, []), 1)):
            self.patch(system, "run", lambda *_, found=found, **__: found)
            self.assertEqual(self.status_of(system.main, "--quick"), status, found)

    def test_a_stream_that_fails_in_one_window_is_a_failure(self):
        window = {"steps_per_s": 1, "p50_ns": 1, "p99_ns": 1}
        with contextlib.redirect_stdout(io.StringIO()):
            for windows, good in (([window] * 5, True), ([window] * 4 + [None], False)):
                self.patch(stream, "loop_window", unittest.mock.Mock(side_effect=windows))
                self.assertEqual(stream.bench_loop("p", quick=True), good)
            for rates, good in (([1.0] * 12, True), ([1.0] * 11 + [None], False)):
                self.patch(stream, "system_rate", unittest.mock.Mock(side_effect=rates))
                self.assertEqual(stream.bench_systems(self.base, quick=False), good)

    def test_a_training_of_ours_that_fails_is_a_failure_and_a_missing_rival_is_none(self):
        (self.base / "bin").mkdir()
        self.program("bin/python", "")
        self.patch(training_rivals, "VENV", self.base)
        self.patch(training_rivals, "sample_factory_rate", lambda *_: (None, []))
        nan = math.nan
        for ours, solved, theirs, status in ((9.0, 1.0, 2.0, 0), (9.0, 1.0, nan, 0),
                                             (nan, 1.0, 2.0, 1), (9.0, nan, 2.0, 1)):
            rival = types.SimpleNamespace(
                process=types.SimpleNamespace(stdout=io.StringIO("stable-baselines3 1\n")),
                ask=lambda _, rate=theirs: rate, end=lambda: None)
            self.patch(training_rivals, "Served", lambda _, rival=rival: rival)
            self.patch(training_rivals, "training_rate", lambda *_, rate=ours: rate)
            self.patch(training_rivals, "seconds_to_solve", lambda *_, time=solved: time)
            self.assertEqual(self.status_of(training_rivals.main, "--quick"), status)
        self.patch(training_rivals, "VENV", self.base / "none")
        self.assertEqual(self.status_of(training_rivals.main), 0)

    def test_a_rival_that_ends_is_left_out_with_a_remark(self):
        (self.base / "bin").mkdir()
        self.patch(training_rivals, "VENV", self.base)
        self.patch(training_rivals, "sample_factory_rate", lambda *_: (None, []))
        self.patch(sys, "argv", ["", str(self.base), "--quick"])
        for ending in ("exit 1", "echo stable-baselines3 1; read -r line; exit 1"):
            self.program("bin/python", f"#!/bin/bash\n{ending}\n")
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                self.assertEqual(training_rivals.main(), 0)
            self.assertIn("skipped: stable-baselines3: it ended", printed.getvalue())

    def test_figures_before_and_after_a_rival_that_ends_are_printed(self):
        def served(name, answers):
            return rivals.Served([str(self.program(
                name, f"#!/bin/bash\nfor i in {answers}; do read -r line; echo $i; done\n"))])

        ours, rival = served("ours", "1 2 3 4 5 6"), served("rival", "1 2 3")
        with self.assertRaises(rivals.Ended) as raised:
            rivals.measure(ours, rival, "cpprb 1", 0.1)
        self.assertIs(raised.exception.args[0], rival)
        for side in (ours, rival):
            side.end()


def load_vector():
    stubs = {name: unittest.mock.MagicMock() for name in ("gymnasium", "numpy")}
    with unittest.mock.patch.dict(sys.modules, stubs):
        spec = importlib.util.spec_from_file_location("bench_vector",
                                                      ROOT / "bench/python/vector.py")
        vector = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(vector)
    return vector


class Vector(unittest.TestCase):

    def test_a_rival_that_ends_leaves_our_figure(self):
        vector = load_vector()

        class Ends:
            def rate(self, _):
                raise vector.RivalEnded

        with contextlib.redirect_stdout(io.StringIO()) as printed:
            vector.report("w", types.SimpleNamespace(rate=lambda _: 5.0), Ends(), "envpool", 0.1)
        remark, figure = printed.getvalue().splitlines()
        self.assertEqual(remark, "skipped: envpool: it ended while it was measured")
        self.assertEqual(json.loads(figure)["ours"]["median"], 5.0)
        self.assertIsNone(json.loads(figure)["ratio"])

    def test_cartpole_has_as_many_threads_as_its_rival_where_there_is_a_target(self):
        vector = load_vector()
        vector.ours = lambda *_, threads: threads + 1  # the caller's own beside them
        vector.envpool_rival = lambda _, threads: threads
        vector.Stepper = lambda *_: 1
        figures = []
        vector.report = lambda what, ours, rival, name, _, target=None: figures.append(
            (what, ours, rival, target))
        vector.cartpoles(None, 1)
        self.assertEqual([f[3] for f in figures if f[3]], [">= 40x", ">= 3x"])
        for what, ours, rival, target in figures:
            self.assertTrue(what.endswith(f", {ours} thread" + "s" * (ours > 1)), what)
            if target:
                self.assertEqual((ours, rival), (1, 1), what)


def targets_by_literal():
    """{text in quotes of a benchmark's source: targets in the same source}."""
    found = {}
    for path in sorted((ROOT / "bench").rglob("*")):
        if path.suffix not in (".cc", ".py"):
            continue
        text = path.read_text(encoding="utf-8")
        for name, number in re.findall(r"^([A-Z_]+) = (\d+)\b", text, re.MULTILINE):
            text = text.replace(f"{{{name}}}", number)
        literals = re.findall(r'"((?:[^"\\\n]|\\.)*)"', text)
        targets = {t for literal in literals
                   for t in re.findall(r"[<>]= [0-9.]+[kMG]?x?(?![\w.])", literal)}
        for literal in literals:
            if literal:
                found.setdefault(re.sub(r"^\{\w+\} ", "", literal), set()).update(targets)
    return found


def target_tables():
    """The rows of docs/benchmarks.md that have a target, as {heading: cell}."""
    heads = None
    for line in (ROOT / "docs/benchmarks.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|"):
            heads = None
        elif heads is None:
            heads = cells
        elif "target" in heads and not line.startswith("|---"):
            row = dict(zip(heads, cells, strict=True))
            if row["target"]:
                yield row


def median(cell):
    """74.7M (74.6M-74.9M), 1.2x (1.1-1.3) -> 74700000, 1.2."""
    number, scale = re.match(r"([0-9.]+)([kMG]?)", cell).groups()
    return {"median": float(number) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[scale]}


class Targets(unittest.TestCase):

    def test_the_documents_targets_are_those_that_the_sources_print(self):
        known = targets_by_literal()
        rows = list(target_tables())
        self.assertGreater(len(rows), 80)
        for row in rows:
            what = re.sub(r"^\d+ ", "", row["what"])
            length = {text: len(os.path.commonprefix([what, text])) for text in known}
            most = max(length.values())
            self.assertGreater(most, 4, row)
            nearest = set().union(*(known[text] for text in known if length[text] == most))
            self.assertIn(row["target"], nearest, row["what"])

    def test_the_documents_verdicts_are_those_of_their_medians(self):
        for row in target_tables():
            if "verdict" in row:
                figures = [{"ours": median(row["ours"]),
                            "ratio": row["ratio"] and median(row["ratio"])}]
                written = [row["verdict"]]
            else:
                figures = [{"ours": median(row[name]), "ratio": median(row[name])}
                           for name in ("Zen 4", "Zen 5")]
                written = row["verdicts of the two"].split(", ")
            verdicts = [bench.verdict({**f, "target": row["target"]}) for f in figures]
            self.assertEqual(written * (len(verdicts) // len(written)), verdicts, row["what"])


if __name__ == "__main__":
    unittest.main()
