"""Vector environments: many environments stepped by C++ threads."""

from __future__ import annotations

import atexit
import secrets
import weakref
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from . import _checks, _core, _spaces
from .envs import check_max_steps, checked_seed

_NO_SEEDS = np.zeros(0, np.uint64)
_INFO = ("episode_return", "episode_length", "lines", "action_mask")
# Fewer environments than this a thread: handing work over costs more than doing it.
_ENVS_PER_THREAD = 128
_open: weakref.WeakSet[TetrionVectorEnv] = weakref.WeakSet()


def make(
    env: str,
    num_envs: int,
    *,
    threads: int | None = None,
    obs: str = "flat",
    seed: int | Sequence[int] | None = None,
    batch_size: int | None = None,
    copy: bool = True,
    queue_size: int = 4,
    iid_pieces: bool = False,
    illegal: str = "terminate",
    max_steps: int | None = None,
) -> TetrionVectorEnv:
    """`num_envs` environments as one gymnasium.vector.VectorEnv.

    env: "tetris", "tetris-placement" or "cartpole".
    threads: C++ threads, each owning a range of environments; step() and reset() play along in the
        caller's thread, and with 0 everything does. None: one less than the cores that this
        process may use (affinity, a container's quota), fewer when there are few environments.
    obs: "flat", "dict", "planes", "compact", "packed2"; tetris-placement also "afterstates".
    seed: environment i gets seed + i, or the i-th of a sequence; used by the first reset without a
        seed. Environment i then plays what a single environment with that seed plays.
    batch_size: environments that recv() returns; None: all of them.
    copy: False returns the arrays that every step overwrites; True copies them.
    queue_size, iid_pieces, illegal, max_steps: as for TetrisEnv and TetrisPlacementEnv.
    """
    return TetrionVectorEnv(
        env,
        num_envs,
        threads=threads,
        obs=obs,
        seed=seed,
        batch_size=batch_size,
        copy=copy,
        queue_size=queue_size,
        iid_pieces=iid_pieces,
        illegal=illegal,
        max_steps=max_steps,
    )


def make_tetris(num_envs: int = 1, **options: Any) -> TetrionVectorEnv:
    """make("tetris", ...), for gymnasium.make_vec."""
    return make("tetris", num_envs, **options)


def make_tetris_placement(num_envs: int = 1, **options: Any) -> TetrionVectorEnv:
    """make("tetris-placement", ...), for gymnasium.make_vec."""
    return make("tetris-placement", num_envs, **options)


def make_cartpole(num_envs: int = 1, **options: Any) -> TetrionVectorEnv:
    """make("cartpole", ...), for gymnasium.make_vec."""
    return make("cartpole", num_envs, **options)


