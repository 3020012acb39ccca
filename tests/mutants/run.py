#!/usr/bin/env python3
"""Applies the deliberate faults below tests/mutants one by one to a copy of this tree, builds each
and says whether the test that its header names notices it.

Without NAMEs (or globs: 'shm/*') all are judged. Exit status 1 when one survives, or proves
nothing because its patch does not apply, it does not build, or its test fails without it.
"""

import argparse
import collections
import contextlib
import fcntl
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time

import mutants

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
WORK = ROOT / "build" / "mutants"
TREE = WORK / "tree"
BUILD_TIMEOUT_S = 1800
SHOWN_LINES = 15  # of a log that explains a failure
TORCH = ROOT / ".deps"
UNTRACKED = {".git", ".deps", "build", "runs", "__pycache__", ".venv"}


class StepError(Exception):
    """A step that went wrong: what, and the end of its log."""

    def __init__(self, what, log=""):
        super().__init__("\n    ".join([what, *log.splitlines()[-SHOWN_LINES:]]))


def execute(command, timeout_s, **environment):
    """(exit status, None after a time-out; output) of a command in the copy of the tree."""
    process = subprocess.Popen(command, cwd=TREE, env={**os.environ, **environment}, text=True,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace",
                               start_new_session=True)
    try:
        output, _ = process.communicate(timeout=timeout_s)
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # with whatever it has started
        output, _ = process.communicate()
        return None, output
    except BaseException:  # this program is ended
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        raise


