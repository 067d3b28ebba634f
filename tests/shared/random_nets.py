"""Nets of ops within sequences, drawn at random, and tensors for them."""

import numpy as np

from seqflow import Net

KEEP = (
    "tanh({x}) * 0.5 + {x}",
    "softmax_within({x}, n)",
    "{x} - expand(lengths_mean({x}, n), n)",
    "cumsum_within({x}, n)",
    "reverse_sequences({x}, n)",
    "shift({x}, n, by=1)",
    "normalize_within({x} + 3.0, n)",
    "expand(lengths_max({x}, n), n) * {x}",
    "matmul({x}, w)",
    "layer_norm({x})",
    "sort_within({x}, n)",
    "where({x} > 0, {x}, 0.1 * {x})",
)
REDUCE = (
    "lengths_sum({x}, n)",
    "lengths_mean({x}, n)",
    "lengths_max({x}, n)",
    "lengths_logsumexp({x}, n)",
    "lengths_sqrt_sum({x}, n)",
    "lengths_var({x}, n)",
    "lengths_last({x}, n)",
    "lengths_first({x}, n)",
    "lengths_prod({x}, n)",
)


def random_net(seed):
    """A net of ops within sequences, which sometimes change the lengths, and a reduction."""
    rng = np.random.default_rng(seed)
    lines = []
    x = "x"
    for i in range(int(rng.integers(1, 5))):
        name = f"h{i}"
        lines.append(f"{name} = {str(rng.choice(KEEP)).format(x=x)}")
        x = name
    others = [
        name for name in ("x", "h0") if rng.random() < 0.4 and f"{name} =" in "\n".join(["x =", *lines])
    ]
    total = " + ".join([x, *others])
    lines.append(f"both = {total} * 1.0" if not others else f"both = {total}")
    reduced = str(rng.choice(REDUCE))
    if rng.random() < 0.4:
        lines.append("t = truncate(both, n, max_length=2)")
        lines.append(f"pooled = {reduced.format(x='t.values').replace('n)', 't.lengths)')}")
    elif rng.random() < 0.4:
        lines.append("p, mask = pad(both, n)")
        lines.append("u = unpad(p * 2.0, n)")
        lines.append(f"pooled = {reduced.format(x='u')}")
    else:
        lines.append(f"pooled = {reduced.format(x='both')}")
    lines.append("loss = reduce_mean(square(pooled - target))")
    return Net("\n".join(lines))


def tensors_of(seed):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 4, 4)
    return {
        "x": rng.normal(size=(int(lengths.sum()), 3)),
        "n": lengths,
        "w": rng.normal(size=(3, 3)),
        "target": rng.normal(size=(4, 3)),
    }
