"""Inputs and results of DreamerV3's formulas for the tests of lib/nn/dreamer, {name: array}.

Gradients are central differences in float64 (error about 1e-9), so that no derivation of ours
stands between the formula and the test. Inputs are rounded to float32 first: both sides get the
same."""

import dreamer_formulas as d
import numpy as np

STEP = 1e-5


def f32(x):
    return np.asarray(x, np.float32).astype(np.float64)


def numbers(rng, *shape):
    return f32(rng.standard_normal(shape))


def one_hot(rng, *shape):
    return np.eye(shape[-1])[rng.integers(0, shape[-1], shape[:-1])]


def slope(function, x):
    """d function / d x, element by element; changes x and puts it back."""
    result, flat = np.zeros(x.size), x.reshape(-1)
    for i, value in enumerate(flat.copy()):
        flat[i] = value + STEP
        above = function()
        flat[i] = value - STEP
        result[i] = (above - function()) / (2 * STEP)
        flat[i] = value
    return result.reshape(x.shape)


def symlog_case():
    x = f32([0, 1e-6, -1e-6, 0.5, -3.5, 100, -1000, 1e6, -1e6])
    y = f32([0, 1e-6, -1e-6, 0.5, -3.5, 10, -13.8])
    return {"symlog.x": x, "symlog.result": d.symlog(x), "symexp.x": y,
            "symexp.result": d.symexp(y), "bins": d.bins()}


def two_hot_case():
    targets = f32([0, d.bins()[140], 0.5, -3.5, 100, 1e9, -1e9])
    rng = np.random.default_rng(2)
    rows = [np.zeros(255), f32(np.linspace(-1, 1, 255)), numbers(rng, 255)]
    cells = [(logits, target) for logits in rows for target in targets]
    return {"two_hot.logits": np.stack([logits for logits, _ in cells]),
            "two_hot.target": np.array([target for _, target in cells]),
            "two_hot.loss": np.array([d.two_hot_loss(*cell) for cell in cells]),
            "two_hot.slope": np.stack([d.softmax(logits) - d.two_hot(target)
                                       for logits, target in cells]),
            "two_hot.mean": np.array([d.two_hot_mean(logits) for logits, _ in cells])}


def kl_case():
    rng = np.random.default_rng(4)
    # Row by row further apart: below one free nat, and above.
    apart = np.array([0.0, 0.1, 0.5, 1.0, 2.0, 4.0])[:, None, None]
    prior = numbers(rng, 6, 4, 5)
    post = f32(prior + apart * numbers(rng, 6, 4, 5))
    fixed_post, fixed_prior = d.unimix(post), d.unimix(prior)

    def dynamics():
        return np.maximum(1, d.kl(fixed_post, d.unimix(prior))).sum()

    def representation():
        return np.maximum(1, d.kl(d.unimix(post), fixed_prior)).sum()

    return {"kl.post": post, "kl.prior": prior, "kl.log_probs": fixed_post,
            "kl.raw": d.kl(fixed_post, fixed_prior),
            "kl.loss": np.maximum(1, d.kl(fixed_post, fixed_prior)),
            "kl.prior_slope": slope(dynamics, prior),
            "kl.post_slope": slope(representation, post)}


def norm_case():
    rng = np.random.default_rng(5)
    p = {"x.scale": numbers(rng, 12), "x.weight": numbers(rng, 4, 3, 5), "x.bias": numbers(rng, 20)}
    x, weights = numbers(rng, 3, 12), numbers(rng, 3, 12)

    def loss():
        return (d.silu(d.rms_norm(x, p["x.scale"])) * weights).sum()

    return {"norm.x": x, "norm.scale": p["x.scale"], "norm.weights": weights,
            "norm.result": d.rms_norm(x, p["x.scale"]),
            "norm.silu": d.silu(d.rms_norm(x, p["x.scale"])),
            "norm.x_slope": slope(loss, x), "norm.scale_slope": slope(loss, p["x.scale"]),
            "block.weight": p["x.weight"], "block.bias": p["x.bias"],
            "block.result": d.block_linear(p, "x", x)}


def hidden(p, rng, name, out, inputs):
    p[name + ".weight"] = f32(numbers(rng, out, inputs) / np.sqrt(inputs))
    p[name + ".bias"] = f32(numbers(rng, out) * 0.1)
    p[name + ".scale"] = f32(1 + numbers(rng, out) * 0.1)


