"""tetris-gymnasium's environment fed with a recorded piece sequence."""

import numpy as np
import tetris_gymnasium.envs.tetris as package
from tetris_gymnasium.components.tetromino_queue import TetrominoQueue
from tetris_gymnasium.components.tetromino_randomizer import Randomizer
from tetris_gymnasium.envs import Tetris


class OlderNumpy:
    """numpy as the package's get_rgb knew it: newer ones refuse astype(np.integer)."""

    integer = np.int64

    def __getattr__(self, name):
        return getattr(np, name)


package.np = OlderNumpy()


class Recorded(Randomizer):
    """Plays a list of ids; asking for more than there are is an error."""

    def __init__(self, ids):
        super().__init__(7)
        self.ids = list(ids)
        self.next = 0

    def get_next_tetromino(self) -> int:
        self.next += 1
        return self.ids[self.next - 1]

    def reset(self, seed=None):
        self.next = 0


def with_pieces(env: Tetris, ids, queue_size: int) -> Tetris:
    """Gives `env` a queue of its own; its constructor cannot take one without failing."""
    env.queue = TetrominoQueue(Recorded(ids), size=queue_size)
    return env
