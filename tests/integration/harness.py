"""Runs real services in a fresh folder, breaks them, and checks what must hold afterwards.

    class ActorIsKilled(harness.Case):
        def test_the_run_goes_on(self):
            run = self.start()
            run.expect_progress()
            run.kill("actor-0")
            ...
            run.finish_and_check()

A test waits for progress (episodes, updates, environment steps) with a generous deadline and never
decides by time. On failure the logs of all services are printed. Standard library only.
"""

import contextlib
import ctypes
import http.client
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import tomllib
import unittest
import urllib.error
import urllib.request

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import check_account
from check_account import VERSION_FIELD, WORKER_FIELD, episodes_of

BIN = pathlib.Path()  # set by main()
DEADLINE_S = 30  # for anything to happen on a loaded machine; never decides what is right
# Small and quick: updates within a second, episodes by the hundred.
SETTINGS = {"env": "cartpole", "lanes": 8, "max_steps": 50, "seed": 7}
SESSION_LEASE_S, HEARTBEAT_S = 2, 0.2


def main():
    """Runs the test cases of the calling script: SCRIPT BIN_FOLDER [unittest arguments]. Ends with
    77 where all of them were skipped: nothing was tested."""
    global BIN
    BIN = pathlib.Path(sys.argv.pop(1)).resolve()
    result = unittest.main(module="__main__", verbosity=2, exit=False).result
    if result.wasSuccessful() and result.testsRun == len(result.skipped):
        sys.exit(77)
    sys.exit(not result.wasSuccessful())


def use_one_processor():
    """Binds this process, and all that it starts from now on, to one processor. For tests that take
    minutes and whose result needs no second one: their services would keep every processor busy."""
    processors = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {processors[os.getpid() % len(processors)]})


def die_with_parent():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG: a killed test leaves nothing behind


def processes_of(folder):
    """(pid, command line) of every live process that names `folder` in its arguments."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            arguments = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(str(folder).encode() in argument for argument in arguments):
            found.append((int(entry.name), b" ".join(arguments).decode()))
    return found


def get(address, path):
    """(HTTP status, body), or (0, reason) while no answer comes."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=2) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()
    except (OSError, http.client.HTTPException) as error:  # the latter: it dies in its answer
        return 0, str(error)


def wait_until(what, condition, deadline_s=DEADLINE_S):
    """Polls until condition() is true and returns its value."""
    end = time.monotonic() + deadline_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.02)
    raise AssertionError(f"{what}: not within {deadline_s} s")


def flags(options):
    return [f"--{name.replace('_', '-')}={value}" for name, value in options.items()]


