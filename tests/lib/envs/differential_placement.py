"""Our `tetris-placement` against tetris-gymnasium's GroupedActionsObservations.

Rewards, ends, lines, states, legal masks and the 13 features of all 40 placements.
Usage: differential_placement.py ENV_LINE_SERVER terminate|noop EPISODES MAX_STEPS [rows]

With `rows`, on boards of 5 to 20 rows.
"""

import sys

import numpy as np
from differential_tetris import compare
from env_line import IS_LAST, EnvLine
from tetris_gymnasium.envs import Tetris
from tetris_gymnasium.wrappers.grouped import GroupedActionsObservations
from tetris_gymnasium.wrappers.observation import FeatureVectorObservation
from tetris_package import with_pieces

SCALE = np.array([20.0] * 12 + [50.0])


def mask_bits(row):
    return np.array([row.mask >> action & 1 for action in range(40)])


def compare_features(view, grouped, legal, where):
    ours = np.rint(view[:640].reshape(40, 16)[:, :13] * SCALE)
    np.testing.assert_array_equal(ours[legal == 1], grouped[legal == 1], where)
    assert not view[:640].reshape(40, 16)[legal == 0].any(), where


def choose(view, legal, rng, packing, illegal_share):
    if packing and rng.random() < 0.97:
        rows = view[:640].reshape(40, 16)
        score = 8 * rows[:, 11] + rows[:, 10] + rows[:, 12] + rows[:, 14] + 100 * rows[:, 15]
        return int(np.argmin(np.where(legal == 1, score, np.inf)))
    illegal_too = rng.random() < illegal_share
    return int(rng.choice(40 if illegal_too else np.nonzero(legal)[0]))


def play(server, env, episode, noop, max_steps, rng):
    """One episode on both; returns (steps, lines, illegal choices)."""
    queue_size = 1 + episode % 7
    height = env.unwrapped.height
    iid = episode % 3 == 0
    server.open("tetris-placement", 500 + episode, queue_size, iid, noop, rows=height)
    base = with_pieces(env.unwrapped, server.pieces(episode, max_steps + 20), queue_size)
    grouped, info = env.reset()
    row = server.row("reset", episode, max_steps)
    lines = steps = illegal = 0
    while True:
        where = f"episode {episode} step {steps}"
        legal = mask_bits(row)
        np.testing.assert_array_equal(legal, info["action_mask"], where)
        view = server.view()
        compare_features(view, grouped, legal, where)
        if row.flags & IS_LAST:
            return steps, lines, illegal
        action = choose(view, legal, rng, episode % 2 == 1, 0.4 if noop else 0.05)
        illegal += legal[action] == 0
        grouped, reward, terminated, _, info = env.step(action)
        lines += int(info["lines_cleared"])
        row = server.row("step", action)
        steps += 1
        where += f" action {action}"
        compare(row, base._get_obs(), np.float32(reward), bool(terminated), lines, where)
        if not legal[action] and not noop:
            assert row.terminated, where
            return steps, lines, illegal
        assert not row.terminated or view[action * 16 + 15] == 1 or not legal[action], where


def grouped_env(height, illegal_rule):
    base = Tetris(height=height)
    return GroupedActionsObservations(
        base,
        observation_wrappers=[FeatureVectorObservation(base)],
        terminate_on_illegal_action=illegal_rule == "terminate",
    )


def main():
    program, illegal_rule = sys.argv[1], sys.argv[2]
    episodes, max_steps = int(sys.argv[3]), int(sys.argv[4])
    heights = range(5, 21) if sys.argv[5:] == ["rows"] else [20]
    envs = [grouped_env(height, illegal_rule) for height in heights]
    server, rng = EnvLine(program), np.random.default_rng(11)
    noop = illegal_rule == "noop"
    totals = [
        play(server, envs[i % len(envs)], i, noop, max_steps, rng) for i in range(episodes)
    ]
    steps, lines, illegal = np.array(totals).sum(axis=0)
    assert lines > 0, "rows must clear"
    assert illegal > 0, "illegal choices must occur"
    print(f"{illegal_rule}: {episodes} episodes, {steps} placements, {lines} lines, "
          f"{illegal} illegal")


if __name__ == "__main__":
    main()
