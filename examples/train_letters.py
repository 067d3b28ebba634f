"""Learns to spell, in NumPy alone: RNN → FC → RNN over the words of real documentation, and its gradient as a net.

Each word is a sequence of letters, and the model guesses each letter from those before it. The loss is the surprise
per letter: 3.3, the logarithm of 27, for somebody who knows nothing.
"""

import re
import sys
from pathlib import Path

import numpy as np

import seqflow as sf

MODEL = sf.Net("""
x = gather(embedding, letters)
h, _, _ = lstm(x, n, w_ih1, w_hh1, bias1)
y = tanh(fc(h, w2, bias2))
z, _ = rnn(y, n, w_ih3, w_hh3)
chances = softmax(fc(z, w4, bias4))
loss = -reduce_mean(log(reduce_sum(chances * one_hot(following, width=27), axes=-1)))
""")
SHAPES = {
    "embedding": (27, 12),
    "w_ih1": (4 * 32, 12), "w_hh1": (4 * 32, 32), "bias1": (4 * 32,),
    "w2": (24, 32), "bias2": (24,),
    "w_ih3": (32, 24), "w_hh3": (32, 32),
    "w4": (27, 32), "bias4": (27,),
}  # fmt: skip


def words_of(path: Path) -> list[np.ndarray]:
    """The words of a text as letters from 1 to 26; 0 stands before and behind each."""
    found = re.findall("[a-z]{2,}", path.read_text().lower())
    return [np.array([0, *(ord(letter) - 96 for letter in word), 0]) for word in found]


def batch_of(words: list[np.ndarray]) -> dict[str, np.ndarray]:
    """Words one after another, each letter with the one that follows."""
    return {
        "letters": np.concatenate([word[:-1] for word in words]),
        "following": np.concatenate([word[1:] for word in words]),
        "n": np.array([len(word) - 1 for word in words]),
    }


def main() -> None:
    default = Path(__file__).parents[1] / "docs" / "sources.md"
    words = words_of(Path(sys.argv[1]) if len(sys.argv) > 1 else default)
    rng = np.random.default_rng(0)
    weights = {name: rng.normal(size=shape, scale=shape[-1] ** -0.5) for name, shape in SHAPES.items()}
    moments = {name: (np.zeros(shape), np.zeros(shape)) for name, shape in SHAPES.items()}
    gradient = MODEL.gradient("loss", list(weights))
    for step in range(1, 151):
        chosen = rng.choice(len(words), 128)
        found = sf.run(gradient, {**batch_of([words[i] for i in chosen]), **weights})
        for name, (mean, square) in moments.items():  # Adam (Kingma and Ba, 2014)
            slope = found[f"grad.{name}"]
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope**2 - square)
            root = np.sqrt(square / (1 - 0.999**step)) + 1e-8
            weights[name] -= 0.01 * mean / (1 - 0.9**step) / root
        if step % 25 == 0 or step == 1:
            print(f"step {step:3}: loss {found['loss']:.3f}")


if __name__ == "__main__":
    main()
