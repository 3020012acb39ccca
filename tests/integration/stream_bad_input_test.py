"""What a user or the other end of a region can get wrong: one clear sentence each, nothing hangs,
and the other end hears of it."""

import os
import signal
import struct
import subprocess
import time

import harness
import stream_harness
from stream_harness import CONFIG, MIB, TRY_AGAIN, USAGE, WEIGHTS

COMMAND, RESPONSE, DOORBELL, HEAP, OBS, ACTION = 0x0, 0x8000, 0x10000, 0x10100, 0xFE000, 0xFF000
SHORT = ["--wait", 1, "--peer-timeout", 400]
ERROR, ERROR_STREAMING, ERROR_SEQ = 0x8001, 1, 5
UNSAVED = 74


class BadOptions(stream_harness.Case):
    def expect(self, code, words, *arguments):
        got, said = self.call("tetrion-stream", *arguments)
        self.assertEqual(got, code, said)
        for word in words:
            self.assertIn(str(word), said)

    def test_options_are_refused_with_what_would_be_right(self):
        region = ["--region", self.region]
        self.expect(USAGE, ["listen", "kernel, host, inspect"], "listen", *region)
        self.expect(USAGE, ["--region FILE"], "kernel")
        self.expect(USAGE, ["3", "1 to 2", "MiB"], "kernel", *region, "--size", 3)
        self.expect(USAGE, ["best", "checkpoint:RUN"], "kernel", *region, "--policy", "best")
        self.expect(USAGE, ["checkpoint:RUN"], "kernel", *region, "--policy", "checkpoint:")
        self.expect(USAGE, ["1,2,3", "four"], "host", *region, "--weights", "1,2,3")
        self.expect(USAGE, ["nan"], "host", *region, "--weights", "1,2,3,nan")
        self.expect(USAGE, ["tetris", "cartpole"], "host", *region, "--env", "tetris")
        self.expect(USAGE, ["--episode", "--episodes"], "kernel", *region, "--episode", 3)

    def test_a_checkpoint_that_is_not_there_is_named(self):
        code, said = self.call("tetrion-stream", "kernel", "--region", self.region, "--policy",
                               "checkpoint:nowhere", "--runs-dir", self.base)
        self.assertEqual(code, USAGE, said)
        self.assertIn("nowhere", said)


class FullDisk(stream_harness.Case):
    def test_output_that_cannot_be_written_is_said(self):
        for words in (["tetrion-stream", "layout"], ["tetrion-kernels"]):
            with open("/dev/full", "w", encoding="utf-8") as full:
                done = subprocess.run([harness.BIN / words[0], *words[1:]], stdout=full,
                                      stderr=subprocess.PIPE, text=True, timeout=30, check=False)
            self.assertEqual(done.returncode, UNSAVED, words)
            self.assertIn("cannot write standard output", done.stderr)


