"""The layers of the tree and the walls around third parties, once, as data.

tests/tidy checks every #include against it; docs/ARCHITECTURE.md shows it. After a change here run
`python3 tests/tidy/layers.py --write`, which rewrites the table in that document.
"""

import pathlib
import sys
from typing import NamedTuple


class Layer(NamedTuple):
    folder: str  # below lib/
    holds: str
    may_include: tuple  # folders below lib/, besides itself


# In dependency order, lowest first.
LAYERS = (
    Layer("core", "check, error, clock, Philox, log, files, JSON, annotated mutex, agent", ()),
    Layer("cuda", "streams, events, device memory, launches; the simulated device", ("core",)),
    Layer("frame", "row layout, record and action specs, token", ("core",)),
    Layer("metrics", "metric catalog, status figures, hot-path counters, registry", ("core",)),
    Layer("http", "HTTP endpoint with its bounded server, client", ("core", "metrics")),
    Layer("envs", "rules, records and expanders, vector environments, registry",
          ("core", "frame", "cuda")),
    Layer("shm", "regions, single-producer ring, doorbell", ("core",)),
    Layer("wire", "ZeroMQ sockets, FlatBuffers codec, control messages", ("core",)),
    Layer("run", "run configuration, run folder, options, signals, exit codes", ("core",)),
    Layer("policy", "policy interface, random policy, the policy that runs a network",
          ("core", "frame")),
    Layer("weights", "weights slot, the learner's region, reader of weights",
          ("core", "shm", "policy")),
    Layer("collect", "lane loop, sinks, token source, worker pool",
          ("core", "envs", "frame", "shm", "policy", "weights")),
    Layer("inference", "streamed mode's region: the environment's end and the policy's end",
          ("core", "frame", "shm", "policy", "weights")),
    Layer("region_v2", "the byte-exact foreign protocol, for tools/stream alone",
          ("core", "shm")),
    Layer("episodes", "the batch collector: whole episodes of a policy of the caller's",
          ("core", "envs", "frame", "policy", "collect")),
    Layer("vector", "the vector environment: thread pool, lanes, encoders of observations",
          ("core", "envs", "frame")),
    Layer("replay", "replay shards, commit, read leases, selectors, limiters",
          ("core", "frame", "cuda")),
    Layer("nn", "networks, dense kernels, distributions; nn/torch with the tensor library",
          ("core", "frame")),
    Layer("checkpoint", "a trainer's state; safetensors and manifest, written by rename",
          ("core",)),
    Layer("rl", "trainer interface, batches, optimiser; vtrace/: its formulas and trainer",
          ("core", "frame", "nn", "replay", "checkpoint")),
    Layer("setup", "what a run's settings and a member's options mean to the modules",
          ("core", "frame", "envs", "policy", "wire", "run", "checkpoint")),
)

# Layers whose folder is still to come: folder -> reason. Edges to them may be unused.
PLANNED = {}
# (folder, folder that it may include and will) -> reason.
PLANNED_EDGES = {
}

# The folder below services/ that every service may include; it includes none of them.
SERVICES_SHARE = "common"

# Single files that may include more than their folder: path prefix -> (extra folders, reason).
EXTRA = {
    "lib/policy/dreamer_policy": (("nn",), "the policy of DreamerV3's model"),
    "lib/policy/network_policy": (("nn",), "the policy that runs a network"),
    "lib/policy/cuda/": (("cuda", "nn"), "policies of rows in device memory, one with a network"),
    "lib/nn/cuda/": (("cuda",), "networks as kernels"),
    "lib/rl/dreamer/cuda/": (("cuda",), "updates on a device"),
    "lib/rl/torch/": (("cuda",), "an update on a device as a graph of the tensor library"),
    "lib/setup/run_policy": (("rl",), "the model that the settings of DreamerV3 mean"),
    "lib/setup/trainer_threads": (("nn",), "the shape of network mlp, which decides"),
    "lib/run/run_config.h": (("rl",), "the settings of each algorithm, which include core alone"),
}


class Wall(NamedTuple):
    name: str
    pattern: str  # regular expression over the text between <> or ""
    behind: tuple  # path prefixes that may include it
    package: str = ""  # what CMake's find_package or pkg_check_modules calls it


