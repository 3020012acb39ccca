"""Policies that a collector runs in C++, without Python and its lock."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Random:
    """Uniform among the legal actions (tetris-placement: those of the mask; else all). An action
    depends on (seed, job, step) alone."""


class Scripted:
    """Plays `actions` by step, starting over at the end of the list.

    Args:
        actions: integers of one dimension, at least one. ValueError for anything else, and from the
            collector when one is out of the environment's range.
    """

    def __init__(self, actions: Sequence[int] | np.ndarray) -> None:
        given = np.asarray(actions)
        if given.ndim != 1 or given.size == 0 or given.dtype.kind not in "iu":
            raise ValueError(
                f"Scripted needs a 1-D list of integers, not {given.dtype} of shape {given.shape}"
            )
        if given.min() < 0 or given.max() >= 2**31:
            at = int(np.flatnonzero((given < 0) | (given >= 2**31))[0])
            raise ValueError(f"scripted action {at} is {given[at]}: choose 0 or more")
        self.actions = given.astype(np.int32)
