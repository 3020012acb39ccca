"""Hosts on a network of their own: the test itself is in the middle, every other host hangs on it
by a cable that can be cut in one direction or both, or by one that delays, loses and reorders
packets.

Everything is kept by namespaces of the test's own and is gone with its processes. The slow cable is
a pair of TUN devices with this process between them: not every kernel has the netem queue.
"""

import ctypes
import fcntl
import heapq
import os
import pathlib
import random
import select
import signal
import struct
import subprocess
import threading
import time

CLONE_NEWNET, CLONE_NEWUSER = 0x40000000, 0x10000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454ca, 0x0001, 0x1000
PACKET_BYTES = 65536
MIDDLE = "10.77.0.1"  # the test's address to every host
LIBC = ctypes.CDLL(None, use_errno=True)


def command(*words):
    done = subprocess.run(list(map(str, words)), check=False, capture_output=True, text=True)
    assert done.returncode == 0, f"{' '.join(map(str, words))}: {done.stderr.strip()}"


def enter(pid):
    """Moves the calling thread into the network of a process."""
    with open(f"/proc/{pid}/ns/net", "rb") as network:
        assert LIBC.setns(network.fileno(), CLONE_NEWNET) == 0, os.strerror(ctypes.get_errno())


def problem():
    """Gives this process a network of its own; why that cannot be had, or an empty text."""
    uid, gid = os.getuid(), os.getgid()
    if LIBC.unshare(CLONE_NEWNET) != 0:
        if LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
            return "no network namespaces here: " + os.strerror(ctypes.get_errno())
        pathlib.Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        pathlib.Path("/proc/self/uid_map").write_text(f"0 {uid} 1", encoding="ascii")
        pathlib.Path("/proc/self/gid_map").write_text(f"0 {gid} 1", encoding="ascii")
    try:
        command("ip", "link", "set", "lo", "up")
        command("ip", "addr", "add", f"{MIDDLE}/32", "dev", "lo")
        command("nft", "add", "table", "inet", "faults")
        for chain in ("input", "output"):
            command("nft", "add", "chain", "inet", "faults", chain,
                    f"{{ type filter hook {chain} priority 0; }}")
        os.close(os.open("/dev/net/tun", os.O_RDWR))
    except FileNotFoundError as error:
        return f"{error.filename} is not there (packages iproute2 and nftables)"
    except (AssertionError, OSError) as error:
        return str(error)
    return ""


class Host:
    """A network namespace beside the test's. Its cable is a veth pair, or a Slow one."""

    count = 0

    def __init__(self, slow=None):
        Host.count += 1
        self.number, self.slow = Host.count, slow
        self.device = f"v{self.number}"
        self.middle, self.address = f"10.77.{self.number}.1", f"10.77.{self.number}.2"
        self.keeper = subprocess.Popen(["unshare", "--net", "sleep", "infinity"],
                                       preexec_fn=lambda: LIBC.prctl(1, signal.SIGKILL))
        ours, end = os.readlink("/proc/self/ns/net"), time.monotonic() + 30
        while os.readlink(f"/proc/{self.keeper.pid}/ns/net") == ours:
            assert time.monotonic() < end, "no namespace"
            time.sleep(0.01)
        self._lay_cable()

    def _lay_cable(self):
        if self.slow:
            self.slow.connect(self.device, self.keeper.pid)
        else:
            command("ip", "link", "add", self.device, "type", "veth", "peer", "name", "eth0",
                    "netns", self.keeper.pid)
        for where in ([], ["nsenter", "-t", str(self.keeper.pid), "-n"]):
            device = "eth0" if where else self.device
            address = self.address if where else self.middle
            command(*where, "ip", "addr", "add", f"{address}/24", "dev", device)
            command(*where, "ip", "link", "set", device, "up")
            command(*where, "ip", "link", "set", "lo", "up")
        self._find_middle()

    def _find_middle(self):
        command("nsenter", "-t", self.keeper.pid, "-n",
                "ip", "route", "replace", f"{MIDDLE}/32", "via", self.middle)

    def enter(self):
        """For a new process, ahead of its program."""
        enter(self.keeper.pid)

    def cut(self, incoming=True, outgoing=True):
        """From now on what the host says (incoming) or what it is told (outgoing) is lost."""
        if incoming:
            command("nft", "add", "rule", "inet", "faults", "input", "iifname", self.device, "drop")
        if outgoing:
            command("nft", "add", "rule", "inet", "faults", "output", "oifname", self.device,
                    "drop")

    def move(self):
        """The host's address changes; connections from the old one are dead and not told so."""
        inside = ["nsenter", "-t", str(self.keeper.pid), "-n"]
        old, last = self.address, int(self.address.rsplit(".", 1)[1])
        self.address = f"10.77.{self.number}.{last + 1}"
        command(*inside, "ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        command(*inside, "ip", "addr", "del", f"{old}/24", "dev", "eth0")
        if f"inet {self.address}" not in subprocess.run(  # a secondary address may go with it
                [*inside, "ip", "addr", "show", "eth0"], capture_output=True, text=True).stdout:
            command(*inside, "ip", "addr", "add", f"{self.address}/24", "dev", "eth0")
        self._find_middle()

    def close(self):
        self.keeper.kill()
        self.keeper.wait()
        if self.slow:
            self.slow.close()


def heal():
    """Mends all cut cables."""
    for chain in ("input", "output"):
        command("nft", "flush", "chain", "inet", "faults", chain)


class Slow:
    """A cable on which every packet takes delay +- jitter (so that packets overtake each other),
    and a share of them is lost. Counts both."""

    def __init__(self, delay_s, jitter_s, loss, seed=1):
        self.delay_s, self.jitter_s, self.loss = delay_s, jitter_s, loss
        self.carried, self.lost, self.overtaken = 0, 0, 0
        self._random = random.Random(seed)
        self._stop = threading.Event()

    def connect(self, device, other_pid):
        self._ends = [self._open(device)]
        mine = os.open("/proc/self/ns/net", os.O_RDONLY)
        enter(other_pid)
        self._ends.append(self._open("eth0"))
        LIBC.setns(mine, CLONE_NEWNET)
        os.close(mine)
        self._thread = threading.Thread(target=self._carry, daemon=True)
        self._thread.start()

    def _open(self, device):
        end = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(end, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TUN | IFF_NO_PI))
        return end

    def _carry(self):
        waiting, number, last_due = [], 0, 0.0
        while not self._stop.is_set():
            wait_s = min(0.1, max(0.0, waiting[0][0] - time.monotonic())) if waiting else 0.1
            for end in select.select(self._ends, [], [], wait_s)[0]:
                packet = os.read(end, PACKET_BYTES)
                if self._random.random() < self.loss:
                    self.lost += 1
                    continue
                due = (time.monotonic() + self.delay_s
                       + self._random.uniform(-self.jitter_s, self.jitter_s))
                self.overtaken += due < last_due
                last_due, number = due, number + 1
                other = self._ends[1 - self._ends.index(end)]
                heapq.heappush(waiting, (due, number, other, packet))
            while waiting and waiting[0][0] <= time.monotonic():
                _, _, other, packet = heapq.heappop(waiting)
                try:
                    os.write(other, packet)
                    self.carried += 1
                except OSError:
                    self.lost += 1  # the device is down or full

    def close(self):
        self._stop.set()
        self._thread.join()
        for end in self._ends:
            os.close(end)
