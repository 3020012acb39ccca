"""The rules that tests/tidy enforces. Each takes {path: text} of the tree and returns findings,
one sentence a finding, starting with path:line."""

import collections
import posixpath
import re

import house_rules
import layers
import prose_rules
import source

CPP = (".h", ".cc", ".cu", ".cuh")
PRODUCT = ("lib/", "services/", "tools/")
HERE = "tests/tidy/rules.py"
MAX_FUNCTION_LINES = 70
MAX_COLUMNS = 100
MAX_HEADER_LINES = 150
MAX_FILE_LINES = 400

# Path -> reason. A file listed here needs no test of its own.
NO_TWIN = {}
# Path -> test, from its own test folder, that covers it under the name of the idea it is a part of.
TESTED_BY = {
    "lib/cuda/runtime/runtime_backend.cc": "../device_test.cc",
    "lib/cuda/sim/sim_backend.cc": "../device_test.cc",
    "lib/envs/views/afterstates.cc": "views_test.cc",
    "lib/envs/views/ansi.cc": "views_test.cc",
    "lib/envs/views/planes.cc": "views_test.cc",
    "lib/envs/tetris/tetris.cc": "../vec_env_test.cc",
    "lib/http/bounded_server.cc": "http_endpoint_test.cc",
    "lib/nn/board_net.cc": "scorer_gradient_test.cc",
    "lib/nn/chunked_network.cc": "scorer_gradient_test.cc",
    "lib/nn/chunked_scorer.cc": "scorer_gradient_test.cc",
    "lib/nn/column_scorer.cc": "network_test.cc",
    "lib/nn/scorer.cc": "network_test.cc",
    "lib/nn/dreamer/update_nodes.cc": "../../rl/dreamer/device_engine_test.cc",
    "lib/nn/torch/torch_networks.cc": "../network_test.cc",
    "lib/replay/lease.cc": "gate_test.cc",
    "lib/rl/dreamer/cuda/device_place.cc": "../device_engine_test.cc",
    "lib/rl/dreamer/host_engine.cc": "dreamer_trainer_test.cc",
    "lib/rl/torch/graph_place.cc": "../dreamer/device_engine_test.cc",  # on a device
    "lib/rl/parameter_tensors.cc": "vtrace/vtrace_trainer_test.cc",
    "lib/inference/stream_layout.cc": "ends_test.cc",
    "lib/wire/zmq_socket.cc": "socket_test.cc",
    "lib/checkpoint/manifest.cc": "checkpoint_store_test.cc",
}
# Path -> reason. Headers without #pragma once.
NO_PRAGMA_ONCE = {
    "lib/nn/dense_kernels_impl.h": "the body of a file per instruction set, not a header",
}

# (path, rule name) -> reason. The named rule of BANNED does not apply to that file.
BANNED_ALLOWED = {
    ("tools/up/child_processes.cc", "usleep"): "polls killed children for 2 s at most, as last act",
    ("lib/core/mutex.h", "std::mutex"): "the annotated mutex is built on it",
}

