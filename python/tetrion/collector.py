"""Whole episodes, B at a time, as padded arrays."""

from __future__ import annotations

import atexit
import inspect
import os
import time
import weakref
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from . import _checks, _core, _spaces, policies
from ._setup import Illegal, Reward
from .policy import Policy

_open: weakref.WeakSet[BatchedTetrisCollector] = weakref.WeakSet()
_TIMEOUT_S = 600.0  # of a request
_CLOSE_S = 10.0  # close waits so long for policies to return
_EXIT_S = 2.0  # so long does the interpreter's exit
_FAILED_S = 1.0  # so long does a with statement that an exception leaves
_INTERRUPTED_S = 0.05  # and one that an interrupt leaves


class EpisodeBatch(NamedTuple):
    """B episodes of at most K = max_steps steps. [b, k] belongs to action k of episode b; steps
    k >= lengths[b] are padding: zeros, and dones True. help(EpisodeBatch) tells of each field."""

    observations: np.ndarray
    rewards: np.ndarray
    actions: np.ndarray
    dones: np.ndarray
    lengths: np.ndarray
    terminated: np.ndarray
    truncated: np.ndarray
    returns: np.ndarray
    lines: np.ndarray
    job_ids: np.ndarray
    log_probs: np.ndarray | None
    values: np.ndarray | None
    final_observations: np.ndarray
    action_masks: np.ndarray | None = None


for _name, _text in {
    "observations": "[B, K, obs_dim] float32, uint8 (compact, packed2) or what obs_flatten returns:"
    " what the policy saw before action k.",
    "rewards": "[B, K] float32: what action k earned.",
    "actions": "[B, K] int32: 0 to num_actions - 1.",
    "dones": "[B, K] bool: action k ended the game by its rules.",
    "lengths": "[B] int32: actions taken, 1 to K.",
    "terminated": "[B] bool: the episode ended by the rules.",
    "truncated": "[B] bool: it was cut at K steps, or where given actions end.",
    "returns": "[B] float32: sum of the rewards.",
    "lines": "[B] int32: Tetris lines cleared; 0 in other games.",
    "job_ids": "[B] int64: number of the episode in the collector's stream.",
    "log_probs": "[B, K] float32: log-probability of action k, or None: the policy gives none, or"
    " actions were given.",
    "values": "[B, K] float32: the policy's value of observation k, or None: it gives none, or"
    " actions were given.",
    "final_observations": "[B, obs_dim], as observations: what was there after the last action.",
    "action_masks": "[B, K, num_actions] int8: 1 where an action was legal before action k, or None"
    " where the environment has no masks (tetris-placement has).",
}.items():
    getattr(EpisodeBatch, _name).__doc__ = _text


