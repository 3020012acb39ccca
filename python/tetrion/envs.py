"""Single environments: gymnasium.Env over one lane of the C++ environments."""

from __future__ import annotations

import operator
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

from . import _checks, _core, _spaces

_ENV_0 = np.zeros(1, np.int32)
_NO_SEEDS = np.zeros(0, np.uint64)


def checked_seed(seed: Any, what: str = "seed") -> int:
    """`seed` as an int in [0, 2**64); ValueError or TypeError otherwise."""
    return _checks.integer(what, seed, 0, 2**64 - 1)


class _CppEnv(gymnasium.Env):
    """What the three environments share. `_env` is the name in C++."""

    _env: ClassVar[str]
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array", "ansi"], "render_fps": 10}

    def __init__(self, config: dict[str, Any], render_mode: str | None, render_scale: int):
        _spaces.check_obs(self._env, config["obs"])
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise ValueError(
                f"render_mode must be None or one of {self.metadata['render_modes']}, "
                f"not {render_mode!r}"
            )
        render_scale = _checks.integer("render_scale", render_scale, 1, 64)
        if "queue_size" in config:
            config["queue_size"] = _checks.integer("queue_size", config["queue_size"], 1, 7)
        self.render_mode = render_mode
        self._render_scale = render_scale
        self._obs = config["obs"]
        self._queue_size = config.get("queue_size", 4)
        self._pool = _core.VectorPool(
            _core.EnvConfig(env=self._env, colours=True, **config), 1, 0, 1
        )
        self._columns = self._pool.columns()
        self.observation_space = _spaces.observation_space(self._env, self._obs, self._queue_size)
        self.action_space = spaces.Discrete(self._pool.num_actions)
        self._action = np.zeros(1, np.int32)
        self._playing = False
        self._seeded = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode. With a seed: episode 0 of that seed; without: the next one of the
        seed in use (drawn from the operating system the first time). Takes no options."""
        super().reset(seed=seed)
        if options:
            raise ValueError(f"reset takes no options, got {sorted(options)}")
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**63))
        self._pool.drain()
        seeds = _NO_SEEDS if seed is None else np.array([checked_seed(seed)], np.uint64)
        self._pool.reset(_ENV_0, seeds)
        self._pool.drain()
        self._playing = self._seeded = True
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One action of `action_space`. Returns observation, reward (float), terminated, truncated
        and info: episode_return, episode_length (steps), lines (Tetris) of the episode so far, and
        action_mask bool [A] where the environment has one. RuntimeError after the episode's end."""
        if not self._playing:
            raise RuntimeError("the episode is over or was never started: call reset() first")
        number = operator.index(action)
        if not 0 <= number < self.action_space.n:
            raise ValueError(
                f"action {number} is out of range: actions are 0 to {self.action_space.n - 1}"
            )
        self._action[0] = number
        self._pool.step(self._action)
        columns = self._columns
        terminated, truncated = bool(columns["terminated"][0]), bool(columns["truncated"][0])
        self._playing = not (terminated or truncated)
        reward = float(columns["reward"][0])
        return self._observation(), reward, terminated, truncated, self._info()

    def render(self) -> np.ndarray | str | None:
        """rgb_array: u8 [height, width, 3]; ansi: lines of text with terminal colours."""
        if self.render_mode is None:
            gymnasium.logger.warn(
                "render() does nothing without a render_mode: make the environment with "
                'render_mode="rgb_array" or "ansi"'
            )
            return None
        if not self._seeded:
            raise RuntimeError("nothing to draw yet: call reset() first")
        if self.render_mode == "ansi":
            return self._ansi()
        return _core.render_rgb(
            self._env, self._pool.record(0), self._queue_size, self._render_scale
        )

    def close(self) -> None:
        """Frees the environment; it cannot be used afterwards. May be called twice."""
        self._playing = False
        self._pool.close()

    @property
    def record(self) -> bytes:
        """The state after the last step as bytes: 168 (Tetris: compact record, then the colours of
        locked cells) or 16 (CartPole: four float32)."""
        return self._pool.record(0)

    def _ansi(self) -> str:
        return _core.render_ansi(self._pool.record(0))

    def _observation(self) -> Any:
        row = self._columns["obs"][0].copy()
        return _spaces.dict_of(row, self._queue_size) if self._obs == "dict" else row

    def _info(self) -> dict[str, Any]:
        columns = self._columns
        info = {
            "episode_return": float(columns["episode_return"][0]),
            "episode_length": int(columns["episode_length"][0]),
        }
        if self._env != "cartpole":
            info["lines"] = int(columns["lines"][0])
        if "action_mask" in columns:
            info["action_mask"] = columns["action_mask"][0].copy()
        return info


