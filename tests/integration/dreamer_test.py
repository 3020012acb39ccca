"""A run with DreamerV3: it trains, goes on after kills and with --resume, and refuses bad input.

Whether it learns is measured elsewhere: what is small enough for here shows that every part moves.
"""

import ctypes
import ctypes.util
import json
import re
import struct

import harness

# An update takes tenths of a second on a loaded machine: few rows for many updates.
SETTINGS = {"algo": "dreamer", "lanes": 4, "window": 8, "batch_windows": 4, "horizon": 3,
            "train_ratio": 16, "warmup_updates": 10, "max_workers": 4}
PROGRESS = {"episodes": 10, "batches": 5, "deadline_s": 60}
USAGE, CONFIG = 2, 78


def newest(run):
    """The manifest of a run's checkpoints, and its newest entry."""
    manifest = json.loads((run.folder / "checkpoints" / "manifest.json").read_text())
    return manifest, manifest["checkpoints"][-1]


def spoil(run, tensor, value):
    """Puts `value` in the place of the first number of a tensor of the newest checkpoint."""
    manifest, entry = newest(run)
    path = run.folder / "checkpoints" / entry["file"]
    data = bytearray(path.read_bytes())
    header = struct.unpack("<Q", data[:8])[0]
    begin = 8 + header + json.loads(data[8:8 + header])[tensor]["data_offsets"][0]
    data[begin:begin + 4] = struct.pack("<f", value)
    path.write_bytes(data)
    hashing = ctypes.CDLL(ctypes.util.find_library("xxhash")).XXH64
    hashing.restype, hashing.argtypes = ctypes.c_uint64, (ctypes.c_char_p, ctypes.c_size_t,
                                                          ctypes.c_uint64)
    entry["xxhash64"] = f"{hashing(bytes(data), len(data), 0):016x}"
    (run.folder / "checkpoints" / "manifest.json").write_text(json.dumps(manifest))


class Dreamer(harness.Case):
    def start(self, **options):
        run = self.new_run().start_by_hand(actors=0, settings=SETTINGS)
        run.start_actor(**options)
        return run

    def expect_progress(self, run):
        return run.expect_progress(**PROGRESS)

    def finish(self, run):
        """Drains and checks the account; newer weights must have acted."""
        run.finish_and_check()
        self.assertGreater(max(e[harness.VERSION_FIELD] for _, e in run.episodes()), 1)

    def test_it_trains_drains_exactly_and_is_played(self):
        run = self.new_run().start_up(settings=SETTINGS)
        self.expect_progress(run)
        run.wait_for("a checkpoint", lambda s: s["learner"].get("checkpoints", 0) >= 1)
        self.finish(run)
        summary = self.play(run)
        self.assertEqual(summary["episodes"], 5)
        self.assertGreater(summary["updates"], 0)
        run.start_up(resume=True)
        self.expect_progress(run)
        self.assertIn("resumed from", run.log("learner"))
        self.finish(run)

    def play(self, run):
        code, printed = self.eval(run, "--episodes", 5, "--json")
        self.assertEqual(code, 0, printed)
        return json.loads(printed)

    def eval(self, run, *arguments):
        return self.call("tetrion-eval", "eval", run.name, "--runs-dir", run.runs, *arguments)

    def test_actor_learner_and_coordinator_may_be_killed(self):
        run = self.start()
        self.expect_progress(run)
        run.kill("actor-0")
        run.start_actor("actor-1")
        self.expect_progress(run)
        run.wait_for("a checkpoint", lambda s: s["learner"].get("checkpoints", 0) >= 1)
        run.kill("learner")
        run.start_learner(resume=True)
        self.expect_progress(run)
        run.kill("coordinator")
        run.start_coordinator(resume=True)
        self.expect_progress(run)
        self.finish(run)

    def test_the_learner_decides_for_streamed_actors(self):
        run = self.start(inference="streamed")
        run.start_actor("actor-1", inference="streamed", groups=1)
        run.wait_for("all streams", lambda s: s["learner"].get("streams") == 3)
        self.expect_progress(run)
        self.finish(run)

    def test_a_size_that_there_is_not_is_refused_with_those_there_are(self):
        for settings, said in (({"size": "huge"}, r"size.*nano\|1m"),
                               ({"window": 1}, r"window = 1: expected at least 2")):
            with self.subTest(**settings):
                run = self.new_run(folder=f"bad-{next(iter(settings))}")
                run.start_coordinator(settings={**SETTINGS, **settings})
                self.assertEqual(run.wait_exit("coordinator"), USAGE)
                self.assertRegex(run.log("coordinator"), said)

    def test_an_actor_without_the_tensor_library_says_what_to_use(self):
        run = self.new_run().start_by_hand(actors=0, settings=SETTINGS)
        run.start_process("actor-plain", "tetrion-actor-plain",
                          ["--run-folder", str(run.folder), "--name", "actor-plain"])
        self.assertEqual(run.wait_exit("actor-plain"), USAGE)
        self.assertRegex(run.log("actor-plain"),
                         r"algo dreamer on cartpole.*built without.*--inference streamed")

    def test_checkpoints_of_another_size_or_algorithm_are_refused(self):
        run = self.start()
        run.wait_for("a checkpoint", lambda s: s["learner"].get("checkpoints", 0) >= 1,
                     deadline_s=60)
        run.finish_and_check()
        code, printed = self.call("tetrion-coordinator", "--resume", run.name, "--runs-dir",
                                  run.runs, "--shm-dir", run.shm, "--size", "1m")
        self.assertEqual(code, USAGE, printed)
        self.assertRegex(printed, r"size.*1m.*nano|size.*nano.*1m")
        config = run.folder / "config.toml"
        text = config.read_text()
        for change, needs in (((r'size = "nano"', 'size = "1m"'), "DreamerV3 of size 1m"),
                              ((r'algo = "dreamer"', 'algo = "vtrace"'), "network mlp")):
            changed = re.sub(r"(?s)\n\[run\.dreamer\].*?(?=\n\[|\Z)", "", text) \
                if "algo" in change[0] else text
            self.assertIn(change[0], changed)
            config.write_text(changed.replace(*change))
            code, printed = self.eval(run, "--episodes", 1)
            self.assertEqual(code, CONFIG, printed)
            self.assertIn(needs, printed)

    def test_losses_that_are_no_numbers_end_it_with_the_first_of_them(self):
        run = self.start()
        run.wait_for("a checkpoint", lambda s: s["learner"].get("checkpoints", 0) >= 1,
                     deadline_s=60)
        run.finish_and_check()
        spoil(run, "model.decoder.out.bias", 3e38)  # its square is infinite
        updates = newest(run)[1]["updates"]
        run.start_coordinator(resume=True)
        run.start_learner(resume=True)
        run.start_actor("actor-1")
        self.assertEqual(run.wait_exit("learner", deadline_s=120), CONFIG)
        self.assertRegex(run.log("learner"),
                         "training has diverged.*first the reconstruction loss was not a finite")
        self.assertEqual(newest(run)[1]["updates"], updates, "nothing was trained")


if __name__ == "__main__":
    harness.main()
