"""Steps 1024 Tetris games with random actions and says how fast: random_vector.py [SECONDS]."""

import sys
import time

import numpy as np
import tetrion

NUM_ENVS = 1024

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 3.0
envs = tetrion.vector.make("tetris", NUM_ENVS, obs="compact", seed=1, copy=False)
rng = np.random.default_rng(1)
envs.reset()
steps = episodes = 0
start = time.perf_counter()
while time.perf_counter() - start < seconds:
    actions = rng.integers(8, size=NUM_ENVS, dtype=np.int32)
    _, _, terminated, truncated, _ = envs.step(actions)
    steps += NUM_ENVS
    episodes += int((terminated | truncated).sum())
elapsed = time.perf_counter() - start
print(f"{steps / elapsed / 1e6:.1f} M steps/s, {episodes} episodes")
envs.close()
