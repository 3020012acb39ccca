"""What an environment's observations look like: spaces, and arrays of C++'s buffers."""

import numpy as np
from gymnasium import spaces

# obs name -> what C++ fills, per environment name; "dict" is one buffer that dict_of() cuts up.
OBSERVATIONS = {
    "tetris": ("flat", "dict", "planes", "compact", "packed2"),
    "tetris-placement": ("flat", "dict", "planes", "compact", "packed2", "afterstates"),
    "cartpole": ("flat", "compact"),
}
ROWS, COLUMNS = 24, 18  # board and mask with their bedrock
MAX_CELL = 8  # 0 free, 1 bedrock, piece id + 2
_MAX_FEATURE = 16.0  # no column of the afterstates view is larger


def check_obs(env: str, obs: str) -> None:
    """Raises ValueError when `env` is unknown or has no observation `obs`."""
    if env not in OBSERVATIONS:
        raise ValueError(f"unknown environment {env!r}: choose one of {', '.join(OBSERVATIONS)}")
    if obs not in OBSERVATIONS[env]:
        raise ValueError(
            f"{env} has no observation {obs!r}: choose one of {', '.join(OBSERVATIONS[env])}"
        )


def _cells(*shape: int, high: int = MAX_CELL) -> spaces.Box:
    return spaces.Box(0, high, shape, np.uint8)


def observation_space(env: str, obs: str, queue_size: int) -> spaces.Space:
    """The space of one observation."""
    if obs == "compact":
        return spaces.Box(0, 255, (16 if env == "cartpole" else 64,), np.uint8)
    if obs == "packed2":
        return spaces.Box(0, 255, (1440,), np.uint8)
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
    if obs == "flat":
        return spaces.Box(0, MAX_CELL, (880 + 16 * queue_size,), np.float32)
    if obs == "planes":
        return spaces.Box(0, 1, (420 + 7 * queue_size,), np.float32)
    return spaces.Box(0, _MAX_FEATURE, (660 + 7 * queue_size,), np.float32)


def dict_of(buffer: np.ndarray, queue_size: int) -> dict[str, np.ndarray]:
    """Views of a dict buffer, u8 [n, 880 + 16 q] or [880 + 16 q], as the four arrays."""
    lead = buffer.shape[:-1]
    return {
        "active_tetromino_mask": buffer[..., :432].reshape(*lead, ROWS, COLUMNS),
        "board": buffer[..., 432:864].reshape(*lead, ROWS, COLUMNS),
        "holder": buffer[..., 864:880].reshape(*lead, 4, 4),
        "queue": buffer[..., 880:].reshape(*lead, 4, 4 * queue_size),
    }
