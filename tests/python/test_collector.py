"""The batched collector as Python users meet it: arrays, errors, threads, shutdown."""

import functools
import gc
import pathlib
import subprocess
import sys
import threading
import time
import weakref

import gymnasium
import numpy as np
import pytest
import tetrion
from collecting import PATIENCE_S, collector, zeros
from tetrion import policies

SOURCES = pathlib.Path(__file__).resolve().parents[2]


def hashed(worker, observations):
    """A policy that depends on the observation alone, with log-probabilities and values."""
    total = observations.astype(np.float64).sum(axis=1)
    actions = (total % 7).astype(np.int64)
    return actions, total.astype(np.float32), (2 * total).astype(np.float32)


def same(a, b):
    for name, x, y in zip(a._fields, a, b, strict=True):
        assert (x is None) == (y is None), name
        if x is not None:
            np.testing.assert_array_equal(x, y, err_msg=name)
            assert x.dtype == y.dtype, name


def test_arrays_have_the_documented_shapes_and_dtypes():
    with collector(lanes_per_worker=2, policy_fn=hashed) as c:
        batch = c.request_episodes(5)
        assert (c.obs_dim, c.num_actions) == (944, 8)
    want = {
        "observations": ((5, 16, 944), np.float32),
        "rewards": ((5, 16), np.float32),
        "actions": ((5, 16), np.int32),
        "dones": ((5, 16), np.bool_),
        "lengths": ((5,), np.int32),
        "terminated": ((5,), np.bool_),
        "truncated": ((5,), np.bool_),
        "returns": ((5,), np.float32),
        "lines": ((5,), np.int32),
        "job_ids": ((5,), np.int64),
        "log_probs": ((5, 16), np.float32),
        "values": ((5, 16), np.float32),
        "final_observations": ((5, 944), np.float32),
    }
    assert batch.action_masks is None
    arrays = {name: a for name, a in batch._asdict().items() if a is not None}
    assert {name: (a.shape, a.dtype) for name, a in arrays.items()} == want
    np.testing.assert_allclose(batch.returns, batch.rewards.sum(axis=1), rtol=1e-6)
    np.testing.assert_array_equal(batch.job_ids, np.arange(5))


def test_every_field_of_a_batch_says_its_shape_and_dtype():
    with collector(1, 2, env="tetris-placement", policy_fn=hashed) as c:
        batch = c.request_episodes(1)
    letters = {1: "[B]", 2: "[B, K]", 3: "[B, K, "}
    for name, array in batch._asdict().items():
        said = getattr(tetrion.EpisodeBatch, name).__doc__
        if name == "final_observations":
            assert said.startswith("[B, obs_dim], as observations"), said
            continue
        assert said.startswith(letters[array.ndim]), said
        assert str(array.dtype) in said, said


PLACEMENT = {"env": "tetris-placement", "obs": "compact", "lanes_per_worker": 3}


def masked(worker, observations, mask):
    """A policy that takes one of the legal placements."""
    assert mask.dtype == np.int8
    assert mask.shape == (len(observations), 40)
    at = observations.astype(np.int64).sum(axis=1) % mask.sum(axis=1)
    legal = np.cumsum(mask, axis=1) == at[:, None] + 1
    return np.argmax(legal, axis=1)


@pytest.mark.parametrize("order", ["job", "completion"])
@pytest.mark.parametrize(("workers", "copy"), [(0, True), (2, True), (2, False)])
def test_masks_reach_the_policy_and_the_batch(workers, copy, order):
    with collector(workers, 60, policy_fn=masked, order=order, copy=copy, **PLACEMENT) as c:
        for _ in range(3):
            batch = c.request_episodes(11)
            real = np.arange(60) < batch.lengths[:, None]
            shown = tetrion._core.action_masks("tetris-placement", batch.observations[real])
            assert batch.action_masks.dtype == np.int8
            assert batch.action_masks.shape == (11, 60, 40)
            np.testing.assert_array_equal(batch.action_masks[real], shown)
            assert not batch.action_masks[~real].any()
            assert (~real).any()
            assert (batch.rewards >= 0).all()  # none was illegal


