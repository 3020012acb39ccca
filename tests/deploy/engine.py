"""Containers and compose projects for tests: commands and waits with deadlines, and what failed."""

import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# The images that a test builds and runs, PREFIX/actor:local. Tests at the same time take their own.
IMAGES = os.environ.get("DEPLOY_TEST_IMAGES", "tetrion-test")
# As docker-compose.yml starts services, for containers that are run by hand.
HARDENED = ("--init", "--user=10001:10001", "--read-only", "--cap-drop=ALL",
            "--security-opt=no-new-privileges:true", "--pids-limit=512", "--tmpfs=/tmp:size=16m")


class TestError(Exception):
    """A command or a wait that did not end as it should."""


def require(truth, text):
    if not truth:
        raise TestError(text)


def run(*command, env=None, limit_s=120, check=True):
    """(exit status, stdout and stderr together) of a command."""
    done = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, timeout=limit_s,
                          stderr=subprocess.STDOUT, text=True, check=False)
    if check and done.returncode != 0:
        text = f"exit status {done.returncode}\n{done.stdout[-3000:]}"
        raise TestError(f"{' '.join(command)}: {text}")
    return done.returncode, done.stdout


def docker(*args, **options):
    return run("docker", *args, **options)[1].strip()


def inspect(name):
    return json.loads(docker("inspect", name))[0]


def get(url, limit_s=5):
    """The body at the address, or None."""
    try:
        with urllib.request.urlopen(url, timeout=limit_s) as reply:
            return reply.read().decode()
    except (OSError, urllib.error.URLError):
        return None


def wait_for(what, probe, limit_s=60, step_s=0.2):
    """The first true answer of the probe; TestError with `what` and the last one after limit_s."""
    deadline = time.monotonic() + limit_s
    while True:
        answer = probe()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TestError(f"waited {limit_s} s for {what}; last answer: {answer}")
        time.sleep(step_s)


def at_once(calls):
    """The answers of calls that are made at the same time, in their order."""
    with concurrent.futures.ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(lambda call: call(), calls))


def compose_command():
    """Compose 2 where it is, otherwise 1.29; TETRION_COMPOSE names another."""
    given = os.environ.get("TETRION_COMPOSE")
    if given:
        return given.split()
    status, _ = run("docker", "compose", "version", check=False)
    return ["docker", "compose"] if status == 0 else ["docker-compose"]


class Project:
    """One run of docker-compose.yml under a name and with variables of its own."""

    def __init__(self, name, variables):
        self.name = name
        self.compose = compose_command()
        self.env = {**os.environ, "COMPOSE_PROJECT_NAME": name, "DOCKER_BUILDKIT": "1",
                    "COMPOSE_DOCKER_CLI_BUILD": "1", **variables}

    def __call__(self, *args, limit_s=300, check=True):
        return run(*self.compose, *args, env=self.env, limit_s=limit_s, check=check)

    def up(self, *args):
        self("up", "-d", "--no-build", "--no-recreate", *args)

    def containers(self, service):
        """Ids of the service's containers, running or not."""
        return docker("ps", "-aq", "--no-trunc", "--filter",
                      f"label=com.docker.compose.project={self.name}", "--filter",
                      f"label=com.docker.compose.service={service}").split()

    def network(self):
        return f"{self.name}_tetrion"

    def address(self, service):
        """The address of the service's first container in the project's network, or None."""
        for name in self.containers(service):
            ip = inspect(name)["NetworkSettings"]["Networks"][self.network()]["IPAddress"]
            if ip:
                return ip
        return None

    def get(self, service, port, path):
        ip = self.address(service)
        return get(f"http://{ip}:{port}{path}") if ip else None

    def status(self):
        """The coordinator's /status, {} while it does not answer."""
        return json.loads(self.get("coordinator", 9464, "/status") or "{}")

    def wait_status(self, what, test, limit_s=90):
        def probe():
            status = self.status()
            return status if status and test(status) else None
        try:
            return wait_for(what, probe, limit_s)
        except TestError as failed:
            raise TestError(f"{failed}; status: {self.status()}\n{self.logs()}") from None

    def goes_on(self, what):
        """Steps and updates rise; the updates may have gone back to the last checkpoint before."""
        before = self.wait_status(f"an answer {what}", lambda s: s["learner_up"])
        self.wait_status(f"steps and updates {what}", lambda s:
                         s["env_steps"] > before["env_steps"] and s["learner_up"]
                         and s["learner"].get("updates", 0) > before["learner"].get("updates", 0))

    def stop(self, *services):
        """Ends them by SIGTERM; each ends by itself, with status 0."""
        self("stop")
        for service in services:
            for name in self.containers(service):
                state = inspect(name)["State"]
                require(state["ExitCode"] == 0, f"{service} ended with {state}\n{self.logs()}")

    def account(self):
        """What check_account.py says of the run; TestError unless it is exact."""
        with tempfile.TemporaryDirectory() as folder:
            docker("cp", f"{self.containers('coordinator')[0]}:/runs/run", folder)
            script = ROOT / "tests" / "support" / "check_account.py"
            return run(sys.executable, "-B", str(script), f"{folder}/run")[1].strip()

    def remove(self):
        """Ends and removes all of the project. What to complain of: nothing may be left."""
        self("down", "-v", "--remove-orphans", "-t", "20", check=False)
        left = self.leftovers()
        return [f"left after down -v of {self.name}: {left}"] if left else []

    def logs(self):
        return self("logs", "--tail=15", check=False)[1]

    def leftovers(self):
        """Containers, volumes and networks of the project."""
        label = f"label=com.docker.compose.project={self.name}"
        return "".join(docker(*command, "--filter", label) for command in
                       (("ps", "-aq"), ("volume", "ls", "-q"), ("network", "ls", "-q")))

    def run_by_hand(self, image, *args, variables=None, volumes=("regions:/shm",),
                    hardened=HARDENED, until=None, limit_s=60):
        """(exit status, output) of one container beside the project's.

        With `until`, of one that may go on: exit status None as soon as it has said that.
        """
        command = ["docker", "run", "-d", *hardened, f"--network={self.network()}"]
        for volume in volumes:
            known = volume.split(":")[0] in ("regions", "runs")
            command.append(f"--volume={self.name}_{volume}" if known else f"--volume={volume}")
        for name, value in (variables or {}).items():
            command.append(f"--env={name}={value}")
        container = run(*command, image, *args)[1].split()[-1]

        def ended():
            state = inspect(container)["State"]
            output = docker("logs", container)
            if until is not None and until in output:
                return None, output
            return None if state["Running"] else (state["ExitCode"], output)
        try:
            return wait_for(f"{image} to end", ended, limit_s)
        finally:
            docker("rm", "-f", container)