class TetrisEnv(_CppEnv):
    """Tetris, step for step as tetris-gymnasium 0.3.1 plays it.

    Actions: 0 left, 1 right, 2 down, 3 clockwise, 4 counterclockwise, 5 hard drop, 6 swap, 7 none.
    Reward: 10 lines^2 + 1 for a locked piece, 0 where the game ends.

    obs: "dict" (uint8: board [24, 18] with the active piece, active_tetromino_mask [24, 18],
    holder [4, 4], queue [4, 4 q]), "flat" (float32 [880 + 16 q]: the same numbers in gymnasium's
    FlattenObservation order), "planes" (float32 [420 + 7 q]: cells and one-hots), "packed2"
    (uint8 [1440]: 72x80 pixels of 2 bits, 20 bytes a row, the leftmost pixel in bits 0-1, 0 white
    to 3 black) or "compact" (uint8 [64]: the packed state).
    queue_size: pieces in the preview, 1 to 7. iid_pieces: independent pieces instead of 7-bags.
    max_steps: an episode is truncated there. render_mode: None, "rgb_array", "ansi".
    render_scale: pixels a cell.
    """

    _env = "tetris"

    def __init__(
        self,
        obs: str = "dict",
        *,
        queue_size: int = 4,
        iid_pieces: bool = False,
        max_steps: int = 10_000,
        render_mode: str | None = None,
        render_scale: int = 10,
        **more: Any,
    ):
        check_max_steps(max_steps)
        config = {
            "obs": obs,
            "queue_size": queue_size,
            "iid_pieces": iid_pieces,
            "max_steps": max_steps,
            **more,
        }
        super().__init__(config, render_mode, render_scale)


class TetrisPlacementEnv(TetrisEnv):
    """Tetris played by placements: action = column * 4 + rotations, 40 of them; info["action_mask"]
    (bool [40]) says which are legal. An illegal one ends the episode with reward -0.1, or, with
    illegal="noop", acts as no action with that reward.

    obs: as TetrisEnv, and "afterstates" (float32 [660 + 7 q]: what every placement would leave).
    """

    _env = "tetris-placement"

    def __init__(
        self,
        obs: str = "dict",
        *,
        illegal: str = "terminate",
        max_steps: int = 5_000,
        **more: Any,
    ):
        if illegal not in ("terminate", "noop"):
            raise ValueError(f'illegal must be "terminate" or "noop", not {illegal!r}')
        super().__init__(obs, max_steps=max_steps, illegal_is_noop=illegal == "noop", **more)


class CartPoleEnv(_CppEnv):
    """Gymnasium's CartPole-v1: actions 0 left, 1 right, reward 1 a step, truncated at max_steps.

    obs: "flat" (float32 [4]: x, x_dot, theta, theta_dot) or "compact" (the same as uint8 [16]).
    """

    _env = "cartpole"
    metadata: ClassVar[dict[str, Any]] = {"render_modes": ["rgb_array"], "render_fps": 50}

    def __init__(
        self,
        obs: str = "flat",
        *,
        max_steps: int = 500,
        render_mode: str | None = None,
        render_scale: int = 4,
    ):
        check_max_steps(max_steps)
        super().__init__({"obs": obs, "max_steps": max_steps}, render_mode, render_scale)


class FlattenObservation(gymnasium.ObservationWrapper, gymnasium.utils.RecordConstructorArgs):
    """A TetrisEnv's dict observation as float32 [880 + 16 q]: the numbers and the order of
    gymnasium's FlattenObservation. `TetrisEnv(obs="flat")` gives the same without a detour."""

    def __init__(self, env: gymnasium.Env):
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        gymnasium.ObservationWrapper.__init__(self, env)
        if not isinstance(env.observation_space, spaces.Dict):
            raise ValueError(
                'FlattenObservation wants an environment with obs="dict", not one that shows '
                f"{env.observation_space}"
            )
        length = sum(int(np.prod(space.shape)) for space in env.observation_space.values())
        self.observation_space = spaces.Box(0, _spaces.MAX_CELL, (length,), np.float32)

    def observation(self, observation: dict[str, np.ndarray]) -> np.ndarray:
        """float32 [880 + 16 q]."""
        return np.concatenate(
            [observation[key].ravel() for key in sorted(observation)], dtype=np.float32
        )


def check_max_steps(max_steps: Any) -> int:
    """`max_steps` as an int in 1 .. 2**30; ValueError otherwise."""
    return _checks.integer("max_steps", max_steps, 1, 2**30)


def pieces(seed: int, episode: int, count: int, *, iid: bool = False) -> list[int]:
    """The first `count` pieces (ids 0..6: I O T S Z J L) of episode number `episode`, counted from
    0 since the environment was seeded with `seed`: the first is the first active piece."""
    number = _checks.integer("count", count, 0, 2**24)
    return _core.pieces(checked_seed(seed), checked_seed(episode, "episode"), number, bool(iid))


_IDS = {
    "tetrion/Tetris-v0": ("TetrisEnv", "tetris"),
    "tetrion/TetrisPlacement-v0": ("TetrisPlacementEnv", "tetris-placement"),
    "tetrion/CartPole-v0": ("CartPoleEnv", "cartpole"),
}


def register() -> None:
    """Makes the environments known to gymnasium.make and make_vec; done when tetrion is imported.
    May be called twice."""
    for env_id, (entry, name) in _IDS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry_point=f"tetrion.envs:{entry}",
                vector_entry_point=f"tetrion.vector:make_{name.replace('-', '_')}",
            )
