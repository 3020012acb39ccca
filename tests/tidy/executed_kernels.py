"""Every kernel of lib/ runs in a test: executed_kernels.py PROGRAMS [FOLDER...].

Finds the __global__ functions of the folders (lib), runs the test programs that the file PROGRAMS
names, one a line, and asks where the kernels lie that the simulator says it ran. Prints a line for
each kernel that no program ran; exit status 1 then. A test that fails here fails in its own place,
too, and is none of this one's business. Needs addr2line and programs with line tables (-g1).
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
from typing import NamedTuple

import check
import source

SOURCES = (".h", ".cu", ".cuh")
LIMIT_S = 600
HERE = "tests/tidy/executed_kernels.py"

# (source, kernel) -> reason. Runs in no test of the simulator.
EXCUSED = {}

_MARK = re.compile(r"\b__global__\b")
_KERNEL = re.compile(r"__global__\s+(?:(?:static|inline|__launch_bounds__\s*\([^)]*\))\s+)*void\s+"
                     r"(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)\s*\(")
# What g++ compiles in place of a .cu file; addr2line names it for some of what that includes.
_WRAPPER = re.compile(r"/sim/(.*)_cu\.cc$")
_DEFINE = re.compile(r"^[ \t]*#[^\n]*$", re.MULTILINE)


class Kernel(NamedTuple):
    path: str
    name: str
    line: int
    users: tuple = ()  # .cu files that include its file

    def is_in(self, file):
        """Whether a place in a program's `file` may be in this kernel's."""
        wrapper = _WRAPPER.search(file)
        return (file.endswith(f"/{self.path}")
                or (wrapper is not None and f"{wrapper.group(1)}.cu" in (self.path, *self.users)))


def kernels(tree, folders=("lib",)):
    """The kernels that files of the folders define, and a finding for each that cannot be read."""
    defined, found = [], []
    for path, text in sorted(tree.items()):
        if not path.endswith(SOURCES) or not path.startswith(tuple(f"{f}/" for f in folders)):
            continue
        code = _DEFINE.sub("", source.code_only(text))
        users = tuple(user for user, other in tree.items()
                      if user.endswith(".cu") and f'#include "{path}"' in other)
        for mark in _MARK.finditer(code):
            line = code.count("\n", 0, mark.start()) + 1
            match = _KERNEL.match(code, mark.start())
            if match:
                defined.append(Kernel(path, match.group(1), line, users))
            else:
                found.append(f"{path}:{line}: a kernel's definition that {HERE} cannot read")
    return defined, found


def plain_name(function):
    """The name of a function without namespaces, arguments and types."""
    before = function.replace("(anonymous namespace)", "").split("(", 1)[0].split("<", 1)[0]
    return re.split(r"::|\s", before)[-1]


def places(program, addresses):
    """Source and name of the function at each address of a program."""
    told = subprocess.run(["addr2line", "-f", "-C", "-e", program], input="\n".join(addresses),
                          text=True, capture_output=True, check=True).stdout.splitlines()
    return [(place.rsplit(":", 1)[0], plain_name(function))
            for function, place in zip(told[::2], told[1::2], strict=True)]


def run(program, log):
    """Runs all tests of a program once, where they leave the schedule open forward."""
    environment = {**os.environ, "TETRION_SIM_KERNELS": str(log), "TETRION_SIM_SEED": "forward"}
    subprocess.run([program], env=environment, cwd=log.parent, capture_output=True,
                   timeout=LIMIT_S, check=False)


def executed(programs):
    """Source and name of every kernel that the programs ran."""
    seen = set()
    with tempfile.TemporaryDirectory() as folder:
        for program in programs:
            log = pathlib.Path(folder, "kernels")
            log.unlink(missing_ok=True)
            run(program, log)
            addresses = {}
            for line in log.read_text().splitlines() if log.exists() else ():
                address, file = line.split(" ", 1)
                addresses.setdefault(file, []).append(address)
            for file, of_file in addresses.items():
                seen.update(places(file, of_file))
    return seen


def findings(defined, seen, excused):
    """Kernels that did not run and are not excused, and excuses that excuse nothing."""
    found, used = [], set()
    for kernel in defined:
        if any(kernel.is_in(file) and name == kernel.name for file, name in seen):
            continue
        if (kernel.path, kernel.name) in excused:
            used.add((kernel.path, kernel.name))
        else:
            found.append(f"{kernel.path}:{kernel.line}: {kernel.name} runs in no test of the "
                         "simulator (tetrion_cuda_test)")
    return found + [f"{HERE}:1: EXCUSED names {key}, which needs no excuse"
                    for key in excused if key not in used]


def main(programs, folders):
    excused = {} if folders else EXCUSED
    defined, found = kernels(check.read_tree(), folders or ("lib",))
    listed = pathlib.Path(programs).read_text().split()
    missing = [program for program in listed if not pathlib.Path(program).exists()]
    found += [f"{program}:1: is not built" for program in missing]
    found += findings(defined, executed(sorted(set(listed) - set(missing))), excused)
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], tuple(sys.argv[2:])))
