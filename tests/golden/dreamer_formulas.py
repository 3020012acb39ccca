"""DreamerV3's formulas in numpy, float64, written from the published description and not from lib/:
what lib/nn/dreamer is compared with. Parameters are a dictionary by the names of its layout."""

import numpy as np

EPSILON = 1e-4  # of norms
KERNEL = 5


def symlog(x):
    return np.sign(x) * np.log1p(np.abs(x))


def symexp(x):
    return np.sign(x) * np.expm1(np.abs(x))


def bins():
    half = symexp(-20 + 20 * np.arange(128) / 127)
    return np.concatenate([half, -half[:127][::-1]]).astype(np.float32).astype(np.float64)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def two_hot(target):
    """Weights [255] of the bins next to a number."""
    values, weights = bins(), np.zeros(255)
    below = min(max((values <= target).sum() - 1, 0), 254)
    above = min(max(255 - (values > target).sum(), 0), 254)
    to_below, to_above = abs(values[below] - target), abs(values[above] - target)
    if below == above:
        to_below = to_above = 1.0
    weights[below] += to_above / (to_above + to_below)
    weights[above] += to_below / (to_above + to_below)
    return weights


def two_hot_loss(logits, target):
    return -(two_hot(target) * np.log(softmax(logits))).sum()


def two_hot_mean(logits):
    p, values = softmax(logits), bins()
    return sum(p[126 - i] * values[126 - i] + p[128 + i] * values[128 + i] for i in range(127))


def unimix(logits, share=0.01):
    return np.log((1 - share) * softmax(logits) + share / logits.shape[-1])


def kl(log_p, log_q):
    return (np.exp(log_p) * (log_p - log_q)).sum((-2, -1))


def rms_norm(x, scale):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + EPSILON) * scale


def linear(p, name, x):
    return x @ p[name + ".weight"].T + p[name + ".bias"]


def dense(p, name, x):
    return silu(rms_norm(linear(p, name, x), p[name + ".scale"]))


def block_linear(p, name, x):
    weight = p[name + ".weight"]
    parts = x.reshape(*x.shape[:-1], weight.shape[0], weight.shape[1])
    return np.einsum("...gi,gio->...go", parts, weight).reshape(
        *x.shape[:-1], -1) + p[name + ".bias"]


def gru(gates, deter, blocks):
    parts = gates.reshape(*gates.shape[:-1], blocks, 3, -1)
    old = deter.reshape(*deter.shape[:-1], blocks, -1)
    update = sigmoid(parts[..., 2, :] - 1)
    candidate = np.tanh(sigmoid(parts[..., 0, :]) * parts[..., 1, :])
    return (update * candidate + (1 - update) * old).reshape(deter.shape)


def core(p, deter, stoch, action):
    action = action / np.maximum(1, np.abs(action))
    blocks = p["core.hidden.weight"].shape[0]
    x = np.concatenate([dense(p, "core.deter", deter),
                        dense(p, "core.stoch", stoch.reshape(len(deter), -1)),
                        dense(p, "core.action", action)], -1)
    parts = [part for h in np.split(deter, blocks, -1) for part in (h, x)]
    y = block_linear(p, "core.hidden", np.concatenate(parts, -1))
    y = silu(rms_norm(y, p["core.hidden.scale"]))
    return gru(block_linear(p, "core.gates", y), deter, blocks)


def posterior(p, deter, embed, groups):
    x = dense(p, "posterior.0", np.concatenate([deter, embed], -1))
    return unimix(linear(p, "posterior.out", x).reshape(*deter.shape[:-1], groups, -1))


def observe(p, deter, stoch, actions, first, embed, samples, base=None):
    """T steps of core and posterior; returns states, samples and log-probabilities.

    The gradient of the one-hot `samples` is that of their probabilities: with `base`, the
    log-probabilities at the point of the gradient, differences of this function are what
    straight-through gradients say."""
    out = []
    for t in range(len(actions)):
        keep = 1 - first[t][:, None]
        deter = core(p, deter * keep, stoch * keep[:, None], actions[t] * keep)
        log_probs = posterior(p, deter, embed[t], samples.shape[2])
        stoch = samples[t] if base is None else samples[t] + np.exp(log_probs) - np.exp(base[t])
        out.append((deter, stoch, log_probs))
    return tuple(np.stack(parts) for parts in zip(*out, strict=True))


def conv(p, name, x):
    """x [N, H, W, C]; stride 1, zeros around."""
    pad = KERNEL // 2
    padded = np.pad(x, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (KERNEL, KERNEL), axis=(1, 2))
    return np.einsum("nhwcij,ocij->nhwo", windows, p[name + ".weight"],
                     optimize=True) + p[name + ".bias"]


def pool(x):
    rows, columns = x.shape[1], x.shape[2]
    padded = np.pad(x, ((0, 0), (0, rows % 2), (0, columns % 2), (0, 0)), constant_values=-np.inf)
    return padded.reshape(len(x), (rows + 1) // 2, 2, (columns + 1) // 2, 2, -1).max((2, 4))


def encode(p, view):
    x = (view - 0.5).reshape(-1, 72, 80, 1)
    for stage in range(4):
        name = f"encoder.{stage}"
        x = silu(rms_norm(pool(conv(p, name, x)), p[name + ".scale"]))
    return x.reshape(len(view), -1)


def decode(p, feature):
    deter_width = np.prod(p["decoder.deter.weight"].shape[:2])
    blocks, channels = p["decoder.deter.weight"].shape[0], len(p["decoder.map.scale"])
    deter, stoch = feature[:, :deter_width], feature[:, deter_width:]
    x = block_linear(p, "decoder.deter", deter).reshape(-1, blocks, 5, 5, channels // blocks)
    x = x.transpose(0, 2, 3, 1, 4).reshape(-1, 5, 5, channels)
    x = x + linear(p, "decoder.map", dense(p, "decoder.stoch", stoch)).reshape(x.shape)
    x = silu(rms_norm(x, p["decoder.map.scale"]))
    for stage in (2, 1, 0):
        name = f"decoder.{stage}"
        x = x.repeat(2, 1).repeat(2, 2)[:, :9 if stage == 2 else None]
        x = silu(rms_norm(conv(p, name, x), p[name + ".scale"]))
    return sigmoid(conv(p, "decoder.out", x.repeat(2, 1).repeat(2, 2))).reshape(len(feature), -1)