@pytest.mark.parametrize("given", [False, True])
def test_random_placements_are_legal(given):
    with collector(2, 30, **PLACEMENT) as c:
        batch = c.request_episodes(20)
        if given:
            batch = c.request_episodes(20, actions=batch.actions, first_job=0)
        b, k = np.nonzero(np.arange(30) < batch.lengths[:, None])
        assert (batch.action_masks[b, k, batch.actions[b, k]] == 1).all()
        assert (batch.rewards >= 0).all()
        assert batch.lengths.mean() > 15
        space = gymnasium.spaces.Discrete(40)
        action = space.sample(batch.action_masks[0, 0])
        assert batch.action_masks[0, 0, action] == 1


def test_a_policy_gets_a_mask_only_where_it_has_the_parameter():
    got = []

    def by_keyword(worker, observations, *, mask=0):
        got.append(mask)
        return zeros(worker, observations)

    def any_keyword(worker, observations, **more):
        got.append(more)
        return zeros(worker, observations)

    for policy_fn, env in ((by_keyword, "tetris"), (any_keyword, "tetris-placement")):
        with collector(1, 1, policy_fn=policy_fn, env=env) as c:
            c.request_episodes(1)
            assert (c.request_episodes(1).action_masks is None) == (env == "tetris")
    assert got == [None, None, {}, {}]  # tetris has no masks
    with collector(1, 1, policy_fn=functools.partial(by_keyword), env="tetris-placement") as c:
        c.request_episodes(1)
    assert got[-1].sum() > 0


def test_illegal_placements_end_an_episode_or_let_the_piece_fall():
    """Placement 0 again and again: illegal sooner or later, for want of room or of rotations."""
    batches = {}
    for illegal in ("terminate", "noop"):
        with collector(1, 60, illegal=illegal, policy_fn=last_action, **PLACEMENT) as c:
            batches[illegal] = c.request_episodes(8)
    ended, played_on = batches["terminate"], batches["noop"]
    k = ended.lengths - 1
    last = ended.rewards[np.arange(8), k]
    assert np.isclose(last, -0.1).any()
    for b in np.flatnonzero(np.isclose(last, -0.1)):
        assert ended.terminated[b]
        assert ended.action_masks[b, k[b], 39] == 0
        assert played_on.lengths[b] > ended.lengths[b]
        assert np.isclose(played_on.rewards[b, k[b]], -0.1)


def last_action(worker, observations):
    return np.full(len(observations), 39)


@pytest.mark.parametrize(("iid", "board_rows"), [(False, 20), (True, 20), (True, 10)])
def test_pieces_and_boards_are_those_of_the_environment(iid, board_rows):
    env = tetrion.TetrisEnv(obs="flat", iid_pieces=iid, board_rows=board_rows)
    observation, _ = env.reset(seed=3)
    with collector(1, 2, seed=3, iid_pieces=iid, board_rows=board_rows) as c:
        np.testing.assert_array_equal(c.request_episodes(1).observations[0, 0], observation)
    env.close()


@pytest.mark.parametrize(("queue_size", "dim"), [(3, 928), (4, 944), (7, 992)])
def test_flat_observations_follow_the_preview(queue_size, dim):
    with collector(1, 2, queue_size=queue_size) as c:
        assert c.request_episodes(1).observations.shape == (1, 2, dim)


def test_the_batch_is_the_same_for_any_workers_lanes_and_timing():
    def dawdling(worker, observations):
        time.sleep(0.0005 * worker)
        return hashed(worker, observations)

    for policy_fn in (None, hashed, dawdling):
        batches = []
        for workers, lanes in ((0, 1), (1, 3), (3, 1), (2, 4)):
            with collector(workers, 30, policy_fn=policy_fn, lanes_per_worker=lanes, seed=5) as c:
                c.request_episodes(3)
                batches.append(c.request_episodes(9))
        for other in batches[1:]:
            same(batches[0], other)


