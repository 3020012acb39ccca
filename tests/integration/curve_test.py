"""A run whose channels have keys: who has the right ones plays, all others are refused with a
sentence that says what to mend, and cost the run nothing.
"""

import json
import pathlib
import re
import socket
import threading

import harness
import keys
import zmtp

USAGE, TRY_AGAIN = 2, 75
BAD_CONNECTIONS = 1000


def control(run):
    return json.loads((run.folder / "endpoints.json").read_text())["control"]


def handshakes(run, *results, of="coordinator"):
    """How many connections ended so, all in all; 0 until the member's address is known."""
    endpoints = json.loads((run.folder / "endpoints.json").read_text())
    if of not in endpoints["http"]:
        return 0
    text = harness.get(endpoints["http"][of], "/metrics")[1]
    found = dict(re.findall(r'tetrion_link_handshakes_total\{.*result="(\w+)".*\} (\d+)', text))
    return sum(int(found.get(result, 0)) for result in results)


class Recorder:
    """Stands between one client and the coordinator and keeps what the client says."""

    def __init__(self, address):
        self.said = b""
        self._inner = zmtp.connect(address)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"tcp://127.0.0.1:{self._listener.getsockname()[1]}"
        self._ends = [self._inner, self._listener]
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        outer, _ = self._listener.accept()
        self._ends.append(outer)
        threading.Thread(target=self._pass, args=(self._inner, outer), daemon=True).start()
        self._pass(outer, self._inner, keep=True)

    def close(self):
        for end in self._ends:
            end.close()

    def _pass(self, source, sink, keep=False):
        source.settimeout(None)
        try:
            while data := source.recv(65536):
                if keep:
                    self.said += data
                sink.sendall(data)
        except OSError:
            pass


