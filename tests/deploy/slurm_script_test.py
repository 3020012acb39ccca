"""deploy/slurm/tetrion.sbatch among stand-ins of Slurm's commands and of the services: what it
starts for a job, with which options, and how the job ends. slurm_test.py has a real Slurm."""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "deploy/slurm/tetrion.sbatch"

# Each appends its name and arguments to $CALLS in one write.
RECORD = '#!/bin/bash\necho "$(basename "$0") $*" >>"$CALLS"\n'
# A member ends with 0 when its run does. An actor that $REFUSED names ends with $STATUS at once; at
# its fifth start the run ends.
MEMBER = RECORD + """
for name in $REFUSED; do
  [[ " $* " == *" --name actor-$name "* ]] || continue
  if (($(grep -c -- "--name actor-$name " "$CALLS") == 5)); then touch "$CALLS.end"; fi
  echo "no place for $name"
  exit "$STATUS"
done
until [[ -e $CALLS.end ]]; do sleep 1; done
"""
# The run ends when as many actors as the job has nodes have started.
COORDINATOR = RECORD + """
until (($(grep -c ^tetrion-actor "$CALLS") >= NODES)) && grep -q ^tetrion-learner "$CALLS"; do
  sleep 1
done
touch "$CALLS.end"
"""
SLURM = {
    "scontrol": 'for ((i = 1; i <= NODES; i++)); do echo "node$i"; done\n',
    "squeue": "echo RUNNING\n",
    "scancel": "exit 0\n",
    "srun": 'while [[ $1 == --* ]]; do shift; done\nexec "$@"\n',
    "sleep": "exec /bin/sleep 0.02\n",
}


