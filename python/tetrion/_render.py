"""Pictures of environments' records."""

from __future__ import annotations

from typing import Any, Literal

import gymnasium
import numpy as np

from . import _checks, _core, _spaces

RenderMode = Literal["rgb_array", "ansi"]
MODES = ("rgb_array", "ansi")


class Camera:
    """Draws records of one environment in one mode. mode None draws nothing."""

    def __init__(self, env: str, queue_size: int, mode: Any, scale: Any):
        if mode is not None and mode not in MODES:
            raise ValueError(f"render_mode must be None or one of {list(MODES)}, not {mode!r}")
        self.mode = mode
        self._env, self._queue_size = env, queue_size
        usual = _spaces.TABLE[env].scale
        self._scale = _checks.integer("render_scale", usual if scale is None else scale, 1, 64)

    def draw(self, record: bytes) -> np.ndarray | str:
        """u8 [height, width, 3], or text."""
        if self.mode == "rgb_array":
            return _core.render_rgb(self._env, record, self._queue_size, self._scale)
        return _core.render_text(self._env, record)


def warn_without_mode() -> None:
    """What render() of an environment without a render_mode says."""
    gymnasium.logger.warn(
        "render() does nothing without a render_mode: make the environment with "
        'render_mode="rgb_array" or "ansi"'
    )