# (name, pattern over code without comments and strings, path prefixes it applies to, reason).
_ALL = ("",)
BANNED = (
    ("rand", r"\b(?:std::)?s?rand\s*\(", _ALL, "draw from Philox (lib/core/philox.h)"),
    ("usleep", r"\busleep\s*\(", _ALL, "wait on what you wait for, with a deadline"),
    ("sleep", r"(?<![\w.:>])(?:::)?sleep\s*\(", _ALL, "wait on what you wait for, with a deadline"),
    ("<<<>>>", r"<<<", _ALL, "kernels are launched by Launch (lib/cuda/launch.h)"),
    ("system", r"(?<![\w.>])(?:std::|::)?system\s*\(", _ALL,
     "start programs with posix_spawn or exec"),
    ("printf", r"\b(?:std::)?f?printf\s*\(", ("lib/",), "log through lib/core/log.h"),
    ("fence", r"\batomic_thread_fence\b", _ALL,
     "ThreadSanitizer does not know fences; order the variables themselves"),
    ("wall clock", r"\b(?:system_clock|CLOCK_REALTIME|gettimeofday)\b", ("lib/", "services/"),
     "leases and deadlines use CLOCK_MONOTONIC (lib/core/clock.h)"),
    ("hardware_concurrency", r"\bhardware_concurrency\b", _ALL,
     "a container may use fewer than the machine has: UsableCpus (lib/core/cpu_count.h)"),
    ("thread_local", r"\bthread_local\b[^;={]*(?:;|=\s*(?:0|nullptr|false)\s*;)", _ALL,
     "give it a value that is not zero: Debian 12's linker (mold 1.10) begins the segment that "
     "becomes read-only at .tbss; where that is on a page of its own, the program cannot start"),
    ("using namespace", r"\busing\s+namespace\b", _ALL, "name what you use"),
    ("std::mutex", r"\bstd::(?:recursive_|shared_|timed_)?(?:mutex|condition_variable)\b",
     ("lib/", "services/"), "use the annotated Mutex and CondVar of lib/core/mutex.h"),
    ("std::jthread", r"\bstd::(?:jthread|stop_token)\b", _ALL,
     "a thread is an Agent with a runner"),
    ("unlink", r"(?<![\w.>])(?:unlink(?:at)?|remove)\s*\(",
     ("services/", "lib/policy/", "lib/collect/", "lib/weights/", "lib/inference/",
      "lib/region_v2/"),
     "region files are removed under the folder's lock (lib/shm/shm_dir.h, Region::Unlink)"),
    ("figure by hand", r"\bStat\s*\{\s*\"|\bstats\s*=\s*\{\s*\{|"
     r"\bstats\.(?:push|emplace)_back\(\{?\s*\"", ("services/", "tools/"),
     "declare the figure in a table (lib/core/figure.h); AddStats tells its value"),
    ("torch::load", r"\btorch::(?:load|save|pickle_load)\b", _ALL,
     "checkpoints are safetensors (lib/checkpoint)"),
)
# Headers that clang 14 with libstdc++ 12 cannot read.
BANNED_HEADERS = ("ranges", "format", "print", "generator")

_MARK = re.compile(r"\b(?:" + "|".join(("TO" + "DO", "FIX" + "ME", "X" * 3)) + r")\b")


def _is(path, suffixes):
    return path.endswith(suffixes)


def _cpp(tree):
    return ((path, text) for path, text in sorted(tree.items()) if _is(path, CPP))


def _allowed_folders(path, folder):
    layer = next((x for x in layers.LAYERS if x.folder == folder), None)
    if layer is None:
        return None
    allowed = {folder, *layer.may_include}
    for prefix, (extra, _) in layers.EXTRA.items():
        if path.startswith(prefix):
            allowed.update(extra)
    return allowed


def layering(tree):
    """lib folders include only what the table allows; services never each other, common apart."""
    found = []
    for path, text in _cpp(tree):
        parts = path.split("/")
        if parts[0] not in ("lib", "services"):
            continue
        if parts[0] == "lib" and _allowed_folders(path, parts[1]) is None:
            found.append(f"{path}:1: lib/{parts[1]} is not in tests/tidy/layers.py")
            continue
        for include in source.includes(text):
            target = include.path.split("/")
            where = f"{path}:{include.line}: includes {include.path}"
            if target[0] == "services" and parts[0] == "lib":
                found.append(f"{where}; nothing in lib includes a service")
            elif target[0] == "services" and target[1] not in (parts[1], layers.SERVICES_SHARE):
                found.append(f"{where}; services talk by message or region only")
            elif target[0] in ("tools", "tests", "bench"):
                found.append(f"{where}; product code includes neither tools nor tests")
            elif (target[0] == "lib" and parts[0] == "lib" and
                  target[1] not in _allowed_folders(path, parts[1])):
                found.append(f"{where}; lib/{parts[1]} may not include lib/{target[1]}")
    return found


def walls(tree):
    """Each third party is included behind its wall only."""
    found = []
    for path, text in _cpp(tree):
        if path.startswith(tuple(layers.OUTSIDE_WALLS)):
            continue
        product_path = path[len("tests/"):] if path.startswith("tests/") else path
        for include in source.includes(text):
            for wall in layers.WALLS:
                if (re.fullmatch(wall.pattern, include.path) and
                        not path.startswith(wall.behind) and
                        not product_path.startswith(wall.behind)):
                    found.append(f"{path}:{include.line}: includes {include.path}; {wall.name} "
                                 f"stays behind {', '.join(wall.behind)}")
    return found


