"""Rules about what belongs together: classes and their files, names of types, users of functions,
metrics, settings, layers, packages, environments. Each takes {path: text} and returns findings, as
in rules.py. An entry of an allow-list that excuses nothing any more is a finding, too."""

import collections
import posixpath
import re

import layers
import source

CPP = (".h", ".cc", ".cu", ".cuh")
PRODUCT = ("lib/", "services/", "tools/", "python/")
HERE = "tests/tidy/house_rules.py"

# (source, class) -> reason. Members of the class stand in a source of another name than its header.
SECOND_SOURCES = {}

# (namespace, type) -> reason. More than one file defines it.
SAME_NAMES = {
    ("tetrion::cuda", "SharedSpan"): "shared memory for nvcc and for g++, one or the other",
    ("tetrion::cuda::backend", "StreamState"): "each backend's own, and a program has one",
    ("tetrion::cuda::backend", "EventState"): "as above",
    ("tetrion::cuda::backend", "GraphState"): "as above",
    ("tetrion::cuda::backend", "PinnedState"): "as above",
}

# (header, function) -> reason. Public in a header of lib, named by no other product file.
WITHOUT_PRODUCT_USER = {
    ("lib/checkpoint/checkpoint_store.h", "SetPauseHook"): "a test kills the writer between steps",
    ("lib/core/clock.h", "AdvanceMs"): "FakeClock, the tests' clock",
    ("lib/cuda/cpu_arithmetic.h", "rsqrtf"): "CUDA has it; a test holds it against CUDA's",
    ("lib/cuda/stream.h", "Idle"): "tests look whether work is done",
    ("lib/cuda/device.h", "CopyOnDevice"): "bench_device measures it; tests copy by it",
    ("lib/cuda/host_copy_guard.h", "Seen"): "tests count copies",
    ("lib/envs/tetris/colour_record.h", "ColourRow"): "the record's definition, read by tests",
    ("lib/envs/registry.h", "RegisterEnv"): "programs that bring an environment of their own",
    ("lib/episodes/episode_batch.h", "padded_bytes"): "tests count bytes written",
    ("lib/episodes/episode_obs.h", "MakeRecordWriter"): "the plainest writer, for tests",
    ("lib/nn/dense_kernels.h", "AllDenseKernels"): "tests hold each table against plain loops",
    ("lib/nn/dreamer/dreamer_shape.h", "DreamerModules"): "tests of the buffer's order",
    ("lib/region_v2/compat_kernel.h", "Metadata"): "a command of the foreign protocol",
    ("lib/region_v2/compat_kernel.h", "Ping"): "a command of the foreign protocol",
    ("lib/replay/host_rows.h", "CheckInvariants"): "tests and debugging look at committed rows",
    **{("lib/replay/replay_ring_cuda.h", name): "others program against it, by its planned name"
       for name in ("assert_no_host_memcpy", "check_invariants", "obs_slot", "push_step",
                    "record_commit", "safe_max_t", "sample_sequences")},
    ("lib/run/replay_need.h", "UniformReplayRows"): "a test compares it with the selector's need",
    ("lib/shm/bell.h", "SleepsApprox"): "tests and benchmarks count system calls",
    ("lib/weights/weights_slot.h", "torn_reads"): "tests count reads that met a publication",
    ("lib/wire/input_bound.h", "waiting_bytes"): "tests read what is known of the input",
}

# Metric -> reason. Declared in the catalog and recorded by nothing.
UNRECORDED = {}

# Path -> reason. Names environments although no entry of the registry is made there.
NAMES_ENVIRONMENTS = {
    "lib/run/run_config.h": "the default of a run",
    "lib/vector/obs_encoder.h": "the default of a vector environment",
    "tools/eval/linear_policy.cc": "known features of one environment",
    "tools/stream/cartpole_env.cc": "the foreign protocol's one environment",
    "tools/stream/stream_policy.cc": "the foreign protocol's one environment",
    "tools/stream/stream_options.cc": "the foreign protocol's one environment",
    "tools/stream/stream_options.h": "the foreign protocol's one environment",
}


def _product(tree, suffixes=CPP):
    return ((path, text) for path, text in sorted(tree.items())
            if path.endswith(suffixes) and path.startswith(PRODUCT))


def _stem(path):
    return posixpath.splitext(path)[0]


def _stale(allowed, used, tree, name, path_of):
    """Entries of an allow-list that excuse nothing. In a made-up tree, without this file, only
    those of files that it has."""
    return [f"{HERE}:1: {name} excuses {key}, which needs no excuse" for key in allowed
            if key not in used and (path_of(key) in tree or HERE in tree)]


def _homes(tree):
    """{(namespace, type): [(path, line)]} of the product's types, nameless namespaces left out."""
    homes = collections.defaultdict(list)
    for path, text in _product(tree):
        for what in source.declared(text):
            if what.is_type and "::" not in what.name and "-" not in what.namespace:
                homes[what.namespace, what.name].append((path, what.line))
    return homes