class Run:
    """One run: its folders, its processes (by name) and what has been seen of its progress."""

    def __init__(self, base, name="x"):
        self.base, self.name = pathlib.Path(base), name
        self.runs, self.shm = self.base / "runs", self.base / "shm"
        self.folder = self.runs / name
        self.processes = {}  # name -> Popen, started by us
        self.killed = set()  # names of services that were killed or refused at least once
        self.begun = {}  # name -> how many processes of that name had said hello at the last kill
        self.cut_off = set()  # names of actors whose answers a cut network may have swallowed
        self.quarantined = 0  # rings that a test has spoilt
        self.learner_options = {}  # of every learner that is started by hand
        self.environment = {}  # of every process, beside the test's own
        self.last_batches, self.batches = 0, 0

    # Starting and stopping.

    def start_process(self, name, program, arguments, before=None, output=None):
        """`before` runs in the new process, ahead of the program; `output` instead of a log."""
        def prepare():
            die_with_parent()
            if before:
                before()
        with open(self.base / f"{name}.log", "ab") as log:
            where = log if output is None else output
            process = subprocess.Popen([str(BIN / program), *arguments], stdout=where,
                                       stderr=where, stdin=subprocess.DEVNULL,
                                       env={**os.environ, **self.environment},
                                       start_new_session=True, preexec_fn=prepare)
        self.processes[name] = process
        return process

    def start_coordinator(self, resume=False, settings=None, before=None, output=None, **options):
        options = {"session_lease": SESSION_LEASE_S, "heartbeat": HEARTBEAT_S, **options}
        which = ["--resume" if resume else "--run", self.name]
        given = {} if resume else {**SETTINGS, **(settings or {})}
        return self.start_process(
            "coordinator", "tetrion-coordinator",
            [*which, "--runs-dir", str(self.runs), "--shm-dir", str(self.shm),
             *flags({**options, **given})], before, output)

    def start_learner(self, resume=False, **options):
        options = {"threads": 1, "checkpoint_every": 1, **self.learner_options, **options}
        return self.start_process(
            "learner", "tetrion-learner",
            ["--run-folder", str(self.folder), *flags(options), *(["--resume"] if resume else [])])

    def start_actor(self, name="actor-0", called="", **options):
        options = {"workers": 1, "name": called or name, **options}
        return self.start_process(name, "tetrion-actor",
                                  ["--run-folder", str(self.folder), *flags(options)])

    def start_by_hand(self, actors=1, settings=None, **coordinator_options):
        self.start_coordinator(settings=settings, **coordinator_options)
        self.wait_for("the run folder", lambda _: True)
        self.start_learner()
        for i in range(actors):
            self.start_actor(f"actor-{i}")
        return self

    def start_up(self, resume=False, actors=1, settings=None, **options):
        """Through tetrion-up, which restarts what dies."""
        config = self.base / "config.toml"
        config.write_text(f"[coordinator]\nsession_lease = {SESSION_LEASE_S}\n"
                          f"heartbeat = {HEARTBEAT_S}\n[learner]\ncheckpoint_every = 1\n")
        given = {} if resume else {**SETTINGS, **(settings or {})}
        options = {"actors": actors, "workers": 1, "threads": 1, **options}
        self.start_process(
            "up", "tetrion-up",
            ["--resume" if resume else "--run", self.name, "--runs-dir", str(self.runs),
             "--shm-dir", str(self.shm), "--config", str(config), *flags({**options, **given})])
        return self

    def pid_of(self, name):
        """Of a service, started by this harness or not; None while it does not run."""
        if name in self.processes:
            process = self.processes[name]
            return process.pid if process.poll() is None else None
        program = "tetrion-" + re.sub(r"-\d+$", "", name)
        for pid, command in processes_of(self.folder.parent):
            first, *arguments = command.split()
            named = "actor" not in program or name in arguments
            if pathlib.Path(first).name == program and named:
                return pid
        return None

    def signal(self, name, number):
        pid = wait_until(f"{name} runs", lambda: self.pid_of(name))
        os.kill(pid, number)
        return pid

    def kill(self, name):
        """kill -9; returns when it is gone."""
        pid = wait_until(f"{name} runs", lambda: self.pid_of(name))
        self.begun[name] = len(self.lives(name))  # before its supervisor can start another
        os.kill(pid, signal.SIGKILL)
        self.killed.add(name)
        if name in self.processes:
            self.processes.pop(name).wait()
        else:
            wait_until(f"{name} is gone", lambda: self.pid_of(name) != pid)

    def replace_learner(self):
        """Kills the learner once it has a checkpoint; its successor must make progress."""
        self.expect_progress()
        self.wait_for("a checkpoint", lambda s: s["learner"].get("checkpoints", 0) >= 1)
        rings = self.rings()
        with self.a_learner_resumes():
            self.kill("learner")
            self.start_learner(resume=True)
        self.expect_progress()
        assert self.rings() == rings, "rings stay with their actors"

    @contextlib.contextmanager
    def a_learner_resumes(self):
        """Around a kill of the learner: returns once its successor says that it has resumed. What
        the killed learner reported last must not pass for its successor's progress."""
        resumed = self.log("learner").count("resumed from")
        yield
        wait_until("the successor has resumed",
                   lambda: self.log("learner").count("resumed from") > resumed)

    def lives(self, name):
        """What each process of that name has said since its first line, oldest first."""
        return re.split(r"\] tetrion-\w+ \d", self.log(name))[1:]

    def wait_joined(self, *names):
        """Until the newest process of each name has a session: a run that ends refuses it, and
        until then the session of a killed process may stand in /status for its successor's."""
        for name in names:
            wait_until(f"{name} has a session", lambda name=name:
                       len(self.lives(name)) > self.begun.get(name, 0)
                       and re.search(r"session \d+ begun", self.lives(name)[-1]))

    def wait_exit(self, name, deadline_s=DEADLINE_S):
        """The exit code of a process of ours, negative after a signal."""
        process = self.processes[name]
        try:
            code = process.wait(deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{name} does not end") from None
        del self.processes[name]
        return code

    # Looking.

    def status(self):
        """The coordinator's /status; None while it does not answer."""
        try:
            endpoints = json.loads((self.folder / "endpoints.json").read_text())
            address = endpoints["http"]["coordinator"]
        except (OSError, ValueError, KeyError):
            return None
        code, body = get(address, "/status")
        if code != 200:
            return None
        status = json.loads(body)
        if status.get("run") != self.name:
            return None
        batches = int(status["learner"].get("batches", 0))  # starts anew with every learner
        self.batches += batches if batches < self.last_batches else batches - self.last_batches
        self.last_batches = batches
        return status

    def wait_for(self, what, condition, deadline_s=DEADLINE_S):
        """Until condition(status) holds; returns that status."""
        def look():
            status = self.status()
            return status if status and condition(status) else None
        return wait_until(what, look, deadline_s)

    def expect_progress(self, episodes=200, batches=20, deadline_s=DEADLINE_S):
        """Demands so many episodes and trained batches more than there are now."""
        first = self.wait_for("the coordinator answers", lambda _: True)
        batches += self.batches
        return self.wait_for(
            f"progress beyond {first['episodes']} episodes",
            lambda s: s["episodes"] >= first["episodes"] + episodes and self.batches >= batches,
            deadline_s)

    def rings(self):
        return sorted(path.name for kind in ("ring", "stream")
                      for path in self.shm.glob(f"*.{kind}.*"))

    def log(self, name):
        """Everything a service has said, also through tetrion-up."""
        files = [self.base / f"{name}.log", self.folder / "logs" / f"{name}.log"]
        return "".join(path.read_text(errors="replace") for path in files if path.exists())

    def all_logs(self):
        files = [*self.base.glob("*.log"), *self.folder.glob("logs/*.log")]
        return "\n".join(f"--- {path.relative_to(self.base)}\n"
                         + "\n".join(path.read_text(errors="replace").splitlines()[-60:])
                         for path in sorted(files))

    def episodes(self):
        """(session, episode tuple) of every stored report, in the order they were played."""
        database = sqlite3.connect(f"file:{self.folder / 'tetrion.db'}?mode=ro", uri=True)
        try:
            rows = database.execute("SELECT session, count, episodes FROM reports"
                                    " ORDER BY session, batch").fetchall()
        finally:
            database.close()
        return [(session, episode) for session, count, blob in rows
                for episode in episodes_of(blob, count)]

    # Ending.

    def drain(self, deadline_s=DEADLINE_S):
        """Ends the run as a user would; every process must leave with 0, each within the
        deadline."""
        if "up" in self.processes:
            self.signal("up", signal.SIGINT)
        else:
            self.signal("coordinator", signal.SIGTERM)
        codes = {name: self.wait_exit(name, deadline_s) for name in list(self.processes)}
        assert not any(codes.values()), f"exit codes {codes}"

    def finish_and_check(self, deadline_s=DEADLINE_S):
        """Drains, then checks everything that must hold after any run. Returns the account."""
        self.drain(deadline_s)
        return self.check_ended()

    def check_ended(self):
        left = wait_until_gone(self.base)
        assert not left, f"processes left: {left}"
        regions = [path.name for path in self.shm.iterdir() if path.name != ".lock"]
        assert not regions, f"regions left: {regions}"
        figures, violations = check_account.check(self.folder / "tetrion.db")
        assert not violations, f"the account is wrong: {violations[:5]}"
        assert figures["outstanding"] == 0, f"outstanding after a drain: {figures}"
        self.check_actors(figures)
        rows = self.check_rows()
        self.check_steps(figures, rows)
        self.check_versions()
        return figures

    def changes(self):
        """What changes.jsonl has recorded."""
        file = self.folder / "changes.jsonl"
        lines = file.read_text().splitlines() if file.exists() else []
        return [json.loads(line) for line in lines]

    def config(self):
        """The run's settings, as its folder keeps them."""
        return tomllib.loads((self.folder / "config.toml").read_text())["run"]

    def actor_logs(self):
        """Of all that play: a learner that does is an actor of the account, too."""
        files = [*self.base.glob("actor-*.log"), *self.folder.glob("logs/actor-*.log")]
        logs = {path.stem: path.read_text(errors="replace") for path in files}
        return logs | ({"learner": self.log("learner")} if self.resident() else {})

    def resident(self):
        return " resident lanes" in self.log("learner")

    def check_actors(self, figures):
        """Acknowledged episodes of the actors are the done tokens, where nothing hides any."""
        said, hidden = 0, False
        for name, text in self.actor_logs().items():
            said += sum(int(n) for n in re.findall(r"(\d+) episodes acknowledged", text))
            hidden = hidden or name in self.killed | self.cut_off or "was fenced" in text
        if hidden:
            assert said <= figures["done"], f"{said} acknowledged, {figures['done']} done"
        else:
            assert said == figures["done"], f"{said} acknowledged, {figures['done']} done"

    def check_steps(self, figures, rows):
        """Every step is counted once: also of an actor that was frozen, fenced and came back, and
        over every restart of coordinator and learner."""
        config = self.config()
        told, counted = 0, figures["env_steps"]
        for text in self.actor_logs().values():
            told += sum(int(n) for n in re.findall(r"drained: (\d+) steps", text))
        longest = figures["longest"]
        caps = [config["max_steps"], *(int(change["before"]) for change in self.changes()
                                       if change["key"] == "max_steps")]
        assert longest <= max(caps), f"an episode of {longest} steps"
        assert figures["episode_steps"] <= counted, f"episodes are longer than {counted} steps"
        if not self.killed & set(self.actor_logs()):
            assert told == counted, f"{told} steps made, {counted} counted"
            return
        # What a killed actor last told lies between nothing and all that it made. A ring shows no
        # rows that were made but not published, and every row makes a step a lane at most.
        assert counted >= told, f"{told} steps made by those that drained, {counted} counted"
        if self.resident():
            return  # a killed learner takes the count of its rows along
        if "no session knows this ring" in self.log("learner"):
            return  # rows that no count holds
        died = len(re.findall(r"ended at row \d+: its actor died", self.log("learner")))
        most = (rows + died * config["commit_stride"]) * config["lanes"]
        assert counted <= most, f"{counted} steps counted, {rows} rows can have {most}"

    def check_rows(self):
        """Rows of the rings, as actors and learners count them; returns all that were taken."""
        learner = self.log("learner")
        ended = {path: int(row) for path, row in
                 re.findall(r"ring (\S+) ended at row (\d+)", learner)}
        attached = re.findall(r"attached (\S+) to shard \d+ at row (\d+)", learner)
        missing = {path for path, _ in attached} - set(ended)
        assert not missing, f"rings never drained: {missing}"
        spoilt = re.findall(r"quarantined ring (\S+):", learner)
        assert len(spoilt) == self.quarantined, f"quarantined rings: {spoilt}"
        for text in self.actor_logs().values():
            for path, row in re.findall(r"closed (\S+) at row (\d+)", text):
                taken = ended.get(path)
                assert taken == int(row), f"{path}: {row} published, {taken} taken"
        rows = sum(ended.values()) + sum(
            int(n) for n in re.findall(r"fenced, (\d+) rows of resident lanes", learner))
        if "learner" in self.killed:
            return rows  # a killed learner takes its count along
        counts = re.findall(r"drained: (\d+) rows ingested, (\d+) lost", learner)
        ingested, lost = (sum(int(n) for n in column) for column in zip(*counts, strict=True))
        if spoilt:
            # What is lost with a spoilt ring lies behind the row where the learner gave it up. Its
            # actor plays on until it is told so, as far as the ring has room.
            room = len(spoilt) * self.config()["ring_rows"]
            assert ingested <= rows <= ingested + lost, f"{ingested} + {lost} lost rows of {rows}"
            assert lost <= room, f"{lost} rows lost in {len(spoilt)} rings"
            return rows + room
        assert ingested + lost == rows, f"{ingested} + {lost} lost rows, the rings ended at {rows}"
        assert lost == 0 or self.killed, f"{lost} rows lost without a kill"
        return rows

    def check_versions(self):
        """A policy version never goes down for a worker."""
        newest = {}
        for session, episode in self.episodes():
            version = episode[VERSION_FIELD]
            worker = (session, episode[WORKER_FIELD])
            before = newest.get(worker, 0)
            assert version >= before, f"session {session}: version {version} after {before}"
            newest[worker] = version

    def close(self):
        """Kills what is left. For clean-up after a failure."""
        for process in self.processes.values():
            try:
                os.killpg(process.pid, signal.SIGCONT)
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
        for pid, _ in processes_of(self.base):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def wait_until_gone(folder, deadline_s=10):
    """Processes of the folder that are still there: children of a killed parent need a moment."""
    end = time.monotonic() + deadline_s
    while (left := processes_of(folder)) and time.monotonic() < end:
        time.sleep(0.02)
    return left


class Case(unittest.TestCase):
    """A test with a folder of its own; prints the services' logs when it fails."""

    def run(self, result=None):
        before = len(result.failures) + len(result.errors)
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-it-"))
        self.runs_started = []
        start = time.monotonic()
        try:
            super().run(result)
            if len(result.failures) + len(result.errors) > before:
                for run in self.runs_started:
                    print(run.all_logs(), file=sys.stderr)
        finally:
            for run in self.runs_started:
                run.close()
            shutil.rmtree(self.base, ignore_errors=True)
        print(f"{time.monotonic() - start:.1f} s", file=sys.stderr)

    def new_run(self, name="x", folder=""):
        """A test with several runs gives each a folder."""
        (self.base / folder).mkdir(exist_ok=True)
        run = Run(self.base / folder, name)
        self.runs_started.append(run)
        return run

    def call(self, program, *arguments, deadline_s=DEADLINE_S, environment=None):
        """(exit code, everything printed) of a program that ends by itself."""
        done = subprocess.run([str(BIN / program), *map(str, arguments)], capture_output=True,
                              text=True, timeout=deadline_s, check=False,
                              env={**os.environ, **(environment or {})},
                              stdin=subprocess.DEVNULL, preexec_fn=die_with_parent)
        return done.returncode, done.stdout + done.stderr