def _reaches_torch(path, tree, seen):
    """The chain of includes from path to a torch header, or an empty list."""
    if path in seen or path not in tree:
        return []
    seen.add(path)
    torch = next(wall for wall in layers.WALLS if wall.name == "libtorch")
    for include in source.includes(tree[path]):
        if re.fullmatch(torch.pattern, include.path):
            return [path, include.path]
        chain = _reaches_torch(include.path, tree, seen)
        if chain:
            return [path, *chain]
    return []


def torch_free(tree):
    """CUDA sources and the coordinator reach no torch header through any chain of includes."""
    found = []
    for path, _ in _cpp(tree):
        if path.endswith(".cu") or path.startswith(layers.TORCH_FREE):
            chain = _reaches_torch(path, tree, set())
            if chain:
                found.append(f"{path}:1: reaches libtorch: {' -> '.join(chain)}")
    return found


def includes_resolve(tree):
    """Every #include "..." is a path from the root, or a header that the build generates."""
    return [f'{path}:{include.line}: #include "{include.path}" is no file of the tree'
            for path, text in _cpp(tree) for include in source.includes(text)
            if include.quoted and include.path not in tree
            and not include.path.endswith("_generated.h")
            and not include.path.startswith("generated/")]


def function_length(tree):
    """No function body is longer than MAX_FUNCTION_LINES."""
    return [f"{path}:{f.line}: {f.name} has {f.lines} lines, at most {MAX_FUNCTION_LINES}"
            for path, text in _cpp(tree) for f in source.functions(text)
            if f.lines > MAX_FUNCTION_LINES]


def line_length(tree):
    """No line of code is wider than MAX_COLUMNS, C++ raw strings apart."""
    found = []
    for path, text in sorted(tree.items()):
        if not (_is(path, CPP + (".py", ".sh", ".fbs")) or path in ("tetrion", ".ci/run")):
            continue
        excused = source.raw_string_lines(text) if _is(path, CPP) else ()
        found += [f"{path}:{number}: {len(line)} columns, at most {MAX_COLUMNS}"
                  for number, line in enumerate(text.splitlines(), 1)
                  if len(line) > MAX_COLUMNS and number not in excused]
    return found


def file_length(tree):
    """No product source is longer than MAX_FILE_LINES."""
    return [f"{path}:1: {text.count(chr(10))} lines, at most {MAX_FILE_LINES}"
            for path, text in _cpp(tree)
            if path.startswith(PRODUCT) and text.count("\n") > MAX_FILE_LINES]


def long_headers(tree):
    """Headers over MAX_HEADER_LINES: reported, not refused."""
    return [f"{path}:1: {text.count(chr(10))} lines, aim at {MAX_HEADER_LINES}"
            for path, text in _cpp(tree) if path.endswith(".h") and path.startswith(PRODUCT)
            and text.count("\n") > MAX_HEADER_LINES]


def banned(tree):
    """Calls and headers this project does without."""
    found = []
    for path, text in _cpp(tree):
        code = source.code_only(text)
        for name, pattern, prefixes, reason in BANNED:
            if not path.startswith(prefixes):
                continue
            matches = list(re.finditer(pattern, code))
            if (path, name) in BANNED_ALLOWED:
                if not matches:
                    found.append(f"{path}:1: {name}: no longer used here: drop its exception")
                continue
            for match in matches:
                line = code.count("\n", 0, match.start()) + 1
                found.append(f"{path}:{line}: {match.group().strip()}: {reason}")
        if (path.startswith(PRODUCT) and re.search(r"\bftruncate\s*\(", code)
                and not re.search(r"\bposix_fallocate\s*\(", code)):
            found.append(f"{path}:1: ftruncate without posix_fallocate: touching memory that is "
                         "not there is SIGBUS")
        found += [f"{path}:{include.line}: <{include.path}>: clang 14 cannot read it"
                  for include in source.includes(text)
                  if not include.quoted and include.path in BANNED_HEADERS]
    return found


def marks(tree):
    """No work is left lying about in comments."""
    return [f"{path}:{number}: {match.group()}: do it now or leave it out"
            for path, text in sorted(tree.items())
            if _is(path, CPP + (".py", ".sh", ".cmake", ".txt", ".md", ".fbs"))
            for number, line in enumerate(text.splitlines(), 1) for match in _MARK.finditer(line)]


