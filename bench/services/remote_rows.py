"""Rows of remote actors against plain ZeroMQ: over the loopback device and, where this process may
make one, over a veth pair between two network namespaces. remote_rows.py PROGRAM [--quick], PROGRAM
being bench_remote_rows."""

import contextlib
import os
import subprocess
import sys

from system import end_when_told

SPACE, HERE, THERE = f"tetrion-bench-{os.getpid()}", "10.213.71.1", "10.213.71.2"


def ip(*words):
    return subprocess.run(["ip", *words], check=False, capture_output=True, text=True)


@contextlib.contextmanager
def veth():
    """A namespace at the other end of a cable; why there is none, or an empty text."""
    cable, far = f"tb{os.getpid() % 100000}", f"tc{os.getpid() % 100000}"
    steps = (("netns", "add", SPACE),
             ("link", "add", cable, "type", "veth", "peer", "name", far, "netns", SPACE),
             ("addr", "add", f"{HERE}/30", "dev", cable), ("link", "set", cable, "up"),
             ("-n", SPACE, "addr", "add", f"{THERE}/30", "dev", far),
             ("-n", SPACE, "link", "set", far, "up"))
    try:
        problem = ""
        for step in steps:
            done = ip(*step)
            if done.returncode != 0:
                problem = done.stderr.strip() or f"ip {' '.join(step)} failed"
                break
        yield problem
    finally:
        ip("link", "del", cable)
        ip("netns", "del", SPACE)


def measure(program, learner, address, where, quick):
    with subprocess.Popen([*learner, program, "learner", f"tcp://{address}:0"],
                          stdout=subprocess.PIPE, text=True) as served:
        try:
            rows, rival = served.stdout.readline().split()
            subprocess.run([program, "actor", rows, rival, where, *quick], check=True, timeout=120)
        finally:
            served.kill()


def main(program, *quick):
    end_when_told()
    measure(program, [], "127.0.0.1", "loopback", quick)
    try:
        with veth() as problem:
            if problem:
                print(f"no veth pair can be made here: {problem}")
            else:
                measure(program, ["ip", "netns", "exec", SPACE], THERE, "veth", quick)
    except FileNotFoundError:
        print("no veth pair can be made here: ip (package iproute2) is not installed")


if __name__ == "__main__":
    main(*sys.argv[1:])
