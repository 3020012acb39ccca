"""Single environments: gymnasium.Env over one lane of the C++ environments."""

from __future__ import annotations

import operator
from typing import Any, ClassVar, cast

import gymnasium
import numpy as np
from gymnasium import spaces

from . import _checks, _core, _render, _spaces
from ._setup import EnvState, HasLimit, Illegal, Reward, Setup

_ENV_0 = np.zeros(1, np.int32)
_NO_SEEDS = np.zeros(0, np.uint64)


def checked_seed(seed: Any, what: str = "seed") -> int:
    """`seed` as an int in [0, 2**64); ValueError or TypeError otherwise."""
    return _checks.integer(what, seed, 0, 2**64 - 1)


class _CppEnv(HasLimit, gymnasium.Env):  # pyright: ignore[reportIncompatibleVariableOverride]
    """What the environments share. `_env` is the name in C++."""

    _env: ClassVar[str]

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        if "_env" in vars(cls):  # not a user's subclass, whose metadata are its own
            fps = _spaces.TABLE[cls._env].fps
            cls.metadata = {"render_modes": list(_render.MODES), "render_fps": fps}

    def __init__(self, setup: Setup, render_mode: str | None, render_scale: int | None):
        self._setup = setup
        self._camera = _render.Camera(self._env, setup.queue_size, render_mode, render_scale)
        self.render_mode = render_mode
        self._open()
        self.observation_space = _spaces.observation_space(self._env, setup.obs, setup.queue_size)
        self.action_space = spaces.Discrete(self._pool.num_actions)
        self._playing = self._seeded = self._closed = False

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: episode 0 of that seed; None: the next one of the seed in use (drawn from the
                operating system the first time).
            options: none are taken.

        Returns:
            The first observation, and infos as of step().
        """
        self._check_open()
        more = _checks.options(options)
        if more:
            raise ValueError(f"reset takes no options, got {sorted(more)}")
        super().reset(seed=None if seed is None else checked_seed(seed))
        if seed is None and not self._seeded:
            seed = int(self.np_random.integers(2**63))
        self._pool.drain()
        seeds = _NO_SEEDS if seed is None else np.array([seed], np.uint64)
        self._pool.reset(_ENV_0, seeds)
        self._pool.drain()
        self._playing = self._seeded = True
        return self._observation(), self._info()

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Plays one action. RuntimeError after the episode's end.

        Args:
            action: of `action_space`.

        Returns:
            Observation, reward (float), terminated, truncated and info: episode_return and
            episode_length (steps) of the episode so far; of Tetris also lines (of the episode so
            far) and lines_cleared (by this action); and action_mask int8 [A], 1 where legal, where
            the environment has one.
        """
        if not self._playing:
            self._check_open()
            raise RuntimeError("the episode is over or was never started: call reset() first")
        self._action[0] = self._checked_action(action)
        self._pool.step(self._action)
        terminated, truncated = self._ends()
        self._playing = not (terminated or truncated)
        reward = float(self._columns["reward"][0])
        return self._observation(), reward, terminated, truncated, self._info()

    def render(self) -> np.ndarray | str | None:
        """Draws the environment as render_mode says.

        Returns:
            rgb_array: u8 [height, width, 3]; ansi: lines of text, Tetris with terminal colours.
        """
        self._check_open()
        if self.render_mode is None:
            _render.warn_without_mode()
            return None
        if not self._seeded:
            raise RuntimeError("nothing to draw yet: call reset() first")
        return self._camera.draw(self._pool.record(0))

    def close(self) -> None:
        """Frees the environment; it cannot be used afterwards. May be called twice."""
        self._playing = False
        self._closed = True
        self._pool.close()

    @property
    def record(self) -> bytes:
        """The state after the last step as bytes: 168 (Tetris: compact record, then the colours of
        locked cells) 16 (CartPole: four float32) or 8 (Catch)."""
        self._check_open()
        return self._pool.record(0)

    @property
    def max_steps(self) -> int:
        """An episode is truncated after so many."""
        return self._setup.limit

    def get_state(self) -> EnvState:
        """Where the environment stands. RuntimeError before the first reset.

        Returns:
            A state for set_state() of this environment or another of the same settings.
        """
        self._check_open()
        return self._setup.state(self._pool.save(_ENV_0)[0])

    def set_state(self, state: EnvState) -> tuple[Any, dict[str, Any]]:
        """Goes on where `state` was taken: the same actions give the same arrays, rewards and ends,
        and the resets after them the same episodes. ValueError, and nothing has changed, for a
        state of other settings.

        Args:
            state: of get_state() of an environment of the same settings.

        Returns:
            Observation and info of that moment.
        """
        self._check_open()
        self._pool.load(_ENV_0, [self._setup.bytes_of(state)])
        self._playing = not any(self._ends())
        self._seeded = True
        return self._observation(), self._info()

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: settings, spaces with their generators, and the state."""
        self._check_open()
        opened = ("_pool", "_columns", "_action")  # by _open; a copy's are its own
        kept = {k: v for k, v in self.__dict__.items() if k not in opened}
        kept["_saved"] = self._pool.save(_ENV_0) if self._seeded else None
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        saved = kept.pop("_saved")
        self.__dict__.update(kept)
        self._open()
        if saved is not None:
            self._pool.load(_ENV_0, saved)

    def _keys_to_action(self) -> dict[tuple[str, ...], int]:
        return {(key,): action for key, action in _spaces.TABLE[self._env].keys.items()}

    def _open(self) -> None:
        setup = self._setup
        self._parts = _core.observation(setup.env, setup.obs, setup.queue_size).parts
        self._pool = setup.pool(1, 0, 1)
        self._columns = self._pool.columns()
        self._action = np.zeros(1, np.int32)

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("the environment is closed; make a new one")

    def _checked_action(self, action: Any) -> int:
        try:
            number = operator.index(action)
        except TypeError:
            number = None
        last = self._pool.num_actions - 1
        if number is None or isinstance(action, bool):
            raise TypeError(f"action must be an integer of 0 to {last}, not {action!r}")
        if not 0 <= number <= last:
            raise ValueError(f"action {number} is out of range: actions are 0 to {last}")
        return number

    def _ends(self) -> tuple[bool, bool]:
        return bool(self._columns["terminated"][0]), bool(self._columns["truncated"][0])

    def _observation(self) -> Any:
        row = self._columns["obs"][0].copy()
        return _spaces.dict_of(row, self._parts) if self._parts else row

    def _info(self) -> dict[str, Any]:
        columns = self._columns
        info = {
            "episode_return": float(columns["episode_return"][0]),
            "episode_length": int(columns["episode_length"][0]),
        }
        if _spaces.TABLE[self._env].has_lines:
            info["lines"] = int(columns["lines"][0])
            info["lines_cleared"] = int(columns["lines_cleared"][0])
        if "action_mask" in columns:
            info["action_mask"] = columns["action_mask"][0].copy()
        return info


class TetrisEnv(_CppEnv):
    """Tetris, step for step as tetris-gymnasium 0.3.1 plays it.

    Actions: 0 left, 1 right, 2 down, 3 clockwise, 4 counterclockwise, 5 hard drop, 6 swap, 7 none.
    Reward: 10 lines^2 + 1 for a locked piece, 0 where the game ends, unless told otherwise.

    Args:
        obs: "dict" (uint8: board [24, 18] with the active piece, active_tetromino_mask [24, 18],
            holder [4, 4], queue [4, 4 q]), "flat" (float32 [880 + 16 q]: the same numbers in
            gymnasium's FlattenObservation order), "planes" (float32 [420 + 7 q]: cells and
            one-hots), "pixels" (float32 [5760]: a picture of 72x80 shades, 0 to 1), "packed2"
            (uint8 [1440]: that picture with 2 bits a pixel, 20 bytes a row, the leftmost pixel in
            bits 0-1, 0 white to 3 black), "compact" (uint8 [64]: the packed state) or "drops"
            (float32 [245 + 7 q]: what a drop after each of the 8 actions would leave, 25 numbers
            each, then the state).
        queue_size: pieces in the preview, 0 to 7.
        iid_pieces: independent pieces instead of 7-bags.
        max_steps: an episode is truncated there; None: 10,000.
        board_rows: of the field that are played on, 5 to 20. Arrays keep their shapes: above them
            the board shows bedrock.
        reward: of a locked piece that clears n rows, "squares" (10 n^2 + 1, 0 where the game ends)
            or "lines" (n).
        render_mode: None, "rgb_array" or "ansi".
        render_scale: pixels a cell; None: 10.
    """

    _env = "tetris"

    @_checks.keywords
    def __init__(
        self,
        obs: _spaces.TetrisObs = "dict",
        *,
        queue_size: int = 4,
        iid_pieces: bool = False,
        max_steps: int | None = None,
        board_rows: int = 20,
        reward: Reward = "squares",
        render_mode: _render.RenderMode | None = None,
        render_scale: int | None = None,
    ):
        setup = Setup(
            self._env,
            obs,
            queue_size,
            iid_pieces,
            max_steps=max_steps,
            board_rows=board_rows,
            reward=reward,
            colours=True,
        )
        super().__init__(setup, render_mode, render_scale)

    def get_keys_to_action(self) -> dict[tuple[str, ...], int]:
        """For gymnasium.utils.play(env, noop=7): a, d, s move, e and q turn, w swaps, space drops,
        x does nothing. (Without noop=7 it plays action 0, left, while no key is pressed.)

        Returns:
            Keys to action.
        """
        return self._keys_to_action()


class TetrisPlacementEnv(_CppEnv):
    """Tetris played by placements: action = column * 4 + rotations, 40 of them; info["action_mask"]
    (int8 [40], as action_space.sample() takes it) says which are legal. An illegal one has reward
    -0.1; see illegal.

    Args:
        obs: as of TetrisEnv but for "drops", and "afterstates" (float32 [660 + 7 q]: what every
            placement would leave, 16 numbers each), "afterstates-dt" (float32 [985 + 7 q]: 24
            numbers each) or "afterstates-boards" (float32 [497 + 7 q]: the boards, a column an
            integer).
        illegal: "terminate": an illegal action ends the episode. "noop": it acts as TetrisEnv's
            none: the piece falls a row, which may lock it and end the game; with spawn_above it
            does not fall.
        queue_size: as of TetrisEnv.
        iid_pieces: as of TetrisEnv.
        max_steps: an episode is truncated there; None: 5,000.
        board_rows: as of TetrisEnv.
        spawn_above: pieces appear above the field, and a placement that leaves cells there ends
            the episode; without it they appear in the highest rows.
        reward: as of TetrisEnv.
        render_mode: as of TetrisEnv.
        render_scale: as of TetrisEnv.
    """

    _env = "tetris-placement"

    @_checks.keywords
    def __init__(
        self,
        obs: _spaces.PlacementObs = "dict",
        *,
        illegal: Illegal = "terminate",
        queue_size: int = 4,
        iid_pieces: bool = False,
        max_steps: int | None = None,
        board_rows: int = 20,
        spawn_above: bool = False,
        reward: Reward = "squares",
        render_mode: _render.RenderMode | None = None,
        render_scale: int | None = None,
    ):
        setup = Setup(
            self._env,
            obs,
            queue_size,
            iid_pieces,
            illegal,
            max_steps,
            board_rows,
            spawn_above,
            reward,
            colours=True,
        )
        super().__init__(setup, render_mode, render_scale)

    def action_masks(self) -> np.ndarray:
        """The legal actions, under the name that sb3-contrib's MaskablePPO asks for. RuntimeError
        before the first reset.

        Returns:
            bool [40].
        """
        self._check_open()
        if not self._seeded:
            raise RuntimeError("no game yet: call reset() first")
        mask: np.ndarray = self._columns["action_mask"][0].astype(bool)
        return mask


class CartPoleEnv(_CppEnv):
    """Gymnasium's CartPole-v1: actions 0 left, 1 right, reward 1 a step, truncated at max_steps
    (None: 500).

    Args:
        obs: "flat" (float32 [4]: x, x_dot, theta, theta_dot) or "compact" (the same as uint8 [16]).
        max_steps: an episode is truncated there; None: 500.
        render_mode: None, "rgb_array" or "ansi".
        render_scale: a 600 x 400 picture at 4, the default.
    """

    _env = "cartpole"

    @_checks.keywords
    def __init__(
        self,
        obs: _spaces.CartPoleObs = "flat",
        *,
        max_steps: int | None = None,
        render_mode: _render.RenderMode | None = None,
        render_scale: int | None = None,
    ):
        super().__init__(Setup(self._env, obs, max_steps=max_steps), render_mode, render_scale)

    def get_keys_to_action(self) -> dict[tuple[str, ...], int]:
        """For gymnasium.utils.play: a left, d right.

        Returns:
            Keys to action.
        """
        return self._keys_to_action()


class CatchEnv(_CppEnv):
    """bsuite's Catch with nine columns and ten rows: actions 0 left, 1 stay, 2 right; after nine
    steps the reward is 1 for a ball that was caught, else -1; before that 0.

    Args:
        obs: "flat" (float32 [90]: 1 where ball or paddle is, else -1) or "compact" (uint8 [8]: row
            and column of the ball, column of the paddle, zeros).
        max_steps: an episode is truncated there; None: 10, which none reaches.
        render_mode: None, "rgb_array" or "ansi".
        render_scale: pixels a cell; 16 by default.
    """

    _env = "catch"

    @_checks.keywords
    def __init__(
        self,
        obs: _spaces.CatchObs = "flat",
        *,
        max_steps: int | None = None,
        render_mode: _render.RenderMode | None = None,
        render_scale: int | None = None,
    ):
        super().__init__(Setup(self._env, obs, max_steps=max_steps), render_mode, render_scale)

    def get_keys_to_action(self) -> dict[tuple[str, ...], int]:
        """For gymnasium.utils.play: a left, s stay, d right.

        Returns:
            Keys to action.
        """
        return self._keys_to_action()


class FlattenObservation(gymnasium.ObservationWrapper, gymnasium.utils.RecordConstructorArgs):
    """A TetrisEnv's dict observation as uint8 [880 + 16 q], equal to gymnasium's FlattenObservation
    in space, numbers, order and dtype. `TetrisEnv(obs="flat")` gives the same numbers as float32
    without a detour.

    Args:
        env: one with obs="dict".
    """

    def __init__(self, env: gymnasium.Env):
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        gymnasium.ObservationWrapper.__init__(self, env)
        if not isinstance(env.observation_space, spaces.Dict):
            raise ValueError(
                'FlattenObservation wants an environment with obs="dict", not one that shows '
                f"{env.observation_space}"
            )
        self.observation_space = spaces.flatten_space(env.observation_space)

    def observation(self, observation: dict[str, np.ndarray]) -> np.ndarray:
        """One observation, flattened.

        Args:
            observation: the dict of the wrapped environment.

        Returns:
            uint8 [880 + 16 q].
        """
        return np.concatenate([observation[key].ravel() for key in sorted(observation)])


def pieces(seed: int, episode: int, count: int, *, iid: bool = False) -> list[int]:
    """The first pieces of an episode; the first of them is the first active piece.

    Args:
        seed: of the environment.
        episode: its number, counted from 0 since the environment was seeded.
        count: how many pieces.
        iid: as the environment's iid_pieces.

    Returns:
        Ids 0..6: I O T S Z J L, [count].
    """
    number = _checks.integer("count", count, 0, 2**24)
    independent = _checks.boolean("iid", iid)
    return _core.pieces(checked_seed(seed), checked_seed(episode, "episode"), number, independent)


def class_of(one: _core.Environment) -> type[_CppEnv]:
    """A class for an environment of the table: what those above are, settings by keyword."""

    shared = ("obs", "max_steps", "render_mode", "render_scale")

    def begin(
        self: _CppEnv,
        obs: str = one.default_obs,
        *,
        max_steps: int | None = None,
        render_mode: _render.RenderMode | None = None,
        render_scale: int | None = None,
        **options: Any,
    ) -> None:
        for name in options:
            _checks.known_keyword(f"{one.python_name}Env", name, (*shared, *one.options))
        setup = Setup(one.name, obs, max_steps=max_steps, colours=True, **options)
        _CppEnv.__init__(self, setup, render_mode, render_scale)

    return type(f"{one.python_name}Env", (_CppEnv,), {"_env": one.name, "__init__": begin})


for _one in _spaces.TABLE.values():  # those that have no class above
    globals().setdefault(f"{_one.python_name}Env", class_of(_one))

# gymnasium's id -> the environment's name in C++; its class is named after the id.
IDS: dict[str, _spaces.EnvName] = {
    f"tetrion/{one.python_name}-v0": cast(_spaces.EnvName, one.name)
    for one in _spaces.TABLE.values()
}


def register() -> None:
    """Makes the environments known to gymnasium.make and make_vec; done when tetrion is imported.
    May be called twice."""
    for env_id, name in IDS.items():
        if env_id not in gymnasium.registry:
            gymnasium.register(
                env_id,
                entry_point=f"tetrion.envs:{_spaces.TABLE[name].python_name}Env",
                vector_entry_point=f"tetrion.vector:{vector_maker(name)}",
            )


def vector_maker(name: str) -> str:
    """The function of tetrion.vector that makes environments `name`."""
    return f"make_{name.replace('-', '_')}"
