"""The host replay against cpprb's: inserts, and windows of 64 steps of 16 lanes.

rivals.py PROGRAM [--quick]: PROGRAM is bench_replay, which measures our windows between those of
cpprb. Prints one JSON line a figure; without the cpprb and numpy wheels a remark and nothing else.
"""

import json
import subprocess
import sys
import time

try:
    import cpprb
    import numpy
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(0)

RECORD_BYTES, LANES, STEPS, BLOCK = 1440, 16, 64, 1024
WINDOWS = 5


def make_buffer(total_bytes):
    """Full buffer of records with the columns a row of ours has."""
    rows = total_bytes // (RECORD_BYTES + 21) // BLOCK * BLOCK
    columns = {"obs": {"shape": RECORD_BYTES, "dtype": numpy.uint8},
               "act": {"dtype": numpy.int32}, "logp": {"dtype": numpy.float32},
               "rew": {"dtype": numpy.float32}, "flags": {"dtype": numpy.uint8},
               "cont": {"dtype": numpy.float32}, "episode": {"dtype": numpy.int32}}
    buffer = cpprb.ReplayBuffer(rows, columns)
    block = {name: numpy.zeros((BLOCK, spec.get("shape", 1)), dtype=spec["dtype"])
             for name, spec in columns.items()}
    for _ in range(rows // BLOCK):
        buffer.add(**block)
    return buffer, block, rows


def rate(seconds, work):
    """Lane rows a second over one window; `work` returns how many it moved."""
    start = time.perf_counter()
    moved = 0
    while time.perf_counter() - start < seconds:
        moved += work()
    return moved / (time.perf_counter() - start)


def spread(values):
    """median, min, max."""
    ordered = sorted(values)
    return {"median": ordered[len(ordered) // 2], "min": ordered[0], "max": ordered[-1]}


def main():
    program, quick = sys.argv[1], "--quick" in sys.argv
    seconds = 0.1 if quick else 0.5
    buffer, block, rows = make_buffer(1 << 30)
    random = numpy.random.default_rng(1)
    offsets = numpy.arange(STEPS + 1)

    def insert():
        buffer.add(**block)
        return BLOCK

    def windows():
        # 16 windows of 65 consecutive records: what one batch of ours holds.
        starts = random.integers(0, rows - STEPS - 1, LANES)
        buffer._encode_sample((starts[:, None] + offsets).ravel())
        return LANES * (STEPS + 1)

    with subprocess.Popen([program, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as ours:
        def measure(what):
            ours.stdin.write(what + "\n")
            ours.stdin.flush()
            return float(ours.stdout.readline())

        for what, title, rival, target in (
                ("insert", "insert", insert, ">= 1.2x"),
                ("uniform", "uniform windows 16x64", windows, ">= 1.0x")):
            our_rates, rival_rates = [], []
            for _ in range(WINDOWS):
                our_rates.append(measure(what))
                rival_rates.append(rate(seconds, rival))
            ratios = [a / b for a, b in zip(our_rates, rival_rates)]
            print(json.dumps({"what": f"host replay, 1 GiB of {RECORD_BYTES} B: {title}",
                              "unit": "lane rows/s", "ours": spread(our_rates),
                              "rival": {"name": f"cpprb {cpprb.__version__}"
                                        if hasattr(cpprb, "__version__") else "cpprb",
                                        **spread(rival_rates)},
                              "ratio": spread(ratios), "target": target}), flush=True)
        ours.stdin.close()


if __name__ == "__main__":
    main()
