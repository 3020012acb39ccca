"""The host replay beside cpprb, dm-reverb and torchrl: inserts, and 16 windows of 65 records in
both orders.

rivals.py PROGRAM [--quick]: PROGRAM is bench_replay, which measures our windows between those of
the rivals. Each rival runs in an environment of ./tetrion bench (.deps/cpprb, .deps/reverb,
.deps/rl) and in one thread; dm-reverb has many, and gets one core. Prints one JSON
line a figure; a rival that is not there is left out with a remark.
rivals.py --serve RIVAL BYTES: the other end: one window of insert, fifo or uniform a line.
"""

import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import time

DEPS = pathlib.Path(__file__).resolve().parents[2] / ".deps"
RECORD_BYTES, LANES, STEPS, BLOCK = 1440, 16, 64, 1024
WINDOWS = 5
COLUMNS = {"act": "int32", "logp": "float32", "rew": "float32", "flags": "uint8",
           "cont": "float32", "episode": "int32"}
# (rival, its environment, memory; dm-reverb takes minutes to fill a GiB, and its cost does not
# depend on it)
RIVALS = (("cpprb", "cpprb", 1 << 30), ("reverb", "reverb", 64 << 20), ("torchrl", "rl", 1 << 30))
# (ours, the rival's, title, target by rival that does it)
FIGURES = (
    ("insert", "insert", "insert", {"cpprb": ">= 1.2x", "reverb": None, "torchrl": None}),
    ("fifo", "fifo", "fifo windows 16x64", {"cpprb": ">= 1.0x", "reverb": ">= 4x"}),
    ("uniform", "uniform", "uniform windows 16x64",
     {"cpprb": ">= 1.0x", "reverb": ">= 4x", "torchrl": ">= 8x"}),
    ("lanes", "uniform", "uniform windows of a lane each 16x64",
     {"cpprb": ">= 1.0x", "reverb": ">= 4x", "torchrl": ">= 8x"}),
)


