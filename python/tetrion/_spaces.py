"""What an environment's observations look like: spaces, and arrays of C++'s buffers."""

from typing import Any, Literal

import numpy as np
from gymnasium import spaces

from . import _checks, _core

EnvName = Literal["tetris", "tetris-placement", "cartpole"]
TetrisObs = Literal["dict", "flat", "planes", "compact", "packed2"]
PlacementObs = Literal["dict", "flat", "planes", "compact", "packed2", "afterstates"]
CartPoleObs = Literal["flat", "compact"]
ENVIRONMENTS = ("tetris", "tetris-placement", "cartpole")
# Names of what C++ can show of each; "dict" is one buffer that dict_of() cuts up.
OBSERVATIONS = {env: tuple(_core.observations(env)) for env in ENVIRONMENTS}
ROWS, COLUMNS = 24, 18  # board and mask with their bedrock
MAX_CELL = 8  # 0 free, 1 bedrock, piece id + 2
_MAX_FEATURE = 16.0  # no column of the afterstates view is larger


def check_obs(env: str, obs: str) -> None:
    """Raises ValueError when `env` is unknown or has no observation `obs`."""
    _checks.choice("env", env, ENVIRONMENTS)
    if not isinstance(obs, str) or obs not in OBSERVATIONS[env]:
        raise ValueError(
            f"{env} has no observation {obs!r}: choose one of {', '.join(OBSERVATIONS[env])}"
        )


def shape_of(env: str, obs: str, queue_size: int = 4) -> tuple[tuple[int], type]:
    """Shape and dtype of one observation as C++ writes it."""
    elements, is_float, _ = _core.observation(env, obs, queue_size)
    return (elements,), np.float32 if is_float else np.uint8


def _cells(*shape: int, high: int = MAX_CELL) -> spaces.Box:
    return spaces.Box(0, high, shape, np.uint8)


def observation_space(env: str, obs: str, queue_size: int) -> spaces.Space[Any]:
    """The space of one observation."""
    shape, dtype = shape_of(env, obs, queue_size)
    if obs in ("compact", "packed2"):
        return spaces.Box(0, 255, shape, dtype)
    if env == "cartpole":
        # As gymnasium's: twice the bounds at which an episode ends; speeds have none.
        high = np.array([4.8, np.inf, 24 * 2 * np.pi / 360, np.inf], np.float32)
        return spaces.Box(-high, high, dtype=np.float32)
    if obs == "dict":
        return spaces.Dict(
            {
                "active_tetromino_mask": _cells(ROWS, COLUMNS, high=1),
                "board": _cells(ROWS, COLUMNS),
                "holder": _cells(4, 4),
                "queue": _cells(4, 4 * queue_size),
            }
        )
    most = {"flat": MAX_CELL, "planes": 1, "afterstates": _MAX_FEATURE}[obs]
    return spaces.Box(0, most, shape, dtype)


def dict_of(buffer: np.ndarray, queue_size: int) -> dict[str, np.ndarray]:
    """Views of a dict buffer, u8 [n, 880 + 16 q] or [880 + 16 q], as the four arrays: sorted by
    name in the buffer, as in spaces, and in tetris-gymnasium's order in the dict."""
    lead = buffer.shape[:-1]
    return {
        "board": buffer[..., 432:864].reshape(*lead, ROWS, COLUMNS),
        "active_tetromino_mask": buffer[..., :432].reshape(*lead, ROWS, COLUMNS),
        "holder": buffer[..., 864:880].reshape(*lead, 4, 4),
        "queue": buffer[..., 880:].reshape(*lead, 4, 4 * queue_size),
    }
