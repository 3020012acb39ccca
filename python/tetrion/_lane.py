"""One row of a vector environment, for gymnasium's call, get_attr and set_attr."""

from __future__ import annotations

import copy
import weakref
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

from . import _core

if TYPE_CHECKING:
    from ._setup import EnvState
    from .vector import TetrionVectorEnv


class Lane:
    """One environment of a vector environment, as call, get_attr and set_attr see it: what the
    single environment has, and attributes of the user's. The vector environment has the only
    references to its lanes, and they none to it: what is dropped is gone at once."""

    _owner: weakref.ref[TetrionVectorEnv]  # not pickled: of() gives another
    _env: int

    def __init__(self, envs: TetrionVectorEnv, env: int):
        self.__dict__.update(_owner=weakref.ref(envs), _env=env)

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(type(self), name) or name in ("_owner", "_env"):
            raise AttributeError(f"the environments have {name!r} themselves")
        super().__setattr__(name, value)

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: a lane of no environment yet, see of()."""
        return {name: value for name, value in self.__dict__.items() if name != "_owner"}

    def of(self, envs: TetrionVectorEnv) -> Lane:
        """The same lane of `envs`, with the user's attributes."""
        other = copy.copy(self)
        other.__dict__["_owner"] = weakref.ref(envs)
        return other

    @property
    def _envs(self) -> TetrionVectorEnv:
        envs = self._owner()
        assert envs is not None, "a lane without its environment"
        return envs

    @property
    def record(self) -> bytes:
        return self._envs.records([self._env])[0]

    @property
    def max_steps(self) -> int:
        return self._envs.max_steps

    @property
    def spec(self) -> Any:
        return self._envs.spec

    @property
    def metadata(self) -> dict[str, Any]:
        return self._envs.metadata

    @property
    def render_mode(self) -> str | None:
        return self._envs.render_mode

    @property
    def observation_space(self) -> gymnasium.Space[Any]:
        return self._envs.single_observation_space

    @property
    def action_space(self) -> gymnasium.Space[Any]:
        return self._envs.single_action_space

    def render(self) -> np.ndarray | str | None:
        mode = self._envs.render_mode
        return None if mode is None else self._envs._camera.draw(self.record)

    def get_state(self) -> EnvState:
        return self._envs.get_state([self._env])[0]

    def set_state(self, state: EnvState) -> None:
        self._envs.set_state(state, [self._env])


class PlacementLane(Lane):
    def action_masks(self) -> np.ndarray:
        """bool [A], for sb3-contrib."""
        # Of its record: the columns are those of a batch, which other environments may be in.
        record = np.frombuffer(self.record, np.uint8)[None]
        masks: np.ndarray = _core.action_masks(self._envs._setup.env, record)[0]
        return masks