def test_padding_is_zero_and_done_whatever_the_arrays_held():
    with collector(2, 120, env="cartpole", lanes_per_worker=3) as c:
        for _ in range(4):
            batch = c.request_episodes(20)
            padded = np.arange(120) >= batch.lengths[:, None]
            assert padded.any()
            assert not batch.observations[padded].any()
            for column in (batch.rewards, batch.actions, batch.log_probs):
                assert not column[padded].any()
            assert batch.dones[padded].all()
            real = ~padded
            assert (batch.rewards[real] == 1).all()
            last = batch.dones[np.arange(20), batch.lengths - 1]
            np.testing.assert_array_equal(last, batch.terminated)
            assert batch.dones[real].sum() == batch.terminated.sum()
            assert not (batch.terminated & batch.truncated).any()
            # The caller's to write: what it leaves must not show in a later batch.
            for name, column in batch._asdict().items():
                if column is not None:
                    column[...] = 1 if name != "dones" else False
            del batch, column


def test_truncated_episodes_are_not_done():
    with collector(1, 3) as c:
        batch = c.request_episodes(4)
    assert batch.truncated.all()
    assert not batch.dones.any()
    assert (batch.lengths == 3).all()


def test_views_live_until_the_next_request_but_one():
    with collector(2, 20, copy=False, lanes_per_worker=2) as c:
        addresses = []
        last = None
        for _ in range(6):
            batch = c.request_episodes(4)
            if last is not None:  # a slow consumer: the one before is untouched
                same(last[0], last[1])
            addresses.append(batch.observations.ctypes.data)
            assert not batch.rewards.flags.writeable
            with pytest.raises(ValueError, match="read-only"):
                batch.observations[0, 0, 0] = 1
            last = batch, type(batch)(*[None if a is None else a.copy() for a in batch])
        assert addresses[0] != addresses[1]
        assert addresses[:2] * 2 == addresses[2:]
    same(last[0], last[1])  # after close as well


def test_copied_batches_are_independent_and_outlive_the_collector():
    with collector(2, 10) as c:
        batches = [c.request_episodes(3) for _ in range(4)]
        copies = [b.observations.copy() for b in batches]
        c.request_episodes(3)
    del c
    gc.collect()
    for batch, copy in zip(batches, copies, strict=True):
        np.testing.assert_array_equal(batch.observations, copy)
        assert batch.observations.flags.writeable


def test_completion_order_has_the_same_episodes():
    with collector(0, 100, env="cartpole", seed=3) as c:
        by_job = c.request_episodes(40)
    with collector(3, 100, env="cartpole", seed=3, order="completion", lanes_per_worker=2) as c:
        batch = c.request_episodes(40)
    order = np.argsort(batch.job_ids)
    same(by_job, type(batch)(*[None if a is None else a[order] for a in batch]))


def test_every_array_observation_of_the_environments_can_be_collected():
    """The collector and the vector environment show the same, in the same shape and dtype."""
    for env, names in tetrion._spaces.OBSERVATIONS.items():
        for obs in names:
            if obs == "dict":
                continue
            with collector(1, 5, env=env, obs=obs, seed=3) as c:
                batch = c.request_episodes(1)
                assert c.obs_dim == batch.observations.shape[2]
            envs = tetrion.vector.make(env, 1, obs=obs, seed=3)
            observations, _ = envs.reset()
            assert envs.single_observation_space.shape == (c.obs_dim,)
            for k in range(batch.lengths[0]):
                assert observations.dtype == batch.observations.dtype
                np.testing.assert_array_equal(batch.observations[0, k], observations[0])
                observations, *_ = envs.step(batch.actions[0, k : k + 1])
            np.testing.assert_array_equal(batch.final_observations[0], observations[0])


