"""Tetris, CartPole and Catch in C++ for Gymnasium, and readers of Tetrion's training runs.

    env = gymnasium.make("tetrion/Tetris-v0")          # one environment
    envs = tetrion.vector.make("tetris", 1024)         # many, stepped by C++ threads
    run = tetrion.Run("runs/latest")                   # what a training run left behind
    policy = tetrion.load_policy(run)                  # its policy in numpy, without torch

Importing the package registers tetrion/Tetris-v0, tetrion/TetrisPlacement-v0,
tetrion/CartPole-v0 and tetrion/Catch-v0. It needs numpy and gymnasium only.
"""

from . import _cpu

_cpu.check()

from . import policies, vector  # noqa: E402
from ._setup import EnvState  # noqa: E402
from .collector import BatchedTetrisCollector, EpisodeBatch  # noqa: E402
from .envs import (  # noqa: E402
    CartPoleEnv,
    CatchEnv,
    FlattenObservation,
    TetrisEnv,
    TetrisPlacementEnv,
    pieces,
    register,
)
from .policy import Policy, load_policy  # noqa: E402
from .run import Checkpoint, Run, RunError  # noqa: E402

__version__ = "0.1.0"
__all__ = [
    "BatchedTetrisCollector",
    "CartPoleEnv",
    "CatchEnv",
    "Checkpoint",
    "EnvState",
    "EpisodeBatch",
    "FlattenObservation",
    "Policy",
    "Run",
    "RunError",
    "TetrisEnv",
    "TetrisPlacementEnv",
    "load_policy",
    "pieces",
    "policies",
    "register",
    "vector",
]

register()
