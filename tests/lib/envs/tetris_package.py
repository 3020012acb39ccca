"""tetris-gymnasium's environment fed with a recorded piece sequence."""

from tetris_gymnasium.components.tetromino_queue import TetrominoQueue
from tetris_gymnasium.components.tetromino_randomizer import Randomizer
from tetris_gymnasium.envs import Tetris


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
