"""The compiled part of tetrion. Private: the Python files beside it check and document what they
pass. n = num_envs, b = batch_size, A = actions."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

class Collector:
    """Plays requests of episodes, one at a time. `setup` names what tetrion/collector.py passes,
    which has checked it. RuntimeError: closed, forked, busy; TimeoutError."""

    def __init__(
        self, setup: dict[str, Any], obs_flatten: object | None, policy_fn: object | None
    ) -> None: ...
    def request(
        self, episodes: int, actions: object | None, first_job: int, timeout_s: float
    ) -> dict[str, Any]:
        """EpisodeBatch's arrays, observations as bytes [B, K, bytes], action_masks None where there
        are none, and `columns`, the number of
        arrays that policy_fn returned (0: it was not asked). first_job -1: the stream's next."""

    def close_for(self, seconds: float) -> bool:
        """Joins the workers, or gives up: False while one is still in a callback. Sees signals."""

    def leave(self) -> bool:
        """close_for 2 seconds, or none where somebody has given up already. Never raises."""

    def stats(self) -> dict[str, Any]: ...
    @property
    def closed(self) -> bool: ...
    @property
    def num_actions(self) -> int: ...
    @property
    def obs_bytes(self) -> int: ...

def leaving() -> None:
    """Called by exit hooks: threads that are told of a closed collector or environment from now on
    sleep until the process has ended, except the caller's."""

def usable_cpus() -> int:
    """CPUs that this process can keep busy: its affinity, or fewer where a control group grants
    less."""

class EnvConfig:
    """What an environment is made from. max_steps 0: the environment's default. colours: records
    keep the colours of locked cells even where `obs` shows none."""

    def __init__(
        self,
        *,
        env: str,
        obs: str,
        queue_size: int = 4,
        iid_pieces: bool = False,
        illegal_is_noop: bool = False,
        colours: bool = False,
        max_steps: int = 0,
    ) -> None: ...

class VectorPool:
    """n environments stepped by threads (0: by the caller). Every wait is without the GIL and sees
    signals. ValueError: an argument, by environment; RuntimeError: closed, forked, never reset."""

    def __init__(self, config: EnvConfig, num_envs: int, threads: int, batch_size: int) -> None: ...
    def reset(self, envs: NDArray[np.int32], seeds: NDArray[np.uint64]) -> None:
        """Starts episodes; `seeds` [k], or empty for the seeds in use. Returns at once."""

    def send(self, envs: NDArray[np.int32], actions: NDArray[np.int32]) -> None:
        """Starts a step of `envs` [k] with `actions` [k]. Returns at once."""

    def receive(self, timeout_s: float = 600.0) -> None:
        """Waits for b environments and fills the columns with them. TimeoutError after timeout_s
        seconds, as of step and drain."""

    def step(self, actions: NDArray[np.int32], timeout_s: float = 600.0) -> None:
        """send of all [n], then drain."""

    def drain(self, timeout_s: float = 600.0) -> None:
        """Waits until none is stepping; results not received are dropped."""

    def close(self) -> None:
        """Ends waits elsewhere with RuntimeError and joins the threads. May be called twice."""

    def columns(self) -> dict[str, NDArray[Any]]:
        """Views of the memory that step and receive overwrite, [b] rows: obs, reward float32,
        terminated, truncated bool, episode_return float32, episode_length, lines, lines_cleared,
        env_id int32, and action_mask int8 [b, A] where there are masks."""

    def record(self, env: int) -> bytes:
        """The state of an environment that is not stepping. `env` is not checked."""

    def save(self, envs: NDArray[np.int32]) -> list[bytes]:
        """The states of environments [k] that are not stepping; seed, episode and row included."""

    def load(self, envs: NDArray[np.int32], states: list[bytes]) -> None:
        """Environments [k] go on as saved, and the columns' rows show it. ValueError, and nothing
        has changed, for bytes that are no state of this configuration."""

    @property
    def num_actions(self) -> int: ...
    @property
    def threads(self) -> int: ...

def expand(env: str, obs: str, queue_size: int, records: NDArray[np.uint8]) -> NDArray[Any]:
    """Records [k, bytes] as observations [k, elements]."""

def narrowed(values: NDArray[np.int64], what: str) -> NDArray[np.int32]:
    """The same numbers [k]. ValueError names the first that does not fit."""

def observations(env: str) -> list[str]:
    """Names of the observations that an environment has."""

def observation(env: str, obs: str, queue_size: int) -> tuple[int, bool, int]:
    """Elements of one observation, whether they are float32 (else uint8), and the bytes of the
    record that it is made from."""

def num_actions(env: str) -> int:
    """Actions are 0 to num_actions - 1."""

def default_max_steps(env: str) -> int:
    """Where an episode is truncated unless told otherwise."""

def placement_masks(records: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Legal placements [k, 40] of Tetris records [k, >= 64]."""

def pieces(seed: int, episode: int, count: int, iid: bool) -> list[int]:
    """The first pieces of an episode, ids 0..6."""

def render_rgb(env: str, record: bytes, queue_size: int, scale: int) -> NDArray[np.uint8]:
    """A picture [height, width, 3]."""

def render_ansi(record: bytes) -> str:
    """A Tetris record as lines of text with terminal colours."""
