"""Runs clang-tidy 14 with .clang-tidy over product sources: clang_tidy.py BUILD [--all] [--jobs N].

BUILD is a build folder with compile commands and generated headers (build/asan). A file that passed
is not read again until it, a project header it includes, its compile options or .clang-tidy change
(build/ci/clang-tidy remembers). Without --all at most LIMIT files are read: those that the newest
COMMITS commits or the working tree changed, then others, drawn anew with every commit.
"""

import argparse
import concurrent.futures
import datetime
import hashlib
import os
import posixpath
import random
import shutil
import subprocess
import sys

import check
import clang
import source

ROOT = check.ROOT
PRODUCT = ("lib/", "services/", "tools/")
PASSED = ROOT / "build" / "ci" / "clang-tidy"
TIDY = "clang-tidy-14"
COMMITS = 10
# A file takes 4 s of a core, so many 3 minutes of two.
LIMIT = 80
FILE_TIMEOUT_S = 300

# (source, check) -> reason. The check is off for that source.
ALLOWED = {
    ("tools/stream/inspect.cc", "bugprone-suspicious-memory-comparison"): "an all-zero slot",
    ("tools/stream/region_doc.cc", "bugprone-sizeof-expression"): "elements of nested arrays",
}


def git(*words):
    """Lines that git prints; none where it fails or is not there."""
    try:
        done = subprocess.run(["git", "-C", str(ROOT), *words], capture_output=True, text=True,
                              check=False)
    except OSError:
        return []
    return done.stdout.splitlines() if done.returncode == 0 else []


def seed():
    """A number that changes with every commit; with the week where git does not tell."""
    return (git("rev-list", "--count", "HEAD") or [f"{datetime.date.today():%G%V}"])[0]


def changed():
    """Paths that the newest commits or the working tree changed."""
    paths = git("log", f"-{COMMITS}", "--name-only", "--format=")
    return {*paths, *git("diff", "--name-only", "HEAD")} - {""}


def closure(path, tree, seen):
    """`seen` with the path and all files of the tree that it includes, directly or not."""
    if path in tree and path not in seen:
        seen.add(path)
        for include in source.includes(tree[path]):
            closure(include.path, tree, seen)
    return seen


def key(path, words, tree):
    """The name under which a pass of this file, read with these options, is remembered."""
    digest = hashlib.sha256(repr((tree.get(".clang-tidy"), words, switched_off(path))).encode())
    for part in sorted(closure(path, tree, set())):
        digest.update(repr((part, tree[part])).encode())
    return digest.hexdigest()[:32]


def chosen(paths, touched, limit, draw):
    """At most `limit` of the paths by lot, but those touched (or whose header is) first."""
    stems = {posixpath.splitext(path)[0] for path in touched}
    drawn = sorted(paths)
    draw.shuffle(drawn)
    return sorted(drawn, key=lambda path: posixpath.splitext(path)[0] not in stems)[:limit]


def commands(build):
    """{path: (folder to run in, compiler options)} of the product's sources."""
    found = {}
    for entry in clang.compile_commands(build):
        path = os.path.relpath(entry["file"], ROOT)
        if path.startswith(PRODUCT) and path.endswith(".cc"):
            found[path] = (entry["directory"],
                           [word for word in clang.clang_command(entry)[1:]
                            if word not in ("-fsyntax-only", entry["file"])])
    return found


def switched_off(path):
    """The option that switches off what ALLOWED says of this source."""
    names = [f"-{name}" for source_path, name in ALLOWED if source_path == path]
    return [f"--checks={','.join(names)}"] if names else []


def read(path, folder, words):
    """What clang-tidy says of one file; empty when it passes."""
    try:
        done = subprocess.run(
            [TIDY, "--quiet", *switched_off(path), str(ROOT / path), "--", *words], cwd=folder,
            capture_output=True, text=True, check=False, timeout=FILE_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"{path}: error: no end within {FILE_TIMEOUT_S} s"
    return (done.stdout.strip() or done.stderr) if done.returncode else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build")
    parser.add_argument("--all", action="store_true", help="every file that has not passed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if not shutil.which(TIDY):
        sys.exit(f"{TIDY} is missing: apt-get install clang-tidy-14")
    tree, sources = check.read_tree(), commands(args.build)
    keys = {path: key(path, words, tree) for path, (_, words) in sources.items()}
    PASSED.mkdir(parents=True, exist_ok=True)
    unread = [path for path in sources if not (PASSED / keys[path]).exists()]
    paths = chosen(unread, changed(), len(unread) if args.all else LIMIT, random.Random(seed()))
    refused = 0
    with concurrent.futures.ThreadPoolExecutor(max(1, args.jobs)) as pool:
        said_of = pool.map(lambda path: read(path, *sources[path]), paths)
        for path, said in zip(paths, said_of, strict=True):
            refused += bool(said)
            if said:
                print(said)
            else:
                (PASSED / keys[path]).touch()
    print(f"clang-tidy: {len(sources)} files, {len(sources) - len(unread)} passed before, "
          f"{len(paths)} read, {refused} refused, {len(unread) - len(paths)} left for a later run")
    return 1 if refused or not sources else 0


if __name__ == "__main__":
    sys.exit(main())
