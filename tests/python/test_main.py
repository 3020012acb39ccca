"""python -m tetrion tells what is installed."""

import subprocess
import sys

import tetrion
from tetrion import envs


def test_it_names_version_and_environments_and_plays():
    done = subprocess.run(
        [sys.executable, "-m", "tetrion"], capture_output=True, text=True, check=True, timeout=120
    )
    assert f"tetrion {tetrion.__version__}" in done.stdout
    for env_id in envs.IDS:
        assert f"{env_id}: Discrete(" in done.stdout
    assert "steps a second" in done.stdout
