"""Our `tetris` against tetris-gymnasium: same pieces, same actions, same everything, step for step.

Rewards, ends, lines, the four observation arrays (from the compact record's documentation and from
the `dict` view), gymnasium's flattening of them, and every 16th picture.

With `rows`, on boards of 5 to 20 rows: the package's arrays are then the lowest rows of ours, and
the flattening and the pictures, whose shapes differ, are left out.

Usage: differential_tetris.py ENV_LINE_SERVER random|packing EPISODES [rows]
"""

import sys

import numpy as np
from env_line import IS_LAST, TRUNCATED, EnvLine, decode
from gymnasium.wrappers import FlattenObservation
from tetris_gymnasium.envs import Tetris
from tetris_package import with_pieces

LEFT, RIGHT, CLOCKWISE, DROP, SWAP, NOOP = 0, 1, 3, 5, 6, 7
MAX_STEPS = {"random": 400, "packing": 150}


def compare(row, theirs, reward, terminated, lines, where):
    """All that the package shows against what the record says."""
    ours = decode(row.record)
    assert row.reward == reward, f"{where}: reward {row.reward}, package {reward}"
    assert row.terminated == terminated, f"{where}: terminated {row.terminated}"
    assert row.cont == (0.0 if terminated else 1.0), where
    assert ours.lines == lines, f"{where}: lines {ours.lines}, package {lines}"
    assert row.lines == lines, where
    top = ours.top
    assert ours.locked[top:20, 4:14].sum() == 4 * ours.pieces - 10 * ours.lines, where
    active = ours.projected()
    assert not active[:top].any(), where
    assert not ours.mask()[:top].any(), where
    active = active[top:]
    np.testing.assert_array_equal(ours.locked[top:] | (active > 0), theirs["board"] != 0, where)
    np.testing.assert_array_equal(active[active > 0], theirs["board"][active > 0], where)
    np.testing.assert_array_equal(ours.mask()[top:], theirs["active_tetromino_mask"], where)
    np.testing.assert_array_equal(ours.holder_array(), theirs["holder"], where)
    np.testing.assert_array_equal(ours.queue_array(), theirs["queue"], where)


def compare_views(server, env, flatten, theirs, picture, where):
    """The arrays with their colours, the flat vector, and the picture at two scales if asked."""
    ours = server.dict()
    assert list(theirs), where
    assert sorted(theirs) == list(ours), where
    top = 24 - len(theirs["board"])
    assert (ours["board"][:top] == 1).all(), where
    assert not ours["active_tetromino_mask"][:top].any(), where
    for name, array in ours.items():
        below = array[top:] if len(array) == 24 else array
        np.testing.assert_array_equal(below, theirs[name], f"{where}: {name}")
    if top > 0:
        return
    np.testing.assert_array_equal(server.flat(), flatten.observation(theirs), where)
    if picture:
        for env.render_scaling_factor in (1, 3):
            pixels = server.rgb(env.render_scaling_factor)
            np.testing.assert_array_equal(pixels, env.render(), where)


def surface(locked, matrix, x):
    """Holes plus bumpiness after dropping the box at column x; None outside the field."""
    field = locked[:20].copy()
    cells = matrix > 0
    columns = x + np.nonzero(cells.any(axis=0))[0]
    if columns.min() < 4 or columns.max() > 13:
        return None
    window = np.vstack([locked, np.ones((4, 18), dtype=bool)])
    size = cells.shape[0]
    y = 0
    while not (window[y + 1 : y + 1 + size, x : x + size] & cells).any():
        y += 1
    rows, offsets = np.nonzero(cells)
    field[np.minimum(rows + y, 19), offsets + x] = True
    inner = field[~field[:, 4:14].all(axis=1)][:, 4:14]
    seen = np.cumsum(inner, axis=0) > 0
    heights = seen.sum(axis=0)
    return 4 * (seen & ~inner).sum() + np.abs(np.diff(heights)).sum() + heights.max()


def packing_plan(record, rng):
    """Actions that put the active piece where the field stays flattest, sometimes after a swap."""
    state = decode(record)
    if rng.random() < 0.15:
        return [SWAP]
    best = None
    for turns in range(4):
        matrix = np.rot90(state.active, k=turns)
        for x in range(2, 13):
            score = surface(state.locked, matrix, x)
            if score is not None and (best is None or score < best[0]):
                best = (score, turns, x)
    _, turns, x = best
    side = [LEFT if x < state.x else RIGHT] * abs(x - state.x)
    return [CLOCKWISE] * turns + side + [DROP]


def play(server, env, flatten, episode, policy, rng):
    """One episode on both; returns (steps, lines)."""
    queue_size = 1 + episode % 7
    iid = episode % 3 == 0
    server.open("tetris", 1000 + episode, queue_size, iid, rows=env.height, view="flat")
    with_pieces(env, server.pieces(episode, MAX_STEPS[policy] + 20), queue_size)
    theirs, _ = env.reset()
    row = server.row("reset", episode, MAX_STEPS[policy])
    compare(row, theirs, 0, False, 0, f"episode {episode} reset")
    compare_views(server, env, flatten, theirs, True, f"episode {episode} reset")
    lines, steps, plan = 0, 0, []
    while not row.flags & IS_LAST:
        if policy == "packing" and not plan:
            plan = packing_plan(row.record, rng)
        action = plan.pop(0) if plan else int(rng.integers(8))
        theirs, reward, terminated, _, info = env.step(action)
        lines += int(info["lines_cleared"])
        row = server.row("step", action)
        steps += 1
        where = f"episode {episode} step {steps} action {action}"
        compare(row, theirs, reward, bool(terminated), lines, where)
        compare_views(server, env, flatten, theirs, steps % 16 == 0 or terminated, where)
    assert bool(row.flags & TRUNCATED) == (steps == MAX_STEPS[policy] and not terminated)
    return steps, lines


def main():
    program, policy, episodes = sys.argv[1], sys.argv[2], int(sys.argv[3])
    heights = range(5, 21) if sys.argv[4:] == ["rows"] else [20]
    server, rng = EnvLine(program), np.random.default_rng(7)
    envs = [Tetris(render_mode="rgb_array", height=height) for height in heights]
    flattened = [FlattenObservation(env) for env in envs]
    totals = np.array(
        [
            play(server, envs[i % len(envs)], flattened[i % len(envs)], i, policy, rng)
            for i in range(episodes)
        ]
    )
    steps, lines = totals.sum(axis=0)
    assert policy == "random" or lines > episodes, "the packing policy must clear rows"
    print(f"{policy}: {episodes} episodes, {steps} steps, {lines} lines: identical")


if __name__ == "__main__":
    main()