def pragma_once(tree):
    """Every header says #pragma once, after comments at most."""
    return [f"{path}:1: no #pragma once" for path, text in _cpp(tree)
            if path.endswith(".h") and path not in NO_PRAGMA_ONCE
            and not re.match(r"\s*#pragma once\n", source.code_only(text))]


def _is_tested(path, tree):
    """By a test of its name, of the name it is a part of (codec_encode: codec), or by a test of its
    module that includes its header."""
    folder, name = posixpath.split(path[:-len(".cc")])
    parts = name.split("_")
    stems = ("_".join(parts[:count]) for count in range(len(parts), 0, -1))
    if any(f"tests/{folder}/{stem}_test{suffix}" in tree
           for stem in stems for suffix in (".cc", ".cu")):
        return True
    return any(f"{folder}/{name}.h" in (i.path for i in source.includes(text))
               for test, text in tree.items()
               if test.startswith(f"tests/{folder}/") and test.endswith(("_test.cc", "_test.cu")))


def twins(tree):
    """Every lib/<m>/<f>.cc is tested in tests/lib/<m>, or has a reason in NO_TWIN, none stale."""
    found = []
    for path, _ in _cpp(tree):
        if not (path.startswith("lib/") and path.endswith(".cc")):
            continue
        folder, tested = "tests/" + posixpath.dirname(path), _is_tested(path, tree)
        covered = path in NO_TWIN
        if path in TESTED_BY:
            covered = posixpath.normpath(f"{folder}/{TESTED_BY[path]}") in tree
        if not tested and not covered:
            found.append(f"{path}:1: no test in {folder}, and no reason in tests/tidy/rules.py")
        if tested and (path in TESTED_BY or path in NO_TWIN):
            found.append(f"{path}:1: is tested; its line in tests/tidy/rules.py is stale")
    return found + [f"{HERE}:1: {path} is not there; its line is stale"
                    for path in (*NO_TWIN, *TESTED_BY, *NO_PRAGMA_ONCE)
                    if HERE in tree and path not in tree]


def _anchors(text):
    """What GitHub calls the headings of a Markdown file; a repeated one has a number."""
    anchors, seen = set(), collections.Counter()
    for heading in re.findall(r"^#+ +(.*?)[ #]*$", re.sub(r"^```.*?^```", "", text,
                                                         flags=re.DOTALL | re.MULTILINE),
                              re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-")
        anchors.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
        seen[slug] += 1
    return anchors


def links(tree):
    """Relative links and pictures of Markdown files point at something, their anchors at a
    heading."""
    found = []
    folders = {posixpath.dirname(path) for path in tree}
    for path, text in sorted(tree.items()):
        if not path.endswith(".md"):
            continue
        for match in re.finditer(r"\]\(([^)#\s]*)(?:#([^)]*))?\)", text):
            target, anchor = match.groups()
            if re.match(r"[a-z]+:", target):
                continue
            where = f"{path}:{text.count(chr(10), 0, match.start()) + 1}: link to"
            resolved = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
            if not target:
                resolved = path
            if resolved not in tree and not any(
                    f == resolved or f.startswith(resolved + "/") for f in folders):
                found.append(f"{where} {target}, which is not there")
            elif anchor and resolved.endswith(".md") and anchor not in _anchors(tree[resolved]):
                found.append(f"{where} {target}#{anchor}: {resolved} has no such heading")
    return found


def documented_layers(tree):
    """docs/ARCHITECTURE.md shows the table of layers.py."""
    table = layers.markdown(layers.folders_of(tree))
    if layers.table_of(tree.get("docs/ARCHITECTURE.md", "")) == table:
        return []
    return ["docs/ARCHITECTURE.md:1: the layer table differs from tests/tidy/layers.py; run "
            "python3 tests/tidy/layers.py --write"]


ENFORCED = (layering, walls, torch_free, includes_resolve, function_length, line_length,
            file_length, banned, marks, pragma_once, twins, links, documented_layers,
            *house_rules.ENFORCED, *prose_rules.ENFORCED)
REPORTED = (long_headers,)
