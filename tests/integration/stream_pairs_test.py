"""tetrion-stream against itself and against the Python peer, in every combination."""

import signal
import time

import harness
import stream_harness
from stream_harness import MIB, TRY_AGAIN, WEIGHTS

# Offsets of the region; docs/formats/region_v2.md.
COMMAND, RESPONSE, DOORBELL, HEAP, HEAP_DATA = 0x0, 0x8000, 0x10000, 0x10100, 0x11000
OBS, ACTION, HEADER = 0xFE000, 0xFF000, 32
BEATS = range(20, 28)  # of a ring header: both heartbeats


def blocks_signals(process):
    """Whether the program has come so far that it takes signals as requests. While it starts a
    thread all are blocked, also those that it leaves alone."""
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        blocked = int(next(line for line in status if line.startswith("SigBlk:")).split()[1], 16)
    return blocked >> (signal.SIGINT - 1) & 1 and not blocked >> (signal.SIGALRM - 1) & 1


def pairs(case):
    """(kernel starter, host starter) of every combination with one end of ours."""
    return [("ours, ours", case.kernel, case.host),
            ("ours, Python", case.kernel, lambda *options: case.peer("host", *options)),
            ("Python, ours", lambda *options: case.peer("kernel", *options), case.host)]


class Pairs(stream_harness.Case):
    def play(self, kernel_of, host_of, host_first, kernel_options, host_options, episodes=4,
             weights=WEIGHTS):
        """(kernel's summary, host's summary) of some episodes by the uploaded linear policy."""
        self.region.unlink(missing_ok=True)
        self.region.write_bytes(b"")
        if kernel_of != self.kernel:  # the Python kernel maps what is there
            self.region.write_bytes(bytes(MIB))
        kernel_options = ["--episodes", episodes, *kernel_options]
        host_options = ["--seed", 1, "--weights", weights, *host_options]
        if host_first:
            host = host_of(*host_options)
            kernel = kernel_of(*kernel_options)
        else:
            kernel = kernel_of(*kernel_options)
            host = host_of(*host_options)
        return kernel.finish(), host.end()

    def check(self, kernel, host, streamed, episodes=4):
        self.assertEqual(kernel["episodes"], episodes)
        self.assertEqual(host["episodes"], episodes)
        self.assertEqual(kernel["steps"], host["steps"])
        self.assertEqual(kernel["seq_errors"] + host["seq_errors"], 0)
        self.assertEqual(kernel["errors"] + host["errors"], 0)
        self.assertAlmostEqual(kernel["mean_return"], kernel["steps"] / episodes, 3)
        self.assertAlmostEqual(host["mean_return"], kernel["mean_return"], 3)
        self.assertEqual(bool(kernel["streamed"]), streamed)
        self.assertGreater(host.get("steps_per_s", 1), 0)
        code, text = self.inspect()
        self.assertEqual(code, 0, text)
        self.assertIn("sound", text)

    def test_streamed_episodes_in_both_start_orders(self):
        for name, kernel_of, host_of in pairs(self):
            for host_first in (False, True):
                with self.subTest(name, host_first=host_first):
                    self.check(*self.play(kernel_of, host_of, host_first, [], []), True)

    def test_every_combination_plays_the_same_game(self):
        played = {}
        for name, kernel_of, host_of in pairs(self):
            for streamed in (True, False):
                options = [] if streamed else \
                    ["--no-stream" if kernel_of == self.kernel else "--fallback"]
                kernel, _ = self.play(kernel_of, host_of, True, options, [], episodes=6,
                                      weights="0,0,1,0")
                played[name, streamed] = (kernel["steps"], kernel["mean_return"])
        self.assertEqual(len(set(played.values())), 1, played)
        self.assertNotIn((3000, 500), played.values(), "a policy that falls tells more")

    def test_the_kernel_declines_to_stream(self):
        for name, kernel_of, host_of in pairs(self):
            declined = "--no-stream" if kernel_of == self.kernel else "--fallback"
            for host_first in (False, True):
                with self.subTest(name, host_first=host_first):
                    self.check(*self.play(kernel_of, host_of, host_first, [declined], []), False)

    def test_the_host_declines_to_stream(self):
        for name, kernel_of, host_of in pairs(self):
            with self.subTest(name):
                declined = "--no-stream" if host_of == self.host else "--fallback"
                self.check(*self.play(kernel_of, host_of, True, [], [declined]), False)

    def test_a_peer_without_heartbeats_is_judged_by_its_indices(self):
        silent = "--leave-heartbeats-zero"
        for (name, kernel_of, host_of), kernel_options, host_options in zip(
                pairs(self)[1:], ([], [silent]), ([silent], []), strict=True):
            with self.subTest(name):
                self.check(*self.play(kernel_of, host_of, True, kernel_options, host_options),
                           True)

    def test_a_host_that_is_busy_for_now_is_asked_again(self):
        def host_of(*options):
            return self.peer("host", "--busy-resets", 3, *options)
        kernel, host = self.play(self.kernel, host_of, True, [], [])
        self.check(kernel, host, True)
        self.assertGreaterEqual(kernel["commands"], kernel["resets"] + 3)

    def test_a_busy_host_does_not_keep_the_kernel_from_ending(self):
        kernel = self.kernel("--stay")
        host = self.peer("host", "--busy-resets", 1_000_000, "--weights", WEIGHTS)
        harness.wait_until("it was asked", lambda: self.region.exists() and
                           self.region.stat().st_size > 0 and self.word(COMMAND + 4) > 2)
        self.assertEqual(kernel.end()["end"], "stopped")
        host.kill()

    def test_a_host_that_answers_ping_with_a_constant(self):
        def host_of(*options):
            return self.peer("host", "--pong", *options)
        for host_first in (False, True):
            for options in ([], ["--no-stream"]):
                with self.subTest(host_first=host_first, options=options):
                    self.check(*self.play(self.kernel, host_of, host_first, options, []),
                               not options)
        # A kernel that adopts what another has left, commands in the ring included.
        self.kernel("--wait", 0.2, "--episodes", 1).fail(TRY_AGAIN, "host")
        host = host_of("--weights", WEIGHTS)
        self.assertEqual(self.kernel("--episodes", 3).finish()["episodes"], 3)
        self.assertEqual(host.end()["seq_errors"], 0)

    def test_a_peer_that_zeroes_a_word_before_it_stores_it(self):
        # 0.2 s of every run with a word at 0: eight runs in a row see it at every index.
        for name, kernel_of, host_of in pairs(self)[1:]:
            for seed in range(4):
                with self.subTest(name, seed=seed):
                    clumsy = ["--clumsy-words"]
                    self.check(*self.play(
                        kernel_of, host_of, True, clumsy if kernel_of != self.kernel else [],
                        [*(clumsy if host_of != self.host else []), "--seed", seed]), True)

    def test_a_region_of_two_mib(self):
        host = self.host("--weights", WEIGHTS)
        self.assertEqual(self.kernel("--size", 2, "--episodes", 3).finish()["episodes"], 3)
        host.end()
        self.assertEqual(self.region.stat().st_size, 2 * MIB)
        self.assertEqual(self.word(0x100000), 0x5354524D)
        self.assertEqual(self.word(0x101000), 0x5354524D)
        self.assertEqual(self.word(0xFE000), 0)
        # Either end may be Python's there as well.
        host = self.host("--weights", WEIGHTS)
        self.assertEqual(self.peer("kernel", "--episodes", 3).finish()["streamed"], 1)
        host.end()
        host = self.peer("host", "--weights", WEIGHTS)
        self.assertEqual(self.kernel("--episodes", 3).finish()["streamed"], True)
        host.end()

    def test_a_region_of_a_program_with_a_larger_heap(self):
        host = self.host("--weights", WEIGHTS)
        self.kernel("--episodes", 1).finish()
        host.end()
        free = self.word(HEAP + 12)
        self.poke(HEAP + 8, 15168)
        self.poke(HEAP + 12, free + 15168 - 14080)
        for option in ([], ["--no-stream"]):
            code, text = self.inspect()
            self.assertEqual(code, 0, text)
            self.assertIn("blocks 15168", text)
            host = self.host("--weights", WEIGHTS)
            self.assertEqual(self.kernel("--episodes", 2, *option).finish()["episodes"], 2)
            self.assertEqual(host.end()["seq_errors"], 0)

    def test_kernels_come_and_go_while_the_host_stays(self):
        host = self.host("--stay", "--weights", WEIGHTS)
        for epoch in range(1, 6):
            kernel = self.kernel("--episodes", 2).finish()
            self.assertEqual((kernel["episodes"], kernel["epoch"]), (2, epoch))
            self.assertEqual(kernel["adopted"], epoch > 1)
        self.assertEqual(host.end()["episodes"], 10)

    def test_either_end_may_start_first_on_a_region_that_is_left_over(self):
        for host_of in (self.host, lambda *options: self.peer("host", *options)):
            self.play(self.kernel, host_of, True, [], [])
            host = self.host("--wait", 100, "--peer-timeout", 50, "--weights", WEIGHTS)
            time.sleep(0.5)  # many peer time-outs: none may count before a kernel has come
            self.assertTrue(host.alive(), host.said)
            self.assertEqual(self.kernel("--episodes", 2).finish()["episodes"], 2)
            self.assertEqual((host.finish()["end"], host.summary()["episodes"]), ("ok", 2))

    def test_every_policy_plays(self):
        host = self.host("--stay")
        random = self.kernel("--policy", "random", "--episodes", 30).finish()
        self.assertTrue(5 < random["mean_return"] < 100, random)
        again = self.kernel("--weights=-1,-1,-1,-1", "--episodes", 5).finish()
        self.assertLess(again["mean_return"], 50)
        linear = self.kernel("--episodes", 5).finish()
        self.assertGreater(linear["mean_return"], 300)
        host.end()

    def test_both_ends_end_in_good_order_when_asked(self):
        host, kernel = self.host("--stay"), self.kernel()
        harness.wait_until("the region", lambda: self.region.exists()
                           and self.region.stat().st_size == MIB)
        self.wait_for_steps()
        self.assertEqual(kernel.end()["end"], "stopped")
        self.assertEqual(host.end()["end"], "stopped")
        host = self.host()  # a host that waits for its kernel in vain
        harness.wait_until("it listens", lambda: blocks_signals(host.process))
        host.process.send_signal(signal.SIGINT)
        self.assertEqual(host.wait()[0], 0)


