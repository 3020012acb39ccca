"""A training run's policy in numpy: no torch, no compiler."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

from . import _checks, _core, _spaces
from .networks import network_of, read_safetensors, weights_of
from .run import Run, RunError

_MASKED_LOGIT = np.float32(-1e9)  # of an illegal action, as in C++
# As in lib/envs/tetris/tetris_record.h: how many pieces there are (a one-hot in a view has so many
# numbers), and the byte of a record whose lowest bits are the active one's id.
_PIECES, _ACTIVE_BYTE = 7, 48


class Policy:
    """Observations to actions. F = `view_floats`, A = `num_actions`.

    Observations are records (uint8 [n, 64], CartPole [n, 16]; obs="compact" of an environment) or
    views (float32 [n, F]; obs=`obs` of an environment). One observation without the first axis is
    welcome, and gives one action.

    Args:
        run: whose policy it is.
        file: a checkpoint.
        greedy: the most probable action, the lowest among equals, as tetrion-eval plays; else one
            drawn.
        seed: of the generator that draws.
    """

    def __init__(self, run: Run, file: Path, *, greedy: bool, seed: int | None):
        algo = run.config.get("algo", "vtrace")
        if algo != "vtrace":
            raise RunError(
                f"{run.path} was trained with algo {algo!r}: this package plays the networks of "
                f"V-trace only; play it with ./tetrion eval {run.path.name}"
            )
        tensors, metadata = read_safetensors(file)
        env = str(run.config.get("env", metadata.get("env", "")))
        self.env = cast(_spaces.EnvName, env)
        if self.env not in _spaces.TABLE:
            raise RunError(
                f"{run.path} is a run of environment {self.env!r}, which this package "
                f"does not know: update tetrion"
            )
        view = str(run.config.get("view", "auto"))
        about = _spaces.TABLE[self.env]
        self.view = about.default_view if view in ("auto", "") else view
        self.num_actions = len(about.actions)
        self.greedy = greedy
        self.checkpoint = file
        self.metadata = metadata
        # The view's name among observations.
        self.obs = cast(_spaces.Obs, about.views.get(self.view, self.view))
        try:
            queue_size = run.config.get("queue_size", 4)
            self.queue_size = _checks.integer("queue_size", queue_size, *_core.QUEUE_SIZES)
            seen = _core.observation(self.env, self.obs, self.queue_size)
        except (TypeError, ValueError) as error:
            raise RunError(f"{run.path / 'config.toml'} is not of this package: {error}") from error
        self.view_floats, self._record_bytes = seen.elements, seen.record_bytes
        self._has_mask = about.has_mask
        self._legal_of_piece = self._legal_by_piece() if seen.action_floats > 0 else None
        self._weights = weights_of(tensors)
        self._forward = network_of(self._weights, metadata.get("network", ""), file)
        self._random = np.random.default_rng(seed)
        try:
            self._forward(np.zeros((1, self.view_floats), np.float32))
        except (LookupError, ValueError, ArithmeticError) as error:
            raise RunError(
                f"{file} does not fit view {self.view!r} of {self.env}: {error}; its "
                "run's config.toml may be another's"
            ) from error

    def __call__(self, observations: Any, mask: Any = None) -> Any:
        """Chooses actions.

        Args:
            observations: [n, ...], or a single one.
            mask: bool [n, A], the legal actions; found from records and from views afterstates,
                afterstates-dt and afterstates-boards, needed for other views of tetris-placement.

        Returns:
            int32 [n], an int for a single observation.
        """
        observations = np.asarray(observations)
        single = observations.ndim == 1
        actions = self._choose(self.evaluate(observations, mask)[0])
        return int(actions[0]) if single else actions

    def __getstate__(self) -> dict[str, Any]:
        """For copy and pickle: the settings, the weights, and the generator that draws."""
        return {name: value for name, value in self.__dict__.items() if name != "_forward"}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        network = self.metadata.get("network", "")
        self._forward = network_of(self._weights, network, self.checkpoint)

    def for_collector(self) -> Callable[[int, Any], tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """A policy_fn for a collector of `env` and `queue_size` with obs=`obs` or, but for view
        flat, obs="compact".

        Returns:
            A function that gives actions, their log-probabilities under the softmax, and values.
        """

        def policy_fn(
            worker_id: int, observations: Any, mask: Any = None
        ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            logits, values = self.evaluate(observations, mask)
            actions = self._choose(logits)
            top = logits.max(axis=1)
            log_sum = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
            return actions, logits[np.arange(len(actions)), actions] - log_sum, values

        return policy_fn

    def evaluate(self, observations: Any, mask: Any = None) -> tuple[np.ndarray, np.ndarray]:
        """The network's outputs.

        Args:
            observations: [n, ...].
            mask: as of a call.

        Returns:
            Logits float32 [n, A], -1e9 where illegal, and values float32 [n].
        """
        observations = np.atleast_2d(np.asarray(observations))
        view, found = self._view_of(observations)
        legal = found if mask is None else np.atleast_2d(np.asarray(mask, bool))
        if self._has_mask and legal is None:
            raise ValueError(
                f"observation {self.obs!r} does not say which placements are legal: pass "
                "mask=info['action_mask'], or records"
            )
        logits, values = self._forward(view)
        if legal is not None:
            if legal.shape != logits.shape:
                raise ValueError(f"mask must be of shape {logits.shape}, not {legal.shape}")
            logits = np.where(legal, logits, _MASKED_LOGIT)
        return logits, values

    def _choose(self, logits: np.ndarray) -> np.ndarray:
        """Actions int32 [n]."""
        if self.greedy:
            best: np.ndarray = np.argmax(logits, axis=1).astype(np.int32)
            return best
        # The largest of logit + Gumbel noise is a draw from the softmax.
        noisy = logits + self._random.gumbel(size=logits.shape)
        legal = logits > _MASKED_LOGIT / 2
        drawn: np.ndarray = np.argmax(np.where(legal, noisy, -np.inf), axis=1).astype(np.int32)
        return drawn

    def _legal_by_piece(self) -> np.ndarray | None:
        """bool [7, A]: the legal placements of each active piece; None in other games.

        They depend on nothing else until the game ends: a piece that waits for its placement may
        have fallen, but never turned. Rows of a view do not tell: see AfterstatesLayout.
        """
        if self.env != "tetris-placement":
            return None
        records = np.zeros((_PIECES, self._record_bytes), np.uint8)
        records[:, _ACTIVE_BYTE] = np.arange(_PIECES)
        return _core.action_masks(self.env, records)

    def _view_of(self, observations: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """float32 [n, F] and, where they can be told, the legal actions."""
        record_bytes = self._record_bytes
        width = observations.shape[1] if observations.ndim == 2 else -1
        if observations.dtype == np.uint8 and width == record_bytes:
            records = np.ascontiguousarray(observations)
            view = _core.expand(self.env, self.obs, self.queue_size, records)
            return view, _core.action_masks(self.env, records) if self._has_mask else None
        if observations.dtype.kind == "f" and width == self.view_floats:
            view = np.ascontiguousarray(observations, np.float32)
            if self._legal_of_piece is None:
                return view, None
            end = self.view_floats - _PIECES * self.queue_size  # there the queue begins
            active = view[:, end - _PIECES : end].argmax(axis=1)
            return view, self._legal_of_piece[active]
        raise ValueError(
            f"this policy takes observations {self.obs!r} (float [n, {self.view_floats}]) or "
            f"records of its run (uint8 [n, {record_bytes}]), not {observations.dtype} "
            f"{list(observations.shape)}: make the environment with obs=policy.obs and "
            "queue_size=policy.queue_size"
        )


def load_policy(
    run: Run | str | os.PathLike[str],
    checkpoint: str | os.PathLike[str] = "newest",
    *,
    greedy: bool = True,
    seed: int | None = None,
) -> Policy:
    """The policy of a run that was trained with V-trace (`--algo vtrace`, the default).

    RunError when there is none, it is damaged or not this run's, or of another algorithm.

    Args:
        run: a Run or its path.
        checkpoint: "newest", "best" or a file.
        greedy: as of Policy.
        seed: as of Policy.

    Returns:
        The policy.
    """
    if not isinstance(run, Run):
        run = Run(run)
    which = str(checkpoint)
    if which not in ("newest", "best"):
        file = Path(checkpoint)
        if not file.exists():
            raise RunError(f'{file} is not there: checkpoint must be "newest", "best" or a file')
        return Policy(run, file, greedy=greedy, seed=seed)
    file = run.checkpoint(which).path
    while True:
        try:
            return Policy(run, file, greedy=greedy, seed=seed)
        except RunError:
            before, file = file, run.checkpoint(which).path
            if file == before:  # not one that the learner has replaced meanwhile
                raise
