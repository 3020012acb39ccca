"""kill -9 of either end at random points: the other notices, a new one goes on in the same region.

The points are drawn from a fixed seed; where in its work a process is then depends on the machine,
and every outcome must be good."""

import random
import time

import harness
import stream_harness
from stream_harness import MIB, WEIGHTS

ROUNDS = 60  # each kills one end of ours
MIXED_ROUNDS = 12  # each of the Python kinds
QUICK = ["--stay", "--peer-timeout", 500]


class Kills(stream_harness.Case):
    def setUp(self):
        super().setUp()
        self.random = random.Random(20)

    def pause(self):
        """A random while, from nothing to the middle of an episode or of a start."""
        time.sleep(self.random.choice((0, 0.001, 0.01)) * self.random.random())

    def expect_sound(self):
        code, text = self.inspect()
        self.assertEqual(code, 0, text)

    def test_either_end_is_killed_and_comes_back(self):
        kernel, host = self.kernel(*QUICK), self.host(*QUICK, "--weights", WEIGHTS)
        harness.wait_until("the region", lambda: self.region.exists()
                           and self.region.stat().st_size == MIB)
        for _ in range(ROUNDS):
            self.wait_for_steps()
            self.pause()
            if self.random.random() < 0.5:
                kernel.kill()
                self.pause()
                kernel = self.kernel(*QUICK)
            else:
                host.kill()
                self.pause()
                host = self.host(*QUICK, "--weights", WEIGHTS)
            self.assertTrue(kernel.alive() and host.alive(), kernel.said + host.said)
        self.wait_for_steps()
        summary = kernel.end()
        self.assertEqual(summary["end"], "stopped")
        self.assertEqual(host.end()["end"], "stopped")
        self.expect_sound()

    def test_both_ends_are_killed_at_once(self):
        for _ in range(ROUNDS // 3):
            kernel, host = self.kernel(*QUICK), self.host(*QUICK, "--weights", WEIGHTS)
            harness.wait_until("the region", lambda: self.region.exists()
                               and self.region.stat().st_size == MIB)
            self.wait_for_steps()
            self.pause()
            for end in self.random.sample([kernel, host], 2):
                end.kill()
        host = self.host("--weights", WEIGHTS)
        self.assertEqual(self.kernel("--episodes", 3).finish()["episodes"], 3)
        host.end()
        self.expect_sound()

    def test_a_kernel_that_dies_while_it_starts_leaves_a_usable_region(self):
        for _ in range(ROUNDS // 3):
            kernel = self.kernel()
            time.sleep(0.02 * self.random.random())
            kernel.kill()
        host = self.host("--weights", WEIGHTS)
        self.assertEqual(self.kernel("--episodes", 3).finish()["episodes"], 3)
        host.end()
        self.expect_sound()

    def test_python_kernels_die_in_the_middle_of_episodes(self):
        host = self.host(*QUICK, "--weights", WEIGHTS)
        self.region.write_bytes(bytes(MIB))
        for _ in range(MIXED_ROUNDS):
            die_at = self.random.randrange(1, 1200)
            kernel = self.peer("kernel", "--episodes", 1000, "--die-at", die_at)
            self.assertEqual(kernel.wait()[0], -9)
        self.assertEqual(self.peer("kernel", "--episodes", 2).finish()["episodes"], 2)
        host.end()
        self.expect_sound()

    def test_python_hosts_die_in_the_middle_of_episodes(self):
        kernel = self.kernel(*QUICK)
        for _ in range(MIXED_ROUNDS):
            die_at = self.random.randrange(1, 1200)
            host = self.peer("host", "--weights", WEIGHTS, "--die-at", die_at)
            self.assertEqual(host.wait()[0], -9)
        host = self.host(*QUICK, "--weights", WEIGHTS)
        self.wait_for_steps()
        kernel.end()
        host.end()
        self.expect_sound()


if __name__ == "__main__":
    stream_harness.main()
