"""What an environment is made from, checked once for single and vector environments, and the states
that go from one environment to another."""

from __future__ import annotations

import copy
import dataclasses
import functools
import os
import weakref
from dataclasses import dataclass, field
from typing import Any, Literal

from gymnasium.envs.registration import EnvSpec

from . import _checks, _core, _spaces

Illegal = Literal["terminate", "noop"]
Reward = Literal["squares", "lines"]
STATE_VERSION = 4  # raised when bytes or fields of a state change
_pools: weakref.WeakSet[_core.VectorPool] = weakref.WeakSet()


@dataclass(frozen=True)
class Setup:
    """An environment's settings. ValueError or TypeError names the one at fault; max_steps None is
    the environment's default."""

    env: str
    obs: str
    queue_size: int = 4
    iid_pieces: bool = False
    illegal: str = "terminate"
    max_steps: int | None = None
    board_rows: int = 20
    spawn_above: bool = False
    reward: str = "squares"
    colours: bool = False  # keep colours of locked cells even where obs shows none

    def __post_init__(self) -> None:
        _spaces.check_obs(self.env, self.obs)
        if self.max_steps is None:
            limit = _spaces.TABLE[self.env].max_steps
        else:
            limit = _checks.integer("max_steps", self.max_steps, 1, 2**30)
        checked = {
            "queue_size": _checks.integer("queue_size", self.queue_size, *_core.QUEUE_SIZES),
            "iid_pieces": _checks.boolean("iid_pieces", self.iid_pieces),
            "board_rows": _checks.integer("board_rows", self.board_rows, *_core.BOARD_ROWS),
            "spawn_above": _checks.boolean("spawn_above", self.spawn_above),
            "reward": _checks.choice("reward", self.reward, ("squares", "lines")),
            "illegal": _checks.choice("illegal", self.illegal, ("terminate", "noop")),
            "max_steps": limit,
        }
        _spaces.check_settings(self.env, checked)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    @property
    def limit(self) -> int:
        """max_steps, which is no longer None."""
        assert self.max_steps is not None
        return self.max_steps

    def pool(self, num_envs: int, threads: int, batch_size: int) -> _core.VectorPool:
        """Environments of these settings."""
        settings = dataclasses.asdict(self)
        config = _core.EnvConfig(
            illegal_is_noop=settings.pop("illegal") == "noop",
            **settings,
        )
        pool = _core.VectorPool(config, num_envs, threads, batch_size)
        _pools.add(pool)
        return pool

    def state(self, saved: bytes) -> EnvState:
        """What the pool saved, with all that it takes to know where it fits."""
        return EnvState(
            self.env,
            self.queue_size,
            self.iid_pieces,
            self.illegal,
            self.limit,
            self.board_rows,
            self.spawn_above,
            self.reward,
            self._keeps_colours,
            saved,
        )

    @functools.cached_property
    def _keeps_colours(self) -> bool:
        """Whether records hold the colours of locked cells; those of some games never do."""
        game = _spaces.TABLE[self.env]
        with_colours = {
            obs
            for obs in game.observations
            if _core.observation(self.env, obs, self.queue_size).record_bytes > game.record_bytes
        }
        return self.obs in with_colours or (self.colours and bool(with_colours))

    def bytes_of(self, state: Any) -> bytes:
        """What the pool loads. ValueError when `state` is of other settings, TypeError when it is
        none."""
        if not isinstance(state, EnvState):
            raise TypeError(f"a state is an EnvState of get_state(), not {type(state).__name__}")
        if not isinstance(state.saved, bytes):
            raise TypeError(f"saved of a state must be bytes, not {type(state.saved).__name__}")
        if state.version != STATE_VERSION:
            raise ValueError(
                f"the state is of version {state.version}; this tetrion reads {STATE_VERSION}"
            )
        mine = self.state(b"")
        for name in (item.name for item in dataclasses.fields(EnvState)):
            if name in ("has_colours", "saved", "version"):
                continue
            if getattr(state, name) != getattr(mine, name):
                raise ValueError(
                    f"the state is of an environment with {name}={getattr(state, name)!r}, "
                    f"this one has {name}={getattr(mine, name)!r}"
                )
        if mine.has_colours and not state.has_colours:
            raise ValueError(
                "the state has no colours of locked cells, which this environment shows: take it "
                'from one with obs="dict", obs="flat" or a render_mode'
            )
        return state.saved


@dataclass(frozen=True)
class EnvState:
    """One environment at one moment: what get_state() gives and set_state() takes.

    Small (of Tetris `saved` is 256 bytes, and the state less than 500 pickled): the game, the
    account of its episode, and where its seed's pieces and episodes stand. The continuation is the
    same, bit for bit, in any environment of the same settings, single or a row of a vector
    environment, whatever its obs; one that shows colours wants has_colours. Equal states go on
    equally.
    """

    env: str
    queue_size: int
    iid_pieces: bool
    illegal: str
    max_steps: int
    board_rows: int
    spawn_above: bool
    reward: str
    has_colours: bool
    saved: bytes = field(repr=False)
    version: int = STATE_VERSION


class HasLimit:
    """Gives gymnasium's `spec` the real max_episode_steps. For classes with a `_setup`."""

    _setup: Setup
    _spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec | None:
        """What gymnasium made the environment from; its max_episode_steps is where the environment
        truncates an episode, max_steps. The limit that gymnasium.make was given is its wrapper's.
        None when it was made without gymnasium."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        self._spec = copy.copy(spec)
        if self._spec is not None:
            limit = self._spec.max_episode_steps
            most = self._setup.limit
            self._spec.max_episode_steps = most if limit is None else min(limit, most)


def _after_fork() -> None:
    """Each pool learns in the child whether a thread that is not there was playing it."""
    for pool in list(_pools):
        pool.after_fork()


os.register_at_fork(after_in_child=_after_fork)
