"""Steps of compose_test.py: actors on another host, by remote.yml and remote-actor.yml.

The other host is a second project in a network of its own, which shares no volume with the first
one and reaches it by the two published ports alone.
"""

import contextlib
import functools
import ipaddress
import os
import pathlib
import socket
import tempfile
import time

from compose_bad_input import TRY_AGAIN, USAGE, expect
from engine import IMAGES, Project, TestError, at_once, docker, inspect, require

FILES = "docker-compose.yml:deploy/docker/"
GIVE_UP_S = "4"


def by_root(folder, program, *args):
    """A program of the coordinator's image on the folder, as root where this test is none."""
    return docker("run", "--rm", "--user=0:0", f"--entrypoint={program}",
                  f"--volume={folder}:/keys", f"{IMAGES}/coordinator:local", *args)


@contextlib.contextmanager
def made_keys():
    """A folder of keys as docs/DEPLOYMENT.md makes it, and a stranger's, allowed nowhere."""
    with tempfile.TemporaryDirectory() as root:
        folder = pathlib.Path(root)
        by_root(folder, "tetrion-keygen", "/keys/keys", "coordinator", "learner", "actor")
        by_root(folder, "tetrion-keygen", "/keys/strange", "actor")
        by_root(folder, "/bin/mkdir", "/keys/keys/allowed")
        by_root(folder, "/bin/cp", "/keys/keys/learner.pub", "/keys/keys/actor.pub",
                "/keys/keys/allowed")
        by_root(folder, "/bin/chown", "-R", "10001", "/keys/keys", "/keys/strange")
        try:
            yield folder
        finally:
            by_root(folder, "/bin/chown", "-R", str(os.geteuid()), "/keys")


def free_ports(count):
    """Ports that nothing listens at now."""
    with contextlib.ExitStack() as opened:
        sockets = [opened.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("", 0))
        return [str(one.getsockname()[1]) for one in sockets]


def address_of_this_machine():
    """One that every container reaches: this machine's in the engine's default network."""
    config = inspect("bridge")["IPAM"]["Config"][0]
    return config.get("Gateway") or str(ipaddress.ip_network(config["Subnet"])[1])


def hosts(project, keys):
    """(the first host's project, the other host's)."""
    control, rows = free_ports(2)
    common = {**project.env, "TETRION_HOST": address_of_this_machine(), "TETRION_KEYS": str(keys),
              "TETRION_CONTROL_PORT": control, "TETRION_ROWS_PORT": rows,
              "COMPOSE_PROFILES": "cpu", "TETRION_THREADS": "1"}

    def host(name, file):
        name = project.name + name
        return Project(name, {**common, "COMPOSE_PROJECT_NAME": name, "COMPOSE_FILE": FILES + file})
    return host("head", "remote.yml"), host("far", "remote-actor.yml")


def play_far(far, actors):
    far.up("--no-deps", "--scale", f"actor={actors}", "actor")


def misses_no_key_in_silence(_head, far):
    """A key that is not there is an error of the engine, and no folder in its place."""
    absent = pathlib.Path(far.env["TETRION_KEYS"]).parent / "absent"
    misled = Project(far.name, {**far.env, "TETRION_KEYS": str(absent)})
    status, said = misled("up", "-d", "--no-build", "--no-deps", "actor", check=False)
    require(status != 0 and f"{absent}/" in said, f"a missing key: exit status {status}, {said}")
    require(not absent.exists(), f"a missing key became the folder {absent}")
    misled("rm", "-fs", "actor")


def plays_by_tcp_alone(head, far):
    """Two actors of the other host train the learner; one beside it does so by shared memory."""
    head.up("--scale", "actor=0")
    play_far(far, 2)
    head.wait_status("the other host's actors", lambda s: s["actors"] == 2
                     and s["learner"].get("remote_streams") == 2)
    head.goes_on("by the other host's actors alone")
    for name in far.containers("actor"):
        state = inspect(name)
        require(list(state["NetworkSettings"]["Networks"]) == [far.network()],
                f"an actor of the other host is in {state['NetworkSettings']['Networks']}")
        require({mount.get("Name") for mount in state["Mounts"]} <= {None, f"{far.name}_regions"},
                f"an actor of the other host mounts {state['Mounts']}")
    head.up("--scale", "actor=1")
    head.wait_status("an actor beside the learner", lambda s: s["actors"] == 3
                     and s["learner"].get("remote_streams") == 2)
    status = head.status()
    print(f"   {status['env_steps']} steps, {status['learner']['updates']} updates")


