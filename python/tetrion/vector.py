"""Vector environments: many environments stepped by C++ threads."""

from __future__ import annotations

import atexit
import inspect
import os
import secrets
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from . import _checks, _core, _render, _spaces
from ._lane import Lane, PlacementLane
from ._setup import EnvState, HasLimit, Illegal, Reward, Setup
from .envs import checked_seed, vector_maker

_NO_SEEDS = np.zeros(0, np.uint64)
_LINES = ("lines", "lines_cleared")  # of the games that have some
_INFO = ("episode_return", "episode_length", *_LINES, "action_mask")
_OF_THE_STEP = ("reward", "terminated", "truncated")
_GONE_ON_FROM = ("terminated", "truncated", "lines", "lines_cleared")  # by a step or a state
# What a thread must have to write in a step, observations and games: with less, handing the work
# over costs more than doing it, and a copy reads what another core has just written
# (docs/benchmarks.md).
_BYTES_PER_THREAD = {True: 3 << 20, False: 3 << 19}  # by `copy`
_BYTES_PER_GAME = 256
_MOST_THREADS = 256
_TIMEOUT_S = 600.0  # of a wait for the threads
_open: weakref.WeakSet[TetrionVectorEnv] = weakref.WeakSet()

EnvIds = Sequence[int] | np.ndarray
Seeds = int | Sequence[int | None] | np.ndarray | None


