"""REINFORCE in numpy on CartPole: a linear policy, whole episodes, a baseline a step.

python collect_reinforce.py [--updates 60] [--episodes 32]
"""

import argparse

import numpy as np
import tetrion

STEPS = 500
SCALE = np.array([1.0, 2.0, 8.0, 3.0], np.float32)  # brings the four numbers to about one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=60)
    parser.add_argument("--episodes", type=int, default=32)
    parser.add_argument("--rate", type=float, default=0.5)
    options = parser.parse_args()
    weights = np.zeros(5)
    # One a worker: calls of different workers overlap.
    generators: dict[int, np.random.Generator] = {}

    def probability(observations: np.ndarray) -> np.ndarray:
        """Of action 1, [...]."""
        features = observations * SCALE
        one: np.ndarray = 1.0 / (1.0 + np.exp(-(features @ weights[:4] + weights[4])))
        return one

    def act(worker: int, observations: np.ndarray) -> np.ndarray:
        rng = generators.setdefault(worker, np.random.default_rng(worker))
        return (rng.random(len(observations)) < probability(observations)).astype(np.int32)

    with tetrion.BatchedTetrisCollector(
        2, STEPS, policy_fn=act, env="cartpole", lanes_per_worker=16
    ) as collector:
        for update in range(options.updates):
            batch = collector.request_episodes(options.episodes)
            real = np.arange(STEPS) < batch.lengths[:, None]  # [B, K]
            # Padding holds zeros: rewards to come need no mask.
            to_come = np.cumsum(batch.rewards[:, ::-1], axis=1)[:, ::-1]
            alive = real.sum(axis=0)
            baseline = (to_come * real).sum(axis=0) / np.maximum(alive, 1)
            advantage = (to_come - baseline) * real
            advantage /= advantage[real].std() + 1e-6
            # d log pi / d logit = action - probability of action 1.
            gap = (batch.actions - probability(batch.observations)) * advantage
            features = batch.observations * SCALE
            gradient = np.append(np.einsum("bk,bkf->f", gap, features), gap.sum()) / real.sum()
            weights += options.rate * gradient
            if update % 5 == 0 or update == options.updates - 1:
                print(f"update {update:3d}  mean return {batch.returns.mean():6.1f}", flush=True)


if __name__ == "__main__":
    main()