def survives_a_kill(head, far):
    docker("kill", "-s", "KILL", far.containers("actor")[0])
    head.wait_status("the killed actor's slot to be free", lambda s: s["actors"] == 2
                     and s["learner"].get("remote_streams") == 1)
    play_far(far, 2)
    head.wait_status("an actor in its place", lambda s: s["actors"] == 3
                     and s["learner"].get("remote_streams") == 2)
    head.goes_on("after an actor of the other host was killed")


def refuses_bad_keys(_head, far):
    """An actor of the other host with keys that are wrong, missing or not its own to read."""
    keys = pathlib.Path(far.env["TETRION_KEYS"])
    secret, server = "/keys/actor.secret", "/keys/coordinator.pub"
    cases = (
            ("no keys", keys, ("", ""), TRY_AGAIN, "refuses peers without keys",
             "give --curve-key and --curve-server"),
            ("a key that is not allowed", keys.parent / "strange", (secret, "/server.pub"),
             TRY_AGAIN, "does not allow our key", "--curve-allow folder"),
            ("another server's key", keys, (secret, "/keys/learner.pub"), TRY_AGAIN,
             "ended the handshake: its key must be the one that"),
            ("a key that is not there", keys, ("/keys/actor-2.secret", server), USAGE,
             "/keys/actor-2.secret: No such file", "./tetrion keygen makes keys"),
            ("a public key in the secret's place", keys, ("/keys/actor.pub", server), USAGE,
             "/keys/actor.pub holds the other half of the keys", "give NAME.secret"))
    answers = at_once([functools.partial(far_actor, far, folder, *given)
                       for _, folder, given, *_ in cases])
    for (what, _, _, status, *parts), answer in zip(cases, answers, strict=True):
        expect(what, answer, status, *parts)
    by_root(keys, "/bin/chown", "0", secret)  # readable by root alone
    expect("a secret of another user", far_actor(far, keys, secret, server), USAGE,
           f"{secret}: Permission denied", "this user (uid 10001) must be able to read the file")
    by_root(keys, "/bin/chmod", "444", secret)
    expect("a secret open to all", far_actor(far, keys, secret, server), USAGE,
           "is open to other users (mode 0444): chmod 400")


def far_actor(far, folder, secret, server):
    """(exit status, output) of one more actor of the other host, with these keys."""
    keys = far.env["TETRION_KEYS"]
    head = f"tcp://{far.env['TETRION_HOST']}:{far.env['TETRION_CONTROL_PORT']}"
    variables = {"TETRION_COORDINATOR": head, "TETRION_ROWS": "tcp", "TETRION_GIVE_UP": GIVE_UP_S}
    if secret:
        variables |= {"TETRION_CURVE_KEY": secret, "TETRION_CURVE_SERVER": server}
    return far.run_by_hand(
        f"{IMAGES}/actor:local", variables=variables,
        volumes=(f"{folder}:/keys:ro", f"{keys}/coordinator.pub:/server.pub:ro"))


def leaves(head, far):
    """The other host's actors drain and the run goes on; then the rest drains."""
    far.stop("actor")
    head.wait_status("the other host's actors to have left", lambda s: s["actors"] == 1)
    head.goes_on("without the other host")
    head.stop("coordinator", "learner", "actor")
    print("  ", head.account())


def actors_on_another_host(project):
    """Keys on every connection, rows by TCP; a kill, bad keys, drains, the account."""
    project("stop")
    with made_keys() as folder:
        head, far = hosts(project, folder / "keys")
        complaints = []
        try:
            for part in (misses_no_key_in_silence, plays_by_tcp_alone, survives_a_kill,
                         refuses_bad_keys, leaves):
                start = time.monotonic()
                part(head, far)
                print(f"   {part.__name__}: {time.monotonic() - start:.1f} s", flush=True)
        finally:
            complaints = far.remove() + head.remove()
        if complaints:
            raise TestError("; ".join(complaints))


STEPS = (actors_on_another_host,)
