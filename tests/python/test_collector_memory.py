"""Whose memory a collector's arrays are, and that it is given back."""

import gc
import resource

import numpy as np
import pytest
from collecting import collector, zeros
from tetrion import policies


def test_failed_requests_do_not_move_the_double_buffer():
    fail = False

    def policy(worker, observations):
        if fail:
            raise LookupError("on purpose")
        return zeros(worker, observations)

    with collector(2, 8, policy_fn=policy, copy=False) as c:
        c.request_episodes(3)
        last = c.request_episodes(3)
        held = last.observations.copy()
        for _ in range(3):
            fail = True
            with pytest.raises(LookupError):
                c.request_episodes(3)
            with pytest.raises(MemoryError):
                c.request_episodes(1 << 24)
            fail = False
        assert c.request_episodes(3).observations.ctypes.data != last.observations.ctypes.data
        np.testing.assert_array_equal(last.observations, held)


@pytest.mark.parametrize("lanes", [1, 3])
def test_observations_that_a_policy_keeps_outlive_the_collector(lanes):
    kept = []

    def policy(worker, observations):
        kept.append(observations)
        return zeros(worker, observations)

    with collector(1, 64, policy_fn=policy, lanes_per_worker=lanes, obs="planes") as c:
        c.request_episodes(lanes)
    del c
    gc.collect()
    total = sum(float(o.sum()) for o in kept)  # of memory that is still there
    assert np.isfinite(total)
    assert total > 0
    assert not any(o.flags.writeable for o in kept)


def resident_kib():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize() // 1024


def test_small_arrays_do_not_keep_the_observations():
    kept = []
    with collector(2, 64, policy_fn=policies.Random()) as c:
        before = resident_kib()
        for _ in range(24):  # a batch has 62 MB of observations
            batch = c.request_episodes(256)
            kept.append([getattr(batch, n) for n in ("returns", "lengths", "job_ids", "lines")])
            kept.append([batch.terminated, batch.truncated])
        del batch
        held = resident_kib() - before
        c.close()
        after = resident_kib() - before
    assert held < 400 * 1024, f"{held} KiB with 24 batches' returns kept"
    assert after < 40 * 1024, f"{after} KiB after close"
    assert kept[0][2].tolist() == list(range(256))


@pytest.mark.parametrize("order", ["job", "completion"])
@pytest.mark.parametrize("copy", [True, False])
def test_memory_follows_the_steps_played_not_the_padding(copy, order):
    """A batch has 2.4 GB of observations, of which random play fills 15 MB."""
    with collector(2, 10_000, copy=copy, order=order, lanes_per_worker=4) as c:
        before = resident_kib()
        for _ in range(6):
            batch = c.request_episodes(64)
            if copy:
                batch.observations[:, 5000] = 7  # the caller's, to be padded again
        grown = resident_kib() - before
        assert batch.lengths.max() < 5000
        batch = c.request_episodes(64)
        assert not batch.observations[:, 4000:6000].any()
        assert batch.dones[:, 4000:].all()
    assert grown < 300 * 1024, f"{grown} KiB more"


@pytest.mark.parametrize("copy", [True, False])
def test_memory_of_a_large_request_is_gone_after_small_ones(copy):
    """The large batch has 155 MB of observations, which random play fills, a small one 0.6."""
    with collector(2, 16, copy=copy, policy_fn=policies.Random()) as c:
        c.request_episodes(10)
        before = resident_kib()
        c.request_episodes(2560)
        assert resident_kib() - before > 100 * 1024
        for _ in range(10):
            c.request_episodes(10)
        grown = resident_kib() - before
    assert grown < 50 * 1024, f"{grown} KiB more"


@pytest.mark.parametrize("copy", [True, False])
def test_ten_thousand_requests_leak_nothing(copy):
    with collector(2, 4, copy=copy, policy_fn=policies.Random(), obs="planes") as c:
        for _ in range(500):
            c.request_episodes(2)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(10_000):
            c.request_episodes(2)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # 10,000 batches would be 140 MB of observations alone.
    assert after - before < 8 * 1024, f"{after - before} KiB more"


def raised_by(call):
    try:
        call()
    except LookupError:
        return True
    return False


LEAK_CASES = {
    "policy_fn": {"policy_fn": zeros},
    "obs_flatten": {"obs_flatten": lambda o: o["board"].ravel()},
    "copy=False": {"policy_fn": zeros, "copy": False, "lanes_per_worker": 2},
    "completion": {"policy_fn": zeros, "order": "completion"},
}


@pytest.mark.parametrize("name", LEAK_CASES)
def test_requests_that_call_python_leak_nothing(name):
    with collector(2, 4, **LEAK_CASES[name]) as c:
        for _ in range(200):
            c.request_episodes(2)
        before = resident_kib()
        for _ in range(1500):
            c.request_episodes(2)
        after = resident_kib()
    assert after - before < 4 * 1024, f"{after - before} KiB more"


@pytest.mark.parametrize("callable_name", ["policy_fn", "obs_flatten"])
def test_requests_that_raise_leak_nothing(callable_name):
    probed = []

    def raising(*arguments):
        if callable_name == "obs_flatten" and not probed:
            probed.append(True)
            return np.zeros(4)
        np.zeros(1 << 14)  # the traceback's frame has something to keep
        raise LookupError("on purpose")

    with collector(2, 4, **{callable_name: raising}) as c:
        for _ in range(200):
            assert raised_by(lambda: c.request_episodes(2))
        before = resident_kib()
        for _ in range(1000):
            assert raised_by(lambda: c.request_episodes(2))
        after = resident_kib()
    assert after - before < 4 * 1024, f"{after - before} KiB more"
