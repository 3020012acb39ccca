"""The environments under Gymnasium's tools, and copied, pickled and branched: with_your_tools.py
[FOLDER]. Videos go to FOLDER, else to a folder that is removed again; without moviepy frames are
only collected."""

import copy
import importlib.util
import pathlib
import pickle
import sys
import tempfile
from typing import Any

import gymnasium
import numpy as np
import tetrion
from gymnasium import wrappers
from gymnasium.utils.env_checker import check_env

IDS = ("tetrion/Tetris-v0", "tetrion/TetrisPlacement-v0", "tetrion/CartPole-v0")
HAS_MOVIEPY = importlib.util.find_spec("moviepy") is not None


def play(env: gymnasium.Env[Any, Any], steps: int, seed: int | None = None) -> list[float]:
    """`steps` random steps, legal ones where the environment says which; returns the rewards."""
    rewards: list[float] = []
    _, info = env.reset(seed=seed)
    for _ in range(steps):
        _, reward, terminated, truncated, info = env.step(
            env.action_space.sample(info.get("action_mask"))
        )
        rewards.append(float(reward))
        if terminated or truncated:
            _, info = env.reset()
    return rewards


def single(env_id: str) -> None:
    """Gymnasium's checker and wrappers around one environment."""
    check_env(gymnasium.make(env_id).unwrapped)
    env = gymnasium.make(env_id, render_mode="rgb_array", max_steps=40)
    env = wrappers.RecordEpisodeStatistics(wrappers.RenderCollection(env))
    env = wrappers.TimeAwareObservation(wrappers.FlattenObservation(env))
    play(env, 60, seed=1)
    frames = env.render()
    assert isinstance(frames, list)
    print(f"{env_id}: observations {env.observation_space.shape}, {len(frames)} frames kept")
    env.close()


def vector(env_id: str) -> None:
    """The same id as our vector environment and in Gymnasium's processes."""
    ours = gymnasium.make_vec(env_id, 4, max_steps=40, autoreset_mode="SameStep")
    theirs = gymnasium.make_vec(
        env_id,
        4,
        max_steps=40,
        vectorization_mode="async",
        vector_kwargs={"autoreset_mode": "SameStep"},
    )
    assert ours.observation_space == theirs.observation_space
    ours = wrappers.vector.RecordEpisodeStatistics(ours)
    ours.reset(seed=1)
    theirs.reset(seed=1)
    ended = 0
    for _ in range(60):
        actions = ours.action_space.sample()
        _, mine, *_, infos = ours.step(actions)
        _, rewards, *_ = theirs.step(actions)
        np.testing.assert_allclose(mine, rewards)
        ended += int(infos.get("_episode", np.zeros(4)).sum())
    print(f"{env_id}: 4 rows as AsyncVectorEnv's, {ended} episodes")
    ours.close()
    theirs.close()


def video(folder: pathlib.Path) -> None:
    """Films of one environment and of four, side by side."""
    if not HAS_MOVIEPY:
        print('no videos: moviepy is missing, pip install "gymnasium[other]"')
        return
    env = gymnasium.make(IDS[0], render_mode="rgb_array", max_steps=30)
    with wrappers.RecordVideo(env, str(folder / "one")) as filmed:
        play(filmed, 30, seed=1)
    envs = gymnasium.make_vec(IDS[1], 4, render_mode="rgb_array")
    envs = wrappers.vector.RecordVideo(envs, str(folder / "four"), video_length=20)
    _, infos = envs.reset(seed=1)
    for _ in range(40):
        *_, infos = envs.step(envs.action_space.sample(tuple(infos["action_mask"])))
    envs.close()
    print(f"videos: {', '.join(sorted(file.name for file in folder.rglob('*.mp4')))}")


def states() -> None:
    """A copy, a pickle and a state go on as the original does."""
    env = gymnasium.make(IDS[0], obs="compact")
    play(env, 25, seed=3)
    others = [copy.deepcopy(env), pickle.loads(pickle.dumps(env)), tetrion.TetrisEnv("compact")]
    ours = env.unwrapped
    assert isinstance(ours, tetrion.TetrisEnv)
    others[-1].set_state(pickle.loads(pickle.dumps(ours.get_state())))
    for action in (0, 3, 5):
        observation = env.step(action)[0]
        assert all(np.array_equal(other.step(action)[0], observation) for other in others)
    print("states: a copy, a pickle and a state went on as the original did")


def search(steps: int) -> None:
    """Placements by looking one ahead: every action is tried in a row of a vector environment, and
    the one that leaves the fewest holes and the lowest cells is played."""
    env = tetrion.TetrisPlacementEnv("compact", max_steps=steps)
    tries = tetrion.vector.make("tetris-placement", 40, obs="dict", max_steps=steps)
    _, info = env.reset(seed=1)
    terminated = truncated = False
    heights = np.arange(16, 0, -1)[:, None]
    while not (terminated or truncated):
        tries.set_state(env.get_state())
        observations, _, ended, _, _ = tries.step(np.arange(40))
        field = observations["board"][:, 4:20, 4:14] > 1  # [40, 16, 10], below the new piece
        holes = np.maximum.accumulate(field, axis=1) & ~field
        cost = (10 * holes + heights * field).sum((1, 2)) + 10_000 * ended
        _, _, terminated, truncated, info = env.step(int(cost.argmin()))
    tries.close()
    print(f"search: {info['episode_length']} placements, {info['lines']} lines")


def main() -> None:
    for env_id in IDS:
        single(env_id)
        vector(env_id)
    with tempfile.TemporaryDirectory() as scratch:
        video(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else scratch))
    states()
    search(60)


if __name__ == "__main__":
    main()
