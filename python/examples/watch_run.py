"""Plays one episode of a training run's policy and prints its end: watch_run.py runs/latest."""

import sys

import gymnasium
import tetrion

IDS = {name: env_id for env_id, name in tetrion.envs.IDS.items()}
TETRIS = ("queue_size", "iid_pieces", "board_rows", "reward")
SETTINGS = {"tetris": TETRIS, "tetris-placement": (*TETRIS, "spawn_above", "illegal")}

run = tetrion.Run(sys.argv[1] if len(sys.argv) > 1 else "runs/latest")
policy = tetrion.load_policy(run, "best")
settings = {key: run.config[key] for key in SETTINGS.get(policy.env, ()) if key in run.config}
env = gymnasium.make(IDS[policy.env], obs=policy.obs, **settings)
observation, info = env.reset(seed=0)
terminated = truncated = False
while not (terminated or truncated):
    action = policy(observation, info.get("action_mask"))
    observation, reward, terminated, truncated, info = env.step(action)
print(f"{run.name}: {info}")
episodes = run.episodes()
print(f"{len(episodes['token_id'])} episodes trained on, best {episodes['episode_return'].max():g}")
