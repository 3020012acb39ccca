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
        board_rows: int = 20,
        spawn_above: bool = False,
        reward: str = "squares",
        illegal_is_noop: bool = False,
        colours: bool = False,
        max_steps: int = 0,
    ) -> None: ...

class VectorPool:
    """n environments stepped by threads (0: by the caller). Every wait is without the GIL and sees
    signals. ValueError: an argument, by environment; RuntimeError: closed, forked, never reset; a
    step while another runs."""

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

    def after_fork(self) -> None:
        """For a forked child, before anything else there. Where a thread of the parent was in a
        pool without threads, what follows raises RuntimeError; otherwise that is the child's."""

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

class Environment:
    """What lib/envs/registry.h says of an environment. Its class is {python_name}Env, its id
    tetrion/{python_name}-v0."""

    @property
    def name(self) -> str: ...
    @property
    def python_name(self) -> str: ...
    @property
    def default_view(self) -> str:
        """That a run's network reads."""

    @property
    def default_obs(self) -> str:
        """That the id shows."""

    @property
    def max_steps(self) -> int:
        """Where an episode is truncated unless told otherwise."""

    @property
    def options(self) -> list[str]:
        """Settings that it takes and not every environment does."""

    @property
    def has_lines(self) -> bool: ...
    @property
    def has_mask(self) -> bool: ...
    @property
    def record_bytes(self) -> int:
        """Of the default view's records, the shortest kind."""

    @property
    def fps(self) -> int: ...
    @property
    def scale(self) -> int:
        """Pixels a unit of the picture, unless told otherwise."""

    @property
    def observations(self) -> list[str]: ...
    @property
    def views(self) -> dict[str, str]:
        """View of a network -> its name among the observations."""

    @property
    def actions(self) -> list[str]:
        """Names; actions are 0 to len - 1."""

    @property
    def keys(self) -> dict[str, int]:
        """Key -> the action that it plays."""

class Observation:
    """One observation of an environment, as C++ writes it."""

    @property
    def elements(self) -> int: ...
    @property
    def is_float(self) -> bool:
        """float32, else uint8."""

    @property
    def action_floats(self) -> int:
        """Elements for each action, what it would lead to, that it begins with; 0: none."""

    @property
    def record_bytes(self) -> int:
        """Of the records that environments with this observation keep."""

    @property
    def low(self) -> list[float]:
        """Bounds of the elements: one for all, or one each; high too."""

    @property
    def high(self) -> list[float]: ...
    @property
    def parts(self) -> list[tuple[str, int, tuple[int, ...], float]]:
        """Name, first element, shape and largest value of the arrays that it is made of; empty
        where it is one array."""

# Least and most of queue_size and board_rows.
QUEUE_SIZES: tuple[int, int]
BOARD_ROWS: tuple[int, int]

def environments() -> list[Environment]: ...
def observation(env: str, obs: str, queue_size: int) -> Observation:
    """ValueError for a name that is not in the registry."""

def action_masks(env: str, records: NDArray[np.uint8]) -> NDArray[np.bool_]:
    """Legal actions [k, A] of records [k, bytes] of any kind."""

def pieces(seed: int, episode: int, count: int, iid: bool) -> list[int]:
    """The first pieces of an episode, ids 0..6."""

def render_rgb(env: str, record: bytes, queue_size: int, scale: int) -> NDArray[np.uint8]:
    """A picture [height, width, 3]."""

def render_text(env: str, record: bytes) -> str:
    """A record as lines of text, with terminal colours where the environment has some."""
