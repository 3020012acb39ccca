"""python -m tetrion: what is installed here, and whether it plays."""

from __future__ import annotations

import platform
import time

import gymnasium
import numpy as np

from . import __version__, _core, envs, vector


def main() -> None:
    print(
        f"tetrion {__version__}, Python {platform.python_version()}, "
        f"numpy {np.__version__}, gymnasium {gymnasium.__version__}"
    )
    print(f"compiled part: {_core.__file__}")
    print(f"CPUs that this process may use: {_core.usable_cpus()}")
    for env_id in envs.IDS:
        env = gymnasium.make(env_id)
        print(f"{env_id}: {env.action_space}, {_short(env.observation_space)}")
        env.close()
    print(f"tetris, 256 environments: {_steps_per_second():,.0f} steps a second")


def _short(space: gymnasium.Space[object]) -> str:
    if isinstance(space, gymnasium.spaces.Dict):
        return ", ".join(f"{name} {part.dtype} {part.shape}" for name, part in space.items())
    return f"{space.dtype} {space.shape}"


def _steps_per_second(steps: int = 200) -> float:
    """Of a vector environment with compact records."""
    env = vector.make("tetris", 256, obs="compact", copy=False, seed=0)
    env.reset()
    actions = np.zeros((steps, env.num_envs), np.int32)
    actions[:] = np.arange(env.num_envs) % 8
    start = time.perf_counter()
    for row in actions:
        env.step(row)
    seconds = time.perf_counter() - start
    env.close()
    return steps * env.num_envs / seconds


if __name__ == "__main__":
    main()
