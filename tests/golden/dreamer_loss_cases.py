"""Inputs and results of DreamerV3's learning for the tests of lib/rl/dreamer, {name: array}:
returns, their scale, the optimiser, and every part of the loss of a small model on one batch."""

import dreamer_formulas as d
import numpy as np
from dreamer_cases import block, f32, hidden, numbers, one_hot

STEP = 1e-5
DISCOUNT, LAMBDA, ENTROPY = 1 - 1 / 333, 0.95, 3e-4
D, U, S, C, G, A, F = 16, 8, 4, 4, 4, 3, 4
T, B, H = 5, 2, 3
SCALES = {"reconstruction": 1, "reward": 1, "cont": 1, "dynamics": 1, "representation": 0.1,
          "policy": 1, "value": 1, "replay_value": 0.3}


def imagined_returns(reward, cont, value):
    """[H+1, N] each -> [H, N]."""
    result, later = [], value[-1]
    for k in range(len(value) - 2, -1, -1):
        later = reward[k + 1] + cont[k + 1] * ((1 - LAMBDA) * value[k + 1] + LAMBDA * later)
        result.append(later)
    return np.stack(result[::-1])


def replayed_returns(reward, last, terminal, boot):
    """[T, B] each -> [T-1, B]."""
    result, later = [], boot[-1]
    for t in range(len(boot) - 2, -1, -1):
        mix = LAMBDA * (1 - last[t + 1])
        later = reward[t + 1] + DISCOUNT * (1 - terminal[t + 1]) * (
            (1 - mix) * boot[t + 1] + mix * later)
        result.append(later)
    return np.stack(result[::-1])


def returns_case():
    rng = np.random.default_rng(11)
    x = {"reward": numbers(rng, 7, 5), "value": numbers(rng, 7, 5), "cont": f32(rng.random((7, 5)))}
    last = np.zeros((7, 5))
    last[2, 0] = last[6, 1] = last[3, 2] = last[0, 3] = 1
    terminal = last * (np.arange(5) % 2)
    case = {f"returns.{name}": value for name, value in x.items()}
    return case | {
        "returns.last": last, "returns.terminal": terminal,
        "returns.imagined": imagined_returns(x["reward"], x["cont"], x["value"]),
        "returns.weight": np.cumprod(x["cont"], 0)[:-1],
        "returns.replayed": replayed_returns(x["reward"], last, terminal, x["value"])}


def scale_case():
    """Three updates."""
    rng = np.random.default_rng(12)
    batches, low, high, result = f32(50 * rng.standard_normal((3, 40)) ** 3), 0.0, 0.0, []
    for batch in batches:
        low = 0.99 * low + 0.01 * np.percentile(batch, 5)
        high = 0.99 * high + 0.01 * np.percentile(batch, 95)
        result.append((low, high, max(1, high - low)))
    return {"scale.returns": batches, "scale.result": np.array(result)}


def laprop_case():
    """Five steps of three tensors: zeros, one whose gradient is clipped, one whose is not."""
    rng = np.random.default_rng(13)
    values = [np.zeros(3), numbers(rng, 4), 10 + numbers(rng, 5)]
    gradients = [[numbers(rng, 3), 10 * numbers(rng, 4), f32(0.1 * numbers(rng, 5))]
                 for _ in range(5)]
    means, squares = [0.0] * 3, [0.0] * 3
    case = {"laprop.start": np.concatenate(values), "laprop.gradients":
            np.stack([np.concatenate(step) for step in gradients])}
    result = []
    for n, step in enumerate(gradients, 1):
        rate = 0.01 * min(1, (n - 1) / 3)
        for i, gradient in enumerate(step):
            bound = 0.3 * max(1e-3, np.linalg.norm(values[i]))
            g = gradient / max(1, np.linalg.norm(gradient) / bound)
            squares[i] = 0.999 * squares[i] + 0.001 * g * g
            means[i] = 0.9 * means[i] + 0.1 * g / (np.sqrt(squares[i] / (1 - 0.999**n)) + 1e-20)
            values[i] = values[i] - rate * means[i] / (1 - 0.9**n)
        result.append(np.concatenate(values))
    return case | {"laprop.result": np.stack(result)}


