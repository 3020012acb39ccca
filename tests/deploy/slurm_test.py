"""deploy/slurm/tetrion.sbatch on a Slurm of its own (slurm_cluster.py), with real services.

    sudo python3 -B tests/deploy/slurm_test.py build/cpu/bin [SlurmTest.test]

Skips where Slurm is not installed. DEPLOY_TEST_KEEP=FOLDER keeps what the daemons and the
runs have written.
"""

import json
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/integration"))

import harness  # noqa: E402
import slurm_cluster  # noqa: E402

SCRIPT = ROOT / "deploy/slurm/tetrion.sbatch"
DEADLINE_S = 120  # for what stands still; a run that goes on gets more of it, so often
RENEWALS = 6
# An untrained policy balances for about 22 steps.
RANDOM_RETURN, LONGEST = 22, 200
CONFIG = f"""
[run]
env = "cartpole"
lanes = 8
max_steps = {LONGEST}
seed = 7
[coordinator]
session_lease = 3
heartbeat = 0.2
[learner]
threads = 1
checkpoint_every = 1
remote_silence = 3
"""


class Job:
    """A job and the run that it belongs to."""

    def __init__(self, cluster, folder, run, nodes, **knobs):
        self.cluster, self.run = cluster, run
        self.runs = folder / "runs"
        self.folder = self.runs / run
        variables = {"TETRION_RUNS_DIR": self.runs, "TETRION_RUN": run,
                     "TETRION_CONFIG": folder / "config.toml", "TETRION_MAX_WORKERS": 8,
                     "JOB_BIN": harness.BIN, **COMMON, **knobs}
        self.number = cluster.call(
            "sbatch", "--parsable", f"--nodes={nodes}", f"--output={folder}/job-%j.out",
            f"--export=ALL,{','.join(f'{key}={value}' for key, value in variables.items())}",
            SCRIPT).strip()
        self.output_file = folder / f"job-{self.number}.out"

    def output(self):
        return self.output_file.read_text() if self.output_file.exists() else ""

    def state(self):
        """Slurm's word: RUNNING, COMPLETED, ..."""
        for field in self.cluster.call("scontrol", "show", "job", "-o", self.number).split():
            if field.startswith("JobState="):
                return field.split("=")[1]
        return ""

    def status(self):
        """The newest line of metrics.jsonl, written every 5 s; None while there is none."""
        try:
            return json.loads((self.folder / "metrics.jsonl").read_text().splitlines()[-1])
        except (OSError, IndexError):
            return None

    def wait_for(self, what, condition):
        def look():
            status = self.status()
            return status if status and condition(status) else None
        for renewal in range(RENEWALS):
            before = self.steps()
            try:
                return harness.wait_until(f"{what} (job {self.state()})", look, DEADLINE_S)
            except AssertionError:
                if renewal + 1 == RENEWALS or self.steps() <= before:
                    raise
        return None

    def steps(self):
        return (self.status() or {"env_steps": 0})["env_steps"]

    def wait_for_actors(self, number):
        return self.wait_for(f"{number} actors play", lambda s: s["actors"] == number)

    def expect_progress(self):
        """Demands episodes and batches of the learner that is there now."""
        before = self.wait_for("the first line", lambda s: True)
        return self.wait_for("progress", lambda s: s["episodes"] > before["episodes"] + 200
                             and s["time"] > before["time"] and s["learner"].get("batches", 0) > 20)

    def expect_state(self, state):
        harness.wait_until(f"job {self.number} is {state}",
                           lambda: self.state() == state, DEADLINE_S)

    def pid_of(self, program, word=""):
        """Of a service of the run, on whatever node."""
        for pid, command in harness.processes_of(self.runs):
            first = pathlib.Path(command.split()[0]).name
            if first == program and word in command:
                return pid
        return None

    def kill(self, program, word=""):
        os.kill(harness.wait_until(f"{program} runs", lambda: self.pid_of(program, word),
                                   DEADLINE_S), signal.SIGKILL)

    def finish(self, state="COMPLETED"):
        """Ends the run through its coordinator, as the end of its time does; checks the account
        and that nothing is left."""
        self.cluster.call("scancel", "--batch", "--signal=TERM", self.number)
        self.expect_ended(state)

    def expect_ended(self, state="COMPLETED"):
        self.expect_state(state)
        self.check_account(outstanding=0)
        left = harness.wait_until_gone(self.runs)
        assert not left, f"processes left: {left}"
        regions = self.cluster.regions()
        assert not regions, f"regions left: {regions}"
        self.check_keys()

    def check_keys(self):
        """Those that the script makes for every run, for its owner alone."""
        folder = self.runs / f"{self.run}.job" / "keys"
        modes = {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()}
        assert modes == {f"{name}.{kind}": mode for name in ("coordinator", "learner", "actor")
                         for kind, mode in (("secret", 0o400), ("pub", 0o644))}, modes
        assert folder.stat().st_mode & 0o777 == 0o700

    def check_account(self, **expected):
        figures, violations = harness.check_account.check(self.folder / "tetrion.db")
        assert not violations, f"the account is wrong: {violations[:5]}"
        assert expected.items() <= figures.items(), f"{figures}, expected {expected}"
        return figures


class SlurmTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        keep = os.environ.get("DEPLOY_TEST_KEEP")
        cls.folder = pathlib.Path(keep or tempfile.mkdtemp(prefix="tetrion-slurm-"))
        if not keep:
            cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        cls.cluster = slurm_cluster.Cluster(cls.folder / "slurm", nodes=3)
        cls.addClassCleanup(cls.cluster.stop)
        cls.cluster.start()
        (cls.folder / "config.toml").write_text(CONFIG)

    def setUp(self):
        self.jobs = []

    def tearDown(self):
        for job in self.jobs:
            if self._outcome.result.failures or self._outcome.result.errors:
                print(job.output(), *(f"--- {path}\n{path.read_text()[-3000:]}" for path in
                                      sorted((job.runs / f"{job.run}.job").glob("*.log"))),
                      self.cluster.logs(), file=sys.stderr)
            if job.state() in ("PENDING", "RUNNING", "COMPLETING"):
                self.cluster.call("scancel", "--full", "--signal=KILL", job.number)
                self.cluster.call("scancel", job.number)

    def submit(self, nodes, run=None, **knobs):
        run = run or self.id().split(".")[-1]
        self.jobs.append(Job(self.cluster, self.folder, run, nodes, **knobs))
        return self.jobs[-1]

    def test_it_learns_survives_kills_and_ends_at_its_goal(self):
        job = self.submit(nodes=2, TETRION_STOP_AFTER="20000000steps")
        job.wait_for_actors(2)
        job.wait_for("it learns", lambda s: s["return_mean"] > 3 * RANDOM_RETURN)
        for program, word in (("tetrion-actor", "actor-node2"), ("tetrion-learner", ""),
                              ("tetrion-coordinator", "")):
            job.kill(program, word)
            job.expect_progress()
        job.wait_for_actors(2)
        self.assertEqual(job.output().count("is started again"), 3, job.output())
        job.wait_for("its goal", lambda s: s["env_steps"] >= 20000000)
        job.expect_ended()

    def test_a_run_with_anothers_weights_survives_and_keeps_its_time(self):
        self.submit(nodes=1, run="old", TETRION_STOP_AFTER="200000steps").expect_ended()
        job = self.submit(nodes=1, TETRION_INIT_FROM="old", TETRION_STOP_AFTER="60s")
        before = job.wait_for("half its time", lambda s: s["stop_after"]["progress"] >= 0.5)
        job.kill("tetrion-coordinator")
        after = job.wait_for("the next coordinator", lambda s: s["epoch"] > before["epoch"])
        self.assertGreaterEqual(after["stop_after"]["progress"],
                                before["stop_after"]["progress"] - 0.05, "time is counted anew")
        job.expect_ended()

    def test_actors_of_a_second_job_join_and_leave(self):
        job = self.submit(nodes=1)
        job.wait_for_actors(1)
        more = self.submit(nodes=2, JOB_JOIN=1)
        job.wait_for_actors(3)
        job.expect_progress()
        self.cluster.call("scancel", more.number)
        more.expect_state("CANCELLED")
        job.wait_for_actors(1)
        other = self.submit(nodes=1, JOB_JOIN=1, TETRION_LANES=16)  # not what the run has
        other.expect_state("FAILED")
        self.assertIn("ended with status 78", other.output())
        job.expect_progress()
        job.finish()

    def test_an_actor_without_the_runs_keys_is_refused(self):
        job = self.submit(nodes=1)
        job.wait_for_actors(1)
        other = self.submit(nodes=1, JOB_JOIN=1, JOB_KEYS="none", TETRION_GIVE_UP=3)
        harness.wait_until("the refusal", lambda: "refuses peers without keys" in other.output(),
                           DEADLINE_S)
        self.cluster.call("scancel", other.number)
        other.expect_state("CANCELLED")
        job.expect_progress()
        self.assertEqual(job.status()["actors"], 1)
        job.finish()

    def test_a_node_dies_and_the_run_goes_on(self):
        job = self.submit(nodes=3)
        job.wait_for_actors(3)
        self.cluster.kill_node("node3")
        self.addCleanup(self.cluster.start_node, "node3")
        job.wait_for_actors(2)
        job.expect_progress()
        harness.wait_until("Slurm has seen it", lambda: "down" in self.cluster.call(
            "sinfo", "-hn", "node3", "-o", "%T"), DEADLINE_S)
        job.expect_progress()
        self.assertEqual(job.state(), "RUNNING")
        job.finish()

    def test_a_requeued_job_goes_on_with_its_run(self):
        job = self.submit(nodes=2)
        before = job.expect_progress()
        self.cluster.call("scontrol", "requeue", job.number)
        after = job.wait_for("the run is resumed", lambda s: s["epoch"] == 2
                             and s["phase"] == "running" and s["actors"] == 2)
        self.assertGreaterEqual(after["episodes"], before["episodes"])
        job.expect_progress()
        job.check_account()
        job.finish()

    def test_at_the_time_limit_it_drains_and_queues_again(self):
        job = self.submit(nodes=2, JOB_REQUEUE=1)
        job.expect_progress()
        # What --signal=B:TERM@60 does: the batch script alone gets it.
        self.cluster.call("scancel", "--batch", "--signal=TERM", job.number)
        job.wait_for("the run is resumed", lambda s: s["epoch"] == 2 and s["actors"] == 2)
        job.expect_progress()
        self.cluster.call("scancel", job.number)
        job.expect_ended("CANCELLED")

    def test_a_wrong_option_ends_the_job_with_the_reason(self):
        job = self.submit(nodes=1, TETRION_LANES=0)
        job.expect_state("FAILED")
        self.assertIn("coordinator ended with status 2", job.output())
        self.assertIn("expected 1 to 4096 lanes", job.output())


# How rows travel. Keys are those that the script makes.
COMMON = {"JOB_ROWS": "tcp"}


def main():
    reason = slurm_cluster.missing()
    if reason:
        print(f"skipped: {reason}")
        return 77
    slurm_cluster.enter()
    harness.main()
    return 0


if __name__ == "__main__":
    sys.exit(main())