class SlurmScript(unittest.TestCase):

    def setUp(self):
        self.base = pathlib.Path(tempfile.mkdtemp(prefix="tetrion-sbatch-"))
        self.addCleanup(shutil.rmtree, self.base)
        self.calls = self.base / "calls"
        for name, body in SLURM.items():
            self.program("slurm", name, "#!/bin/bash\n" + body)
        self.program("bin", "tetrion-coordinator", COORDINATOR)
        for name in ("tetrion-learner", "tetrion-actor"):
            self.program("bin", name, MEMBER)

    def program(self, folder, name, text):
        path = self.base / folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(0o755)

    def run_job(self, nodes, cpus, status=0, **knobs):
        """Its output, when it has ended with this status."""
        kept = {name: value for name, value in os.environ.items()
                if not name.startswith(("TETRION_", "JOB_", "SLURM"))}
        job = {"PATH": f"{self.base}/slurm:{os.environ['PATH']}", "CALLS": str(self.calls),
               "NODES": str(nodes), "REFUSED": "", "STATUS": "75", "SLURM_JOB_ID": "17",
               "SLURM_SUBMIT_DIR": str(self.base), "SLURM_JOB_NODELIST": "node[...]",
               "SLURMD_NODENAME": "node1", "SLURM_CPUS_ON_NODE": str(cpus),
               "JOB_BIN": f"{self.base}/bin", "JOB_ADDRESS": "192.0.2.1", "JOB_KEYS": "none"}
        done = subprocess.run(["bash", SCRIPT], env={**kept, **job, **knobs}, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=50,
                              check=False)
        self.assertEqual(done.returncode, status, done.stdout)
        return done.stdout

    def called(self, program):
        """The arguments of each of its starts."""
        lines = self.calls.read_text(encoding="utf-8").splitlines() if self.calls.exists() else []
        return [line.split()[1:] for line in lines if line.split()[0] == program]

    def actors(self):
        """{its name: its options}, the values of those that have one."""
        options = [dict(zip(call[::2], call[1::2], strict=True))
                   for call in self.called("tetrion-actor")]
        return {option["--name"]: option for option in options}

    def workers(self):
        return {name: int(option["--workers"]) for name, option in self.actors().items()}

    def slots(self):
        [call] = self.called("tetrion-coordinator")
        return int(call[call.index("--max-workers") + 1])

    def test_the_learners_node_has_two_workers_where_it_is_large_and_others_one(self):
        self.run_job(nodes=4, cpus=64)
        self.assertEqual(self.workers(), {"actor-node1": 2, "actor-node2": 1, "actor-node3": 1,
                                          "actor-node4": 1})
        rows = {name: option["--rows"] for name, option in self.actors().items()}
        self.assertEqual(rows, {"actor-node1": "shm", "actor-node2": "tcp", "actor-node3": "tcp",
                                "actor-node4": "tcp"})
        self.assertEqual(self.slots(), 8)
        [learner] = self.called("tetrion-learner")
        self.assertIn("tcp://192.0.2.1:0", learner)

    def test_a_node_of_few_cpus_has_an_actor_of_one_worker(self):
        for cpus in (1, 6):
            self.run_job(nodes=1, cpus=cpus)
            self.assertEqual(self.workers(), {"actor-node1": 1}, cpus)
            (self.base / "calls.end").unlink()
            self.calls.unlink()

    def test_workers_that_are_given_are_every_actors_and_have_slots(self):
        self.run_job(nodes=3, cpus=64, TETRION_WORKERS="5")
        self.assertEqual(set(self.workers().values()), {5})
        self.assertEqual(self.slots(), 15)

    def test_streamed_inference_has_a_slot_for_each_group_of_a_worker(self):
        self.run_job(nodes=1, cpus=64, TETRION_INFERENCE="streamed", TETRION_GROUPS="6")
        self.assertEqual(self.workers(), {"actor-node1": 2})
        self.assertEqual(self.slots(), 12)

    def test_streamed_inference_has_two_groups_unless_it_is_told_otherwise(self):
        self.run_job(nodes=2, cpus=64, TETRION_INFERENCE="streamed", TETRION_WORKERS="7",
                     JOB_ROWS="shm")
        self.assertEqual(self.slots(), 2 * 7 * 2)

    def test_a_learner_that_plays_its_lanes_itself_has_no_actors(self):
        self.program("bin", "tetrion-coordinator", RECORD + """
until grep -q ^tetrion-learner "$CALLS"; do sleep 1; done
touch "$CALLS.end"
""")
        self.run_job(nodes=2, cpus=64, TETRION_RESIDENT_LANES="1024")
        self.assertEqual(self.called("tetrion-actor"), [])

    def test_slots_that_are_given_are_left_to_the_coordinator(self):
        self.run_job(nodes=1, cpus=64, TETRION_MAX_WORKERS="64")
        [call] = self.called("tetrion-coordinator")
        self.assertNotIn("--max-workers", call)

    def test_streamed_inference_over_a_network_is_refused_before_anything_starts(self):
        for nodes, join in ((2, "0"), (1, "1")):
            said = self.run_job(nodes=nodes, cpus=64, status=2, TETRION_INFERENCE="streamed",
                                JOB_JOIN=join)
            self.assertIn("streamed inference needs the learner's shared memory", said)
            self.assertFalse(self.calls.exists())
            self.assertFalse((self.base / "runs").exists())

    def test_a_job_whose_every_actor_is_refused_ends_with_the_status_and_the_reason(self):
        said = self.run_job(nodes=2, cpus=8, status=75, JOB_JOIN="1", REFUSED="node1 node2")
        for node in ("node1", "node2"):
            self.assertIn(f"actor-{node} ended with status 75 and is given up: no place for {node}",
                          said)
        self.assertEqual(len(self.called("tetrion-actor")), 2 * 5)
        self.assertEqual(self.called("tetrion-coordinator"), [])

    def test_an_actor_that_is_refused_leaves_others_of_its_job_alone(self):
        said = self.run_job(nodes=2, cpus=8, JOB_JOIN="1", REFUSED="node2")
        self.assertIn("actor-node2 ended with status 75 and is given up", said)
        self.assertEqual(len(self.called("tetrion-actor")), 1 + 5)

    def test_a_wrong_setting_ends_a_joining_job_at_once(self):
        said = self.run_job(nodes=2, cpus=8, status=78, JOB_JOIN="1", REFUSED="node2", STATUS="78")
        self.assertIn("actor-node2 ended with status 78, so does the job", said)

    def test_a_last_checkpoint_that_could_not_be_stored_is_the_jobs_status(self):
        self.program("bin", "tetrion-learner", MEMBER + 'echo "no room"\nexit 74\n')
        said = self.run_job(nodes=1, cpus=8, status=74)
        self.assertIn("learner ended with status 74, so does the job: no room", said)
        self.assertEqual(len(self.called("tetrion-learner")), 1)

    def test_the_tests_on_a_real_slurm_can_be_loaded(self):
        subprocess.run([sys.executable, "-B", "-c", "import slurm_test"], check=True, timeout=50,
                       cwd=pathlib.Path(__file__).parent)


if __name__ == "__main__":
    unittest.main()