def mlp(p, rng, name, out, inputs, layers):
    for layer in range(layers):
        hidden(p, rng, f"{name}.{layer}", U, inputs if layer == 0 else U)
    hidden(p, rng, name + ".out", out, U)
    del p[name + ".out.scale"]


def parameters(rng):
    p = {}
    mlp(p, rng, "encoder", 1, F, 3)
    del p["encoder.out.weight"], p["encoder.out.bias"]
    for name, width in (("deter", D), ("stoch", S * C), ("action", A)):
        hidden(p, rng, f"core.{name}", U, width)
    block(p, rng, "core.hidden", D, D + 3 * U * G, G)
    p["core.hidden.scale"] = f32(1 + numbers(rng, D) * 0.1)
    block(p, rng, "core.gates", 3 * D, D, G)
    mlp(p, rng, "posterior", S * C, D + U, 1)
    mlp(p, rng, "prior", S * C, D, 2)
    for name, out, layers in (("actor", A, 3), ("decoder", F, 3), ("reward", 255, 1),
                              ("continue", 1, 1), ("value", 255, 3)):
        mlp(p, rng, name, out, D + S * C, layers)
    # Large numbers would hide all others: bins far from 0 are made unlikely.
    for name in ("reward", "value"):
        p[name + ".out.bias"] = f32(-0.1 * np.abs(np.arange(255) - 127.0))
    return p


def head(p, name, x):
    layer = 0
    while f"{name}.{layer}.weight" in p:
        x, layer = d.dense(p, f"{name}.{layer}", x), layer + 1
    return d.linear(p, name + ".out", x) if name + ".out.weight" in p else x


def feature(deter, stoch):
    return np.concatenate([deter, stoch.reshape(*stoch.shape[:-2], -1)], -1)


def means(logits):
    return np.apply_along_axis(d.two_hot_mean, -1, logits)


def two_hot_losses(logits, targets):
    rows = zip(logits.reshape(-1, 255), targets.reshape(-1), strict=True)
    return np.array([d.two_hot_loss(*row) for row in rows]).reshape(targets.shape)


def prior(p, deter):
    return d.unimix(head(p, "prior", deter).reshape(*deter.shape[:-1], S, C))


def world(p, x, base):
    """Parts of the world model's loss, features and what gradients are stopped at; `base` is that
    of the point of the gradient, None: this one."""
    embed = head(p, "encoder", d.symlog(x["view"]))
    deter, stoch, post = d.observe(p, x["deter"], x["stoch"], x["action"], x["first"], embed,
                                   x["sample"], base and base["post"])
    here = prior(p, deter)
    stopped = {"post": post, "prior": here, "deter": deter}
    base = base or stopped
    features = feature(deter, stoch)
    goes_on = (1 - x["terminal"]) * DISCOUNT
    chance = d.sigmoid(head(p, "continue", features)[..., 0])
    parts = {
        "reconstruction": ((head(p, "decoder", features) - d.symlog(x["view"])) ** 2).sum(-1),
        "reward": two_hot_losses(head(p, "reward", features), x["reward"]),
        "cont": -goes_on * np.log(chance) - (1 - goes_on) * np.log(1 - chance),
        "dynamics": np.maximum(1, d.kl(base["post"], here)),
        "representation": np.maximum(1, d.kl(post, base["prior"]))}
    return parts, features, stopped


def imagine(p, x, deter):
    deter, stoch = deter.reshape(T * B, D), x["sample"].reshape(T * B, S, C)
    features = [feature(deter, stoch)]
    for k in range(H):
        deter, stoch = d.core(p, deter, stoch, x["imagined_action"][k]), x["imagined_sample"][k]
        features.append(feature(deter, stoch))
    return np.stack(features)