class TetrionVectorEnv(gymnasium.vector.VectorEnv):
    """See make(). n = num_envs, A = actions.

    step and reset return observations [n, ...], rewards float32 [n], terminations and truncations
    bool [n], and infos of arrays: episode_return float32 [n], episode_length int32 [n] (steps),
    lines int32 [n] of the episode so far (final where it ended), action_mask bool [n, A] where the
    environment has masks.

    Autoreset is next-step: the row with terminated or truncated shows the last observation of the
    episode; the next step ignores that environment's action, gives reward 0 and shows the first
    observation of its next episode.

    Either step(), or async_reset() and then recv() and send() in turns: recv() returns the first
    batch_size environments that are ready, infos["env_id"] int32 [batch_size] says which.
    """

    def __init__(
        self,
        env: str,
        num_envs: int,
        *,
        threads: int | None,
        obs: str,
        seed: int | Sequence[int] | None,
        batch_size: int | None,
        copy: bool,
        queue_size: int,
        iid_pieces: bool,
        illegal: str,
        max_steps: int | None,
    ):
        self.closed = True  # until it is whole, for __del__
        _spaces.check_obs(env, obs)
        if illegal not in ("terminate", "noop"):
            raise ValueError(f'illegal must be "terminate" or "noop", not {illegal!r}')
        num_envs = _checks.integer("num_envs", num_envs, 1, 1 << 20)
        queue_size = _checks.integer("queue_size", queue_size, 1, 7)
        if batch_size is not None:
            batch_size = _checks.integer("batch_size", batch_size, 1, num_envs)
        if threads is not None:
            threads = _checks.integer("threads", threads, 0, 256)
        if threads is None:
            threads = min(_core.usable_cpus() - 1, num_envs // _ENVS_PER_THREAD)
        config = _core.EnvConfig(
            env=env,
            obs=obs,
            queue_size=queue_size,
            iid_pieces=iid_pieces,
            illegal_is_noop=illegal == "noop",
            max_steps=0 if max_steps is None else check_max_steps(max_steps),
        )
        self.num_envs = num_envs
        self.batch_size = num_envs if batch_size is None else batch_size
        self.metadata = {"autoreset_mode": AutoresetMode.NEXT_STEP, "render_modes": []}
        self.render_mode = None
        self.spec = None
        self._env, self._obs, self._queue_size, self._copy = env, obs, queue_size, copy
        self._pool = _core.VectorPool(config, num_envs, threads, self.batch_size)
        self.threads = self._pool.threads
        self._columns = self._pool.columns()
        self._all = np.arange(num_envs, dtype=np.int32)
        self._seeds = None if seed is None else self._seeds_of(seed)
        self._seeded = False
        self.single_observation_space = _spaces.observation_space(env, obs, queue_size)
        self.single_action_space = gymnasium.spaces.Discrete(self._pool.num_actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.closed = False
        _open.add(self)

    def reset(
        self, *, seed: int | Sequence[int] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode everywhere; results not yet received are dropped. Without a seed: the
        next episodes of the seeds in use."""
        if options:
            raise ValueError(f"reset takes no options, got {sorted(options)}")
        self._need_whole_batches("reset", "async_reset")
        self._start(seed)
        self._pool.drain()
        return self._observations(), self._infos()

    def step(self, actions: Any) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """actions: integers [n] in 0 .. A-1. ValueError names the first environment whose action is
        out of range; nothing has moved then."""
        self._need_whole_batches("step", "send and recv")
        self._pool.step(_int32(actions, "actions"))
        return self._results()

    def async_reset(self, seed: int | Sequence[int] | None = None) -> None:
        """Starts an episode everywhere and returns at once; recv() gives the first observations."""
        self._start(seed)

    def send(self, actions: Any, env_id: Any = None) -> None:
        """Hands actions [k] to the environments env_id [k] (None: those of a whole batch in order
        0..n-1) and returns at once. ValueError, and nothing sent, when one of them is still
        stepping, is not there or is given an action out of range."""
        ids = self._all if env_id is None else _int32(env_id, "env_id")
        numbers = _int32(actions, "actions")
        if numbers.shape != ids.shape:
            raise ValueError(f"{len(numbers)} actions for {len(ids)} environments")
        self._pool.send(ids, numbers)

    def recv(self) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray, dict[str, Any]]:
        """Waits for batch_size environments: the same tuple as step(), of [batch_size] rows, with
        infos["env_id"]. RuntimeError when fewer are stepping, or when the environment is closed
        meanwhile."""
        self._pool.receive()
        observations, rewards, terminations, truncations, infos = self._results()
        infos["env_id"] = self._out("env_id")
        return observations, rewards, terminations, truncations, infos

    def close_extras(self, **kwargs: Any) -> None:
        """Ends the threads; a step() or recv() running elsewhere raises RuntimeError."""
        self._pool.close()
        _open.discard(self)

    def records(self, env_ids: Sequence[int]) -> list[bytes]:
        """The states of environments that are not stepping, as bytes."""
        return [self._pool.record(self._checked_env(env)) for env in env_ids]

    def _start(self, seed: int | Sequence[int] | None) -> None:
        if seed is not None:
            self._seeds = self._seeds_of(seed)
        elif not self._seeded and self._seeds is None:
            self._seeds = self._seeds_of(secrets.randbits(63))
        fresh = seed is not None or not self._seeded
        self._pool.drain()
        self._pool.reset(self._all, self._seeds if fresh else _NO_SEEDS)
        self._seeded = True

    def _seeds_of(self, seed: int | Sequence[int]) -> np.ndarray:
        if np.ndim(seed) == 0:
            first = checked_seed(seed)
            return np.array([(first + i) % 2**64 for i in range(self.num_envs)], np.uint64)
        if len(seed) != self.num_envs:
            raise ValueError(f"{len(seed)} seeds for {self.num_envs} environments")
        return np.array(
            [checked_seed(s, f"seed of environment {i}") for i, s in enumerate(seed)], np.uint64
        )

    def _checked_env(self, env: int) -> int:
        return _checks.integer("environment", env, 0, self.num_envs - 1)

    def _need_whole_batches(self, what: str, instead: str) -> None:
        if self.batch_size != self.num_envs:
            raise RuntimeError(
                f"{what}() returns every environment, but batch_size is {self.batch_size} of "
                f"{self.num_envs}: use {instead}"
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
        return self._columns[name].copy() if self._copy else self._columns[name]

    def _observations(self) -> Any:
        array = self._out("obs")
        return _spaces.dict_of(array, self._queue_size) if self._obs == "dict" else array

    def _infos(self) -> dict[str, Any]:
        return {name: self._out(name) for name in _INFO if name in self._columns}


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


@atexit.register
def _close_all() -> None:
    """Threads end before the interpreter does."""
    _core.leaving()
    for env in list(_open):
        env.close()
