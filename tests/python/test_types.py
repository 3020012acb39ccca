"""The package is typed: mypy --strict and pyright have nothing to say, and both see a misspelt
word where the package names a few."""

import pathlib
import subprocess
import sys

import pytest

PYTHON = pathlib.Path(__file__).resolve().parents[2] / "python"
# collect_ppo.py needs torch, which is not there.
EXAMPLES = sorted(f for f in (PYTHON / "examples").glob("*.py") if f.name != "collect_ppo.py")


def check(tool, *arguments, cwd):
    pytest.importorskip(tool, reason=f"{tool} is not installed")
    done = subprocess.run(
        [sys.executable, "-B", "-m", tool, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        timeout=280,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def mypy(tmp_path_factory):
    """Calls mypy --strict; what it learns of gymnasium and numpy is kept from call to call."""
    cache = tmp_path_factory.mktemp("mypy")
    return lambda *what: check("mypy", "--strict", "--cache-dir", cache, *what, cwd=PYTHON)


def test_mypy_strict_accepts_package_and_examples(mypy):
    code, said = mypy("-p", "tetrion")
    assert code == 0, said
    code, said = mypy(*EXAMPLES)
    assert code == 0, said


def test_pyright_accepts_the_package():
    code, said = check("pyright", "--pythonpath", sys.executable, "tetrion", cwd=PYTHON)
    assert code == 0, said


WRONG = (
    'tetrion.TetrisEnv("flatt")',
    'tetrion.TetrisEnv(obz="flat")',
    'tetrion.vector.make("tetriss", 4)',
    'tetrion.TetrisPlacementEnv(illegal="ignore")',
    'tetrion.BatchedTetrisCollector(1, 8, order="jobs")',
)


RIGHT = (
    'tetrion.vector.make("tetris", 4, obs="drops", seed=np.arange(4)).reset(seed=np.arange(4))',
    'tetrion.BatchedTetrisCollector(1, 8, obs="drops")',
    "tetrion.policies.Scripted(np.arange(4))",
    "[tetrion.vector.make(name, 2) for name in tetrion.envs.IDS.values()]",
    "envs = tetrion.vector.make('catch', 4)",
    "envs.set_state(envs.get_state(np.arange(2)), np.arange(2))",
    "envs.records(np.arange(3))",
    "policy = tetrion.load_policy('runs/a')",
    "tetrion.vector.make(policy.env, 4, obs=policy.obs)",
    "tetrion.BatchedTetrisCollector(1, 8, env=policy.env, obs=policy.obs)",
)


def test_mypy_accepts_every_observation_and_arrays(mypy, tmp_path):
    file = tmp_path / "right.py"
    file.write_text("\n".join(["import numpy as np", "import tetrion", *RIGHT, ""]), "utf-8")
    code, said = mypy(file)
    assert code == 0, said


def test_mypy_sees_misspelt_words(mypy, tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text("\n".join(["import tetrion", *WRONG, ""]), encoding="utf-8")
    code, said = mypy(file)
    assert code == 1, said
    for line, wrong in enumerate(WRONG, 2):
        assert f"wrong.py:{line}: error" in said, wrong