# A test of a walled module stands behind the same wall: tests/ in front of a prefix is allowed too.
WALLS = (
    Wall("ZeroMQ", r"zmq(_addon)?\.h(pp)?$", ("lib/wire/",), "libzmq"),
    Wall("zstd", r"zstd\.h$", ("lib/wire/rows_packing.",), "libzstd"),
    Wall("FlatBuffers", r"(flatbuffers/.*|.*_generated\.h)$", ("lib/wire/",)),
    Wall("Boost.Interprocess", r"boost/interprocess/.*", ("lib/shm/",)),
    Wall("Boost.Context", r"boost/context/.*", ("lib/cuda/sim/fiber.",), "Boost"),
    Wall("CUDA runtime", r"cu(da|pti)\w*\.h$", ("lib/cuda/runtime/",), "CUDAToolkit"),
    Wall("libtorch", r"(torch|ATen|c10)/.*", ("lib/nn/", "lib/rl/torch/"), "TorchWheel"),
    Wall("prometheus-cpp", r"prometheus/.*", ("lib/metrics/",), "prometheus-cpp"),
    Wall("cpp-httplib", r"httplib\.h$", ("lib/http/",), "cpp_httplib"),
    Wall("SQLite", r"sqlite3\.h$", ("services/coordinator/",), "sqlite3"),
    Wall("CLI11", r"CLI/.*", ("lib/run/",), "CLI11"),
    Wall("toml++", r"toml(\+\+|plusplus)/.*|toml\.hpp$", ("lib/run/",), "tomlplusplus"),
    Wall("giflib", r"gif_lib\.h$", ("tools/eval/", "tools/eval_gif_test"), "GIF"),
    Wall("nanobind", r"nanobind/.*", ("python/",), "nanobind"),
    Wall("spdlog", r"spdlog/.*", ("lib/core/log.",), "spdlog"),
    Wall("nlohmann_json", r"nlohmann/.*",
         ("lib/run/", "tools/up/", "tests/lib/core/json_test",
          "tests/lib/core/log_test"), "nlohmann_json"),
    Wall("xxHash", r"xxhash\.h$",
         ("lib/shm/region_header.", "lib/weights/weights_slot.", "lib/checkpoint/checkpoint_store.",
          "lib/run/run_config."), "xxhash"),
    Wall("GoogleTest", r"g(test|mock)/.*", ("tests/",), "GTest"),
    Wall("RapidCheck", r"rapidcheck(/.*|\.h)$", ("tests/",), "rapidcheck"),
    Wall("Google Benchmark", r"benchmark/.*", ("bench/",), "benchmark"),
    Wall("iceoryx", r"iceoryx_.*", ("bench/",), "iceoryx_posh"),
)

# Packages without a wall: CMake's name -> reason.
UNWALLED = {
    "Threads": "no header of its own",
    "PkgConfig": "a tool of the build",
    "Python": "headers are nanobind's concern, behind its wall",
    "Python3": "an interpreter",
}

# Path prefixes outside every wall: prefix -> reason.
OUTSIDE_WALLS = {
    "bench/": "a benchmark measures the rival library itself",
    "tests/integration/": "looks into a run from outside: its database, its sockets",
    "tests/stress/": "looks into a run from outside: its database, its sockets",
}

# Folders whose programs must not reach libtorch through any chain of includes.
TORCH_FREE = ("services/coordinator/",)

_BEGIN = "<!-- layers: written by tests/tidy/layers.py -->"
_END = "<!-- layers: end -->"


def folders_of(paths):
    """The folders below lib/ that hold files."""
    return {path.split("/")[1] for path in paths if path.startswith("lib/") and path.count("/") > 1}


def markdown(folders):
    """The table as docs/ARCHITECTURE.md shows it, markers included: the layers in `folders`."""
    lines = [_BEGIN, "| folder | holds | may include | third parties |", "|---|---|---|---|"]
    for layer in LAYERS:
        if layer.folder not in folders:
            continue
        prefix = f"lib/{layer.folder}/"
        may = ", ".join(f for f in layer.may_include if f in folders) or "-"
        for path, (extra, _) in EXTRA.items():
            names = ", ".join(f for f in extra if f in folders)
            if path.startswith(prefix) and names:
                may += f", {names}" if path == prefix else f" ({path[len(prefix):]}: {names})"
        parties = [w.name for w in WALLS if any(b.startswith(prefix) for b in w.behind)]
        lines.append(f"| {layer.folder} | {layer.holds} | {may} | {', '.join(parties) or '-'} |")
    return "\n".join(lines + [_END])


def table_of(document):
    """The text between the markers of a document, markers included; empty when there is none."""
    begin, end = document.find(_BEGIN), document.find(_END)
    return document[begin:end + len(_END)] if 0 <= begin < end else ""


def main():
    root = pathlib.Path(__file__).resolve().parents[2]
    table = markdown(folders_of(str(p.relative_to(root)) for p in root.glob("lib/*/*")))
    if sys.argv[1:] != ["--write"]:
        print(table)
        return
    path = root / "docs" / "ARCHITECTURE.md"
    document = path.read_text(encoding="utf-8")
    path.write_text(document.replace(table_of(document), table), encoding="utf-8")


if __name__ == "__main__":
    main()
