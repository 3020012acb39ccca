"""Runs docker-compose.yml: images, learning, scaling, kills, Prometheus, drains, the account.

Called by compose_test.sh, which sees to engine, base image and programs. Steps follow each other on
one run; each is printed with its seconds. Names of steps as arguments choose those alone. What
containers say to bad input: compose_bad_input.py. Actors on another host: compose_remote.py.
"""

import json
import os
import signal
import subprocess
import sys
import time

import compose_bad_input
import compose_remote
from engine import IMAGES, Project, TestError, docker, get, inspect, require, run, wait_for

ACTOR_LIMIT_MB = 700  # of either image
SERVICES = ("coordinator", "learner", "actor")
HTTP = 9464


def variables():
    compiled = bool(os.environ.get("TETRION_COMPILED"))
    return {"COMPOSE_PROFILES": "cpu,monitoring", "TETRION_IMAGES": IMAGES,
            "TETRION_BINARIES": "compiled" if compiled else "prebuilt",
            "TETRION_HTTP_PORT": "0", "TETRION_PROMETHEUS_PORT": "0", "TETRION_GRAFANA_PORT": "0",
            "TETRION_CHECKPOINT_EVERY": "1", "TETRION_LANES": "16", "TETRION_SHM_SIZE": "256m"}


def with_torch(project, name):
    """A project of DreamerV3, whose network only the image actor-torch can play."""
    return Project(name, {**project.env, "COMPOSE_PROJECT_NAME": name, "COMPOSE_PROFILES": "cpu",
                          "TETRION_ACTOR_IMAGE": "actor-torch", "TETRION_ALGO": "dreamer",
                          "TETRION_ENV": "cartpole", "TETRION_LANES": "4",
                          "TETRION_THREADS": "1"})


def monitoring_image(project, variable, published, stand_in):
    """Prometheus and Grafana as published where they can be had, otherwise a stand-in."""
    here = run("docker", "image", "inspect", published, check=False)[0] == 0
    if here or run("docker", "pull", "-q", published, check=False, limit_s=300)[0] == 0:
        return published
    name = f"{IMAGES}/{stand_in}:local"
    run("docker", "build", "-q", "-t", name, "-f", f"tests/deploy/{stand_in}.Dockerfile",
        "tests/deploy", env=project.env, limit_s=600)
    project.env[variable] = name
    return f"{name}, which stands in for {published}"


def build_images(project):
    project("build", *SERVICES, limit_s=3600)
    with_torch(project, project.name)("build", "actor", limit_s=3600)
    for variable, published, stand_in in (
            ("TETRION_PROMETHEUS_IMAGE", "prom/prometheus:v3.5.0", "prometheus"),
            ("TETRION_GRAFANA_IMAGE", "grafana/grafana:12.1.0", "grafana")):
        print("  ", monitoring_image(project, variable, published, stand_in))


def check_images(_project):
    """Sizes, users, and every library that a program needs."""
    for name in (*SERVICES, "actor-torch"):
        image = f"{IMAGES}/{name}:local"
        config = inspect(image)
        megabytes = config["Size"] / 1e6
        print(f"   {name}: {megabytes:.0f} MB")
        require(config["Config"]["User"] == "10001:10001", f"{image} runs as another user")
        require("actor" not in name or megabytes <= ACTOR_LIMIT_MB, f"{image}: {megabytes} MB")
        libraries = docker("run", "--rm", "--entrypoint=/usr/bin/ldd", image,
                           f"/usr/local/bin/tetrion-{name.split('-')[0]}")
        require("not found" not in libraries, f"{image} lacks a library:\n{libraries}")
        require(("libtorch" in libraries) == (name in ("learner", "actor-torch")),
                f"{image}:\n{libraries}")


def learns(project):
    """From nothing to ready services, and then to updates."""
    start = time.monotonic()
    project.up("--scale", "actor=1")
    for service in SERVICES:
        wait_for(f"{service} to be ready", lambda s=service: project.get(s, HTTP, "/readyz"))
        began = inspect(project.containers(service)[0])["State"]["StartedAt"]
        print(f"   {service}: ready {time.monotonic() - start:.1f} s after `up` (begun {began})")
    status = project.wait_status("20 updates of one actor's rows",
                                 lambda s: s["learner"].get("updates", 0) >= 20)
    require(status["episodes"] > 0 and status["actors"] == 1, f"an actor's episodes: {status}")


def scales(project):
    for actors in (4, 2, 0, 3):
        project.up("--scale", f"actor={actors}")
        project.wait_status(f"{actors} actors", lambda s, n=actors: s["actors"] == n)
        if actors:
            project.goes_on(f"with {actors} actors")
        else:
            require(project.status()["tokens"]["outstanding"] == 0,
                    f"tokens of actors that are gone: {project.status()['tokens']}")


