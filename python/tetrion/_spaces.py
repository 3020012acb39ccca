"""What an environment's observations look like: spaces, and arrays of C++'s buffers."""

import math
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from . import _checks, _core

# For type checkers, which cannot ask the table; a test holds them against it.
EnvName = Literal["tetris", "tetris-placement", "cartpole", "catch"]
TetrisObs = Literal["dict", "flat", "planes", "pixels", "compact", "packed2", "drops"]
PlacementObs = Literal[
    "dict",
    "flat",
    "planes",
    "pixels",
    "compact",
    "packed2",
    "afterstates",
    "afterstates-dt",
    "afterstates-boards",
]
CartPoleObs = Literal["flat", "compact"]
CatchObs = Literal["flat", "compact"]
Obs = TetrisObs | PlacementObs | CartPoleObs | CatchObs
# What C++ knows of each environment, by name; everything here and beside follows from it.
TABLE = {environment.name: environment for environment in _core.environments()}
ENVIRONMENTS = tuple(TABLE)
OBSERVATIONS = {name: tuple(environment.observations) for name, environment in TABLE.items()}

Parts = list[tuple[str, int, tuple[int, ...], float]]  # name, first element, shape, largest value


def check_obs(env: str, obs: str) -> None:
    """Raises ValueError when `env` is unknown or has no observation `obs`."""
    _checks.choice("env", env, ENVIRONMENTS)
    if not isinstance(obs, str) or obs not in OBSERVATIONS[env]:
        raise ValueError(
            f"{env} has no observation {obs!r}: choose one of {', '.join(OBSERVATIONS[env])}"
        )


_DEFAULTS = {
    "queue_size": 4,
    "iid_pieces": False,
    "board_rows": 20,
    "spawn_above": False,
    "reward": "squares",
    "illegal": "terminate",
}


def check_settings(env: str, settings: Mapping[str, Any]) -> None:
    """Raises ValueError for a setting, other than its default, that `env` does not take."""
    for name, default in _DEFAULTS.items():
        if settings[name] != default and name not in TABLE[env].options:
            raise ValueError(f"{env} takes no {name}: leave it out")


def shape_of(env: str, obs: str, queue_size: int = 4) -> tuple[tuple[int], type]:
    """Shape and dtype of one observation as C++ writes it."""
    seen = _core.observation(env, obs, queue_size)
    return (seen.elements,), np.float32 if seen.is_float else np.uint8


def observation_space(env: str, obs: str, queue_size: int) -> spaces.Space[Any]:
    """The space of one observation."""
    seen = _core.observation(env, obs, queue_size)
    if seen.parts:
        return spaces.Dict(
            {
                name: spaces.Box(0, int(most), shape, np.uint8)
                for name, _, shape, most in sorted(seen.parts)
            }
        )
    if not seen.is_float:
        return spaces.Box(int(seen.low[0]), int(seen.high[0]), (seen.elements,), np.uint8)
    if len(seen.low) == 1:
        return spaces.Box(seen.low[0], seen.high[0], (seen.elements,), np.float32)
    low, high = np.array(seen.low, np.float32), np.array(seen.high, np.float32)
    return spaces.Box(low, high, dtype=np.float32)


def dict_of(buffer: np.ndarray, parts: Parts) -> dict[str, np.ndarray]:
    """Views of the parts of one observation [elements], or of several [n, elements]."""
    lead = buffer.shape[:-1]
    return {
        name: buffer[..., first : first + math.prod(shape)].reshape(*lead, *shape)
        for name, first, shape, _ in parts
    }
