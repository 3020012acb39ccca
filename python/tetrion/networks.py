"""The networks of lib/nn in numpy: float32 views to logits and values, and the safetensors files
that hold their weights. N observations, F floats of a view, A actions."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from .run import UNREADABLE, RunError

Array = np.ndarray
#: view [N, F] float32 -> (logits [N, A], value [N]), without masks.
Forward = Callable[[Array], tuple[Array, Array]]

_MAX_HEADER_BYTES = 1 << 20
_PLANES = (2, 20, 10)  # field and active piece, at the front of the planes view
_PLANE_FLOATS = 400
_NORM_EPSILON = np.float32(1e-5)


def read_safetensors(path: Path) -> tuple[dict[str, Array], dict[str, str]]:
    """Tensors (float32, read-only) and metadata of a checkpoint. RunError when it is not one."""

    def refuse(why: str) -> RunError:
        return RunError(f"{path} is not a usable checkpoint: {why}")

    try:
        data = path.read_bytes()
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}") from error
    length = int.from_bytes(data[:8], "little")
    if len(data) < 8 or length > min(_MAX_HEADER_BYTES, len(data) - 8):
        raise refuse("its header length is impossible; it is truncated or another kind of file")
    try:
        header = json.loads(data[8 : 8 + length])
        metadata = {str(k): str(v) for k, v in header.pop("__metadata__", {}).items()}
        places = {}
        for name, e in header.items():
            begin, end = map(int, e["data_offsets"])
            places[name] = (e["dtype"], tuple(map(int, e["shape"])), begin, end)
    except UNREADABLE as error:
        raise refuse(f"its header is unreadable ({error!r})") from error
    body = memoryview(data)[8 + length :]
    tensors = {}
    for name, (dtype, shape, begin, end) in places.items():
        if dtype != "F32":
            raise refuse(f"tensor {name} is of type {dtype}, not F32")
        if min(shape, default=0) < 0 or not 0 <= begin <= end <= len(body):
            raise refuse(f"tensor {name} lies outside the file; it may be truncated")
        if end - begin != 4 * int(np.prod(shape, dtype=object)):
            raise refuse(f"shape and data_offsets of tensor {name} disagree")
        try:
            tensors[name] = np.frombuffer(body[begin:end], "<f4").reshape(shape)
        except (ValueError, OverflowError) as error:
            raise refuse(f"tensor {name} has an impossible shape") from error
    return tensors, metadata


def _silu(x: Array) -> Array:
    # Far below 0 the exponential overflows and the quotient is the 0 it should be.
    with np.errstate(over="ignore"):
        active: Array = x / (1 + np.exp(-x))
    return active


def _norm(x: Array, scale: Array, bias: Array) -> Array:
    centred = x - x.mean(axis=1, keepdims=True)
    variance = (centred * centred).mean(axis=1, keepdims=True)
    normed: Array = centred / np.sqrt(variance + _NORM_EPSILON) * scale + bias
    return normed


def _linear(w: dict[str, Array], name: str, x: Array) -> Array:
    """Weights [out, in], as libtorch keeps them."""
    out: Array = x @ w[f"{name}.weight"].T + w[f"{name}.bias"]
    return out


def _scorer(w: dict[str, Array]) -> Forward:
    """One small network scores every placement's afterstate; weights are [in, out]."""

    def forward(view: Array) -> tuple[Array, Array]:
        state_floats = w["score.state.weight"].shape[0]
        cut = view.shape[1] - state_floats
        of_action = w["score.after.weight"].shape[0]
        after = view[:, :cut].reshape(-1, cut // of_action, of_action)
        state = view[:, cut:]
        shared = state @ w["score.state.weight"] + w["score.1.bias"]
        h = _silu(after @ w["score.after.weight"] + shared[:, None, :])
        h = _silu(h @ w["score.2.weight"] + w["score.2.bias"])
        logits = (h @ w["score.3.weight"] + w["score.3.bias"])[..., 0]
        v = _silu(state @ w["value.1.weight"] + w["value.1.bias"])
        v = _silu(v @ w["value.2.weight"] + w["value.2.bias"])
        return logits, (v @ w["value.3.weight"] + w["value.3.bias"])[:, 0]

    return forward


_BOARD_ROWS, _BOARD_COLUMNS = 20, 10
_WALL = np.float32(2**_BOARD_ROWS - 1)
_SUM_SCALE = np.float32(0.25)  # as lib/nn/board_net.cc has it


def _board_net(w: dict[str, Array], name: str, columns: Array, rest: Array) -> Array:
    """A number for each board: columns [N, C] of cells as integers, rest [N, E]."""
    walls = np.full((len(columns), 1), _WALL)
    padded = np.concatenate([walls, columns, walls], axis=1).astype(np.int64)
    cells = (padded[:, :, None] >> np.arange(_BOARD_ROWS) & 1).astype(np.float32)
    windows = np.concatenate([cells[:, :-2], cells[:, 1:-1], cells[:, 2:]], axis=2)
    h = _silu(windows @ w[f"{name}.column.1.weight"] + w[f"{name}.column.1.bias"])
    h = _silu(h @ w[f"{name}.column.2.weight"] + w[f"{name}.column.2.bias"])
    board = h.sum(axis=1) * _SUM_SCALE @ w[f"{name}.board.weight"]
    h = _silu(board + rest @ w[f"{name}.rest.weight"] + w[f"{name}.board.bias"])
    out: Array = (h @ w[f"{name}.head.weight"] + w[f"{name}.head.bias"])[:, 0]
    return out


def _columns(w: dict[str, Array]) -> Forward:
    """Boards that placements leave, and the present one, from their cells; weights are [in, out].

    A placement's row is its board's columns and two numbers more; the state is the present board's
    columns and the rest, which a placement's score sees, too.
    """

    def forward(view: Array) -> tuple[Array, Array]:
        n = len(view)
        rest_floats = w["value.rest.weight"].shape[0]
        row_floats = w["score.rest.weight"].shape[0] - rest_floats + _BOARD_COLUMNS
        cut = view.shape[1] - rest_floats - _BOARD_COLUMNS
        placements = cut // row_floats
        rows = view[:, :cut].reshape(-1, row_floats)
        rest = view[:, cut + _BOARD_COLUMNS :]
        beside = np.repeat(rest, placements, axis=0)
        extra = np.concatenate([rows[:, _BOARD_COLUMNS:], beside], axis=1)
        logits = _board_net(w, "score", rows[:, :_BOARD_COLUMNS], extra)
        value = _board_net(w, "value", view[:, cut : cut + _BOARD_COLUMNS], rest)
        return logits.reshape(n, placements), value

    return forward


def _small_mlp(w: dict[str, Array]) -> Forward:
    """Two separate trunks of two tanh layers."""

    def trunk(name: str, view: Array) -> Array:
        h = np.tanh(_linear(w, f"{name}.1", view))
        h = np.tanh(_linear(w, f"{name}.2", h))
        return _linear(w, f"{name}.head", h)

    return lambda view: (trunk("policy", view), trunk("value", view)[:, 0])


def _wide_mlp(w: dict[str, Array]) -> Forward:
    """One trunk of two layers with LayerNorm and SiLU, two heads."""

    def forward(view: Array) -> tuple[Array, Array]:
        h = view
        for layer in ("trunk.1", "trunk.2"):
            norm = _norm(_linear(w, layer, h), w[f"{layer}.norm.scale"], w[f"{layer}.norm.bias"])
            h = _silu(norm)
        return _linear(w, "policy.head", h), _linear(w, "value.head", h)[:, 0]

    return forward


def _convolve(w: dict[str, Array], name: str, x: Array) -> Array:
    """3x3, padding 1: x [N, C, 20, 10] -> [N, out, 20, 10]."""
    n, channels, rows, columns = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(2, 3))
    flat = windows.transpose(0, 2, 3, 1, 4, 5).reshape(n, rows * columns, channels * 9)
    weight = w[f"{name}.weight"]
    out: Array = flat @ weight.reshape(weight.shape[0], -1).T + w[f"{name}.bias"]
    return out.transpose(0, 2, 1).reshape(n, len(weight), rows, columns)


