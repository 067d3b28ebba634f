"""Learns to spell with a causal encoder block: rotary attention, FC and layer norms, in NumPy alone.

The words lie one after another in one row, and their lengths are all the mask there is: no letter sees another word.
The model guesses each letter from those before it. The loss is the surprise per letter: 3.3, the logarithm of 27, for
somebody who knows nothing. `train_letters.py` learns the same by a recurrent chain. With `--torch`, the same net is a
module that torch trains.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np

import seqflow as sf

MODEL = sf.Net("""
x = gather(embedding, letters)
places = lengths_to_positions(n)
q = reshape(fc(x, w_q), shape=[-1, 4, 8])
k = reshape(fc(x, w_k), shape=[-1, 2, 8])
v = reshape(fc(x, w_v), shape=[-1, 2, 8])
same_rows(q, places)
same_rows(k, places)
same_rows(v, places)
seen = attention_within(rotary(q, places), n, rotary(k, places), v, after=0)
mixed = reshape(seen.out, shape=[-1, 32])
same_rows(mixed, places)
y = layer_norm(x + fc(mixed, w_o), scale1, shift1)
z = layer_norm(y + fc(tanh(fc(y, w_up, b_up)), w_down), scale2, shift2)
chances = softmax(fc(z, w_out, b_out))
loss = -reduce_mean(log(reduce_sum(chances * one_hot(following, width=27), axes=-1)))
""")
SHAPES = {
    "embedding": (27, 32), "w_q": (32, 32), "w_k": (16, 32), "w_v": (16, 32), "w_o": (32, 32), "scale1": (32,),
    "shift1": (32,), "w_up": (64, 32), "b_up": (64,), "w_down": (32, 64), "scale2": (32,), "shift2": (32,),
    "w_out": (27, 32), "b_out": (27,),
}  # fmt: skip


def words_of(path: Path) -> list[np.ndarray]:
    """The words of a text as letters from 1 to 26; 0 stands before and after each."""
    found = re.findall("[a-z]{2,}", path.read_text().lower())
    return [np.array([0, *(ord(letter) - 96 for letter in word), 0]) for word in found]


def batch_of(words: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Words one after another, each letter with the one that follows."""
    return {
        "letters": np.concatenate([word[:-1] for word in words]),
        "following": np.concatenate([word[1:] for word in words]),
        "n": np.array([len(word) - 1 for word in words]),
    }


def in_numpy(weights: dict[str, np.ndarray]) -> Callable[[int, dict[str, np.ndarray]], float]:
    """A step of Adam (Kingma and Ba, 2014) with the gradient, which is a net."""
    gradient = MODEL.gradient("loss", list(weights))
    moments = {name: (np.zeros_like(one), np.zeros_like(one)) for name, one in weights.items()}

    def train(step: int, batch: dict[str, np.ndarray]) -> float:
        found = sf.run(gradient, {**batch, **weights})
        for name, (mean, square) in moments.items():
            slope = found[f"grad.{name}"]
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope**2 - square)
            weights[name] -= 0.01 * mean / (1 - 0.9**step) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        return float(found["loss"])

    return train


def in_torch(weights: dict[str, np.ndarray]) -> Callable[[int, dict[str, np.ndarray]], float]:
    """The same step by torch's Adam."""
    import torch

    from seqflow.torch import module

    model = module(MODEL, parameters=weights)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

    def train(step: int, batch: dict[str, np.ndarray]) -> float:
        loss = model({name: torch.from_numpy(one) for name, one in batch.items()})["loss"]
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return train


def main() -> None:
    arguments = [one for one in sys.argv[1:] if one != "--torch"]
    words = words_of(Path(arguments[0]) if arguments else Path(__file__).parents[1] / "docs" / "sources.md")
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=shape, scale=shape[-1] ** -0.5) for name, shape in SHAPES.items()}
    weights |= {name: np.ones(32) for name in ("scale1", "scale2")}
    train = in_torch(weights) if "--torch" in sys.argv else in_numpy(weights)
    for step in range(1, 151):
        loss = train(step, batch_of([words[i] for i in rng.choice(len(words), 128)]))
        if step % 25 == 0 or step == 1:
            print(f"step {step:3}: loss {loss:.3f}")


if __name__ == "__main__":
    main()