def worth(p, slow, x, features, imagined):
    """What no gradient passes through."""
    value, reward = means(head(p, "value", imagined)), means(head(p, "reward", imagined))
    cont = d.sigmoid(head(p, "continue", imagined)[..., 0])
    returns = imagined_returns(reward, cont, value)
    low, high = (0.01 * np.percentile(returns, q) for q in (5, 95))
    return {"imagined": imagined, "returns": returns, "weight": np.cumprod(cont, 0)[:H],
            "advantage": (returns - value[:H]) / max(1, high - low),
            "slow": means(head(slow, "value", imagined[:H])),
            "target": replayed_returns(x["reward"], x["last"], x["terminal"],
                                       returns[0].reshape(T, B)),
            "replay_slow": means(head(slow, "value", features[:-1]))}


def loss(p, slow, x, base=None):
    """Mean of every part, and what gradients are stopped at."""
    parts, features, stopped = world(p, x, base)
    stopped |= base or worth(p, slow, x, features, imagine(p, x, stopped["deter"]))
    log_probs = d.unimix(head(p, "actor", stopped["imagined"][:H]))
    entropy = -(np.exp(log_probs) * log_probs).sum(-1)
    chosen = (log_probs * x["imagined_action"]).sum(-1)
    logits = head(p, "value", stopped["imagined"][:H])
    parts["policy"] = -stopped["weight"] * (chosen * stopped["advantage"] + ENTROPY * entropy)
    parts["value"] = stopped["weight"] * (two_hot_losses(logits, stopped["returns"])
                                          + two_hot_losses(logits, stopped["slow"]))
    logits = head(p, "value", features[:-1])
    parts["replay_value"] = (1 - x["last"][:-1]) * (
        two_hot_losses(logits, stopped["target"]) + two_hot_losses(logits, stopped["replay_slow"]))
    return {name: part.mean() for name, part in parts.items()}, stopped


def batch(rng):
    x = {"view": 3 * numbers(rng, T, B, F), "reward": numbers(rng, T, B), "action":
         one_hot(rng, T, B, A), "first": np.zeros((T, B)), "last": np.zeros((T, B)),
         "terminal": np.zeros((T, B)), "deter": f32(np.sign(numbers(rng, B, D)) * 0.5),
         "stoch": one_hot(rng, B, S, C), "sample": one_hot(rng, T, B, S, C),
         "imagined_action": one_hot(rng, H, T * B, A),
         "imagined_sample": one_hot(rng, H, T * B, S, C)}
    # Lane 0 ends an episode at row 1, lane 1 is cut at row 2.
    x["last"][1, 0] = x["terminal"][1, 0] = x["first"][2, 0] = 1
    x["last"][2, 1] = x["first"][3, 1] = 1
    x["action"] *= 1 - x["first"][..., None]
    return x


def loss_case():
    """`loss.slope.` of a parameter: derivative of the weighed total along cos(0), cos(1), ..."""
    rng = np.random.default_rng(14)
    p, x = parameters(rng), batch(rng)
    slow = {name: f32(value + 0.1 * numbers(rng, *value.shape)) for name, value in p.items()
            if name.startswith("value.")}
    parts, stopped = loss(p, slow, x)
    case = {f"loss.{name}": value for name, value in x.items()}
    case |= {f"loss.p.{name}": value for name, value in p.items()}
    case |= {f"loss.slow.{name}": value for name, value in slow.items()}
    case |= {f"loss.part.{name}": value for name, value in parts.items()}

    def total(name, step):
        along = np.cos(np.arange(p[name].size)).reshape(p[name].shape)
        moved, _ = loss(p | {name: p[name] + step * along}, slow, x, stopped)
        return sum(SCALES[part] * value for part, value in moved.items())

    return case | {f"loss.slope.{name}": (total(name, STEP) - total(name, -STEP)) / (2 * STEP)
                   for name in p}


def all_cases():
    return returns_case() | scale_case() | laprop_case() | loss_case()
