"""Our `cartpole` against gymnasium's CartPole-v1: bit for bit from the same start.

Usage: differential_cartpole.py ENV_LINE_SERVER EPISODES
"""

import sys

import gymnasium
import numpy as np
from env_line import IS_LAST, TRUNCATED, EnvLine


def choose(state, rng, episode):
    """Random, or a balancing rule good for 500 steps."""
    if episode % 4 != 0:
        return int(rng.integers(2))
    return int(state[2] + 0.5 * state[3] + 0.05 * state[0] + 0.1 * state[1] > 0)


def play(server, env, episode, rng):
    server.open("cartpole", 31 + episode)
    row = server.row("reset", episode, 500)
    start = server.doubles("start", episode)
    env.reset()
    env.unwrapped.state = np.array(start, dtype=np.float64)
    steps, truncated = 0, False
    np.testing.assert_array_equal(
        np.frombuffer(row.record, dtype=np.float32), np.array(start).astype(np.float32)
    )
    while not row.flags & IS_LAST:
        action = choose(env.unwrapped.state, rng, episode)
        theirs, reward, terminated, truncated, _ = env.step(action)
        row = server.row("step", action)
        state = server.doubles("push", action)
        steps += 1
        where = f"episode {episode} step {steps}"
        assert state == list(env.unwrapped.state), f"{where}: {state} {env.unwrapped.state}"
        np.testing.assert_array_equal(np.frombuffer(row.record, dtype=np.float32), theirs, where)
        assert row.reward == reward == 1.0, where
        assert row.terminated == terminated, where
        assert bool(row.flags & TRUNCATED) == (truncated and not terminated), where
    return steps, int(truncated)


def main():
    server, env = EnvLine(sys.argv[1]), gymnasium.make("CartPole-v1")
    rng = np.random.default_rng(3)
    episodes = int(sys.argv[2])
    steps, truncated = np.array([play(server, env, e, rng) for e in range(episodes)]).sum(axis=0)
    assert truncated > 0, "some episodes must reach the limit"
    print(f"cartpole: {episodes} episodes, {steps} steps, {truncated} truncated: identical")


if __name__ == "__main__":
    main()
