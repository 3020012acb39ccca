"""What the tests of the collector share."""

import numpy as np
from tetrion import BatchedTetrisCollector

PATIENCE_S = 60.0  # a hang, not slowness


def zeros(worker, observations):
    """The policy that always takes action 0."""
    return np.zeros(len(observations), np.int32)


def collector(workers=2, steps=16, obs_flatten=None, **options):
    """A small collector whose waits end."""
    options.setdefault("timeout", PATIENCE_S)
    return BatchedTetrisCollector(workers, steps, obs_flatten, **options)
