"""A training run's policy in numpy: no torch, no compiler."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from . import _core
from .networks import network_of, read_safetensors
from .run import Run, RunError

_DEFAULT_VIEW = {"cartpole": "vector", "tetris": "planes", "tetris-placement": "afterstates"}
_RECORD_BYTES = {"cartpole": 16, "tetris": 64, "tetris-placement": 64}
_ACTIONS = {"cartpole": 2, "tetris": 8, "tetris-placement": 40}
_MASKED_LOGIT = np.float32(-1e9)  # of an illegal action, as in C++
_AFTERSTATES = 640  # floats of the placements' rows


class Policy:
    """Observations to actions. F = `view_floats`, A = `num_actions`.

    Observations are records (uint8 [n, 64], CartPole [n, 16]; obs="compact" of an environment) or
    views (float32 [n, F]; obs=`view`, CartPole's "flat"). One observation without the first axis is
    welcome, and gives one action.

    greedy: the most probable action, the lowest among equals, as tetrion-eval plays; else one drawn
    by a generator seeded with `seed`.
    """

    def __init__(self, run: Run, file: Path, *, greedy: bool, seed: int | None):
        tensors, metadata = read_safetensors(file)
        self.env = str(run.config.get("env", metadata.get("env", "")))
        if self.env not in _DEFAULT_VIEW:
            raise RunError(
                f"{run.path} is a run of environment {self.env!r}, which this package "
                f"does not know: update tetrion"
            )
        view = str(run.config.get("view", "auto"))
        self.view = _DEFAULT_VIEW[self.env] if view in ("auto", "") else view
        self.queue_size = int(run.config.get("queue_size", 4))
        self.num_actions = _ACTIONS[self.env]
        self.greedy = greedy
        self.checkpoint = file
        self.metadata = metadata
        # The observation of the compiled part that is this view.
        self._obs = "flat" if self.view == "vector" else self.view
        blank = np.zeros((1, _RECORD_BYTES[self.env]), np.uint8)
        self.view_floats = _core.expand(self.env, self._obs, self.queue_size, blank).shape[1]
        self._forward = network_of(tensors, metadata.get("network", ""), file)
        self._random = np.random.default_rng(seed)
        try:
            self._forward(np.zeros((1, self.view_floats), np.float32))
        except (KeyError, ValueError) as error:
            raise RunError(
                f"{file} does not fit view {self.view!r} of {self.env}: {error}; its "
                "run's config.toml may be another's"
            ) from error

    def __call__(self, observations: Any, mask: Any = None) -> Any:
        """Actions int32 [n] (an int for a single observation). `mask` bool [n, A]: legal actions;
        found from records and from view afterstates, needed for other views of tetris-placement."""
        observations = np.asarray(observations)
        single = observations.ndim == 1
        logits, _ = self.evaluate(observations, mask)
        if self.greedy:
            actions = np.argmax(logits, axis=1)
        else:  # the largest of logit + Gumbel noise is a draw from the softmax
            noisy = logits + self._random.gumbel(size=logits.shape)
            actions = np.argmax(np.where(logits > _MASKED_LOGIT / 2, noisy, -np.inf), axis=1)
        return int(actions[0]) if single else actions.astype(np.int32)

    def evaluate(self, observations: Any, mask: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """(logits float32 [n, A], -1e9 where illegal; values float32 [n])."""
        observations = np.atleast_2d(np.asarray(observations))
        view, found = self._view_of(observations)
        legal = found if mask is None else np.atleast_2d(np.asarray(mask, bool))
        if self.env == "tetris-placement" and legal is None:
            raise ValueError(
                f"view {self.view!r} does not say which placements are legal: pass "
                "mask=info['action_mask'], or records"
            )
        logits, values = self._forward(view)
        if legal is not None:
            if legal.shape != logits.shape:
                raise ValueError(f"mask must be of shape {logits.shape}, not {legal.shape}")
            logits = np.where(legal, logits, _MASKED_LOGIT)
        return logits, values

    def _view_of(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """float32 [n, F] and, where they can be told, the legal actions."""
        record_bytes = _RECORD_BYTES[self.env]
        placement = self.env == "tetris-placement"
        width = observations.shape[1] if observations.ndim == 2 else -1
        if observations.dtype == np.uint8 and width == record_bytes:
            records = np.ascontiguousarray(observations)
            view = _core.expand(self.env, self._obs, self.queue_size, records)
            return view, _core.placement_masks(records) if placement else None
        if observations.dtype.kind == "f" and width == self.view_floats:
            view = np.ascontiguousarray(observations, np.float32)
            if not placement or self.view != "afterstates":
                return view, None
            # A legal placement leaves cells, clears rows or ends the game: its row is not zero.
            rows = view[:, :_AFTERSTATES].reshape(len(view), self.num_actions, -1)
            return view, rows.any(axis=2)
        raise ValueError(
            f"this policy takes records (uint8 [n, {record_bytes}]) or views {self.view!r} "
            f"(float [n, {self.view_floats}]), not {observations.dtype} {list(observations.shape)}"
        )


def load_policy(
    run: Run | str | os.PathLike[str],
    checkpoint: str | os.PathLike[str] = "newest",
    *,
    greedy: bool = True,
    seed: int | None = None,
) -> Policy:
    """The policy of a run (a Run or its path). checkpoint: "newest", "best" or a file. RunError
    when there is none, or it is damaged or not this run's."""
    if not isinstance(run, Run):
        run = Run(run)
    is_name = checkpoint in ("newest", "best")
    file = run.checkpoint(str(checkpoint)).path if is_name else Path(checkpoint)
    return Policy(run, file, greedy=greedy, seed=seed)