class Curve(harness.Case):
    def start(self, actors=1):
        run = self.new_run()
        self.keys = keys.Keys(self, self.base)
        run.start_coordinator(bind="tcp://127.0.0.1:0", **self.keys.server())
        run.wait_for("the coordinator", lambda _: True)
        run.start_learner(**self.keys.client("learner"))
        for i in range(actors):
            run.start_actor(f"actor-{i}", **self.keys.client("actor"))
        return run

    def expect_refused(self, run, name, says, **options):
        """A second actor that cannot come in gives up; the others go on."""
        run.start_actor(name, give_up=3, **options)
        self.assertEqual(run.wait_exit(name), TRY_AGAIN, run.log(name))
        run.killed.add(name)
        self.assertRegex(run.log(name), rf"error: no coordinator for 3 s \(.*{says}")
        run.expect_progress()

    def test_a_run_with_keys_plays_and_shows_no_secret(self):
        run = self.start(actors=2)
        run.expect_progress()
        # The second actor may begin late on a busy machine.
        harness.wait_until("three members were let in", lambda: handshakes(run, "accepted") >= 3)
        commands = b"".join(pathlib.Path(f"/proc/{process.pid}/cmdline").read_bytes()
                            for process in run.processes.values())
        run.finish_and_check()
        written = commands + b"".join(path.read_bytes() for path in self.base.rglob("*")
                                      if path.is_file() and path.suffix != ".secret")
        for secret in self.keys.texts():
            self.assertNotIn(secret.encode(), written)

    def test_the_load_of_a_coordinator_has_keys_as_a_member_has(self):
        run = self.new_run()
        self.keys = keys.Keys(self, self.base)
        run.start_coordinator(bind="tcp://127.0.0.1:0", **self.keys.server())
        run.wait_for("the coordinator", lambda _: True)
        load = ["tetrion-load", "--run-folder", run.folder, "--sessions", "3"]
        code, said = self.call(*load, "--seconds", "15", "--curve-key", self.keys.secret("actor"),
                               "--curve-server", self.keys.public("coordinator"))
        self.assertEqual(code, 0, said)
        self.assertIn('"registered": 3', said)
        code, said = self.call(*load, "--seconds", "2")
        self.assertEqual(code, TRY_AGAIN, said)
        self.assertRegex(said, r"no session has registered.*give --curve-key and --curve-server")
        run.drain()

    def test_wrong_keys_end_with_a_sentence_and_the_others_go_on(self):
        run = self.start()
        run.expect_progress()
        self.expect_refused(run, "actor-1", r"does not allow our key .*--curve-allow",
                            **self.keys.client("stranger"))
        self.expect_refused(run, "actor-2", r"--curve-key and --curve-server")
        self.expect_refused(run, "actor-3", r"the one that --curve-server names",
                            **self.keys.client("actor", server="stranger"))
        self.assertEqual(run.status()["actors"], 1)
        self.assertGreaterEqual(handshakes(run, "unknown_key"), 1)
        self.assertGreaterEqual(handshakes(run, "wrong_key"), 1)
        self.assertGreaterEqual(handshakes(run, "no_keys", "broken"), 1)
        run.finish_and_check()

    def test_keys_come_and_go_while_the_run_goes_on(self):
        run = self.start()
        run.start_actor("actor-1", **self.keys.client("stranger"))
        harness.wait_until("it is refused",
                           lambda: "does not allow our key" in run.log("actor-1"))
        (self.keys.allowed / "broken.pub").write_text("no key\n")
        self.keys.allow("stranger")
        run.wait_for("it is let in", lambda s: s["actors"] == 2)
        self.assertRegex(run.log("coordinator"), r"ignored: .*broken\.pub holds no public key")
        run.expect_progress()
        self.keys.forbid("stranger")
        run.kill("actor-1")
        self.expect_refused(run, "actor-2", r"does not allow our key",
                            **self.keys.client("stranger"))
        run.finish_and_check()

    def test_a_thousand_bad_connections_starve_no_member(self):
        run = self.start()
        run.expect_progress()
        address, refused = control(run), ("no_keys", "wrong_key", "broken")
        before, peers = handshakes(run, *refused), []
        for i in range(BAD_CONNECTIONS):
            peer = zmtp.connect(address)
            greeting = zmtp.GREETING
            if i % 2:  # CURVE, and then a HELLO of zeros
                greeting = greeting.replace(b"NULL\0", b"CURVE")
            peer.sendall(greeting + (zmtp.frame(b"\x05HELLO" + bytes(194)) if i % 4 == 3 else b""))
            peers.append(peer)
            if len(peers) == 100:
                peers.pop(0).close()
        run.expect_progress()
        for peer in peers:
            peer.close()
        harness.wait_until("all are refused",
                           lambda: handshakes(run, *refused) >= before + BAD_CONNECTIONS)
        lines = run.log("coordinator").count("refused since the last such line")
        self.assertLess(lines, BAD_CONNECTIONS // 10)
        run.finish_and_check()

    def test_a_recorded_connection_cannot_be_replayed(self):
        run = self.start()
        recorder = Recorder(control(run))
        self.addCleanup(recorder.close)
        run.start_process("actor-1", "tetrion-actor", [
            "--coordinator", recorder.address, "--name", "actor-1",
            *harness.flags(self.keys.client("actor"))])
        run.wait_for("it plays through the recorder", lambda s: s["actors"] == 2)
        run.expect_progress()
        refused = ("wrong_key", "broken")
        before, accepted = handshakes(run, *refused), handshakes(run, "accepted")
        with zmtp.connect(control(run)) as peer:
            peer.sendall(recorder.said)
            self.assertTrue(zmtp.hung_up(peer))
        harness.wait_until("it is counted", lambda: handshakes(run, *refused) > before)
        self.assertEqual(handshakes(run, "accepted"), accepted)
        run.expect_progress()
        run.finish_and_check()

    def start_remote(self, actors=1):
        """Rows by TCP; the learner lets in fewer keys than the coordinator."""
        run = self.new_run()
        self.keys = keys.Keys(self, self.base, allowed=("learner", "actor", "stranger"))
        self.rows_allowed = self.base / "rows-allowed"
        self.rows_allowed.mkdir()
        self.keys.allow("actor", self.rows_allowed)
        run.start_coordinator(bind="tcp://127.0.0.1:0", **self.keys.server())
        run.wait_for("the coordinator", lambda _: True)
        run.learner_options = {"rows_bind": "tcp://127.0.0.1:0", "curve_allow": self.rows_allowed,
                               **self.keys.client("learner")}
        run.start_learner()
        for i in range(actors):
            run.start_actor(f"actor-{i}", rows="tcp", **self.keys.client("actor"))
        return run

    def test_remote_rows_are_encrypted_and_shared_memory_is_not_used(self):
        run = self.start_remote(actors=2)
        run.expect_progress(episodes=200)
        self.assertEqual(run.rings(), [])
        harness.wait_until("both are counted",
                           lambda: handshakes(run, "accepted", of="learner") >= 2)
        self.assertRegex(run.log("actor-0"), r"rows go to the learner at \S+, encrypted")
        run.finish_and_check()

    def test_actor_that_the_learner_does_not_know_gets_no_row_through_and_says_so(self):
        run = self.start_remote()
        run.expect_progress()
        run.start_actor("actor-1", rows="tcp", drain_timeout=1, **self.keys.client("stranger"))
        harness.wait_until("it says so", lambda: re.search(
            r"no rows get through: .*does not allow our key .*--curve-allow", run.log("actor-1")))
        harness.wait_until("it is counted",
                           lambda: handshakes(run, "unknown_key", of="learner") >= 1)
        run.expect_progress()
        harness.wait_until("none got through", lambda: self.rows_of(run, "actor-1") == 0)
        self.keys.allow("stranger", self.rows_allowed)
        run.wait_for("it plays once it is allowed", lambda _: self.rows_of(run, "actor-1"))
        run.finish_and_check()

    def rows_of(self, run, name):
        """Sent so far; None while the coordinator has not written where its figures are."""
        endpoints = json.loads((run.folder / "endpoints.json").read_text())
        if name not in endpoints["http"]:
            return None
        text = harness.get(endpoints["http"][name], "/metrics")[1]
        return int(re.search(r"^tetrion_courier_rows_total (\d+)", text, re.MULTILINE).group(1))

    def test_learner_that_comes_back_with_another_key_is_found(self):
        run = self.start_remote()
        run.expect_progress()
        run.learner_options.update(self.keys.client("stranger"))
        run.replace_learner()
        run.finish_and_check()

    def expect_usage_error(self, says, *options):
        run = f"--run=y --runs-dir={self.base / 'runs'} --shm-dir={self.base / 'shm'}".split()
        code, said = self.call("tetrion-coordinator", *run, *options)
        self.assertEqual(code, USAGE, said)
        self.assertRegex(said, says)
        self.assertFalse((self.base / "runs" / "y").exists())

    def test_bad_files_and_open_addresses_are_refused_in_one_sentence(self):
        self.keys = keys.Keys(self, self.base)
        secret, allow = self.keys.secret("coordinator"), f"--curve-allow={self.keys.allowed}"
        self.expect_usage_error(r"open to other machines.*\./tetrion keygen",
                                "--bind=tcp://0.0.0.0:0")
        self.expect_usage_error(r"--curve-allow needs --curve-key", allow)
        self.expect_usage_error(r"none\.secret: No such file", f"--curve-key={secret.parent}/none"
                                ".secret", allow)
        self.expect_usage_error(r"cannot read the folder of allowed keys", f"--curve-key={secret}",
                                f"--curve-allow={self.base}/none")
        self.expect_usage_error(r"the other half.*NAME\.secret",
                                f"--curve-key={self.narrow(self.keys.public('learner'))}", allow)
        secret.chmod(0o444)
        self.expect_usage_error(r"open to other users \(mode 0444\): chmod 400",
                                f"--curve-key={secret}", allow)

    def narrow(self, path):
        path.chmod(0o600)
        return path


if __name__ == "__main__":
    harness.main()
