"""A Slurm of its own in a temporary folder: munged, slurmctld, and a slurmd a node.

Every node is a network, mount and host-name namespace with an address and a /dev/shm of its own, so
that nodes share nothing but the file system and the wire. enter() puts the whole into one process,
network and mount namespace more: what a test forgets dies with it, and the machine's own Slurm, if
there is one, is not seen. Needs root and Debian's slurm-wlm and munge; cgroups are not used.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "integration"))
from harness import wait_until

CONTROLLER = "10.77.0.1"
PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "ip", "unshare", "nsenter")
INSIDE = "DEPLOY_TEST_INSIDE"
CONF = """
ClusterName=tetrion-test
SlurmctldHost=controller({controller})
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
CredType=cred/munge
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.%n.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmdTimeout=10
KillWait=20
MinJobAge=300
ReturnToService=2
SchedulerParameters=sched_interval=2,bf_interval=2
NodeName=DEFAULT CPUs={cpus} Sockets=1 CoresPerSocket={cpus} RealMemory=1000
{nodes}
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=NO
"""


def missing():
    """Why no cluster can be started here; empty: it can."""
    absent = [name for name in PROGRAMS if not shutil.which(name)]
    if absent:
        return f"not installed: {', '.join(absent)} (apt-get install slurm-wlm munge iproute2)"
    if os.geteuid() != 0:
        return "network namespaces need root"
    probe = subprocess.run(["unshare", "--net", "--mount", "--pid", "--fork", "true"],
                           capture_output=True, text=True, check=False)
    return "" if probe.returncode == 0 else f"no namespaces here: {probe.stderr.strip()}"


def enter():
    """Goes on inside namespaces of its own; returns there. The outer process waits and dies with
    the exit status of the inner one."""
    if os.environ.get(INSIDE):
        subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
        return
    command = ["unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--kill-child",
               "--mount-proc", sys.executable, "-B", *sys.argv]
    os.execvpe(command[0], command, {**os.environ, INSIDE: "1"})


class Cluster:
    """Started by start(), ended by stop(). Nodes are node1, node2, ..., each with an address."""

    def __init__(self, folder, nodes=3, cpus=2):
        self.folder, self.cpus = pathlib.Path(folder), cpus
        self.nodes = {f"node{i}": f"10.77.0.{10 + i}" for i in range(1, nodes + 1)}
        self.daemons = {}  # name -> Popen
        self.environment = {**os.environ, "SLURM_CONF": str(self.folder / "slurm.conf")}

    def start(self):
        self._write_files()
        self._make_network()
        self._start("munged", [
            "munged", "--foreground", "--force", f"--key-file={self.folder}/munge.key",
            f"--socket={self.folder}/munge.sock", f"--pid-file={self.folder}/munged.pid",
            f"--seed-file={self.folder}/munged.seed", f"--log-file={self.folder}/munged.log"])
        wait_until("munged listens", (self.folder / "munge.sock").exists, 20)
        self._start("slurmctld", ["slurmctld", "-D", "-i"])
        for node in self.nodes:
            self.start_node(node)
        self.wait_for_nodes(self.nodes)
        return self

    def start_node(self, node):
        """A slurmd in the node's network, with a host name and a /dev/shm of its own."""
        script = (f"hostname {node} && mount -t tmpfs -o mode=1777 none /dev/shm"
                  f" && exec slurmd -D -N {node}")
        self._start(node, ["ip", "netns", "exec", node, "unshare", "--uts", "--mount",
                           "sh", "-c", script])

    def kill_node(self, node):
        """kill -9 of the node's slurmd and of all that runs in the node's network."""
        pids = self.call("ip", "netns", "pids", node).split()
        for pid in pids:
            os.kill(int(pid), signal.SIGKILL)
        self.daemons.pop(node).wait()

    def wait_for_nodes(self, nodes, deadline_s=60):
        def idle():
            lines = self.call("sinfo", "-hN", "-o", "%N %T").split("\n")
            up = {line.split()[0] for line in lines
                  if line and line.split()[1] in ("idle", "mixed", "allocated")}
            return set(nodes) <= up
        wait_until(f"nodes {', '.join(nodes)} are up", idle, deadline_s)

    def call(self, *command, **options):
        done = subprocess.run(list(map(str, command)), env=self.environment, text=True, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              **options)
        if done.returncode:
            raise AssertionError(f"{' '.join(map(str, command))}: {done.returncode} {done.stdout}")
        return done.stdout

    def stop(self):
        for name in [name for name in self.daemons if name != "munged"] + ["munged"]:
            daemon = self.daemons.pop(name, None)
            if daemon:
                daemon.terminate()
                try:
                    daemon.wait(20)
                except subprocess.TimeoutExpired:
                    daemon.kill()
                    daemon.wait()

    def regions(self):
        """Files of shared memory on the nodes that are up."""
        return [f"{node}: {path.name}" for node in self.nodes if node in self.daemons
                for path in self._root(node).glob("dev/shm/tetrion-*/*") if path.name != ".lock"]

    def _root(self, node):
        return pathlib.Path(f"/proc/{self.daemons[node].pid}/root")

    def logs(self):
        return "\n".join(f"--- {path.name}\n" + "\n".join(
            path.read_text(errors="replace").splitlines()[-40:])
            for path in sorted(self.folder.glob("*.log")))

    def _write_files(self):
        self.folder.mkdir(mode=0o755, exist_ok=True)
        for name in ("state", *(f"spool.{node}" for node in self.nodes)):
            (self.folder / name).mkdir()
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        nodes = "\n".join(f"NodeName={node} NodeAddr={address}"
                          for node, address in self.nodes.items())
        (self.folder / "slurm.conf").write_text(CONF.format(
            controller=CONTROLLER, folder=self.folder, cpus=self.cpus, nodes=nodes))
        (self.folder / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")

    def _make_network(self):
        # `ip netns` keeps its names in /run/netns: a folder of ours hides the machine's.
        pathlib.Path("/run/netns").mkdir(exist_ok=True)
        commands = ["mount -t tmpfs none /run/netns", "hostname controller",
                    "ip link add bridge type bridge", f"ip addr add {CONTROLLER}/24 dev bridge",
                    "ip link set bridge up"]
        for node, address in self.nodes.items():
            commands += [f"ip netns add {node}",
                         f"ip link add {node} type veth peer name eth0 netns {node}",
                         f"ip link set {node} master bridge up",
                         f"ip -n {node} addr add {address}/24 dev eth0",
                         f"ip -n {node} link set eth0 up", f"ip -n {node} link set lo up"]
        for command in commands:
            self.call(*command.split())

    def _start(self, name, command):
        with open(self.folder / f"{name}.out.log", "ab") as log:
            self.daemons[name] = subprocess.Popen(command, stdout=log, stderr=log,
                                                  stdin=subprocess.DEVNULL, env=self.environment,
                                                  start_new_session=True)
