"""Client of env_line_server and decoder of the compact record, written from its documentation."""

import dataclasses
import struct
import subprocess

import numpy as np

IS_FIRST, IS_LAST, TERMINATED, TRUNCATED = 1, 2, 4, 8
NO_PIECE = 7
MATRICES = [
    np.array(rows, dtype=np.uint8)
    for rows in (
        [[0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 0, 0], [0, 0, 0, 0]],
        [[1, 1], [1, 1]],
        [[0, 1, 0], [1, 1, 1], [0, 0, 0]],
        [[0, 1, 1], [1, 1, 0], [0, 0, 0]],
        [[1, 1, 0], [0, 1, 1], [0, 0, 0]],
        [[1, 0, 0], [1, 1, 1], [0, 0, 0]],
        [[0, 0, 1], [1, 1, 1], [0, 0, 0]],
    )
]


@dataclasses.dataclass
class Row:
    """One row of the lane."""

    reward: float
    flags: int
    cont: float
    lines: int
    mask: int
    record: bytes

    @property
    def terminated(self) -> bool:
        return bool(self.flags & TERMINATED)


class EnvLine:
    """The server as a child process; one request, one answer."""

    def __init__(self, program: str):
        self._child = subprocess.Popen(
            [program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )

    def ask(self, *words) -> str:
        self._child.stdin.write(" ".join(str(word) for word in words) + "\n")
        answer = self._child.stdout.readline()
        if not answer.endswith("\n"):
            raise RuntimeError(f"env_line_server ended while answering {words}")
        return answer.rstrip("\n")

    def open(self, name, seed, queue_size=4, iid=False, noop=False, rows=20, view=""):
        self._queue_size = queue_size
        words = ("open", name, seed, queue_size, int(iid), int(noop), rows, view)
        assert self.ask(*words) == "ok"

    def pieces(self, token, count):
        return [int(word) for word in self.ask("pieces", token, count).split()]

    def row(self, *words) -> Row:
        reward, flags, cont, lines, mask, record = self.ask(*words).split()
        return Row(
            float(reward), int(flags), float(cont), int(lines), int(mask), bytes.fromhex(record)
        )

    def view(self) -> np.ndarray:
        return np.array(self.ask("view").split(), dtype=np.float32)

    def flat(self) -> np.ndarray:
        return np.frombuffer(bytes.fromhex(self.ask("flat")), dtype=np.float32)

    def dict(self) -> dict:
        """The four arrays, cut out of the buffer as lib/envs/views/gym_views.h documents it."""
        cells = np.frombuffer(bytes.fromhex(self.ask("dict")), dtype=np.uint8)
        return {
            "active_tetromino_mask": cells[:432].reshape(24, 18),
            "board": cells[432:864].reshape(24, 18),
            "holder": cells[864:880].reshape(4, 4),
            "queue": cells[880:].reshape(4, 4 * self._queue_size),
        }

    def rgb(self, scale) -> np.ndarray:
        pixels = np.frombuffer(bytes.fromhex(self.ask("rgb", scale)), dtype=np.uint8)
        return pixels.reshape(24 * scale, -1, 3)

    def doubles(self, *words):
        return [float.fromhex(word) for word in self.ask(*words).split()]


def matrix_of(piece_id: int, rotation: int) -> np.ndarray:
    """An oriented piece with the package's cell values."""
    return np.rot90(MATRICES[piece_id], k=rotation) * (piece_id + 2)


def padded(matrix: np.ndarray) -> np.ndarray:
    size = 4 - matrix.shape[0]
    return np.pad(matrix, ((0, size), (0, size)))


@dataclasses.dataclass
class Tetris:
    """A decoded compact record."""

    locked: np.ndarray  # [24, 18] bool, bedrock included
    top: int  # the highest row that is played on
    active_id: int
    rotation: int
    x: int
    y: int
    holder: tuple  # (id, rotation); id 7 when empty
    swapped: bool
    queue: list
    lines: int
    pieces: int

    @property
    def active(self) -> np.ndarray:
        return matrix_of(self.active_id, self.rotation)

    def box(self):
        size = self.active.shape[0]
        return slice(self.y, self.y + size), slice(self.x, self.x + size)

    def projected(self) -> np.ndarray:
        """Active cells with their values, 0 elsewhere; nothing where the piece collides."""
        cells = np.zeros((24, 18), dtype=np.uint8)
        if not (self.locked[self.box()] & (self.active > 0)).any():
            cells[self.box()] = self.active
        return cells

    def mask(self) -> np.ndarray:
        mask = np.zeros((24, 18), dtype=np.uint8)
        mask[self.box()] = 1
        return mask

    def holder_array(self) -> np.ndarray:
        if self.holder[0] == NO_PIECE:
            return np.ones((4, 4), dtype=np.uint8)
        return padded(matrix_of(*self.holder))

    def queue_array(self) -> np.ndarray:
        return np.hstack([padded(matrix_of(piece, 0)) for piece in self.queue])


def decode(record: bytes) -> Tetris:
    """Reads the 64 bytes of lib/envs/tetris/tetris_record.h; colours may follow them."""
    words = struct.unpack("<24HHBBIII", record[:64])
    rows, (active, holder, flags, queue, lines, pieces) = words[:24], words[24:]
    locked = np.ones((24, 18), dtype=bool)
    for y in range(20):
        assert rows[y] & 0xE007 == 0xE007
        locked[y, 4:14] = [rows[y] >> (3 + column) & 1 for column in range(10)]
    assert rows[20:] == (0xFFFE,) * 4
    size, top = flags >> 1 & 7, flags >> 4
    assert not locked[:top, 4:14].any(), "rows above the top row are empty"
    return Tetris(
        locked,
        top,
        active & 7,
        active >> 3 & 3,
        active >> 5 & 15,
        active >> 9 & 31,
        (holder & 7, holder >> 3 & 3),
        bool(flags & 1),
        [queue >> (3 * slot) & 7 for slot in range(size)],
        lines,
        pieces,
    )