def _header_of(name, namespace, homes):
    """The header that defines a class which a namespace or one around it sees; None without."""
    while namespace and (namespace, name) not in homes:
        namespace = namespace.rpartition("::")[0]
    return next((path for path, _ in homes.get((namespace, name), ()) if path.endswith(".h")), None)


def class_sources(tree):
    """A class has one source, of its header's name: a second one hides a second class."""
    homes, found, excused = _homes(tree), {}, set()
    for path, text in _product(tree, (".cc", ".cu")):
        names = source.declared(text)
        local = {what.name for what in names if what.is_type}
        for what in names:
            owner = what.name.split("::")[0]
            if "::" not in what.name or owner in local or (path, owner) in found:
                continue
            header = _header_of(owner, what.namespace, homes)
            if header is None or _stem(header) == _stem(path):
                continue
            if (path, owner) in SECOND_SOURCES:
                excused.add((path, owner))
                continue
            found[path, owner] = (f"{path}:{what.line}: {what.name} is a member of a class of "
                                  f"{header}; a class has one source")
    return [*found.values(),
            *_stale(SECOND_SOURCES, excused, tree, "SECOND_SOURCES", lambda key: key[0])]


def type_names(tree):
    """No two files define a type of one name in one namespace."""
    found = []
    for (namespace, name), places in sorted(_homes(tree).items()):
        files = sorted({path for path, _ in places})
        if len(files) > 1 and (namespace, name) not in SAME_NAMES:
            path, line = places[-1]
            others = ", ".join(file for file in files if file != path)
            found.append(f"{path}:{line}: {namespace}::{name} is defined in {others}, too")
    return found


# A function's declaration or call; one with a lower-case name only where a type stands before it.
_FUNCTION = re.compile(r"\b([A-Z]\w*[a-z]\w*)\s*\("
                       r"|(?<!\breturn )(?<=[\w>&*] )[&*]*([a-z]\w*[a-z0-9])\("
                       r"(?![^;{}]*\boverride\b)")


def product_users(tree):
    """A function of a lib header is named by another product file or by its own source. One with a
    lower-case name that overrides another's is called by that one's name."""
    users = collections.defaultdict(set)
    for path, text in _product(tree):
        for word in set(re.findall(r"\w+", source.code_only(text))):
            users[word].add(_stem(path))
    found, excused = [], set()
    for path, text in _product(tree, (".h",)):
        if not path.startswith("lib/"):
            continue
        code = source.code_only(text)
        own = source.code_only(tree.get(_stem(path) + ".cc", tree.get(_stem(path) + ".cu", "")))
        for match in _FUNCTION.finditer(code):
            name = match.group(1) or match.group(2)
            named = re.compile(rf"\b{name}\b")
            # In its source once: there it is defined.
            if users[name] != {_stem(path)} or max(len(named.findall(code)),
                                                   len(named.findall(own))) > 1:
                continue
            if (path, name) in WITHOUT_PRODUCT_USER:
                excused.add((path, name))
                continue
            line = code.count("\n", 0, match.start()) + 1
            found.append(f"{path}:{line}: no product file uses {name}")
    return found + _stale(WITHOUT_PRODUCT_USER, excused, tree, "WITHOUT_PRODUCT_USER",
                          lambda key: key[0])


def recorded_metrics(tree):
    """Every metric of the catalog is named by a product file that records it."""
    catalogs = [path for path, text in _product(tree, (".h",))
                if path.startswith("lib/metrics/") and re.search(r"\bkCatalog\s*=", text)]
    elsewhere = "\n".join(source.without_comments(text) for path, text in _product(tree)
                          if path not in catalogs)
    found = []
    for path in catalogs:
        text = source.without_comments(tree[path])
        for match in re.finditer(r'"(tetrion_\w+)"', text):
            recorded, excused = match.group() in elsewhere, match.group(1) in UNRECORDED
            where = f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match.group(1)}"
            if not recorded and not excused:
                found.append(f"{where} is recorded nowhere")
            elif recorded and excused:
                found.append(f"{where} is recorded; its line in {HERE} is stale")
        found += [f"{path}:1: {name} of UNRECORDED is not declared" for name in UNRECORDED
                  if f'"{name}"' not in text]
    return found


_SETTINGS = re.compile(r"^struct \w+Settings \{\n(.*?)^\};", re.DOTALL | re.MULTILINE)
_FIELD = re.compile(r"^  (?!static)[\w:]+ (\w+) = [^;()]*;", re.MULTILINE)


def read_settings(tree):
    """Every field of an algorithm's settings is read: as settings.NAME in its folder, or as the
    run's, dreamer.NAME. A struct that has it, too, proves nothing: nothing may fill it."""
    found = []
    for path, text in _product(tree, ("_settings.h",)):
        folder, code = posixpath.dirname(path), source.code_only(text)
        own = "\n".join(source.code_only(text) for other, text in _product(tree)
                        if other.startswith(folder + "/"))
        every = "\n".join(source.code_only(text) for _, text in _product(tree))
        for struct in _SETTINGS.finditer(code):
            for field in _FIELD.finditer(struct.group(1)):
                read = rf"\.{field.group(1)}\b(?!\s*=(?!=))"
                if (re.search(r"\bsettings_?" + read, own) or
                        re.search(rf"\b{posixpath.basename(folder)}" + read, every)):
                    continue
                line = code.count("\n", 0, struct.start(1) + field.start()) + 1
                found.append(f"{path}:{line}: nothing reads the setting {field.group(1)}; use "
                             f"settings.{field.group(1)} in {folder}")
    return found


