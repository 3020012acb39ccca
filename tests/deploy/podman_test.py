"""The pods of deploy/k8s/base on `podman kube play`: a cluster's part that one machine can be.

    sudo python3 -B tests/deploy/podman_test.py

Needs podman 4.3, root, deploy/k8s/requirements.txt as k8s_test.py does, and the images that
compose_test.py has built with docker; exit status 77 and the reason without. Images, networks and
volumes are in a store of its own, so that nothing of the machine's podman is touched or left.
"""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

import k8s_test
from engine import IMAGES, ROOT, TestError, get, require, run, wait_for

SERVICES = ("coordinator", "learner", "actor")
PODS = ("coordinator", "learner", "actor")
CONTAINERS = ("coordinator-coordinator", "learner-learner", "learner-actor", "actor-actor")
NETWORK, HTTP, SKIPPED = "tetrion", 9464, 77
# The limits that this machine allows; podman asks for more than every sandbox gives.
SETTINGS = """[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
"""
# crun 1.8 refuses a machine with both versions of cgroups.
RUNC = '[engine]\nruntime = "runc"\n'


def missing():
    """Why this cannot run here; empty: it can."""
    absent = [name for name in ("podman", "catatonit") if not shutil.which(name)]
    if absent:
        return f"not installed: {', '.join(absent)} (apt-get install podman catatonit)"
    if os.geteuid() != 0:
        return "podman's networks need root"
    if k8s_test.tools() is None:
        return "install deploy/k8s/requirements.txt as it says (it needs PyPI)"
    for service in SERVICES:
        if run("docker", "image", "inspect", f"{IMAGES}/{service}:local", check=False)[0] != 0:
            return f"no image {IMAGES}/{service}:local; tests/deploy/compose_test.sh builds it"
    return ""


class Podman:
    """podman with its store, networks and settings in one folder."""

    def __init__(self, folder):
        self.folder = folder
        settings = folder / "containers.conf"
        settings.write_text(SETTINGS + (RUNC if shutil.which("runc") else ""), encoding="utf-8")
        self.env = {**os.environ, "CONTAINERS_CONF": str(settings)}
        self.command = ["podman", f"--root={folder}/store", f"--runroot={folder}/run",
                        f"--network-config-dir={folder}/networks"]

    def __call__(self, *args, limit_s=180, check=True):
        return run(*self.command, *args, env=self.env, limit_s=limit_s, check=check)[1].strip()

    def load(self, image):
        archive = self.folder / "image.tar"
        run("docker", "save", "-o", str(archive), image, limit_s=300)
        self("load", "-q", "-i", str(archive), limit_s=300)
        archive.unlink()

    def pod_address(self, pod):
        infra = json.loads(self("pod", "inspect", pod))["InfraContainerID"]
        state = json.loads(self("inspect", infra))[0]
        return state["NetworkSettings"]["Networks"][NETWORK]["IPAddress"]

    def container(self, name):
        return json.loads(self("inspect", name))[0]

    def status(self):
        return json.loads(get(f"http://{self.pod_address('coordinator')}:{HTTP}/status") or "{}")

    def wait_status(self, what, test, limit_s=120):
        def probe():
            status = self.status()
            return status if status and test(status) else None
        try:
            return wait_for(what, probe, limit_s)
        except TestError as failed:
            logs = "".join(f"--- {name}\n{self('logs', '--tail=5', name, check=False)}\n"
                           for name in CONTAINERS)
            raise TestError(f"{failed}; status: {self.status()}\n{logs}") from None

    def remove(self):
        self("pod", "rm", "-fa", "-t", "5", check=False)
        self("network", "rm", "-f", NETWORK, check=False)
        # Layers of the store are mounts of their own while podman knows them.
        self("rmi", "-fa", check=False)


def as_pods(things, keys):
    """What podman can play of a rendering: each controller's pod, once, its volume and settings.

    Podman 4.3 has no controllers, services, policies and budgets; pods find each other by name
    instead of by service. It publishes every named port on the machine, asks probes by a curl
    inside of the image, knows no status.podIP, and gives secrets to all users: these are left out
    or, the secrets, mounted from `keys`.
    """
    played = [thing for thing in things if thing["kind"] in ("ConfigMap", "PersistentVolumeClaim")]
    allowed = {path.name: path.read_text() for path in keys.glob("*.pub")}
    played.append({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "allowed-keys"},
                   "data": allowed})
    for where, template in k8s_test.templates(things):
        name, spec = where.split("/")[1], dict(template["spec"])
        spec.pop("affinity", None)
        spec["volumes"] = [playable_volume(volume, keys) for volume in spec["volumes"]]
        spec["containers"] = [playable_container(each, name) for each in spec["containers"]]
        played.append({"apiVersion": "v1", "kind": "Pod", "spec": spec,
                       "metadata": {"name": name, "labels": template["metadata"]["labels"]}})
    return played


