"""PPO in torch on tetris-placement: every action drops the piece in one of 40 ways.

python collect_ppo.py [--updates 40] [--episodes 64]               (needs torch)

The view `afterstates` describes what each of the 40 placements would leave: 16 numbers a placement,
zeros where it is illegal. A small network scores every placement; its softmax is the policy.
"""

import argparse

import numpy as np
import tetrion
import torch
from torch import nn

STEPS = 200
PLACEMENTS, FEATURES = 40, 16
GAMMA, LAMBDA, CLIP, EPOCHS, MINIBATCH = 0.99, 0.95, 0.2, 6, 256


class Network(nn.Module):
    """[n, obs_dim] -> log-probabilities [n, 40], values [n]."""

    def __init__(self, obs_dim):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, 1))
        rest = obs_dim - PLACEMENTS * FEATURES
        self.value = nn.Sequential(nn.Linear(rest, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, observations):
        placements = observations[:, : PLACEMENTS * FEATURES].view(-1, PLACEMENTS, FEATURES)
        logits = self.score(placements).squeeze(-1)
        illegal = (placements == 0).all(-1)
        illegal &= ~illegal.all(-1, keepdim=True)  # padding has no legal placement at all
        logits = logits.masked_fill(illegal, -1e9)
        value = self.value(observations[:, PLACEMENTS * FEATURES :]).squeeze(-1)
        return torch.log_softmax(logits, -1), value


def advantages(batch, last_values):
    """Generalised advantage estimates [B, K]; a truncated episode is worth what follows it."""
    count, steps = batch.rewards.shape
    out = np.zeros((count, steps), np.float32)
    carry = np.zeros(count, np.float32)
    following = np.zeros(count, np.float32)
    for k in reversed(range(steps)):
        real = k < batch.lengths
        last = k == batch.lengths - 1
        following = np.where(last, last_values * batch.truncated, following)
        carry = np.where(last, 0.0, carry)
        delta = batch.rewards[:, k] + GAMMA * following - batch.values[:, k]
        carry = np.where(real, delta + GAMMA * LAMBDA * carry, 0.0)
        following = np.where(real, batch.values[:, k], 0.0)
        out[:, k] = carry
    return out


def improve(network, optimiser, observations, actions, old, gains, targets):
    """EPOCHS passes over the batch's real steps, in minibatches."""
    for _ in range(EPOCHS):
        for part in torch.randperm(len(actions)).split(MINIBATCH):
            log_probs, values = network(observations[part])
            chosen = log_probs.gather(1, actions[part, None]).squeeze(1)
            ratio = (chosen - old[part]).exp()
            clipped = ratio.clamp(1 - CLIP, 1 + CLIP)
            gain = torch.minimum(ratio * gains[part], clipped * gains[part]).mean()
            entropy = -(log_probs.exp() * log_probs.clamp(min=-50)).sum(-1).mean()
            missed = nn.functional.smooth_l1_loss(values, targets[part])
            loss = -gain + 0.02 * missed - 0.01 * entropy
            optimiser.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimiser.step()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=40)
    parser.add_argument("--episodes", type=int, default=64)
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)  # the workers' calls of the policy overlap: a core each
    network = None

    @torch.no_grad()
    def act(worker, observations):
        log_probs, values = network(torch.tensor(observations))
        actions = torch.multinomial(log_probs.exp(), 1)
        chosen = log_probs.gather(1, actions).squeeze(1)
        return actions.squeeze(1).numpy(), chosen.numpy(), values.numpy()

    collector = tetrion.BatchedTetrisCollector(
        2, STEPS, policy_fn=act, env="tetris-placement", obs="afterstates", lanes_per_worker=32
    )
    network = Network(collector.obs_dim)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    with collector:
        for update in range(options.updates):
            batch = collector.request_episodes(options.episodes)
            with torch.no_grad():
                last_values = network(torch.from_numpy(batch.final_observations))[1].numpy()
            gained = advantages(batch, last_values)
            real = np.arange(STEPS) < batch.lengths[:, None]  # [B, K]
            gains = torch.from_numpy(gained[real])
            improve(
                network,
                optimiser,
                torch.from_numpy(batch.observations[real]),
                torch.from_numpy(batch.actions[real]).long(),
                torch.from_numpy(batch.log_probs[real]),
                (gains - gains.mean()) / (gains.std() + 1e-6),
                torch.from_numpy((gained + batch.values)[real]),
            )
            print(
                f"update {update:3d}  mean lines {batch.lines.mean():6.2f}"
                f"  mean steps {batch.lengths.mean():6.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