def test_given_actions_are_played_and_replay_a_batch():
    with collector(2, 25, lanes_per_worker=2) as c:
        c.request_episodes(4)
        played = c.request_episodes(6)
        again = c.request_episodes(6, actions=played.actions, first_job=int(played.job_ids[0]))
        assert again.log_probs is None
        same(played._replace(log_probs=None), again)
        actions = np.zeros((2, 25), np.int64)
        actions[0, 4:6] = -1
        actions[0, 6:] = 99  # ignored, as all behind a -1
        cut = c.request_episodes(2, actions=actions)
    assert cut.lengths.tolist() == [4, 25]
    assert cut.truncated.all()
    assert not cut.dones[0, 3]
    assert cut.dones[0, 4:].all()


def test_scripted_policy_plays_its_list():
    with collector(2, 7, policy_fn=policies.Scripted([0, 1, 5])) as c:
        batch = c.request_episodes(3)
    np.testing.assert_array_equal(batch.actions, [[0, 1, 5, 0, 1, 5, 0]] * 3)
    assert batch.log_probs is None


def test_obs_flatten_sees_the_dict_and_fixes_the_length():
    def flatten(observation):
        assert sorted(observation) == ["active_tetromino_mask", "board", "holder", "queue"]
        return np.concatenate([observation[k].ravel() for k in sorted(observation)])

    with collector(2, 12, flatten, seed=1) as c:
        ours = c.request_episodes(3)
    with collector(2, 12, seed=1) as c:
        flat = c.request_episodes(3)
    assert ours.observations.dtype == np.uint8
    np.testing.assert_array_equal(ours.observations, flat.observations)
    np.testing.assert_array_equal(ours.final_observations, flat.final_observations)


def test_policies_see_read_only_observations_of_the_active_lanes():
    seen = []

    def policy(worker, observations):
        assert not observations.flags.writeable
        seen.append((worker, observations.shape))
        return zeros(worker, observations)

    with collector(2, 6, policy_fn=policy, lanes_per_worker=3) as c:
        c.request_episodes(8)
    assert {worker for worker, _ in seen} <= {0, 1}
    assert all(1 <= n <= 3 and dim == 944 for _, (n, dim) in seen)
    assert sum(n for _, (n, _) in seen) == 8 * 6


def test_calls_of_different_workers_overlap():
    lock = threading.Lock()
    inside, most = set(), 0

    def policy(worker, observations):
        nonlocal most
        with lock:
            assert worker not in inside, "a worker's own calls do not"
            inside.add(worker)
            most = max(most, len(inside))
        time.sleep(0.002)  # without Python's lock
        with lock:
            inside.remove(worker)
        return zeros(worker, observations)

    with collector(2, 32, policy_fn=policy) as c:
        c.request_episodes(8)
    assert most == 2


class Kept:
    """What a policy keeps for its thread."""


@pytest.mark.parametrize("workers", [0, 1, 2])
def test_a_worker_is_one_thread_of_pythons_until_the_collector_is_closed(workers):
    here = threading.local()
    made, alive = [], []
    all_here = threading.Barrier(max(workers, 1))  # one worker might play all episodes by itself

    def policy(worker, observations):
        if not hasattr(here, "kept"):
            here.kept = Kept()
            made.append(worker)
            alive.append(weakref.ref(here.kept))
            if len(made) <= workers:
                all_here.wait(timeout=60)
        return zeros(worker, observations)

    with collector(workers, 16, policy_fn=policy) as c:
        for _ in range(3):
            c.request_episodes(4)
        assert sorted(made) == list(range(max(workers, 1)))
        assert all(kept() for kept in alive)
    if workers:
        assert not any(kept() for kept in alive)


