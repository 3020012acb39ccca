"""Builds the source distribution, and the wheel from that, checks what its compiled part needs, and
uses it in an environment without this checkout.

check_wheel.py FOLDER: everything is written there. Run by a Python that has scikit-build-core,
nanobind, numpy and gymnasium (.deps/py). Needs readelf; downloads nothing.
"""

import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
# What every Linux with glibc has, and what Debian 12 has of it.
LIBRARIES = {"libstdc++.so.6", "libm.so.6", "libgcc_s.so.1", "libc.so.6", "ld-linux-x86-64.so.2"}
NEWEST = {"GLIBC": (2, 36), "GLIBCXX": (3, 4, 30), "CXXABI": (1, 3, 13), "GCC": (12, 0, 0)}
PROGRAM = """
import sys, numpy as np, tetrion
assert tetrion.__file__.startswith(sys.prefix), tetrion.__file__
with tetrion.BatchedTetrisCollector(1, 8, timeout=60) as c:
    assert c.request_episodes(2).observations.shape == (2, 8, 944)
envs = tetrion.vector.make("tetris", 4, threads=1)
envs.reset(seed=1)
assert envs.step(np.zeros(4, np.int32))[0].shape == (4, 944)
envs.close()
print("one request, one vector step: ok")
"""


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def problems_of(library):
    """Sentences on what `library` needs and Debian 12 has not."""
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-d", library)))
    found = [f"it needs {name}" for name in sorted(needed - LIBRARIES)]
    if not needed & LIBRARIES:
        found.append("readelf named no library")
    versions = re.findall(r"Name: ([A-Z]+)_([\d.]+)", run("readelf", "-V", library))
    for name, version in sorted(set(versions)):
        number = tuple(map(int, version.split(".")))
        if name in NEWEST and number > NEWEST[name]:
            found.append(f"it needs {name}_{version}, Debian 12 has {NEWEST[name]}")
    return found


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    pip = (sys.executable, "-m", "pip", "--disable-pip-version-check")
    build = f"import scikit_build_core.build as b; print(b.build_sdist({str(folder)!r}))"
    source = folder / run(sys.executable, "-c", build).split()[-1]
    run(*pip, "wheel", source, "--no-deps", "--no-build-isolation", "-w", folder)
    (wheel,) = folder.glob("tetrion-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (core,) = [name for name in archive.namelist() if "_core" in name and name.endswith(".so")]
        archive.extract(core, folder / "unpacked")
    problems = problems_of(folder / "unpacked" / core)
    if problems:
        sys.exit(f"{wheel.name}: {'; '.join(problems)}")
    venv = folder / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    python = venv / "bin" / "python"
    site = pathlib.Path(
        run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()
    )
    run(*pip, "--python", python, "install", "--no-deps", "--no-index", wheel)
    # numpy and gymnasium are those of this Python, which has no tetrion.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    print(source.name, wheel.name, run(python, "-I", "-c", PROGRAM).strip())


if __name__ == "__main__":
    main()
