"""Pictures of environments' records."""

from __future__ import annotations

import math
from typing import Any, Literal

import gymnasium
import numpy as np

from . import _checks, _core

RenderMode = Literal["rgb_array", "ansi"]
MODES = ("rgb_array", "ansi")
FPS = {"tetris": 10, "tetris-placement": 10, "cartpole": 50}
# Pixels a cell, or of the 150 units that CartPole's picture is wide.
SCALE = {"tetris": 10, "tetris-placement": 10, "cartpole": 4}

_TRACK = 24  # characters from the track's middle to where the cart leaves it
_POLE = 5  # lines


class Camera:
    """Draws records of one environment in one mode. mode None draws nothing."""

    def __init__(self, env: str, queue_size: int, mode: Any, scale: Any):
        if mode is not None and mode not in MODES:
            raise ValueError(f"render_mode must be None or one of {list(MODES)}, not {mode!r}")
        self.mode = mode
        self._env, self._queue_size = env, queue_size
        self._scale = _checks.integer("render_scale", SCALE[env] if scale is None else scale, 1, 64)

    def draw(self, record: bytes) -> np.ndarray | str:
        """u8 [height, width, 3], or text."""
        if self.mode == "rgb_array":
            return _core.render_rgb(self._env, record, self._queue_size, self._scale)
        return cartpole_text(record) if self._env == "cartpole" else _core.render_ansi(record)


def warn_without_mode() -> None:
    """What render() of an environment without a render_mode says."""
    gymnasium.logger.warn(
        "render() does nothing without a render_mode: make the environment with "
        'render_mode="rgb_array" or "ansi"'
    )


def cartpole_text(record: bytes) -> str:
    """The pole, the cart on its track, and a line of numbers. What is not finite is drawn as 0."""
    numbers = np.frombuffer(record, np.float32).tolist()
    x, _, theta, _ = (number if math.isfinite(number) else 0.0 for number in numbers)
    cart = min(max(round((x / 2.4 + 1) * _TRACK), 0), 2 * _TRACK)
    lines = []
    for height in range(_POLE, 0, -1):
        # A line is as high as two characters are wide.
        at = min(max(cart + round(2 * height * math.sin(theta)), 0), 2 * _TRACK)
        lines.append(" " * at + "|")
    lines.append(("-" * cart + "#").ljust(2 * _TRACK + 1, "-"))
    lines.append(f"x {x:+.3f} m  angle {math.degrees(theta):+.2f} degrees")
    return "\n".join(lines) + "\n"