def test_what_obs_flatten_keeps_for_its_thread_stays_as_well():
    here = threading.local()
    made = []

    def flatten(observation):
        if not hasattr(here, "row"):
            here.row = np.zeros(5, np.float32)
            made.append(threading.get_ident())
        return here.row

    with collector(1, 16, flatten) as c:
        c.request_episodes(4)
    assert len(made) == 2  # the constructor's thread and the worker's
    assert len(set(made)) == 2


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_a_raising_policy_surfaces_with_its_traceback_and_the_collector_goes_on(workers):
    fail = True

    def policy(worker, observations):
        if fail:
            raise LookupError("on purpose")
        return zeros(worker, observations)

    with collector(workers, 8, policy_fn=policy, lanes_per_worker=2) as c:
        for _ in range(3):
            fail = True
            with pytest.raises(LookupError, match="on purpose") as raised:
                c.request_episodes(5)
            assert raised.traceback[-1].name == "policy"
            fail = False
            assert c.request_episodes(5).lengths.tolist() == [8] * 5


@pytest.mark.parametrize("workers", [0, 2])
def test_a_nested_request_is_refused(workers):
    def policy(worker, observations):
        c.request_episodes(1)

    c = collector(workers, 8, policy_fn=policy)
    with c, pytest.raises(RuntimeError, match="a request is running already"):
        c.request_episodes(2)


def test_on_episode_is_told_of_every_episode_in_order():
    told = []
    with collector(2, 30, env="cartpole", on_episode=told.append) as c:
        batch = c.request_episodes(6)
        assert [info["job_id"] for info in told] == list(range(6))
        assert [info["length"] for info in told] == batch.lengths.tolist()
        assert told[0]["episode_return"] == batch.returns[0]
        stats = c.stats()
    assert stats["episodes"] == 6
    assert stats["requests"] == 1
    assert stats["steps"] == stats["env_steps"] == batch.lengths.sum()
    assert stats["next_job"] == 6


def test_batches_equal_tetris_gymnasium_step_for_step():
    pytest.importorskip("tetris_gymnasium", reason="the oracle is a test dependency")
    from gymnasium.wrappers import FlattenObservation
    from tetris_gymnasium.envs import Tetris
    from tetris_package import with_pieces

    with collector(2, 150, seed=21, lanes_per_worker=2) as c:
        batch = c.request_episodes(8)
    assert batch.terminated.any()
    for b in range(8):
        env = FlattenObservation(with_pieces(Tetris(), tetrion.pieces(21, b, 300), 4))
        observation, _ = env.reset()
        for k in range(batch.lengths[b]):
            np.testing.assert_array_equal(batch.observations[b, k], observation)
            observation, reward, terminated, _, _ = env.step(int(batch.actions[b, k]))
            assert batch.rewards[b, k] == reward
            assert batch.dones[b, k] == terminated
        np.testing.assert_array_equal(batch.final_observations[b], observation)
        assert batch.terminated[b] == terminated


EXAMPLES = SOURCES / "python" / "examples"


def run_example(name, *arguments):
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_numpy_example_learns():
    out = run_example("collect_reinforce.py", "--updates", "21")
    returns = [float(line.split()[-1]) for line in out.splitlines()]
    assert returns[-1] > 2 * returns[0], out  # about 20, then about 100


def test_the_plotting_example_writes_its_picture(tmp_path):
    pytest.importorskip("matplotlib", reason="the picture needs it; deploy/python.txt has it")
    picture = tmp_path / "random.png"
    run_example("collect_random.py", "--episodes", "50", "--out", str(picture))
    assert picture.stat().st_size > 1000


def test_the_torch_example_learns():
    pytest.importorskip("torch", reason="gigabytes that only this example needs")
    out = run_example("collect_ppo.py", "--updates", "12")
    steps = [float(line.split()[-1]) for line in out.splitlines()]
    assert steps[-1] > 1.4 * steps[0], out  # about 19, then about 40