class TetrionVectorEnv(  # pyright: ignore[reportIncompatibleVariableOverride]
    HasLimit, gymnasium.vector.VectorEnv
):
    """`num_envs` environments as one gymnasium.vector.VectorEnv. n = num_envs, A = actions.

    Args:
        env: its name, a value of tetrion.envs.IDS: "tetris", say.
        num_envs: how many, n.
        threads: C++ threads, each owning a range of environments; step() and reset() play along in
            the caller's thread, and with 0 everything does. None: one less than the cores that this
            process may use (affinity, a container's quota), fewer when a step has less than
            3 MiB for each to write, or 1.5 MiB with copy=False: observations and 256 bytes an
            environment.
        obs: "flat", "dict", "planes", "pixels", "compact", "packed2"; tetris also
            "drops", tetris-placement also "afterstates", "afterstates-dt" and
            "afterstates-boards". "dict" gives a dict of arrays [n, ...].
        seed: environment i gets seed + i, or the i-th of a sequence; used by the first reset,
            unless that is given one; a row of a reset_mask counts for itself. Environment i then
            plays what a single environment with that seed plays. None in a sequence: the
            environment's next episode, of a seed of the operating system at first.
        batch_size: environments that recv() returns; None: all of them.
        copy: False returns the arrays that every step overwrites, terminations, truncations and
            those of lines read-only; True copies them.
        queue_size: as of TetrisEnv, as are iid_pieces, max_steps, board_rows, render_mode and
            render_scale.
        iid_pieces: see queue_size.
        illegal: as of TetrisPlacementEnv.
        max_steps: see queue_size; None: the environment's own.
        board_rows: see queue_size.
        spawn_above: as of TetrisPlacementEnv.
        reward: as of TetrisEnv.
        render_mode: see queue_size.
        render_scale: see queue_size.
        timeout: seconds that step, reset and recv wait for the threads before they raise
            TimeoutError; None: 600.
        autoreset_mode: of gymnasium.vector.AutoresetMode, or its value, below.

    step and reset return observations [n, ...], rewards float32 [n], terminations and truncations
    bool [n], and infos of arrays: episode_return float32 [n], episode_length int32 [n] (steps); of
    Tetris also lines int32 [n] of the episode so far (final where it ended) and lines_cleared int32
    [n] by the last action; action_mask int8 [n, A] where the environment has masks.

    Autoreset is next-step, unless told otherwise: the row with terminated or truncated shows the
    last observation of the episode; the next step ignores that environment's action, gives reward 0
    and shows the first observation of its next episode. "SameStep": that row shows the first
    observation of the next episode already, and infos have final_obs (objects [n], None where no
    episode ended) and final_info (the last infos as arrays [n]), with _final_obs and _final_info
    bool [n]. "Disabled": reset(options={"reset_mask": bool [n]}) starts the episodes that are
    over; a step without it is a RuntimeError.

    Either step(), or async_reset() and then recv() and send() in turns (next-step only): recv()
    returns the first batch_size environments that are ready, infos["env_id"] int32 [batch_size]
    says which.
    """

    closed = True  # until it is whole, for __del__

    @_checks.keywords
    def __init__(
        self,
        env: _spaces.EnvName,
        num_envs: int,
        *,
        threads: int | None = None,
        obs: _spaces.Obs = "flat",
        seed: Seeds = None,
        batch_size: int | None = None,
        copy: bool = True,
        queue_size: int = 4,
        iid_pieces: bool = False,
        illegal: Illegal = "terminate",
        max_steps: int | None = None,
        board_rows: int = 20,
        spawn_above: bool = False,
        reward: Reward = "squares",
        render_mode: _render.RenderMode | None = None,
        render_scale: int | None = None,
        autoreset_mode: AutoresetMode | str = AutoresetMode.NEXT_STEP,
        timeout: float | None = None,
    ):
        colours = render_mode is not None
        self._setup = Setup(
            env,
            obs,
            queue_size,
            iid_pieces,
            illegal,
            max_steps,
            board_rows,
            spawn_above,
            reward,
            colours,
        )
        self._camera = _render.Camera(env, self._setup.queue_size, render_mode, render_scale)
        self.num_envs = num_envs = _checks.integer("num_envs", num_envs, 1, 1 << 20)
        self.batch_size = (
            num_envs
            if batch_size is None
            else _checks.integer("batch_size", batch_size, 1, num_envs)
        )
        self._copy = _checks.boolean("copy", copy)
        if threads is None:
            seen = _core.observation(env, obs, self._setup.queue_size)
            env_bytes = seen.elements * (4 if seen.is_float else 1) + _BYTES_PER_GAME
            step_bytes = num_envs * env_bytes
            busy = step_bytes // _BYTES_PER_THREAD[self._copy]
            threads = min(_core.usable_cpus() - 1, busy, _MOST_THREADS)
        self._threads = _checks.integer("threads", threads, 0, _MOST_THREADS)
        self._timeout = _checks.seconds("timeout", timeout) or _TIMEOUT_S
        self._autoreset = _autoreset_mode(autoreset_mode)
        if self._autoreset is not AutoresetMode.NEXT_STEP and self.batch_size != num_envs:
            raise ValueError(
                f"autoreset_mode {self._autoreset.value} restarts whole batches: "
                "leave batch_size out"
            )
        self.metadata = {
            "autoreset_mode": self._autoreset,
            "render_modes": list(_render.MODES),
            "render_fps": _spaces.TABLE[env].fps,
        }
        self.render_mode = render_mode
        self._all = np.arange(num_envs, dtype=np.int32)
        self._seeds = None if seed is None else self._seeds_of(seed)  # of the first reset
        self._seeded = np.zeros(num_envs, bool)
        self._lanes: list[Lane] | None = None
        self._start_pool()
        self.single_observation_space = _spaces.observation_space(env, obs, self._setup.queue_size)
        self.single_action_space = gymnasium.spaces.Discrete(self._pool.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)

    def reset(
        self, *, seed: Seeds = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts episodes; results not yet received are dropped.

        Args:
            seed: as the constructor's; None: the next episodes of the seeds in use.
            options: {"reset_mask": bool [n]} starts those where it is True; else all.

        Returns:
            Observations [n, ...] and infos.
        """
        self._check_open()
        more = _checks.options(options)
        envs = self._masked(more.pop("reset_mask", None))
        if more:
            raise ValueError(f"reset takes no options but reset_mask, got {sorted(more)}")
        self._need_whole_batches("reset", "async_reset")
        self._begin(envs, seed)
        self._pool.drain(self._timeout)
        return self._observations(), self._infos()

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Plays an action in each environment. ValueError names the first whose action is out of
        range, RuntimeError says that another step has not ended; nothing has moved then.

        Args:
            actions: integers [n] in 0 .. A-1.

        Returns:
            Observations, rewards, terminations, truncations and infos, see the class.
        """
        self._need_whole_batches("step", "send and recv")
        numbers = _int32(actions, "actions")
        if self._autoreset is AutoresetMode.DISABLED:
            self._check_open()  # elsewhere the pool, which knows whether Python is about to end
            self._refuse_ended()
        if self._autoreset is AutoresetMode.SAME_STEP:
            self._restart_ended()  # there are some where the last step was interrupted
        self._pool.step(numbers, self._timeout)
        if self._autoreset is not AutoresetMode.SAME_STEP:
            return self._results()
        for name in _OF_THE_STEP:
            self._shown_columns[name][:] = self._columns[name]
        final = self._restart_ended()
        results = self._results()
        results[-1].update(final)
        return results

    def async_reset(self, seed: Seeds = None) -> None:
        """Starts an episode everywhere and returns at once; recv() gives the first observations.

        Args:
            seed: as of reset.
        """
        self._check_open()
        self._need_next_step("async_reset")
        self._begin(self._all, seed)

    def send(self, actions: Any, env_id: Any = None) -> None:
        """Hands actions to environments and returns at once. ValueError, and nothing sent, when one
        of them is still stepping, is not there, is named twice or is given an action out of range.

        Args:
            actions: integers [k].
            env_id: of these environments, [k]; None: of a whole batch in order 0..n-1.
        """
        self._need_next_step("send")
        ids = self._all if env_id is None else _int32(env_id, "env_id")
        numbers = _int32(actions, "actions")
        if numbers.shape != ids.shape:
            raise ValueError(f"{len(numbers)} actions for {len(ids)} environments")
        self._pool.send(ids, numbers)

    def recv(
        self, timeout: float | None = None
    ) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Waits for batch_size environments. RuntimeError when fewer are stepping, or when the
        environment is closed meanwhile. Threads may call it at once and are served in turns; with
        copy=False each overwrites what the one before it got.

        Args:
            timeout: seconds after which TimeoutError is raised; None: the environment's.

        Returns:
            The same tuple as step(), of [batch_size] rows, with infos["env_id"].
        """
        self._need_next_step("recv")
        seconds = _checks.seconds("timeout", timeout) or self._timeout
        until = time.monotonic() + seconds
        if not self._receiving.acquire(timeout=min(seconds, threading.TIMEOUT_MAX)):
            raise TimeoutError(f"another thread has been in recv for {seconds:g} s")
        try:
            self._pool.receive(max(until - time.monotonic(), 0.0))
            observations, rewards, terminations, truncations, infos = self._results()
            infos["env_id"] = self._out("env_id")
        finally:
            self._receiving.release()
        return observations, rewards, terminations, truncations, infos

    def render(self) -> tuple[np.ndarray | str, ...] | None:
        """Draws each environment as render_mode says.

        Returns:
            A picture or text of each, as the single ones draw it, [n] of them.
        """
        self._check_open()
        if self.render_mode is None:
            _render.warn_without_mode()
            return None
        if not self._seeded.all():
            raise RuntimeError("nothing to draw yet: call reset() first")
        return tuple(self._camera.draw(record) for record in self.records(range(self.num_envs)))

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads; a step() or recv() running elsewhere raises RuntimeError.

        Args:
            kwargs: gymnasium's; not looked at.
        """
        self._pool.close()
        _open.discard(self)

    def records(self, env_ids: EnvIds) -> list[bytes]:
        """The states of environments that are not stepping, as bytes.

        Args:
            env_ids: which.

        Returns:
            A record each.
        """
        self._check_open()
        ids = _checks.items("env_ids", env_ids, "a sequence of environments")
        return [self._pool.record(self._checked_env(env)) for env in ids]

    def get_state(self, env_ids: EnvIds | None = None) -> list[EnvState]:
        """Where environments stand. ValueError while one is stepping, RuntimeError before its first
        reset.

        Args:
            env_ids: which; None: all.

        Returns:
            A state each, for set_state() here or of a single environment.
        """
        self._check_open()
        return [self._setup.state(saved) for saved in self._pool.save(self._ids(env_ids))]

    def set_state(
        self, states: EnvState | Sequence[EnvState], env_ids: EnvIds | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Environments go on where the states were taken; in autoreset_mode SameStep with the next
        episode where that of a state has ended. ValueError, and nothing has changed, for a state of
        other settings or while one of them is stepping.

        Args:
            states: one for each of them, or one for all.
            env_ids: which; None: all.

        Returns:
            Observations and infos of all, as reset().
        """
        self._check_open()
        self._need_whole_batches("set_state", "batch_size=None")
        ids = self._ids(env_ids)
        if isinstance(states, EnvState):
            given = [states] * len(ids)
        else:
            given = _checks.items("states", states, "an EnvState or a sequence of them")
        if len(given) != len(ids):
            raise ValueError(
                f"{len(given)} states for {len(ids)} environments: pass env_ids, or one EnvState "
                "for all"
            )
        self._pool.load(ids, [self._setup.bytes_of(state) for state in given])
        self._seeded[ids] = True
        if self._autoreset is AutoresetMode.SAME_STEP:
            self._restart_ended()
        return self._observations(), self._infos()

    def call(self, name: str, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Calls a method of each environment: action_masks, render, get_state, record, max_steps
        and others of the single environments.

        Args:
            name: of the method, or of an attribute.
            args: for the method.
            kwargs: for the method.

        Returns:
            What each returns, or its attribute, [n].
        """
        return self.call_of(self._all, name, *args, **kwargs)

    def call_of(
        self, env_ids: Iterable[int], name: str, *args: Any, **kwargs: Any
    ) -> tuple[Any, ...]:
        """Calls a method of some environments, as call.

        Args:
            env_ids: which.
            name: of the method, or of an attribute.
            args: for the method.
            kwargs: for the method.

        Returns:
            What each returns, or its attribute.
        """
        lanes = self._every_lane()
        try:
            found = [getattr(lanes[self._checked_env(env)], name) for env in env_ids]
        except AttributeError:
            raise AttributeError(f"the environments have no attribute {name!r}") from None
        return tuple(one(*args, **kwargs) if callable(one) else one for one in found)

    def get_attr(self, name: str) -> tuple[Any, ...]:
        """An attribute of each environment.

        Args:
            name: of the attribute.

        Returns:
            The values, [n].
        """
        return self.call(name)

    def set_attr(self, name: str, values: Any) -> None:
        """Gives each environment an attribute of its own. AttributeError for those that the
        environments have themselves.

        Args:
            name: of the attribute.
            values: a list or tuple [n], or one value for all.
        """
        if not isinstance(values, list | tuple):
            values = [values] * self.num_envs
        if len(values) != self.num_envs:
            raise ValueError(f"{len(values)} values for {self.num_envs} environments")
        for lane, value in zip(self._every_lane(), values, strict=True):
            setattr(lane, name, value)

    @property
    def threads(self) -> int:
        """C++ threads beside the caller's."""
        return self._pool.threads

    @property
    def max_steps(self) -> int:
        """An episode is truncated after so many."""
        return self._setup.limit

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: settings, spaces with their generators, and every state."""
        self._check_open()
        private = ("_pool", "_columns", "_shown_columns", "_lent_columns", "_receiving", "closed")
        kept = {k: v for k, v in self.__dict__.items() if k not in private}
        kept["_seeded"] = self._seeded.copy()
        kept["_saved"] = self._pool.save(self._all[self._seeded])
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        saved = kept.pop("_saved")
        self.__dict__.update(kept)
        if self._lanes is not None:  # without environment; a shallow copy's: the original's
            self._lanes = [lane.of(self) for lane in self._lanes]
        self._start_pool()
        self._pool.load(self._all[self._seeded], saved)

    def _start_pool(self) -> None:
        setup = self._setup
        self._parts = _core.observation(setup.env, setup.obs, setup.queue_size).parts
        self._pool = setup.pool(self.num_envs, self._threads, self.batch_size)
        self._columns = self._pool.columns()
        self._shown_columns = dict(self._columns)
        if self._autoreset is AutoresetMode.SAME_STEP:
            # The pool's say of a restarted environment what a reset does, and its state with them.
            self._shown_columns.update({name: self._columns[name].copy() for name in _OF_THE_STEP})
        self._lent_columns = self._shown_columns | {
            name: _read_only(self._shown_columns[name]) for name in _GONE_ON_FROM
        }
        unused = () if _spaces.TABLE[setup.env].has_lines else _LINES
        self._info_names = [n for n in _INFO if n in self._columns and n not in unused]
        self._receiving = threading.Lock()  # held from receive() until its rows are copied
        self.closed = False
        _open.add(self)

    def _check_open(self) -> None:
        if self.closed:
            raise RuntimeError("the environment is closed; make a new one")

    def _every_lane(self) -> list[Lane]:
        if self._lanes is None:
            kind = PlacementLane if "action_mask" in self._columns else Lane
            self._lanes = [kind(self, env) for env in range(self.num_envs)]
        return self._lanes

    def _ids(self, env_ids: EnvIds | None) -> np.ndarray:
        if env_ids is None:
            return self._all
        wanted = "a sequence of environments or None"
        return _int32(_checks.items("env_ids", env_ids, wanted), "env_ids")

    def _masked(self, mask: Any) -> np.ndarray:
        """The environments of a reset_mask, [k]; None: all."""
        if mask is None:
            return self._all
        if not isinstance(mask, np.ndarray) or mask.dtype != bool:
            raise TypeError(f"reset_mask must be a numpy array of bool, not {mask!r}")
        if mask.shape != (self.num_envs,) or not mask.any():
            raise ValueError(f"reset_mask must be of shape ({self.num_envs},) with a True in it")
        return self._all[mask]

    def _begin(self, envs: np.ndarray, seed: Any) -> None:
        """Starts episodes of `envs` [k]: as seeded where there is a seed, else the next ones."""
        given = self._seeds if seed is None else self._seeds_of(seed)
        if seed is not None and np.ndim(seed) == 0:
            super().reset(seed=int(seed))  # for np_random_seed
        self._pool.drain(self._timeout)
        seeds = {} if seed is None and self._seeded[envs].all() else self._fresh(envs, given, seed)
        if seeds:
            self._pool.reset(np.array([*seeds], np.int32), np.array([*seeds.values()], np.uint64))
        if len(seeds) < len(envs):
            others = [env for env in envs.tolist() if env not in seeds] if seeds else envs
            self._pool.reset(np.asarray(others, np.int32), _NO_SEEDS)
        self._seeded[envs] = True

    def _fresh(
        self, envs: np.ndarray, given: list[int | None] | None, seed: Seeds
    ) -> dict[int, int]:
        """Environment -> seed, of those of `envs` that do not go on with the one they have."""
        drawn = secrets.randbits(63)
        seeds = {}
        for env in envs.tolist():
            mine = None if given is None else given[env]
            if not self._seeded[env] or (seed is not None and mine is not None):
                seeds[env] = (drawn + env) % 2**64 if mine is None else mine
        return seeds

    def _seeds_of(self, seed: Any) -> list[int | None]:
        if np.ndim(seed) == 0:
            first = checked_seed(seed)
            return [(first + i) % 2**64 for i in range(self.num_envs)]
        if len(seed) != self.num_envs:
            raise ValueError(f"{len(seed)} seeds for {self.num_envs} environments")
        return [
            None if one is None else checked_seed(one, f"seed of environment {i}")
            for i, one in enumerate(seed)
        ]

    def _refuse_ended(self) -> None:
        """RuntimeError where an episode is over; no step restarts it in the disabled mode."""
        over = self._columns["terminated"] | self._columns["truncated"]
        if over.any():
            raise RuntimeError(
                f"the episode of environment {int(over.argmax())} is over: call "
                'reset(options={"reset_mask": terminations | truncations}) first'
            )

    def _restart_ended(self) -> dict[str, Any]:
        """Starts the next episodes of those that have ended. Returns the infos of the ended ones,
        {} where there are none."""
        columns = self._columns
        ended = columns["terminated"] | columns["truncated"]
        envs = self._all[ended]
        if not envs.size:
            return {}
        final_obs = np.full(self.num_envs, None, object)
        for env, row in zip(envs.tolist(), columns["obs"][envs], strict=True):
            final_obs[env] = self._shown(row)
        final_info = {}
        for name in self._info_names:
            final_info[name] = np.zeros_like(columns[name])
            final_info[name][envs] = columns[name][envs]
            final_info[f"_{name}"] = ended.copy()
        self._pool.reset(envs, _NO_SEEDS)
        self._pool.drain(self._timeout)
        return {
            "final_obs": final_obs,
            "_final_obs": ended,
            "final_info": final_info,
            "_final_info": ended.copy(),
        }

    def _checked_env(self, env: int) -> int:
        return _checks.integer("environment", env, 0, self.num_envs - 1)

    def _need_whole_batches(self, what: str, instead: str) -> None:
        if self.batch_size != self.num_envs:
            raise RuntimeError(
                f"{what}() returns every environment, but batch_size is {self.batch_size} of "
                f"{self.num_envs}: use {instead}"
            )

    def _need_next_step(self, what: str) -> None:
        if self._autoreset is not AutoresetMode.NEXT_STEP:
            raise RuntimeError(
                f"{what}() restarts episodes at the next step, but autoreset_mode is "
                f"{self._autoreset.value}: use reset and step"
            )

    def _results(self) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        return (
            self._observations(),
            self._out("reward"),
            self._out("terminated"),
            self._out("truncated"),
            self._infos(),
        )

    def _out(self, name: str) -> np.ndarray:
        return self._lent_columns[name].copy() if self._copy else self._lent_columns[name]

    def _shown(self, array: np.ndarray) -> Any:
        """One or more rows of observations as the user sees them."""
        return _spaces.dict_of(array, self._parts) if self._parts else array

    def _observations(self) -> Any:
        return self._shown(self._out("obs"))

    def _infos(self) -> dict[str, Any]:
        return {name: self._out(name) for name in self._info_names}


# A function to those who make environments, as gymnasium.make_vec is.
make = TetrionVectorEnv


def _maker(env: str) -> Callable[..., TetrionVectorEnv]:
    """What gymnasium.make_vec calls for the id of `env`."""

    def make_of_id(num_envs: int = 1, **options: Any) -> TetrionVectorEnv:
        """An environment's id for gymnasium.make_vec.

        Args:
            num_envs: how many.
            options: keywords of the single environment of that id and of TetrionVectorEnv.

        Returns:
            The environments.
        """
        return _of_id(env, num_envs, options)

    make_of_id.__name__ = make_of_id.__qualname__ = vector_maker(env)
    return make_of_id


for _name in _spaces.ENVIRONMENTS:  # make_tetris and so on
    globals()[vector_maker(_name)] = _maker(_name)


def _of_id(env: Any, num_envs: int, options: dict[str, Any]) -> TetrionVectorEnv:
    """The environment with the observations and keywords of the single one of its id."""
    mine = _spaces.TABLE[env]
    others = {option for one in _spaces.TABLE.values() for option in one.options}
    others.difference_update(mine.options)
    known = [
        name
        for name in (*inspect.signature(TetrionVectorEnv).parameters, "max_episode_steps")
        if name not in others and name not in ("env", "num_envs")
    ]
    for name in options:
        _checks.known_keyword(f"make_vec of {env}", name, known)
    more = {"obs": mine.default_obs, **options}
    limit = more.pop("max_episode_steps", None)  # gymnasium's name; the smaller limit holds
    if limit is not None and limit != -1:  # -1: the environment's own alone
        limit = _checks.integer("max_episode_steps", limit, 1, 2**30)
        usual = more.get("max_steps")
        usual = mine.max_steps if usual is None else usual
        more["max_steps"] = min(limit, _checks.integer("max_steps", usual, 1, 2**30))
    return TetrionVectorEnv(env, num_envs, **more)


def _autoreset_mode(value: Any) -> AutoresetMode:
    try:
        return AutoresetMode(value)
    except ValueError:
        known = ", ".join(mode.value for mode in AutoresetMode)
        raise ValueError(f"autoreset_mode must be one of {known}, not {value!r}") from None


def _read_only(array: np.ndarray) -> np.ndarray:
    view = array.view()
    view.flags.writeable = False
    return view


def _int32(values: Any, what: str) -> np.ndarray:
    """`values` as a contiguous int32 array [k]; TypeError unless they are integers."""
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"{what} must be one-dimensional, not of shape {array.shape}")
    if array.dtype == np.int32:
        return np.ascontiguousarray(array)
    if array.dtype.kind not in "iu" and array.size:
        raise TypeError(f"{what} must be integers, not {array.dtype}")
    if array.dtype == np.int64:
        return _core.narrowed(np.ascontiguousarray(array), what)
    narrow = array.astype(np.int32)
    if array.dtype.itemsize >= 4 and not np.array_equal(narrow, array):
        at = int(np.flatnonzero(narrow != array)[0])
        raise ValueError(f"{what}[{at}] is {array[at]}, far out of range")
    return narrow


def _after_fork() -> None:
    """A lock that another thread held at a fork would never be given back in the child."""
    for env in list(_open):
        env._receiving = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


@atexit.register
def _close_all() -> None:
    """Threads end before the interpreter does."""
    _core.leaving()
    for env in list(_open):
        env.close()
