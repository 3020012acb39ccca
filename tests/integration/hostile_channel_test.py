"""Services whose channels strangers reach: what they say harms no member.

Before: one message of parts without end took gigabytes of memory; connections beyond the limit of
open files ended the coordinator with the next member that came or left; a name that is not UTF-8
ended it for good, also every later --resume; and ZeroMQ aborted the coordinator when a peer said
much, asked for a sign of life and hung up, if a high-water mark had stopped it from reading.
"""

import json
import os
import re
import resource
import signal
import threading

import harness
import zmtp

MOST_MIB = 700
OPEN_FILES, STRANGERS = 300, 400
PART = zmtp.frame(bytes(60_000), more=True)
LEAVE_AFTER = 4 * 2 ** 30  # bytes said by a peer whose message never ends


class HostileChannel(harness.Case):
    def start(self, before=None):
        """A coordinator alone, on a port of its own."""
        run = self.new_run()
        run.start_coordinator(before=before, bind="tcp://127.0.0.1:0")
        run.wait_for("the coordinator", lambda _: True)
        return run

    def control(self, run):
        return json.loads((run.folder / "endpoints.json").read_text())["control"]

    def expect_honest_run(self, run):
        """Learner and actor come, play, and everything adds up."""
        run.start_learner()
        run.start_actor()
        run.expect_progress()
        run.finish_and_check()

    def metric(self, run, name):
        endpoints = json.loads((run.folder / "endpoints.json").read_text())
        text = harness.get(endpoints["http"]["coordinator"], "/metrics")[1]
        return sum(float(line.split()[-1]) for line in text.splitlines()
                   if line.startswith(name))

    def peak_mib(self, run, service="coordinator"):
        with open(f"/proc/{run.pid_of(service)}/status", encoding="ascii") as status:
            return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) // 1024

    def say_without_end(self, address, said):
        """One message of parts without end; comes back when it is hung up on."""
        while said[0] < LEAVE_AFTER:
            try:
                with zmtp.dealer(address) as peer:
                    while said[0] < LEAVE_AFTER:
                        peer.sendall(PART)
                        said[0] += len(PART)
            except (OSError, AssertionError):
                said[1] += 1

    def test_a_message_without_end_is_cut_off_and_the_next_member_is_served(self):
        run = self.start()
        said = [0, 0]  # bytes, hang-ups
        thread = threading.Thread(target=self.say_without_end, args=(self.control(run), said))
        thread.start()
        harness.wait_until("it is cut off",
                           lambda: self.metric(run, "tetrion_coordinator_rebinds_total") >= 1)
        said[0] = LEAVE_AFTER
        thread.join()
        self.assertLess(self.peak_mib(run), MOST_MIB)
        self.assertIn("closing every connection", run.log("coordinator"))
        self.expect_honest_run(run)

    def test_rows_without_end_are_cut_off_and_honest_rows_go_on(self):
        run = self.start()
        run.learner_options = {"rows_bind": "tcp://127.0.0.1:0"}
        run.start_learner()
        run.start_actor(rows="tcp")
        run.expect_progress()
        rows = re.search(r"send their rows to (tcp://[^\s,]+)", run.log("learner"))
        said = [0, 0]
        thread = threading.Thread(target=self.say_without_end, args=(rows.group(1), said))
        thread.start()
        harness.wait_until("it is hung up on", lambda: "hanging up on" in run.log("learner"))
        said[0] = LEAVE_AFTER
        thread.join()
        self.assertLess(self.peak_mib(run, "learner"), MOST_MIB)
        run.expect_progress()
        self.assertNotIn("silent", run.log("learner"), "the honest actor's stream goes on")
        run.finish_and_check()

    def test_peers_that_hang_up_behind_full_queues(self):
        run = self.new_run().start_by_hand()
        run.expect_progress()
        names = [b""] * 20 + [b"one name for all"] * 20
        strangers = [zmtp.dealer(self.control(run), name) for name in names]
        run.signal("coordinator", signal.SIGSTOP)
        flood = zmtp.frame(b"x" * 20) * 100 + zmtp.PING
        for peer in strangers:
            peer.setblocking(False)
            try:
                while peer.send(flood):
                    pass
            except BlockingIOError:
                peer.close()
        run.signal("coordinator", signal.SIGCONT)
        run.expect_progress()
        run.finish_and_check()

    def test_claims_and_garbage_end_their_connection_only(self):
        run = self.start()
        address = self.control(run)
        with zmtp.dealer(address) as peer:
            peer.sendall(zmtp.claim(2 << 30))
            self.assertTrue(zmtp.hung_up(peer), "a part of 2 GiB is refused by its head")
        with zmtp.connect(address) as peer:
            peer.sendall(os.urandom(4096))
            self.assertTrue(zmtp.hung_up(peer), "what is no greeting is hung up on")
        with zmtp.dealer(address) as peer:
            peer.sendall(b"".join(zmtp.frame(os.urandom(n % 4000)) for n in range(2000)))
            harness.wait_until("all of it is counted",
                               lambda: self.malformed(run) >= 2000)
        self.assertLess(self.peak_mib(run), 200)
        self.expect_honest_run(run)

    def malformed(self, run):
        endpoints = json.loads((run.folder / "endpoints.json").read_text())
        text = harness.get(endpoints["http"]["coordinator"], "/metrics")[1]
        return sum(float(line.split()[-1]) for line in text.splitlines()
                   if "malformed" in line and not line.startswith("#"))

    def test_more_connections_than_open_files_are_survived_by_the_run(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, OPEN_FILES))
        run = self.start(before=limit)
        run.start_learner()
        run.start_actor()
        run.start_actor("actor-1")
        run.wait_for("both actors", lambda s: s["actors"] == 2)
        run.expect_progress()
        address = self.control(run)
        strangers = [zmtp.connect(address) for _ in range(STRANGERS)]
        run.signal("actor-1", signal.SIGTERM)  # the list of members has to be written anew
        self.assertEqual(run.wait_exit("actor-1"), 0)
        self.assertIsNotNone(run.pid_of("coordinator"))
        for peer in strangers:
            peer.close()
        run.wait_for("one actor", lambda s: s["actors"] == 1)
        endpoints = run.folder / "endpoints.json"
        harness.wait_until("the list is right",
                           lambda: "actor-1" not in json.loads(endpoints.read_text())["http"])
        run.start_actor("actor-2")
        run.wait_for("a newcomer", lambda s: s["actors"] == 2)
        run.expect_progress()
        run.finish_and_check()


class Names(harness.Case):
    def test_one_that_is_no_text_is_a_usage_error(self):
        run = self.new_run()
        run.start_coordinator()
        run.wait_for("the coordinator", lambda _: True)
        code, said = self.call("tetrion-actor", "--run-folder", run.folder, "--name",
                               os.fsdecode(b"caf\xe9"))
        self.assertEqual(code, 2, said)
        self.assertRegex(said, r"error: .*name")
        run.drain()

    def test_no_member_hides_another_or_the_coordinator(self):
        run = self.new_run().start_by_hand()
        run.start_actor("actor-1", called="coordinator")
        run.start_actor("actor-2", called="actor-0")
        run.wait_for("all three", lambda s: s["actors"] == 3)
        def listed():
            http = json.loads((run.folder / "endpoints.json").read_text())["http"]
            return http if len(http) == 5 else None
        http = harness.wait_until("all five are listed", listed)
        self.assertEqual(len(set(http.values())), 5, http)
        self.assertEqual(sum(name.startswith("coordinator") for name in http), 2)
        self.assertEqual(sum(name.startswith("actor-0") for name in http), 2)
        run.expect_progress()  # /status of the entry "coordinator" is the coordinator's
        run.finish_and_check()


if __name__ == "__main__":
    harness.main()
