"""RNN, fully connected, RNN over the lines of source files: the lengths ride along.

python examples/recurrent_chain.py
"""

import numpy as np

import seqflow as sf
from seqflow import auto

rng = np.random.default_rng(0)
embedding, w_fc = rng.normal(size=(256, 16)), rng.normal(size=(24, 32)) / 6
w_lstm = rng.normal(size=(4 * 32, 16)) / 4, rng.normal(size=(4 * 32, 32)) / 6
w_gru = rng.normal(size=(3 * 8, 24)) / 5, rng.normal(size=(3 * 8, 8)) / 3

files = sf.open("{stdlib}/json/*.py", format=sf.Text(encoding="utf-8"))["text"]  # files of bytes
lines = auto.split_words(files, pattern=r"\s*\n\s*").values  # files of lines of bytes

h = auto.lstm(auto.gather(embedding, lines), *w_lstm).h  # along each line
y = auto.fc(h, w_fc)  # knows nothing of lengths
z = auto.gru(y, *w_gru).h  # along each line again

per_line = auto.lengths_mean(z)  # files of lines
per_file = auto.lengths_mean(per_line)  # files
away = auto.lengths_sum((per_line - auto.expand(per_file, per_line)) ** 2)  # back to lines, and up again
for i, (line_count, distance) in enumerate(zip(per_line.lengths, away.sum(axis=1), strict=True)):
    print(
        f"file {i}: {line_count:4} lines, mean squared distance from their mean {distance / line_count:.4f}"
    )
