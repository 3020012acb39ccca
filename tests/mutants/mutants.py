"""What a deliberate fault is: a patch with a header, read, chosen and judged.

The header stands before the patch's first `diff` or `---` line: a sentence saying the fault, then
`target:` (ninja target), one `test:` a gtest name that must fail, and where the defaults do not do
`preset:` (asan) and `timeout_s:` (30).
"""

import fnmatch
import pathlib
import random
import re
import typing

PRESETS = ("asan", "tsan", "cpu")
DEFAULT_TIMEOUT_S = 30
# What a test prints that dies of its fault instead of saying so: sanitizers, TETRION_CHECK.
_REPORT = re.compile(r"(?:ERROR: \w+Sanitizer|WARNING: ThreadSanitizer|runtime error): ?(.*)"
                     r"|(CHECK failed.*)")
_KEY = re.compile(r"(target|test|preset|timeout_s): (\S+)")


class Mutant(typing.NamedTuple):
    name: str  # group/name
    fault: str
    target: str
    tests: tuple
    preset: str
    timeout_s: float
    patch: pathlib.Path


class BadPatchError(Exception):
    """A patch whose header does not say what a mutant needs."""


def read(patch, folder):
    """The Mutant of one patch file below `folder`."""
    name = str(patch.relative_to(folder).with_suffix(""))
    sentence, keys = [], {"test": []}
    for line in patch.read_text(encoding="utf-8").splitlines():
        if line.startswith(("diff ", "--- ")):
            break
        match = _KEY.fullmatch(line.strip())
        if match is None:
            sentence.append(line.strip())
        elif match[1] == "test":
            keys["test"].append(match[2])
        else:
            keys[match[1]] = match[2]
    fault = " ".join(sentence).strip()
    for key, there in (("a sentence", fault), ("target:", keys.get("target")),
                       ("test:", keys["test"])):
        if not there:
            raise BadPatchError(f"{name}: the header lacks {key}")
    preset = keys.get("preset", PRESETS[0])
    if preset not in PRESETS:
        raise BadPatchError(f"{name}: preset is {preset}, known are {', '.join(PRESETS)}")
    return Mutant(name, fault, keys["target"], tuple(keys["test"]), preset,
                  float(keys.get("timeout_s", DEFAULT_TIMEOUT_S)), patch)


def touched(mutant):
    """Paths of the files that the mutant's patch changes."""
    text = mutant.patch.read_text(encoding="utf-8")
    return sorted(set(re.findall(r"^(?:---|\+\+\+) [ab]/(\S+)", text, re.MULTILINE)))


def load(folder):
    """All mutants below `folder`, by name."""
    return sorted((read(patch, folder) for patch in folder.glob("*/*.patch")),
                  key=lambda mutant: mutant.name)


def choose(mutants, patterns, sample, seed):
    """The mutants that match any pattern (all without one); of these `sample` if it is not None."""
    for pattern in patterns:
        if not fnmatch.filter((m.name for m in mutants), pattern):
            raise BadPatchError(f"no mutant is called {pattern}")
    found = [m for m in mutants
             if not patterns or any(fnmatch.fnmatch(m.name, p) for p in patterns)]
    if sample is None or sample >= len(found):
        return found
    return sorted(random.Random(seed).sample(found, sample), key=lambda mutant: mutant.name)


def _named(line_start, output):
    return [match.rstrip(",") for match in
            re.findall(rf"^\[ *{line_start} *\] (\S+\.\S+)", output, re.MULTILINE)]


def ran(output):
    """Names of the tests that the output says were started and not skipped."""
    return sorted(set(_named("RUN", output)) - set(_named("SKIPPED", output)))


def judge(test, status, output):
    """(noticed, how): whether `test` failed by its name. `status` is None after a time-out."""
    failed = fnmatch.filter(_named("FAILED", output), test)
    if failed:
        return True, failed[0]
    if status == 0:
        return False, f"{test} passes"
    ended = set(_named("OK", output) + _named("SKIPPED", output))
    running = [name for name in _named("RUN", output) if name not in ended]
    report = _REPORT.search(output)
    if report and fnmatch.filter(running[-1:], test):
        return True, f"{running[-1]}: {(report[1] or report[2] or report[0]).strip()}"
    if status is None:
        return False, f"{test} shows it only as a hang"
    return False, f"{test} ends with status {status} and does not say why"