class BatchedTetrisCollector:
    """Plays episodes on C++ worker threads and hands them out in batches.

    Args:
        num_workers: threads; 0 plays in the caller's thread.
        max_steps: K, at which an episode is truncated.
        obs_flatten: None for a view written by C++ (see obs), or a callable that gets the dict of
            arrays of one Tetris observation (those of TetrisEnv's "dict") and returns a 1-D array,
            always of the same length and dtype; ValueError names worker, job and step of one that
            differs. The constructor calls it once, with an observation of zeros, to learn them. It
            costs a Python call a step.
        policy_fn: None or policies.Random() for uniformly random actions, policies.Scripted(list),
            both in C++; or a callable policy_fn(worker_id, observations) that returns actions, or
            (actions, log_probs), or (actions, log_probs, values), each of shape [n]. observations
            is [n, obs_dim], read-only, n <= lanes_per_worker lanes that wait for an action. Copy
            what is to be kept: later calls overwrite it (reading it stays safe, and keeps its
            memory). Calls of different workers overlap, as those of any Python threads; give each
            worker state of its own, by the number it gets. A callable with a parameter named mask
            gets the legal actions in it, int8 [n, num_actions] of its own, 1 where legal; None
            where the environment has no masks.
        lanes_per_worker: environments a worker steps together (the caller's thread: up to 256,
            unless there is a policy_fn).
        seed: with a job's number it fixes the episode's pieces, whatever workers, lanes and timing
            do.
        env: its name, a value of tetrion.envs.IDS: "tetris", say.
        queue_size: Tetris pieces in the preview, 0 to 7.
        iid_pieces: Tetris pieces are independent instead of coming in bags of seven.
        board_rows: of Tetris's field that are played on, 5 to 20.
        spawn_above: as of TetrisPlacementEnv.
        reward: as of TetrisEnv.
        illegal: as of TetrisPlacementEnv.
        order: "job" sorts a batch by job; "completion" has first what finished first, and holds at
            most two finished episodes a lane back while no call takes them.
        copy: True: the arrays are the caller's. Those of [B] have memory of their own; the others
            share a batch's, which is used again when none of them is referenced. False: they are
            read-only and overwritten by the next request but one, failed ones not counted. Neither
            copies steps, but order="completion" does, of every episode.
        timeout: seconds after which a request raises TimeoutError; None: 600. Without workers it is
            seen between calls of policy_fn and obs_flatten only.
        obs: without obs_flatten: "flat" (gymnasium's FlattenObservation, 944 floats at queue_size
            4), "planes", "pixels", "drops" (tetris), "afterstates", "afterstates-dt" or
            "afterstates-boards" (tetris-placement), or, as uint8, "compact" and "packed2";
            "flat" (4 floats) or "compact" of cartpole.
        on_episode: called in the requesting thread with a dict of each episode's job_id, length,
            episode_return, lines, terminated and truncated, in the batch's order.

    TypeError, ValueError for arguments; MemoryError where memory is short. One request runs at a
    time. Close it, or use it in a with statement: an exception leaves that after a second at most
    and Ctrl-C at once, whatever policy_fn does. A collector made before a fork belongs to the
    parent.
    """

    _core: _core.Collector  # missing where the constructor raised

    @_checks.keywords
    def __init__(
        self,
        num_workers: int,
        max_steps: int,
        obs_flatten: Callable[[dict[str, np.ndarray]], np.ndarray] | None = None,
        policy_fn: Callable[..., Any] | policies.Random | policies.Scripted | None = None,
        *,
        lanes_per_worker: int = 1,
        seed: int = 0,
        env: _spaces.EnvName = "tetris",
        queue_size: int = 4,
        iid_pieces: bool = False,
        board_rows: int = 20,
        spawn_above: bool = False,
        reward: Reward = "squares",
        illegal: Illegal = "terminate",
        order: Literal["job", "completion"] = "job",
        copy: bool = True,
        timeout: float | None = None,
        obs: _spaces.Obs | None = None,
        on_episode: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        num_workers = _checks.integer("num_workers", num_workers, 0, 1024)
        max_steps = _checks.integer("max_steps", max_steps, 1, 1 << 24)
        lanes_per_worker = _checks.integer("lanes_per_worker", lanes_per_worker, 1, 4096)
        seed = _checks.integer("seed", seed, 0, 2**63 - 1)
        queue_size = _checks.integer("queue_size", queue_size, *_core.QUEUE_SIZES)
        _checks.choice("env", env, _spaces.ENVIRONMENTS)
        iid_pieces = _checks.boolean("iid_pieces", iid_pieces)
        board_rows = _checks.integer("board_rows", board_rows, *_core.BOARD_ROWS)
        spawn_above = _checks.boolean("spawn_above", spawn_above)
        _checks.choice("reward", reward, ("squares", "lines"))
        _checks.choice("illegal", illegal, ("terminate", "noop"))
        settings = {
            "queue_size": queue_size,
            "iid_pieces": iid_pieces,
            "board_rows": board_rows,
            "spawn_above": spawn_above,
            "reward": reward,
            "illegal": illegal,
        }
        _spaces.check_settings(env, settings)
        _checks.choice("order", order, ("job", "completion"))
        copy = _checks.boolean("copy", copy)
        timeout = _checks.seconds("timeout", timeout) or _TIMEOUT_S
        if obs_flatten is not None:
            if "dict" not in _spaces.OBSERVATIONS[env]:
                raise ValueError("obs_flatten flattens Tetris observations; leave it out")
            if obs is not None:
                raise ValueError("give obs or obs_flatten, not both")
        arrays = tuple(name for name in _spaces.OBSERVATIONS[env] if name != "dict")
        shown = _checks.choice("obs", "flat" if obs is None else obs, arrays)
        scripted = policy_fn.actions.tolist() if isinstance(policy_fn, policies.Scripted) else []
        outside = _outside(policy_fn)
        _checks.function("obs_flatten", obs_flatten)
        _checks.function("on_episode", on_episode)
        (elements,), dtype = _spaces.shape_of(env, shown, queue_size)
        self._dtype = np.dtype(dtype)
        if obs_flatten is not None:
            self._dtype, elements = _flat_shape(obs_flatten, env, queue_size)
        self._copy, self._timeout, self._on_episode = copy, timeout, on_episode
        self._gives_log_probs = outside is None and not scripted
        self._outside = outside is not None
        setup = {
            "env": env,
            "obs": "dict" if obs_flatten is not None else shown,
            "lanes": lanes_per_worker,
            "seed": seed,
            "queue_size": queue_size,
            "iid_pieces": iid_pieces,
            "board_rows": board_rows,
            "spawn_above": spawn_above,
            "reward": reward,
            "illegal_is_noop": illegal == "noop",
            "policy_takes_mask": outside is not None and _takes_mask(outside),
            "workers": num_workers,
            "steps": max_steps,
            "by_completion": order == "completion",
            "double_buffer": not copy,
            "flat_dtype": self._dtype.name,
            "flat_elements": elements,
            "flat_item_bytes": self._dtype.itemsize,
            "scripted": scripted,
        }
        self._core = _core.Collector(setup, obs_flatten, outside)
        _open.add(self)

    @property
    def obs_dim(self) -> int:
        """Length of one observation."""
        return self._core.obs_bytes // self._dtype.itemsize

    @property
    def num_actions(self) -> int:
        """Actions are 0 to num_actions - 1."""
        return self._core.num_actions

    @property
    def closed(self) -> bool:
        """Whether close was called."""
        return self._core.closed

    def request_episodes(
        self,
        num_episodes: int,
        *,
        actions: np.ndarray | None = None,
        first_job: int | None = None,
        timeout: float | None = None,
    ) -> EpisodeBatch:
        """Plays `num_episodes` episodes and returns them. Blocks without the GIL; Ctrl-C ends it,
        also while policy_fn sleeps in a worker.

        Args:
            num_episodes: B, how many.
            actions: [B, K] integers to play instead of asking the policy; -1 truncates the episode
                there, and what follows an episode's end is ignored. log_probs and values are None.
            first_job: number of the first episode; None goes on with the stream. With actions and
                job_ids[0] of an earlier batch it plays that batch again.
            timeout: seconds after which it raises TimeoutError; None: the collector's.

        Returns:
            The episodes, in the collector's order.

        ValueError: an argument, or what policy_fn or obs_flatten returned, by worker, job and step.
        RuntimeError: the collector is closed, or a request runs already. TimeoutError: see timeout.
        What policy_fn, obs_flatten or on_episode raise first comes out of here; the collector stays
        usable, and the stream goes on behind the jobs of the request that failed.
        """
        num_episodes = _checks.integer("num_episodes", num_episodes, 1, 1 << 24)
        if first_job is not None:
            first_job = _checks.integer("first_job", first_job, 0, 2**62)
        if actions is not None:
            given = np.asarray(actions)
            if given.dtype.kind not in "iu" or given.ndim != 2:
                raise ValueError(
                    f"actions must be [B, K] integers, not {given.dtype} of shape {given.shape}"
                )
            wide = not np.can_cast(given.dtype, np.int32)
            if wide and given.size and not -(2**31) <= given.min() <= given.max() < 2**31:
                raise ValueError("actions do not fit into 32 bits")
            actions = np.ascontiguousarray(given, np.int32)
        arrays = self._core.request(
            num_episodes,
            actions,
            -1 if first_job is None else first_job,
            _checks.seconds("timeout", timeout) or self._timeout,
        )
        columns = arrays.pop("columns")
        replayed = actions is not None
        for name, least in (("log_probs", 2), ("values", 3)):
            is_given = columns >= least or (name == "log_probs" and self._gives_log_probs)
            if replayed or not is_given:
                arrays[name] = None
        for name in ("observations", "final_observations"):
            arrays[name] = arrays[name].view(self._dtype)
        if not self._copy:
            for array in arrays.values():
                if array is not None:
                    array.flags.writeable = False
        batch = EpisodeBatch(**arrays)
        if self._on_episode is not None:
            self._report(batch, self._on_episode)
        return batch

    @staticmethod
    def _report(batch: EpisodeBatch, on_episode: Callable[[dict[str, Any]], None]) -> None:
        for b in range(len(batch.lengths)):
            on_episode(
                {
                    "job_id": int(batch.job_ids[b]),
                    "length": int(batch.lengths[b]),
                    "episode_return": float(batch.returns[b]),
                    "lines": int(batch.lines[b]),
                    "terminated": bool(batch.terminated[b]),
                    "truncated": bool(batch.truncated[b]),
                }
            )

    def stats(self) -> dict[str, Any]:
        """Totals so far.

        Returns:
            requests, episodes and steps handed out; env_steps and rows played, unwanted ones
            included; job_wait_seconds of all workers; next_job of the stream.
        """
        return self._core.stats()

    def close(self, timeout: float | None = None) -> None:
        """Ends a running request with RuntimeError, joins the workers, which lasts as long as the
        policy_fn they are in, and frees the memory that no batch holds; called by policy_fn it
        only tells them. May be called often, by any thread.

        Args:
            timeout: seconds to wait for them; None: 10. TimeoutError after it, and Ctrl-C before,
                leave such workers behind: the collector is closed, and they end when policy_fn
                returns.
        """
        seconds = _checks.seconds("timeout", timeout) or _CLOSE_S
        if not self._core.close_for(seconds):
            raise TimeoutError(
                f"policy_fn or obs_flatten has not returned within {seconds:g} s: the collector is "
                "closed, and its workers end when it does"
            )

    def __reduce_ex__(self, protocol: object) -> Any:
        """For copy and pickle, which would share the workers or lose them."""
        raise TypeError(
            "a collector has threads and cannot be copied or pickled: make another with the same "
            "arguments"
        )

    def __enter__(self) -> BatchedTetrisCollector:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        if kind is None:
            self.close()
        else:
            # What is raised goes on: not the time to wait for a policy that may never return.
            self._core.close_for(_FAILED_S if issubclass(kind, Exception) else _INTERRUPTED_S)

    def __del__(self) -> None:
        core = getattr(self, "_core", None)
        if core is not None:
            core.leave()


def _outside(policy_fn: Any) -> Callable[..., Any] | None:
    """policy_fn where it is Python's; None where C++ plays."""
    built_in = (policies.Random, policies.Scripted)
    if isinstance(policy_fn, type) and issubclass(policy_fn, built_in):
        made = f"policies.{policy_fn.__name__}"
        raise TypeError(f"policy_fn must be a policy, not its class {made}: make one, {made}(...)")
    if isinstance(policy_fn, Policy):
        raise TypeError("policy_fn is a Policy, not a function: pass policy.for_collector()")
    return None if isinstance(policy_fn, built_in) else _checks.function("policy_fn", policy_fn)


def _takes_mask(policy_fn: Callable[..., Any]) -> bool:
    """Whether policy_fn has a parameter named mask."""
    try:
        mask = inspect.signature(policy_fn).parameters.get("mask")
    except (TypeError, ValueError):  # of something that is not Python's
        return False
    return mask is not None and mask.kind in (mask.POSITIONAL_OR_KEYWORD, mask.KEYWORD_ONLY)


def _flat_shape(
    obs_flatten: Callable[..., np.ndarray], env: str, queue_size: int
) -> tuple[np.dtype, int]:
    """dtype and length of what obs_flatten makes of an empty observation."""
    parts = sorted(_core.observation(env, "dict", queue_size).parts)
    tried = "obs_flatten, called by the constructor with an observation of zeros,"
    try:
        returned = obs_flatten({name: np.zeros(shape, np.uint8) for name, _, shape, _ in parts})
    except Exception as error:
        error.add_note(f"{tried} raised this; it must take every observation")
        raise
    try:
        probe = np.asarray(returned)
    except ValueError as error:
        raise ValueError(f"{tried} returned what is no array: {error}") from error
    if probe.ndim != 1 or probe.size == 0 or probe.dtype.kind not in "fiub":
        raise ValueError(
            f"{tried} returned {probe.dtype} of shape {probe.shape}: return a 1-D array of numbers"
        )
    return probe.dtype.newbyteorder("="), probe.size


@atexit.register
def _close_all() -> None:
    """Ends all workers; those in a policy that does not return are left to the process's end, as
    are daemon threads in a request. Ctrl-C ends the wait."""
    cores = [collector._core for collector in list(_open)]
    give_up = time.monotonic() + _EXIT_S
    _core.leaving()
    for core in cores:
        core.close_for(0.0)
    try:
        for core in cores:
            core.close_for(max(give_up - time.monotonic(), 0.0))
    except KeyboardInterrupt:
        pass


# A child has no workers; what it inherits must not be closed at its exit.
os.register_at_fork(after_in_child=_open.clear)