class Bytes(stream_harness.Case):
    """After the same session both implementations leave the same bytes where the format fixes
    them."""

    def session(self, host_of, fallback):
        self.region.unlink(missing_ok=True)
        self.region.write_bytes(bytes(MIB))
        host = host_of("--seed", 3, "--weights", WEIGHTS)
        options = ["--send", "0x1:77,0x2:5,0x999:1,0x101:0", "--episodes", 3]
        self.peer("kernel", *options, *(["--fallback"] if fallback else [])).finish()
        host.end()
        return bytearray(self.region.read_bytes())

    def masked(self, data):
        """Without what depends on time and on who waited when."""
        for ring in (COMMAND, RESPONSE, OBS, ACTION):
            for i in BEATS:
                data[ring + i] = 0
        for ring in (COMMAND, RESPONSE):
            for slot in range(1024):
                at = ring + HEADER + 16 * slot + 8
                data[at:at + 8] = bytes(8)  # timestamps
        data[DOORBELL + 40:DOORBELL + 56] = bytes(16)  # futex words
        return data

    def test_hosts_leave_the_same_region(self):
        for fallback in (False, True):
            with self.subTest(fallback=fallback):
                ours = self.masked(self.session(self.host, fallback))
                python = self.masked(self.session(
                    lambda *options: self.peer("host", *options), fallback))
                differ = [at for at in range(0, MIB, 4) if ours[at:at + 4] != python[at:at + 4]]
                self.assertEqual([hex(at) for at in differ[:8]], [])
                self.assertNotEqual(ours[HEAP_DATA:HEAP_DATA + 64], bytes(64))

    def test_kernels_leave_the_same_region(self):
        found = []
        for kernel_of in (self.kernel, lambda *options: self.peer("kernel", *options)):
            self.region.unlink(missing_ok=True)
            self.region.write_bytes(bytes(MIB))
            host = self.peer("host", "--seed", 3, "--weights", WEIGHTS)
            kernel = kernel_of("--episodes", 3)
            kernel.finish()
            host.end()
            data = self.masked(bytearray(self.region.read_bytes()))
            # Our kernel looks for the host with a PING first: the command rings differ by that.
            data[0:0x10000] = bytes(0x10000)
            data[DOORBELL + 8:DOORBELL + 40] = bytes(32)
            found.append(data)
        differ = [at for at in range(0, MIB, 4) if found[0][at:at + 4] != found[1][at:at + 4]]
        self.assertEqual([hex(at) for at in differ[:8]], [])


if __name__ == "__main__":
    stream_harness.main()