def listed():
    """Paths of the tree's files: tracked or not yet, never ignored; without git, all but what is
    never tracked."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return [path for path in done.stdout.split("\0") if (ROOT / path).is_file()]
    found = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [name for name in folders if name not in UNTRACKED]
        found += [str((pathlib.Path(folder) / name).relative_to(ROOT)) for name in files]
    return found


def synchronise():
    """Makes the copy equal to the tree. Touches only what differs, so that little is rebuilt."""
    paths = set(listed())
    for path in paths:
        source, target = ROOT / path, TREE / path
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)
    for folder, folders, files in os.walk(TREE):
        folders[:] = [name for name in folders if name not in UNTRACKED]
        for target in (pathlib.Path(folder) / name for name in files):
            if str(target.relative_to(TREE)) not in paths:
                target.unlink()
    if TORCH.exists() and not (TREE / ".deps").exists():
        (TREE / ".deps").symlink_to(TORCH)


def unrandomised():
    """Prefix of commands with code of ThreadSanitizer, whose shadow memory needs fixed addresses;
    empty where the system does not allow it."""
    prefix = ["setarch", platform.machine(), "-R"]
    allowed = shutil.which("setarch") and subprocess.run(
        [*prefix, "true"], capture_output=True, check=False).returncode == 0
    return prefix if allowed else []


class Builder:
    """Builds targets of the copy and runs tests of them."""

    def __init__(self, jobs):
        self.jobs = jobs
        self.prefix = unrandomised()

    def build(self, preset, targets):
        folder = TREE / "build" / preset
        if not (folder / "build.ninja").exists():
            status, log = execute(["cmake", "--preset", preset], BUILD_TIMEOUT_S)
            if status != 0:
                raise StepError(f"cmake --preset {preset} fails", log)
        command = [*self.prefix, "ninja", "-C", str(folder), "-j", str(self.jobs), *targets]
        status, log = execute(command, BUILD_TIMEOUT_S)
        if status != 0:
            raise StepError("it does not build", log)

    def test(self, preset, target, test, timeout_s):
        program = TREE / "build" / preset / "tests" / target
        # A data race found is a failure of the test that runs, not of the program's end.
        options = "halt_on_error=1 " + os.environ.get("TSAN_OPTIONS", "")
        return execute([*self.prefix, str(program), f"--gtest_filter={test}"], timeout_s,
                       TSAN_OPTIONS=options)


def check_without_faults(builder, chosen):
    """Builds what the mutants need and runs their tests: {mutant's name: why it proves nothing}."""
    targets = collections.defaultdict(set)
    for mutant in chosen:
        targets[mutant.preset].add(mutant.target)
    for preset, names in sorted(targets.items()):
        print(f"building {preset} without faults: {' '.join(sorted(names))}", flush=True)
        builder.build(preset, sorted(names))
    found, known = {}, {}
    for mutant in chosen:
        for test in mutant.tests:
            key = (mutant.preset, mutant.target, test)
            if key not in known:
                known[key] = builder.test(*key, mutant.timeout_s)
            status, output = known[key]
            if not mutants.ran(output):
                found[mutant.name] = f"{test} is not there or skipped"
            elif status != 0:
                found[mutant.name] = f"{test} fails without the fault"
    return found


@contextlib.contextmanager
def applied(mutant):
    """The copy of the tree with the mutant's fault, and without it afterwards."""
    before = {TREE / path: (TREE / path).read_bytes() for path in mutants.touched(mutant)
              if (TREE / path).is_file()}
    # The copy lies inside a repository, whose root git must not take it for.
    status, log = execute(["git", "apply", "-p1", str(mutant.patch)], BUILD_TIMEOUT_S,
                          GIT_CEILING_DIRECTORIES=str(WORK))
    if status != 0:
        raise StepError("its patch does not apply any more", log)
    try:
        yield
    finally:
        for path in (TREE / path for path in mutants.touched(mutant)):
            path.unlink(missing_ok=True)
            if path in before:
                path.write_bytes(before[path])


def judge(builder, mutant):
    """("killed" or "survived", how) of one mutant."""
    how = ""
    with applied(mutant):
        builder.build(mutant.preset, [mutant.target])
        for test in mutant.tests:
            status, output = builder.test(mutant.preset, mutant.target, test, mutant.timeout_s)
            log = WORK / "logs" / f"{mutant.name}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text(output, encoding="utf-8")
            noticed, how = mutants.judge(test, status, output)
            if not noticed:
                return "survived", how
    return "killed", how


def judge_all(builder, chosen):
    """Prints a line per mutant; how many were killed, and how many were not."""
    proves_nothing = check_without_faults(builder, chosen)
    width = max(len(mutant.name) for mutant in chosen)
    killed = 0
    # Mutants of one target after each other: what the last one touched is rebuilt anyway.
    for mutant in sorted(chosen, key=lambda m: (m.preset, m.target, m.name)):
        start = time.monotonic()
        try:
            if mutant.name in proves_nothing:
                raise StepError(proves_nothing[mutant.name])
            result, how = judge(builder, mutant)
        except StepError as failure:
            result, how = "broken", str(failure)
        killed += result == "killed"
        seconds = time.monotonic() - start
        print(f"{mutant.name:<{width}}  {result:<8}  {seconds:5.1f} s  {how}", flush=True)
    return killed, len(chosen) - killed


def parse(args):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--list", action="store_true", help="say which there are, judge none")
    parser.add_argument("--sample", type=int, metavar="N", help="judge N of them, drawn by --seed")
    parser.add_argument("--preset", action="append", choices=mutants.PRESETS, dest="presets",
                        help="judge only those of these presets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    return parser.parse_args(args)


def main(args):
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    options = parse(args)
    try:
        there = [m for m in mutants.load(HERE) if m.preset in (options.presets or mutants.PRESETS)]
        chosen = mutants.choose(there, options.names, options.sample, options.seed)
    except mutants.BadPatchError as bad:
        print(bad)
        return 2
    if options.list:
        print(*(f"{m.name}: {m.fault}\n    {m.preset} {m.target} {' '.join(m.tests)}"
                for m in chosen), sep="\n")
        return 0
    if options.sample is not None:
        print(f"sample of {len(chosen)}, seed {options.seed}:", *(m.name for m in chosen))
    TREE.mkdir(parents=True, exist_ok=True)
    with open(WORK / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"another run uses {WORK}")
            return 2
        synchronise()
        try:
            killed, others = judge_all(Builder(options.jobs), chosen) if chosen else (0, 0)
        except StepError as failure:
            print(f"without faults: {failure}")
            return 1
    print(f"{killed} passed, {others} failed")
    return 0 if killed and not others else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