class BadRegions(stream_harness.Case):
    def test_a_host_without_a_region_gives_up(self):
        self.host(*SHORT).fail(TRY_AGAIN, str(self.region))
        code, said = self.inspect()
        self.assertEqual(code, TRY_AGAIN, said)
        self.assertIn(str(self.region), said)

    def test_a_host_without_a_kernel_gives_up(self):
        self.region.write_bytes(bytes(MIB))
        self.host(*SHORT).fail(TRY_AGAIN, "kernel")

    def test_a_host_gives_up_on_a_region_whose_kernel_has_gone(self):
        self.make_region()
        host = self.host(*SHORT)
        self.assertEqual(host.fail(TRY_AGAIN, "no kernel has come")["end"], "timeout")

    def test_a_kernel_without_a_host_gives_up(self):
        self.assertNotEqual(self.kernel(*SHORT).fail(TRY_AGAIN, "host")["end"], "ok")

    def test_a_region_that_is_too_small_is_refused_with_both_sizes(self):
        self.region.write_bytes(bytes(4096))
        for end in (self.kernel(*SHORT), self.host(*SHORT)):
            end.fail(USAGE, str(self.region), "4096", str(MIB))
        code, said = self.inspect()
        self.assertEqual(code, USAGE, said)

    def test_a_path_that_cannot_be_mapped_is_refused(self):
        self.region.mkdir()
        for end in (self.kernel(*SHORT), self.host(*SHORT)):
            end.fail(USAGE, str(self.region))

    def make_region(self):
        host = self.host("--weights", WEIGHTS)
        self.kernel("--episodes", 1).finish()
        host.end()

    def test_foreign_contents_are_refused_by_name_and_value(self):
        self.make_region()
        good = self.region.read_bytes()
        cases = [
            (COMMAND, 0x12345678, "0x12345678"), (RESPONSE, 0x12345678, "0x12345678"),
            (DOORBELL, 0x12345678, "0x12345678"), (HEAP, 0x12345678, "0x12345678"),
            (DOORBELL + 4, 2, "version"), (HEAP + 4, 7, "version"),
            (COMMAND + 12, 512, "0x200"), (RESPONSE + 12, 1000, "power of two"),
            (COMMAND + 12, 0, "size"), (OBS + 12, 100, "100"),
            (ACTION + 12, 128, "0x80"), (OBS, 0xBAD, "0xbad"), (ACTION, 0xBAD, "0xbad"),
            (COMMAND + 4, 1024, "1024"), (RESPONSE + 8, 0xFFFFFFFF, "4294967295"),
            (OBS + 4, 64, "64"), (ACTION + 8, 77, "77"),
        ]
        for at, value, word in cases:
            with self.subTest(hex(at), value=value):
                self.region.write_bytes(good)
                self.poke(at, value)
                code, said = self.inspect()
                self.assertEqual(code, CONFIG, said)
                self.assertIn(word, said)
                self.kernel(*SHORT).fail(CONFIG, word, str(self.region))
                self.host(*SHORT).fail(CONFIG, word, str(self.region))
                self.poke(at, struct.unpack_from("<I", good, at)[0])
                self.assertEqual(self.region.read_bytes(), good, "refused, but written to")

    def test_a_region_cut_off_in_use_ends_both_with_a_sentence(self):
        for size in (0, 4096, 0x80000):
            with self.subTest(size=size):
                self.region.unlink(missing_ok=True)
                host, kernel = self.host("--stay"), self.kernel("--stay")
                harness.wait_until("the region", lambda: self.region.exists()
                                   and self.region.stat().st_size == MIB)
                self.wait_for_steps()
                os.truncate(self.region, size)
                for end in (host, kernel):
                    code, said = end.wait()
                    self.assertEqual(code, CONFIG, said)
                    self.assertIn(f"{self.region}: the region was cut off", said)

    def test_another_programs_file_is_refused_untouched(self):
        foreign = b"\x7fELF" + bytes(MIB - 4)
        self.region.write_bytes(foreign)
        self.kernel(*SHORT).fail(CONFIG, "0x464c457f")
        self.host(*SHORT).fail(CONFIG, "0x464c457f")
        self.assertEqual(self.region.read_bytes(), foreign)

    def test_half_a_pair_of_stream_rings_waits_for_a_kernel(self):
        for at in (OBS, ACTION):
            with self.subTest(hex(at)):
                self.region.unlink(missing_ok=True)
                self.make_region()
                self.poke(at, 0)
                code, said = self.inspect()
                self.assertEqual(code, CONFIG, said)
                self.assertIn("has not finished", said)
                self.host(*SHORT).fail(CONFIG, "has not finished")
                self.make_region()

    def test_a_ring_that_goes_bad_ends_the_side_that_reads_it(self):
        written_by_host = (OBS + 4, ACTION + 8, COMMAND + 8, RESPONSE + 4)
        written_by_kernel = (ACTION + 4, COMMAND + 4)
        for at in written_by_host + written_by_kernel:
            with self.subTest(hex(at)):
                # A kernel that is stopped between two episodes has just left, as far as its host
                # can see, and the host ends well: then once more.
                codes = (self.spoil(at, at in written_by_host) for _ in range(20))
                self.assertIn(next(code for code in codes if code != 0), (CONFIG, TRY_AGAIN))

    def spoil(self, at, host_writes):
        """Stops the side that writes the word (it would mend it), spoils it; the other's exit."""
        self.region.unlink(missing_ok=True)
        host = self.host(*SHORT, "--wait", 20)
        kernel = self.kernel(*SHORT, "--wait", 20)
        harness.wait_until("the region", lambda: self.region.exists()
                           and self.region.stat().st_size == MIB)
        self.wait_for_steps()
        writer, reader = (host, kernel) if host_writes else (kernel, host)
        writer.process.send_signal(signal.SIGSTOP)
        self.poke(at, 0xFFFF)
        code, _ = reader.wait()
        writer.process.send_signal(signal.SIGCONT)
        writer.kill()
        return code

    def test_a_heap_that_does_not_add_up_is_reported(self):
        self.make_region()
        self.poke(HEAP + 12, 5)
        code, said = self.inspect()
        self.assertEqual(code, CONFIG, said)
        self.assertIn("free_blocks is 5", said)


