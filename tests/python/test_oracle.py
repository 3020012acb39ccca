"""Through Python against the packages whose games these are: same pieces, same actions, same
everything. The C++ differential tests (tests/lib/envs) compare more episodes."""

import numpy as np
import pytest
import tetrion

tetris_gymnasium = pytest.importorskip("tetris_gymnasium", reason="the oracle is a test dependency")

from tetris_gymnasium.envs import Tetris  # noqa: E402
from tetris_package import with_pieces  # noqa: E402

MAX_STEPS = 300


def oracle(seed, episode, queue_size, iid):
    return with_pieces(
        Tetris(), tetrion.pieces(seed, episode, MAX_STEPS + 20, iid=iid), queue_size
    )


def same(ours, theirs, where):
    assert set(ours) == set(theirs)
    for key in ours:
        np.testing.assert_array_equal(ours[key], theirs[key], f"{where}: {key}")


@pytest.mark.parametrize(("queue_size", "iid"), [(1, False), (3, True), (4, False), (7, True)])
def test_single_environment_equals_tetris_gymnasium(queue_size, iid):
    seed = 40 + queue_size
    ours = tetrion.TetrisEnv("dict", queue_size=queue_size, iid_pieces=iid, max_steps=MAX_STEPS)
    rng = np.random.default_rng(seed)
    for episode in range(6):
        theirs = oracle(seed, episode, queue_size, iid)
        mine, _ = ours.reset(seed=seed) if episode == 0 else ours.reset()
        other, _ = theirs.reset()
        same(mine, other, f"episode {episode} reset")
        for step in range(MAX_STEPS):
            action = int(rng.integers(8))
            where = f"episode {episode} step {step} action {action}"
            mine, reward, terminated, truncated, info = ours.step(action)
            other, their_reward, their_end, _, their_info = theirs.step(action)
            same(mine, other, where)
            assert (reward, terminated) == (their_reward, their_end), where
            assert info["lines_cleared"] == their_info["lines_cleared"], where
            if terminated:
                break
        assert terminated or truncated
        assert list(mine) == list(other), "the same order of keys"


def test_every_row_of_the_vector_environment_equals_tetris_gymnasium():
    n, queue_size, seed = 6, 4, 900
    envs = tetrion.vector.make("tetris", n, threads=2, obs="flat", seed=seed, max_steps=MAX_STEPS)
    flat, _ = envs.reset()
    playing, episodes, over = [], [0] * n, [False] * n
    for i in range(n):
        env = oracle(seed + i, 0, queue_size, False)
        playing.append(env)
        np.testing.assert_array_equal(flat[i], flattened(env.reset()[0]))
    rng = np.random.default_rng(3)
    for step in range(250):
        actions = rng.choice([0, 1, 3, 5, 6, 7], size=n)
        flat, rewards, terminations, truncations, _ = envs.step(actions)
        for i in range(n):
            if over[i]:
                episodes[i] += 1
                playing[i] = oracle(seed + i, episodes[i], queue_size, False)
                expected, reward, ended = playing[i].reset()[0], 0, False
            else:
                expected, reward, ended, _, _ = playing[i].step(int(actions[i]))
            over[i] = ended or truncations[i]
            np.testing.assert_array_equal(flat[i], flattened(expected), f"env {i} step {step}")
            assert (rewards[i], terminations[i]) == (reward, ended)
    assert sum(episodes) > n, "too few episodes ended to say anything of autoreset"
    envs.close()


def flattened(observation):
    return np.concatenate([observation[key].ravel() for key in sorted(observation)])