def block(p, rng, name, out, inputs, blocks):
    p[name + ".weight"] = f32(numbers(rng, blocks, inputs // blocks, out // blocks)
                              / np.sqrt(inputs // blocks))
    p[name + ".bias"] = f32(numbers(rng, out) * 0.1)


def convolution(p, rng, name, out, inputs):
    p[name + ".weight"] = f32(numbers(rng, out, inputs, 5, 5) / np.sqrt(25 * inputs))
    p[name + ".bias"] = f32(numbers(rng, out) * 0.1)
    p[name + ".scale"] = f32(1 + numbers(rng, out) * 0.1)


def core_parameters(rng):
    """D = 16, U = 8, S = 4, C = 4, G = 4, A = 3, E = 8."""
    p = {}
    hidden(p, rng, "core.deter", 8, 16)
    hidden(p, rng, "core.stoch", 8, 16)
    hidden(p, rng, "core.action", 8, 3)
    block(p, rng, "core.hidden", 16, 16 + 3 * 8 * 4, 4)
    p["core.hidden.scale"] = f32(1 + numbers(rng, 16) * 0.1)
    block(p, rng, "core.gates", 48, 16, 4)
    hidden(p, rng, "posterior.0", 8, 16 + 8)
    hidden(p, rng, "posterior.out", 16, 8)
    del p["posterior.out.scale"]
    return p


def observe_case():
    """5 steps of 2 lanes; lane 1 begins an episode at step 2."""
    rng = np.random.default_rng(6)
    p = core_parameters(rng)
    x = {"deter": numbers(rng, 2, 16), "stoch": one_hot(rng, 2, 4, 4),
         "action": one_hot(rng, 5, 2, 3), "first": np.zeros((5, 2)), "embed": numbers(rng, 5, 2, 8),
         "sample": one_hot(rng, 5, 2, 4, 4)}
    x["first"][2, 1] = 1
    weights = {"deter": numbers(rng, 5, 2, 16), "stoch": numbers(rng, 5, 2, 4, 4),
               "log_probs": numbers(rng, 5, 2, 4, 4)}
    arguments = [x[name] for name in ("deter", "stoch", "action", "first", "embed", "sample")]
    deter, _, log_probs = d.observe(p, *arguments)

    def loss():
        parts = d.observe(p, *arguments, base=log_probs)
        pairs = zip(parts, weights.values(), strict=True)
        return sum((part * weight).sum() for part, weight in pairs)

    case = {f"observe.{name}": value for name, value in x.items()}
    case |= {f"observe.weight.{name}": value for name, value in weights.items()}
    case |= {f"observe.p.{name}": value for name, value in p.items()}
    case |= {f"observe.slope.{name}": slope(loss, value) for name, value in p.items()}
    case |= {"observe.deter_slope": slope(loss, x["deter"]),
             "observe.embed_slope": slope(loss, x["embed"]),
             "observe.result.deter": deter, "observe.result.log_probs": log_probs}
    return case


def picture_parameters(rng):
    """Depth 2, D = 16, U = 4, S = 4, C = 4, G = 4."""
    p, channels = {}, 1
    for stage, out in enumerate((4, 6, 8, 8)):
        convolution(p, rng, f"encoder.{stage}", out, channels)
        channels = out
    block(p, rng, "decoder.deter", 200, 16, 4)
    hidden(p, rng, "decoder.stoch", 8, 16)
    hidden(p, rng, "decoder.map", 200, 8)
    p["decoder.map.scale"] = f32(1 + numbers(rng, 8) * 0.1)
    for stage, out in ((2, 8), (1, 6), (0, 4)):
        convolution(p, rng, f"decoder.{stage}", out, channels)
        channels = out
    convolution(p, rng, "decoder.out", 1, channels)
    del p["decoder.out.scale"]
    return p


def picture_case():
    """The slope for the view is given at some pixels and along a direction: two passes each."""
    rng = np.random.default_rng(7)
    p = picture_parameters(rng)
    view, along = f32(rng.random((1, 72 * 80))), numbers(rng, 1, 72 * 80)
    weights, feature = numbers(rng, 1, 200), numbers(rng, 1, 32)

    def derivative(direction):
        return ((d.encode(p, view + STEP * direction) - d.encode(p, view - STEP * direction))
                * weights).sum() / (2 * STEP)

    def loss():
        return ((d.decode(p, feature) - view) ** 2).sum()

    pixels = np.array([0, 79, 80 * 36 + 40, 80 * 64 + 3, 80 * 71, 80 * 72 - 1])
    case = {f"picture.p.{name}": value for name, value in p.items()}
    return case | {
        "picture.view": view, "picture.along": along, "picture.weight": weights,
        "picture.feature": feature, "picture.pixel": pixels,
        "picture.embed": d.encode(p, view), "picture.along_slope": derivative(along),
        "picture.pixel_slope": np.array([derivative(np.eye(1, 72 * 80, i)) for i in pixels]),
        "picture.decoded": d.decode(p, feature), "picture.loss": loss(),
        "picture.feature_slope": slope(loss, feature)}


def all_cases():
    cases = {}
    for case in (symlog_case, two_hot_case, kl_case, norm_case, observe_case, picture_case):
        cases |= case()
    return cases