class BadPeers(stream_harness.Case):
    def test_a_role_that_is_taken_is_refused(self):
        host, kernel = self.host("--stay"), self.kernel()
        harness.wait_until("the region", lambda: self.region.exists()
                           and self.region.stat().st_size == MIB)
        self.wait_for_steps()
        self.kernel(*SHORT).fail(TRY_AGAIN, str(self.region), "kernel")
        self.host(*SHORT).fail(TRY_AGAIN, str(self.region), "host")
        self.wait_for_steps()  # the first two are not disturbed
        kernel.end()
        host.end()

    def test_a_host_that_goes_is_lost(self):
        host = self.host()
        kernel = self.kernel("--peer-timeout", 500)
        harness.wait_until("the region", lambda: self.region.exists()
                           and self.region.stat().st_size == MIB)
        self.wait_for_steps()
        host.kill()
        self.assertEqual(kernel.fail(TRY_AGAIN, "peer_lost", "host")["end"], "peer_lost")

    def test_a_new_host_ends_a_kernel_that_may_try_again(self):
        host, kernel = self.host("--weights", WEIGHTS), self.kernel()
        harness.wait_until("the region", lambda: self.region.exists()
                           and self.region.stat().st_size == MIB)
        self.wait_for_steps()
        host.kill()
        host = self.host("--stay")
        summary = kernel.fail(TRY_AGAIN)
        self.assertIn(summary["end"], ("refused", "peer_lost"))
        host.end()

    def test_weights_that_are_not_there_are_a_reason_to_try_again(self):
        self.region.write_bytes(bytes(MIB))
        host = self.peer("host", "--name-model", 999)
        self.assertEqual(self.kernel().fail(TRY_AGAIN, "no weights of model 999")["end"],
                         "refused")
        summary = self.persist()
        self.assertEqual((summary["end"], summary["steps"]), ("stopped", 0))
        host.kill()

    def test_a_kernel_that_stays_is_patient_with_a_host_that_refuses(self):
        self.region.write_bytes(bytes(MIB))
        host = self.peer("host", "--refuse-resets")
        self.assertEqual(self.persist()["end"], "stopped")
        host.kill()

    def persist(self):
        """The summary of a kernel with --stay that has failed some times. Its pauses double up to
        a second: however long it has run, that bounds how often it can have tried."""
        start = time.monotonic()
        kernel = self.kernel("--stay")
        before = self.word(COMMAND + 4)
        harness.wait_until("it tries again and again", lambda: self.word(COMMAND + 4) > before + 12)
        summary = kernel.end()
        ran_s = time.monotonic() - start
        self.assertGreaterEqual(summary["losses"], 3)
        self.assertLessEqual(summary["losses"], 11 + ran_s)
        return summary

    def test_a_kernel_that_goes_is_lost(self):
        kernel = self.kernel()
        host = self.host("--peer-timeout", 500)
        harness.wait_until("the region", lambda: self.region.exists()
                           and self.region.stat().st_size == MIB)
        self.wait_for_steps()
        kernel.kill()
        # Between two episodes a kernel may go: then this is a good end.
        code, said = host.wait()
        self.assertTrue(code == 0 or (code == TRY_AGAIN and "peer_lost" in said), said)

    def test_a_frozen_host_is_lost_too(self):
        host = self.peer("host", "--freeze-at", 40)
        kernel = self.kernel("--peer-timeout", 500)
        self.region.write_bytes(b"")
        self.assertEqual(kernel.fail(TRY_AGAIN, "peer_lost")["steps"], 39)
        host.kill()

    def python_kernel(self, *options):
        """A Python kernel against our host; (kernel, host), both running."""
        self.region.write_bytes(bytes(MIB))
        return self.peer("kernel", *options), self.host("--stay", "--weights", WEIGHTS)

    def test_unknown_commands_are_answered_error(self):
        kernel, host = self.python_kernel("--send", "0x999:7,0x1:42,0x101:1,0x0,0xffff")
        self.assertEqual([[code if code == ERROR else "ok", result]
                          for code, result in kernel.finish()["answers"]],
                         [[ERROR, 0x999], ["ok", 42], [ERROR, 4], [ERROR, 0], [ERROR, 0xFFFF]])
        self.assertEqual(host.end()["errors"], 4)

    def test_a_step_by_command_while_streaming_is_answered_error(self):
        kernel, host = self.python_kernel("--step-while-streaming", "--episodes", 1)
        kernel.wait()
        summary = kernel.summary()
        self.assertEqual((summary["step_status"], summary["step_result"]),
                         (ERROR, ERROR_STREAMING))
        # The host lives on and serves the next kernel.
        self.assertEqual(self.peer("kernel", "--episodes", 2).finish()["episodes"], 2)
        host.end()

    def test_an_action_that_skips_or_repeats_a_seq_closes_the_stream(self):
        for option in ("--skip-seq-at", "--repeat-seq-at"):
            with self.subTest(option):
                kernel, host = self.python_kernel(option, 20)
                code, said = kernel.wait()
                self.assertEqual(code, 3, said)
                self.assertIn(hex(ERROR), said)
                self.assertIn(f"result {ERROR_SEQ}", said)
                self.assertEqual(self.peer("kernel", "--episodes", 2).finish()["episodes"], 2)
                self.assertEqual(host.end()["seq_errors"], 1)

    def test_an_observation_that_skips_or_repeats_a_seq_ends_the_kernel(self):
        for option in ("--skip-seq-at", "--repeat-seq-at"):
            with self.subTest(option):
                self.region.unlink(missing_ok=True)
                host = self.peer("host", option, 20, "--weights", WEIGHTS)
                kernel = self.kernel("--episodes", 5)
                summary = kernel.fail(CONFIG, "seq")
                self.assertEqual((summary["end"], summary["seq_errors"]), ("seq_error", 1))
                host.kill()

    def test_blobs_that_are_never_acknowledged_make_the_host_busy(self):
        kernel, host = self.python_kernel(
            "--send", ",".join(["0x100", *["0x101:1"] * 8]), "--episodes", 1)
        answers = kernel.finish()["answers"]
        self.assertEqual([status for status, _ in answers[:8]], [0x8000] * 8)
        self.assertEqual(answers[8][0], 0x8002)
        self.assertEqual(len({result for _, result in answers[:8]}), 8)
        host.end()

    def test_the_metadata_describe_the_environment(self):
        kernel, host = self.python_kernel("--send", "0x100:2", "--episodes", 1)
        status, blob_id = kernel.finish()["answers"][0]
        self.assertEqual(status, 0x8000)
        host.end()
        data = self.region.read_bytes()
        for at in range(0x11000, 0x11000 + 64 * 14080, 64):
            magic, found, kind, _, size = struct.unpack_from("<IHBBI", data, at)
            if magic == 0x424C4F42 and found == blob_id:
                self.assertEqual((kind, size), (0, 16))
                self.assertEqual(struct.unpack_from("<II", data, at + 32), (4, 2))
                return
        self.fail(f"no blob {blob_id}")


if __name__ == "__main__":
    stream_harness.main()