class Cpprb:
    """Full buffer of records with the columns a row of ours has."""

    def __init__(self, total_bytes):
        import cpprb
        import numpy

        self.rows = total_bytes // (RECORD_BYTES + 21) // BLOCK * BLOCK
        columns = {"obs": {"shape": RECORD_BYTES, "dtype": numpy.uint8},
                   **{name: {"dtype": dtype} for name, dtype in COLUMNS.items()}}
        self.buffer = cpprb.ReplayBuffer(self.rows, columns)
        self.block = {name: numpy.zeros((BLOCK, spec.get("shape", 1)), dtype=spec["dtype"])
                      for name, spec in columns.items()}
        for _ in range(self.rows // BLOCK):
            self.insert()
        self.random, self.next = numpy.random.default_rng(1), 0
        self.offsets = numpy.arange(STEPS + 1)
        self.lanes = numpy.arange(LANES) * STEPS

    def insert(self):
        self.buffer.add(**self.block)
        return BLOCK

    def gather(self, starts):
        self.buffer._encode_sample((starts[:, None] + self.offsets).ravel())
        return LANES * (STEPS + 1)

    def uniform(self):
        return self.gather(self.random.integers(0, self.rows - STEPS - 1, LANES))

    def fifo(self):
        self.next = (self.next + LANES * STEPS) % (self.rows - (LANES + 1) * STEPS - 1)
        return self.gather(self.next + self.lanes)


class Reverb:
    """Trajectories of 65 records: a table that is sampled uniformly, and a queue."""

    def __init__(self, total_bytes):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
        import numpy
        import reverb
        import tensorflow

        items = total_bytes // RECORD_BYTES // STEPS
        length = (STEPS + 1,)
        signature = {"obs": tensorflow.TensorSpec((*length, RECORD_BYTES), tensorflow.uint8),
                     **{name: tensorflow.TensorSpec(length, dtype)
                        for name, dtype in COLUMNS.items()}}
        self.server = reverb.Server(port=None, tables=[
            reverb.Table("uniform", reverb.selectors.Uniform(), reverb.selectors.Fifo(), items,
                         reverb.rate_limiters.MinSize(1), signature=signature),
            reverb.Table.queue("fifo", 4 * items, signature=signature)])
        address = f"localhost:{self.server.port}"
        self.writer = reverb.Client(address).trajectory_writer(num_keep_alive_refs=STEPS + 1)
        # Records that do not compress: a chunk is compressed when it is written.
        records = numpy.random.default_rng(1).integers(0, 256, (256, RECORD_BYTES), numpy.uint8)
        scalars = {name: numpy.dtype(dtype).type(0) for name, dtype in COLUMNS.items()}
        self.steps = itertools.cycle([{"obs": record, **scalars} for record in records])
        self.written = 0
        for _ in range(items):
            self.append("uniform", "fifo")
        self.writer.flush()
        self.samples = {
            table: iter(reverb.TrajectoryDataset.from_table_signature(
                address, table, max_in_flight_samples_per_worker=2 * LANES,
                rate_limiter_timeout_ms=60_000).batch(LANES))
            for table in ("uniform", "fifo")}

    def append(self, *tables):
        """One more trajectory, of a window's 64 rows and one of the window before."""
        for _ in range(STEPS + (self.written == 0)):
            self.writer.append(next(self.steps))
            self.written += 1
        trajectory = {name: column[-STEPS - 1:] for name, column in self.writer.history.items()}
        for table in tables:
            self.writer.create_item(table, 1.0, trajectory)
        return STEPS

    def insert(self):
        moved = sum(self.append("uniform") for _ in range(4))
        self.writer.flush()
        return moved

    def uniform(self):
        next(self.samples["uniform"])
        return LANES * (STEPS + 1)

    def fifo(self):
        next(self.samples["fifo"])
        return LANES * (STEPS + 1)


class Torchrl:
    """SliceSampler over trajectories of 1,024 records, whose ends it has found before."""

    def __init__(self, total_bytes):
        import logging

        import torch
        from tensordict import TensorDict
        from torchrl.data import LazyTensorStorage, SliceSampler, TensorDictReplayBuffer

        logging.disable(logging.INFO)
        torch.set_num_threads(1)
        rows = total_bytes // (RECORD_BYTES + 21) // BLOCK * BLOCK
        sampler = SliceSampler(slice_len=STEPS + 1, traj_key="episode", cache_values=True,
                               strict_length=True)
        self.buffer = TensorDictReplayBuffer(storage=LazyTensorStorage(rows), sampler=sampler,
                                             batch_size=LANES * (STEPS + 1))
        self.block = TensorDict(
            {"obs": torch.zeros((BLOCK, RECORD_BYTES), dtype=torch.uint8),
             **{name: torch.zeros(BLOCK, dtype=getattr(torch, dtype))
                for name, dtype in COLUMNS.items()}}, [BLOCK])
        self.blocks = 0
        for _ in range(rows // BLOCK):
            self.insert()

    def insert(self):
        self.block["episode"].fill_(self.blocks)
        self.blocks += 1
        self.buffer.extend(self.block)
        return BLOCK

    def uniform(self):
        return self.buffer.sample().shape[0]


def serve(rival, total_bytes):
    """The rival, one window a line of input: what and for how long; prints its rate."""
    try:
        contestant = {"cpprb": Cpprb, "reverb": Reverb, "torchrl": Torchrl}[rival](total_bytes)
    except Exception as error:  # a wheel may be there and not fit this machine
        print(f"not measured: {error!r}".splitlines()[0][:200], flush=True)
        return
    import importlib.metadata

    package = {"reverb": "dm-reverb"}.get(rival, rival)
    print(f"{package} {importlib.metadata.version(package)}", flush=True)
    for line in sys.stdin:
        what, seconds = line.split()
        work, most = getattr(contestant, what), 1 << 30
        if (rival, what) == ("reverb", "fifo"):  # a queue: what is measured is delivered once
            most = total_bytes // RECORD_BYTES // (WINDOWS + 2)
        if (rival, what) == ("torchrl", "uniform"):
            work()  # finds the ends of trajectories, once after inserts
        start, moved = time.perf_counter(), 0
        while time.perf_counter() - start < float(seconds) and moved < most:
            moved += work()
        print(moved / (time.perf_counter() - start), flush=True)


class Ended(Exception):
    """A contestant, the first argument, is no longer there."""

    def __str__(self):
        return f"{self.args[0].process.args[0]} ended while it was measured"


class Served:
    """A contestant behind a pipe."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)

    def ask_all(self, line):
        """The numbers of its answer."""
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        except OSError as error:
            raise Ended(self) from error
        numbers = [float(number) for number in self.process.stdout.readline().split()]
        if not numbers:
            raise Ended(self)
        return numbers

    def ask(self, line):
        return self.ask_all(line)[0]

    def end(self):
        with contextlib.suppress(OSError):  # what it was asked last may still be on its way
            self.process.stdin.close()
        self.process.wait()
        self.process.stdout.close()


def spread(values):
    """median, min, max."""
    ordered = sorted(values)
    return {"median": ordered[len(ordered) // 2], "min": ordered[0], "max": ordered[-1]}


def measure(ours, rival, name, seconds):
    """Prints the figures of one rival."""
    for what, theirs, title, targets in FIGURES:
        if name_of(name) not in targets:
            continue
        our_rates, rival_rates = [], []
        for _ in range(WINDOWS):
            our_rates.append(ours.ask(what))
            rival_rates.append(rival.ask(f"{theirs} {seconds}"))
        ratios = [a / b for a, b in zip(our_rates, rival_rates, strict=True)]
        print(json.dumps({"what": f"host replay, records of {RECORD_BYTES} B: {title}",
                          "unit": "lane rows/s", "ours": spread(our_rates),
                          "rival": {"name": name, **spread(rival_rates)},
                          "ratio": spread(ratios), "target": targets[name_of(name)]}), flush=True)


def name_of(name):
    """dm-reverb 0.14.0 -> reverb."""
    return name.split()[0].removeprefix("dm-")


def main():
    program, quick = sys.argv[1], "--quick" in sys.argv
    ours = Served([program, "--serve"])
    for package, folder, total_bytes in RIVALS:
        python = DEPS / folder / "bin" / "python"
        if not python.exists():
            print(f"skipped: {package}: not measured: .deps/{folder} is not installed")
            continue
        bytes_there = total_bytes // 4 if quick else total_bytes
        rival = Served([str(python), __file__, "--serve", package, str(bytes_there)])
        name = rival.process.stdout.readline().strip()
        if not name or name.startswith("not measured"):
            print(f"skipped: {package}: {name or 'not measured: it ended at its start'}")
        else:
            try:
                measure(ours, rival, name, 0.1 if quick else 0.5)
            except Ended as ended:
                if ended.args[0] is ours:
                    raise
                print(f"skipped: {package}: it ended while it was measured")
        rival.end()
    ours.end()


if __name__ == "__main__":
    if sys.argv[1] == "--serve":
        serve(sys.argv[2], int(sys.argv[3]))
    else:
        main()
