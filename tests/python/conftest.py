"""The package under test must be the one of this build, or an installed one: never the sources."""

import pathlib
import sys

import pytest
import tetrion

SOURCES = pathlib.Path(__file__).resolve().parents[2] / "python"

if pathlib.Path(tetrion.__path__[0]) == SOURCES / "tetrion":
    pytest.exit(f"tetrion was imported from {SOURCES}, which has no compiled part", returncode=2)

# The recorded tetris-gymnasium that the C++ environments are held against, too.
sys.path.append(str(SOURCES.parent / "tests" / "lib" / "envs"))