def playable_volume(volume, keys):
    if "secret" in volume:
        return {"name": volume["name"], "hostPath": {"path": str(keys), "type": "Directory"}}
    if "configMap" in volume:
        return {**volume, "configMap": {**volume["configMap"], "optional": False}}
    return volume


def playable_container(container, pod):
    image = container["image"].replace("tetrion/", f"localhost/{IMAGES}/")
    left = {key: value for key, value in container.items()
            if key not in ("ports", "startupProbe", "livenessProbe", "readinessProbe")}
    own_address = {"fieldRef": {"fieldPath": "status.podIP"}}
    variables = [{"name": each["name"], "value": pod}
                 if each.get("valueFrom") == own_address else each for each in container["env"]]
    return {**left, "image": image, "imagePullPolicy": "Never", "env": variables}


def make_keys(podman):
    keys = podman.folder / "keys"
    podman("run", "--rm", "--user=0:0", "--entrypoint=tetrion-keygen", "--network=none",
           f"--volume={podman.folder}:/host", f"{IMAGES}/coordinator:local", "/host/keys",
           *SERVICES)
    for path in (keys, *keys.iterdir()):
        os.chown(path, k8s_test.UID, k8s_test.UID)
    return keys


def plays(podman):
    """From manifests to updates from both actors, one beside the learner, one over the network."""
    import yaml
    things = k8s_test.render(k8s_test.RENDERED["base"])
    manifest = podman.folder / "pods.yaml"
    manifest.write_text(yaml.safe_dump_all(as_pods(things, make_keys(podman))), encoding="utf-8")
    podman("network", "create", NETWORK)
    podman("kube", "play", f"--network={NETWORK}", str(manifest))
    status = podman.wait_status("20 updates from both actors", lambda s: s["actors"] == 2
                                and s["learner"].get("remote_streams") == 1
                                and s["learner"].get("updates", 0) >= 20)
    print(f"   {status['env_steps']} steps, {status['learner']['updates']} updates")
    for name in CONTAINERS:
        program = f"/usr/local/bin/tetrion-{name.split('-')[1]}"
        wait_for(f"{name} to be healthy", lambda n=name, p=program: podman(
            "exec", n, "sh", "-c", f"{p} healthcheck && echo healthy", check=False) == "healthy")


def is_hardened(podman):
    """What podman really gave the containers."""
    for name in CONTAINERS:
        state = podman.container(name)
        host = state["HostConfig"]
        require(host["ReadonlyRootfs"] and host["Memory"] and not state["EffectiveCaps"]
                and state["Config"]["User"] == f"{k8s_test.UID}:{k8s_test.UID}"
                and "no-new-privileges" in host["SecurityOpt"], f"{name}: {state}")


def survives_kills(podman):
    """SIGKILL of each container; podman starts it again, as kubelet does."""
    for name in CONTAINERS:
        before = podman.container(name)["State"]
        os.kill(before["Pid"], 9)

        def again(name=name, before=before):
            state = podman.container(name)["State"]
            return state["Running"] and state["StartedAt"] != before["StartedAt"]
        wait_for(f"{name} to be started again", again)
        at = podman.wait_status(f"all after {name} was killed", lambda s: s["actors"] == 2
                                and s["learner_up"] and s["learner"].get("remote_streams") == 1)
        podman.wait_status(f"steps after {name} was killed", lambda s, a=at:
                           s["env_steps"] > a["env_steps"] and s["actors"] == 2)


def drains(podman):
    """Every container ends by itself, with status 0; then the account is exact."""
    podman("pod", "stop", "-t", "90", *PODS)
    for name in CONTAINERS:
        state = podman.container(name)["State"]
        require(state["ExitCode"] == 0, f"{name} ended with {state}")
    volume = json.loads(podman("volume", "inspect", "runs"))[0]["Mountpoint"]
    script = ROOT / "tests" / "support" / "check_account.py"
    print("  ", run(sys.executable, "-B", str(script), f"{volume}/run")[1].strip())


def main():
    reason = missing()
    if reason:
        print(f"skipped: {reason}")
        return SKIPPED
    k8s_test.switch_to(k8s_test.tools())
    with contextlib.ExitStack() as end:
        folder = end.enter_context(tempfile.TemporaryDirectory(prefix="tetrion-podman-"))
        podman = Podman(pathlib.Path(folder))
        end.callback(podman.remove)
        try:
            for service in SERVICES:
                podman.load(f"{IMAGES}/{service}:local")
            for step in (plays, is_hardened, survives_kills, drains):
                print(f"{step.__name__}: {(step.__doc__ or '').strip()}", flush=True)
                step(podman)
        except (TestError, subprocess.TimeoutExpired) as failed:
            print(f"FAILED: {failed}")
            return 1
    print("podman test: passed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