def _conv(w: dict[str, Array]) -> Forward:
    """A small residual tower over the two planes, joined by the rest of the view."""
    trunk = _wide_mlp(w)

    def forward(view: Array) -> tuple[Array, Array]:
        h = _silu(_convolve(w, "conv.1", view[:, :_PLANE_FLOATS].reshape(-1, *_PLANES)))
        out = _silu(_convolve(w, "conv.3", _silu(_convolve(w, "conv.2", h))) + h)
        flat = out.reshape(len(view), math.prod(out.shape[1:]))
        return trunk(np.concatenate([flat, view[:, _PLANE_FLOATS:]], axis=1))

    return forward


# Network -> (a tensor only it has, how many of its inputs do not depend on the view, builder).
_NETWORKS = (
    ("scorer", "score.after.weight", _scorer),
    ("columns", "score.column.1.weight", _columns),
    ("conv", "conv.1.weight", _conv),
    ("mlp", "trunk.1.weight", _wide_mlp),
    ("mlp", "policy.1.weight", _small_mlp),
)


def weights_of(tensors: dict[str, Array]) -> dict[str, Array]:
    """A checkpoint's "policy." tensors by what follows that."""
    prefix = "policy."
    return {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}


def network_of(weights: dict[str, Array], network: str, origin: Path) -> Forward:
    """The network that weights_of(a checkpoint) are the weights of. RunError when they are those of
    no known network, or of another than `network`."""
    for name, tensor, build in _NETWORKS:
        if tensor in weights and name == network:
            return build(weights)
    raise RunError(
        f"{origin} holds a network {network!r} that this package does not know "
        f"({len(weights)} policy tensors); it knows scorer, columns, mlp and conv: update tetrion"
    )