def _edges(tree):
    """{(folder of lib, folder of lib that it includes): paths}."""
    edges = collections.defaultdict(set)
    for path, text in _product(tree):
        if path.startswith("lib/"):
            for include in source.includes(text):
                if include.path.startswith("lib/"):
                    edges[path.split("/")[1], include.path.split("/")[1]].add(path)
    return edges


def layers_used(tree):
    """Every layer has a folder, and every edge that layers.py allows is used."""
    edges, folders, found = _edges(tree), layers.folders_of(tree), []
    for layer in layers.LAYERS:
        if layer.folder in layers.PLANNED:
            if layer.folder in folders:
                found.append(f"tests/tidy/layers.py:1: lib/{layer.folder} is there; it is no "
                             "longer PLANNED")
        elif layer.folder not in folders:
            found.append(f"tests/tidy/layers.py:1: there is no lib/{layer.folder}")
        else:
            found += [f"tests/tidy/layers.py:1: lib/{layer.folder} may include lib/{other} and "
                      "never does" for other in layer.may_include
                      if other not in layers.PLANNED and (layer.folder, other) not in edges
                      and (layer.folder, other) not in layers.PLANNED_EDGES]
    found += [f"tests/tidy/layers.py:1: lib/{folder} includes lib/{other}; no longer PLANNED"
              for folder, other in layers.PLANNED_EDGES if (folder, other) in edges]
    for prefix, (extra, _) in layers.EXTRA.items():
        found += [f"tests/tidy/layers.py:1: {prefix} may include lib/{other} and never does"
                  for other in extra
                  if not any(path.startswith(prefix)
                             for path in edges.get((prefix.split("/")[1], other), ()))]
    return found


_PACKAGE = re.compile(r"^[^#\n]*\b(?:find_package|pkg_check_modules)\s*\(\s*([\w+-]+)",
                      re.MULTILINE)


def packages(tree):
    """Every package that CMake looks for stands behind a wall, or has a reason to need none."""
    walls = {wall.package for wall in layers.WALLS}
    found = []
    for path, text in sorted(tree.items()):
        if not (path.endswith(".cmake") or posixpath.basename(path) == "CMakeLists.txt"):
            continue
        for match in _PACKAGE.finditer(text):
            if match.group(1) not in walls and match.group(1) not in layers.UNWALLED:
                found.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: "
                             f"{match.group(1)} has no wall in tests/tidy/layers.py")
    return found


_ENTRY_NAME = re.compile(r'\bentry\.name = "([^"]+)"')


def environment_names(tree):
    """An environment's entry names it (`entry.name = "..."`); everything else asks the registry."""
    entries = {(path, name) for path, text in _product(tree) if path.startswith("lib/envs/")
               for name in _ENTRY_NAME.findall(source.without_comments(text))}
    names = re.compile('"(?:' + ("|".join(re.escape(name) for _, name in entries) or "(?!)") + ')"')
    homes = {path for path, _ in entries}
    found, excused = [], set()
    for path, text in _product(tree):
        if path in homes:
            continue
        text = source.without_comments(text)
        for match in names.finditer(text):
            if path in NAMES_ENVIRONMENTS:
                excused.add(path)
                continue
            found.append(f"{path}:{text.count(chr(10), 0, match.start()) + 1}: names "
                         f"{match.group()}; ask lib/envs/registry.h")
    return found + _stale(NAMES_ENVIRONMENTS, excused, tree, "NAMES_ENVIRONMENTS", lambda key: key)


_ONE_THREAD = re.compile(r"^[ ]*tetrion(?:_cuda)?_test\((\w+)\s+ONE_THREAD\s+SRCS\s+([^)]*)\)",
                         re.MULTILINE)
_STARTS_THREADS = re.compile(
    r"\bstd::j?thread\s*[({>\w]|\bstd::async\b|core/agent\.h|\bpthread_create\b")


def one_thread_tests(tree):
    """A test that ThreadSanitizer's builds leave out starts no thread."""
    found = []
    for path, text in sorted(tree.items()):
        if posixpath.basename(path) != "CMakeLists.txt":
            continue
        for name, words in _ONE_THREAD.findall(text):
            for word in words.split():
                test = posixpath.normpath(posixpath.join(posixpath.dirname(path), word))
                match = _STARTS_THREADS.search(source.without_comments(tree.get(test, "")))
                if match:
                    line = tree[test].count("\n", 0, match.start()) + 1
                    found.append(f"{test}:{line}: starts a thread, but {path} says that {name} "
                                 "has ONE_THREAD")
    return found


ENFORCED = (class_sources, type_names, product_users, recorded_metrics, read_settings,
            layers_used, packages, environment_names, one_thread_tests)
