"""Two programs and one region: starts tetrion-stream and the Python peer in either role.

    class Streams(stream_harness.Case):
        def test_something(self):
            host = self.host()
            kernel = self.kernel("--episodes", 5)
            self.assertEqual(kernel.finish()["episodes"], 5)
            self.assertEqual(host.end()["seq_errors"], 0)

A test waits with a generous deadline and never decides by time. Standard library only.
"""

import json
import pathlib
import signal
import struct
import subprocess
import sys

import harness

PEER = pathlib.Path(__file__).resolve().parents[1] / "support" / "region_v2_peer.py"
MIB = 1 << 20
WEIGHTS = "0.1,0.5,2,2"
USAGE, TRY_AGAIN, CONFIG = 2, 75, 78

main = harness.main


class End:
    """A running end; prints what it said when a test wants something else of it."""

    def __init__(self, name, command):
        self.name = name
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        preexec_fn=harness.die_with_parent)
        self.said = ""

    def wait(self, deadline_s=4 * harness.DEADLINE_S):
        """(exit code, everything said)."""
        try:
            out, err = self.process.communicate(timeout=deadline_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.name} does not end") from None
        self.said = out + err
        return self.process.returncode, self.said

    def summary(self):
        """The JSON line, after wait()."""
        lines = [line for line in self.said.splitlines() if line.startswith("{")]
        assert len(lines) == 1, f"{self.name} said: {self.said}"
        return json.loads(lines[0])

    def finish(self):
        """Waits for a good end; the summary."""
        code, said = self.wait()
        assert code == 0, f"{self.name} ended with {code}: {said}"
        return self.summary()

    def fail(self, expected_code, *words):
        """Waits for a bad end that says all the words; the summary if there is one."""
        code, said = self.wait()
        assert code == expected_code, f"{self.name} ended with {code}: {said}"
        for word in words:
            assert word in said, f"{self.name} does not say {word!r}: {said}"
        return self.summary() if "{" in said else None

    def end(self, expected_code=0):
        """SIGTERM; the summary of a good end."""
        self.process.send_signal(signal.SIGTERM)
        code, said = self.wait()
        assert code == expected_code, f"{self.name} ended with {code}: {said}"
        return self.summary()

    def kill(self):
        self.process.kill()
        self.process.communicate()

    def alive(self):
        return self.process.poll() is None


class Case(harness.Case):
    """A test with a region of its own at self.region; kills what is left."""

    def setUp(self):
        self.region = self.base / "region"
        self.ends = []

    def tearDown(self):
        for end in self.ends:
            if end.alive():
                end.kill()
                print(f"{end.name} was still there", file=sys.stderr)

    def start(self, name, *command):
        self.ends.append(End(name, command))
        return self.ends[-1]

    def stream(self, role, *options):
        return self.start(f"tetrion-stream {role}", harness.BIN / "tetrion-stream", role,
                          "--region", self.region, *options)

    def peer(self, role, *options):
        return self.start(f"Python {role}", "/usr/bin/python3", "-B", PEER, role, self.region,
                          *options)

    def kernel(self, *options):
        return self.stream("kernel", *options)

    def host(self, *options):
        return self.stream("host", *options)

    def inspect(self, *options):
        """(exit code, text) of a look at the region."""
        return self.call("tetrion-stream", "inspect", "--region", self.region, *options)

    # Looking at the region from outside.

    def word(self, at):
        with open(self.region, "rb") as file:
            file.seek(at)
            return struct.unpack("<I", file.read(4))[0]

    def poke(self, at, value, form="<I"):
        with open(self.region, "r+b") as file:
            file.seek(at)
            file.write(struct.pack(form, value))

    def heads(self):
        """Of OBS and ACTION ring: what moves while an episode is streamed."""
        return self.word(0xFE004), self.word(0xFF004)

    def wait_for_steps(self):
        """Until the stream has moved on."""
        before = self.heads()
        harness.wait_until("steps are streamed", lambda: self.heads() != before)
