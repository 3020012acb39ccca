"""Reads every product source of a build folder with clang 14: clang.py build/asan.

The tree is compiled by g++; clang checks what g++ cannot: which mutex guards what
(-Wthread-safety), and that the headers stay readable to clang's tools. Parses only.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PRODUCT = ("lib", "services", "tools", "python")
# Options of the g++ build that take an argument or that clang does not know.
# -include names a header that g++ has compiled: a file is read without it, as it includes itself.
_WITH_ARGUMENT = ("-o", "-MF", "-MT", "-include")
_DROPPED = ("-c", "-MD", "-Winvalid-pch", "-fsanitize", "-fno-sanitize")
_INCLUDED = re.compile(r'^#include "(.*)"$', re.MULTILINE)


def compile_commands(build):
    """A build folder's compile commands, one a source: files compiled together are taken apart, so
    that each is read with no more than its own includes."""
    found = []
    for entry in json.loads((ROOT / build / "compile_commands.json").read_text(encoding="utf-8")):
        together = pathlib.Path(entry["file"])
        if together.parent.name != "Unity":
            found.append(entry)
            continue
        for path in _INCLUDED.findall(together.read_text(encoding="utf-8")):
            command = entry["command"].replace(entry["file"], path)
            found.append({**entry, "file": path, "command": command})
    return found


def clang_command(entry):
    """The entry's compile command as a clang command that writes nothing."""
    words = shlex.split(entry["command"])
    compiler = next(i for i, word in enumerate(words)
                    if os.path.basename(word).startswith(("g++", "c++")))
    kept, skip = [], False
    for word in words[compiler + 1:]:
        if not skip and not word.startswith(_DROPPED) and word not in _WITH_ARGUMENT:
            kept.append(word)
        skip = word in _WITH_ARGUMENT
    return ["clang++-14", *kept, "-fsyntax-only", "-Wthread-safety",
            "-Wno-unused-command-line-argument"]


def read(entry):
    """Clang's complaints about one file; empty when it has none."""
    done = subprocess.run(clang_command(entry), cwd=entry["directory"], capture_output=True,
                          text=True, check=False)
    return done.stderr if done.returncode else ""


def main(build):
    chosen = [e for e in compile_commands(build)
              if pathlib.Path(e["file"]).relative_to(ROOT).parts[0] in PRODUCT
              and e["file"].endswith(".cc")]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        refused = 0
        for complaint in filter(None, pool.map(read, chosen)):
            refused += 1
            print(complaint)
    print(f"clang 14 read {len(chosen)} files and refused {refused}")
    return 1 if refused or not chosen else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