def kill_main(project, service):
    """SIGKILL. By root from outside the container, so that the restart policy answers it."""
    name = project.containers(service)[0]
    before = inspect(name)["State"]["StartedAt"]
    if os.geteuid() == 0:
        os.kill(inspect(name)["State"]["Pid"], 9)
    else:
        docker("kill", "-s", "KILL", name)
        docker("start", name)
    wait_for(f"{service} to be started again", lambda:
             inspect(name)["State"]["Running"] and inspect(name)["State"]["StartedAt"] != before)


def survives_kills(project):
    for service in ("actor", "learner", "coordinator"):
        kill_main(project, service)
        project.wait_status(f"all after the {service} was killed",
                            lambda s: s["actors"] == 3 and s["learner_up"])
        project.goes_on(f"after the {service} was killed")
    docker("kill", "-s", "KILL", *[project.containers(s)[0] for s in SERVICES])
    project.up("--scale", "actor=3")
    project.wait_status("all after one of each was killed",
                        lambda s: s["actors"] == 3 and s["learner_up"])
    project.goes_on("after one of each was killed")


def prometheus_sees_them(project):
    ip = wait_for("Prometheus", lambda: project.address("prometheus"))
    api = f"http://{ip}:9090/api/v1"

    def up():
        targets = json.loads(get(f"{api}/targets") or "{}").get("data", {}).get("activeTargets", [])
        return sorted(t["labels"]["job"] for t in targets if t["health"] == "up")
    expected = ["actor"] * 3 + ["coordinator", "learner"]
    wait_for(f"the targets {expected}", lambda: up() == expected)

    def value(query):
        reply = json.loads(get(f"{api}/query?query={query}") or "{}")
        found = reply.get("data", {}).get("result", [])
        return float(found[0]["value"][1]) if found else None
    wait_for("env steps per second", lambda: value("sum(rate(tetrion_actor_env_steps_total[1m]))"))
    rules = json.loads(get(f"{api}/rules"))["data"]["groups"]
    require(rules, "Prometheus has read no alert rules")
    state = inspect(project.containers("grafana")[0])["State"]
    require(state["Running"], f"grafana: {state}")


def is_hardened(project):
    """What the engine really gave the containers."""
    for service in SERVICES:
        for name in project.containers(service):
            host = inspect(name)["HostConfig"]
            require(host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"] and host["Init"]
                    and host["PidsLimit"] and host["Memory"]
                    and "no-new-privileges:true" in host["SecurityOpt"], f"{service}: {host}")


def is_healthy(project):
    """The images' own health check."""
    for service in SERVICES:
        for name in project.containers(service):
            wait_for(f"{service} to be healthy",
                     lambda n=name: inspect(n)["State"]["Health"]["Status"] == "healthy")


def drains(project):
    """Every service ends by itself within the grace period; then the account is exact."""
    start = time.monotonic()
    project.stop(*SERVICES)
    print(f"   drained in {time.monotonic() - start:.1f} s")
    print("  ", project.account())


def plays_every_network(project):
    """DreamerV3 needs the tensor library: actor refuses it, actor-torch plays it."""
    project("stop")
    dreamer = with_torch(project, f"{project.name}dreamer")
    complaints = []
    try:
        dreamer.up("--scale", "actor=0")
        answer = compose_bad_input.member(dreamer, "actor", {})
        compose_bad_input.expect("an algorithm that needs torch", answer, compose_bad_input.USAGE,
                                 "TETRION_ACTOR_IMAGE=actor-torch")
        start = time.monotonic()
        dreamer.up("--scale", "actor=1")
        wait_for("actor-torch to be ready", lambda: dreamer.get("actor", HTTP, "/readyz"))
        print(f"   actor-torch: ready {time.monotonic() - start:.1f} s after `up`")
        dreamer.wait_status("20 updates of an actor with torch",
                             lambda s: s["learner"].get("updates", 0) >= 20)
        dreamer.stop(*SERVICES)
        print("  ", dreamer.account())
    finally:
        complaints = dreamer.remove()
    require(not complaints, "; ".join(complaints))


STEPS = (build_images, check_images, learns, scales, survives_kills, prometheus_sees_them,
         is_hardened, is_healthy, *compose_bad_input.STEPS, drains,
         plays_every_network, *compose_remote.STEPS)


NEEDED = (build_images, learns)


def main(names):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # by way of `finally`
    chosen = [step for step in STEPS if not names or step in NEEDED or step.__name__ in names]
    project = Project(f"tetriontest{os.getpid()}", variables())
    begun = time.monotonic()
    complaints = []
    try:
        print(" ".join(project.compose), docker("version", "--format", "{{.Server.Version}}"))
        for step in chosen:
            start = time.monotonic()
            print(f"{step.__name__}: {(step.__doc__ or '').strip()}", flush=True)
            step(project)
            print(f"   ok, {time.monotonic() - start:.1f} s", flush=True)
    except (TestError, subprocess.TimeoutExpired) as failed:
        complaints.append(str(failed))
    finally:
        complaints += project.remove()
    for complaint in complaints:
        print(f"FAILED: {complaint}")
    result = 1 if complaints else 0
    print(f"compose test: {'failed' if result else 'passed'}, {time.monotonic() - begun:.0f} s")
    return result


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
