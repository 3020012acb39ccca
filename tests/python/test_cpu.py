"""The refusal of processors that the wheel was not built for."""

import os
import subprocess
import sys

import pytest
from tetrion import _core, _cpu

MODERN = "flags\t\t: fpu sse2 avx avx2 bmi1 bmi2 f16c fma movbe abm"


def test_a_modern_processor_is_accepted(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor\t: 0\n{MODERN}\n")
    _cpu.check(file)


def test_an_older_one_is_refused_with_what_it_lacks_and_what_to_do(tmp_path):
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor\t: 0\n{MODERN.replace(' avx2', '').replace(' fma', '')}\n")
    with pytest.raises(ImportError, match=r"lacks avx2, fma\. Build it .*pip install"):
        _cpu.check(file)


def test_where_nothing_is_known_nothing_is_refused(tmp_path):
    _cpu.check(tmp_path / "missing")
    assert _cpu.missing_features("processor: 0\nmodel name: x\n") == []


def test_the_package_needs_neither_torch_nor_the_test_packages():
    text = (
        "import sys\n"
        "blocked = ('torch', 'cv2', 'tetris_gymnasium', 'jax', 'matplotlib')\n"
        "sys.modules.update(dict.fromkeys(blocked))\n"  # None: importing it fails
        "import tetrion\n"
        "envs = tetrion.vector.make('tetris', 4)\n"
        "envs.reset(seed=1)\n"
        "envs.step([0, 1, 2, 3])\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", text], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr


def test_cpus_that_the_process_may_not_use_do_not_count():
    assert 1 <= _core.usable_cpus() <= len(os.sched_getaffinity(0))
    text = (
        "import os, tetrion\n"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
        "before = len(os.listdir('/proc/self/task'))\n"
        "envs = tetrion.vector.make('tetris', 4096)\n"
        "print(tetrion._core.usable_cpus(), len(os.listdir('/proc/self/task')) - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", text], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "1 0\n", done.stderr
