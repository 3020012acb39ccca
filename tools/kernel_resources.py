"""What each kernel takes of a device, as ptxas says: kernel_resources.py BUILD [--write].

Compiles every .cu file of lib/ once more, with the options of BUILD/compile_commands.json (the cuda
preset), for its registers, spills, stack and shared memory. Compares them with the table in
docs/kernels.md, or writes it. Spills are errors. Needs nvcc and no device. (ptxas tells spills from
the rest of the stack; cuobjdump --dump-resource-usage does not, and is not in every toolkit.)
"""

import json
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
DOCUMENT = ROOT / "docs" / "kernels.md"
BEGIN = "<!-- kernels: written by tools/kernel_resources.py -->"
END = "<!-- kernels: end -->"

# Of one multiprocessor of sm_90 (CUDA C++ Programming Guide, technical specifications).
REGISTERS, WARPS, BLOCKS, SHARED_BYTES = 65536, 64, 32, 228 * 1024
WARP_REGISTER_UNIT = 256  # registers are given to warps in units of this
BLOCK_SHARED_BYTES = 1024  # of each block, the system's

# Kernel -> its launch's (threads a block, dynamic bytes of shared memory) where that is not
# USUAL_LAUNCH. tests/lib/nn/cuda/device_mlp_test.cc holds the first four against MlpPlan.
USUAL_LAUNCH = (128, 0)
LAUNCHES = {
    "MlpLogits<tetrion::MlpPlan<256u, 32u> >": (128, 41472),
    "MlpLogits<tetrion::MlpPlan<256u, 8u> >": (128, 13824),
    "MlpLogits<tetrion::MlpPlan<64u, 32u> >": (64, 13824),
    "MlpLogits<tetrion::MlpPlan<64u, 8u> >": (64, 4608),
    "AdvanceRow": (1, 0),
    "CollectDrain": (256, 0),
    "DrawPictures": (384, 0),
    "GatherPixels<float>": (96, 0),
    "GatherPixels<unsigned short>": (96, 0),
    "NoteAdded": (1, 0),
    "NoteGivenBack": (1, 0),
}

_ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


class Kernel(NamedTuple):
    path: str
    name: str
    registers: int
    stack: int
    spill_stores: int
    spill_loads: int
    shared: int

    @property
    def launch(self):
        return LAUNCHES.get(self.name, USUAL_LAUNCH)

    @property
    def occupancy(self):
        """Warps that a multiprocessor holds of those it could, in per cent."""
        threads, dynamic = self.launch
        warps = -(-threads // 32)
        of_warp = -(-self.registers * 32 // WARP_REGISTER_UNIT) * WARP_REGISTER_UNIT
        blocks = min(BLOCKS, WARPS // warps, REGISTERS // of_warp // warps,
                     SHARED_BYTES // (self.shared + dynamic + BLOCK_SHARED_BYTES))
        return round(100 * blocks * warps / WARPS)


def parse(path, text, demangle):
    """The kernels in what ptxas printed about one file."""
    kernels, name, stack = [], None, None
    for line in text.splitlines():
        entry, frame, used = _ENTRY.search(line), _STACK.search(line), _USED.search(line)
        if entry:
            name, stack = entry.group(1), (0, 0, 0)
        elif frame and name:
            stack = tuple(map(int, frame.groups()))
        elif used and name:
            shared = _SHARED.search(line)
            kernels.append(Kernel(path, demangle(name), int(used.group(1)), *stack,
                                  int(shared.group(1)) if shared else 0))
            name = None
    return kernels


def short_name(name):
    """`Sums<float>` of `void tetrion::(anonymous namespace)::Sums<float>(...)`."""
    demangled = subprocess.run(["c++filt", name], capture_output=True, text=True,
                               check=True).stdout.strip()
    plain = demangled.replace("(anonymous namespace)::", "")
    return re.sub(r"^(?:void )?(?:\w+::)*", "", plain.partition("(")[0])


def compiled(entry):
    """What ptxas prints about the file of a compile command."""
    words = [w for w in shlex.split(entry["command"]) if not w.endswith(("ccache", "env"))]
    nvcc = next(i for i, word in enumerate(words) if word.endswith("nvcc"))
    words = words[nvcc:]
    kept, skip = [], False
    for word in words:
        if not skip and word not in ("-c", "-o", "-MD", "-MT", "-MF", "-x"):
            kept.append(word)
        skip = word in ("-o", "-MT", "-MF", "-x")
    with tempfile.TemporaryDirectory() as folder:
        kept = [w for w in kept if w != "cu" and not w.startswith(("--generate-code", "-gencode"))]
        done = subprocess.run([*kept, "-arch=sm_90", "-cubin", "-Xptxas", "-v", "-o",
                               f"{folder}/a.cubin"], cwd=entry["directory"], capture_output=True,
                              text=True, check=False)
    if done.returncode:
        sys.exit(f"{entry['file']}: {done.stderr}")
    return done.stderr + done.stdout


def table(kernels):
    lines = [BEGIN, "| file | kernel | registers | stack bytes | spilled bytes | shared bytes | "
             "dynamic bytes at launch | threads a block | occupancy |",
             "|---|---|---|---|---|---|---|---|---|"]
    lines += [f"| {k.path} | {k.name} | {k.registers} | {k.stack} | "
              f"{k.spill_stores + k.spill_loads} | {k.shared} | {k.launch[1]} | {k.launch[0]} | "
              f"{k.occupancy} % |"
              for k in sorted(kernels)]
    return "\n".join(lines + [END])


def main(arguments):
    if not arguments or arguments[1:] not in ([], ["--write"]):
        sys.exit(__doc__)
    entries = json.loads((ROOT / arguments[0] / "compile_commands.json").read_text("utf-8"))
    kernels = []
    for entry in entries:
        path = pathlib.Path(entry["file"])
        if path.suffix == ".cu" and path.is_relative_to(ROOT / "lib"):
            kernels += parse(str(path.relative_to(ROOT)), compiled(entry), short_name)
    if not kernels:
        sys.exit("no kernel below lib/: is this a build of the cuda preset?")
    if gone := LAUNCHES.keys() - {k.name for k in kernels}:
        sys.exit(f"LAUNCHES names {', '.join(sorted(gone))}: there is no such kernel")
    print(*(f"error: {k.path}: {k.name} spills {k.spill_stores} + {k.spill_loads} bytes"
            for k in kernels if k.spill_stores or k.spill_loads), sep="\n", end="")
    document, now = DOCUMENT.read_text("utf-8"), table(kernels)
    stood = document[document.index(BEGIN):document.index(END) + len(END)]
    if arguments[1:] == ["--write"]:
        DOCUMENT.write_text(document.replace(stood, now), "utf-8")
    elif stood != now:
        print(f"error: docs/kernels.md differs from what nvcc makes now; if the change is meant, "
              f"say so in the commit and run tools/kernel_resources.py {arguments[0]} --write\n"
              f"{now}")
        return 1
    print(f"{len(kernels)} kernels")
    return 1 if any(k.spill_stores or k.spill_loads for k in kernels) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
