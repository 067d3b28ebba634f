"""Each call on the page for those who come from elsewhere computes what the same does in NumPy, row by row."""

import re
from itertools import chain
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow import ops

PAGE = (Path(__file__).parents[2] / "docs" / "coming-from.md").read_text(encoding="utf-8")
ROWS = [tuple(re.findall(r"`(.*?)`", line)) for line in PAGE.splitlines() if line.startswith("| `")]
OURS = sorted({row[-1] for row in ROWS})

LISTS = [[5.0, 3.0, 5.0, 9.0], [], [4.0, 1.0]]
X = np.array([5.0, 3.0, 5.0, 9.0, 4.0, 1.0])
N = np.array([4, 0, 2])
IDS = np.array([1, 0, 3, 3, 2, 0])
TABLE = np.arange(8.0).reshape(4, 2)
PER_ROW = np.array([10.0, 20.0, 30.0])
SEGMENTS = np.array([2, 0, 0, 2, 0, 2])
BAGS = [IDS[:4], IDS[4:4], IDS[4:]]


def padded(rows, width=4):
    return np.array([[*row, *[0.0] * (width - len(row))] for row in rows])


def softmax(row):
    found = np.exp(row)
    return found / found.sum()


def attended(causal):
    """Attention of one head in which queries, keys and values are the pairs of an element and its negative."""
    found = []
    for row in map(np.array, filter(None, LISTS)):
        f = np.stack([row, -row], axis=1)
        scores = f @ f.T / 2**0.5
        seen = np.tril(np.ones_like(scores)) if causal else np.ones_like(scores)
        weights = np.exp(scores) * seen
        found.append(weights @ f / weights.sum(axis=1, keepdims=True))
    return np.concatenate(found)[:, None]


EXPECTED = {
    "ops.attention_within(heads, n, heads, heads).out": attended(causal=False),
    "ops.attention_within(heads, n, heads, heads, after=0).out": attended(causal=True),
    'ops.attention_within(heads, n, heads, heads, after=0, align="end").out': attended(causal=True),
    "n": N,
    "x": X,
    "ops.lengths_sum(x, n)": [sum(row) for row in LISTS],
    "ops.lengths_sum(f, n)": [[sum(row), -sum(row)] for row in LISTS],
    "ops.lengths_mean(x, n)": [sum(row) / max(1, len(row)) for row in LISTS],
    "ops.lengths_max(x, n, empty=0)": [max(row, default=0) for row in LISTS],
    "ops.lengths_max(x, n, empty=-np.inf)": [max(row, default=-np.inf) for row in LISTS],
    "ops.lengths_first(x, n, empty=0)": [5, 0, 4],
    "ops.lengths_last(x, n, empty=0)": [9, 0, 1],
    "ops.lengths_argmax(x, n)": [int(np.argmax(row)) if row else -1 for row in LISTS],
    "ops.lengths_any(x > 3, n)": [any(v > 3 for v in row) for row in LISTS],
    "ops.sparse_lengths_sum(table, ids, n)": [TABLE[bag].sum(axis=0) for bag in BAGS],
    "ops.sparse_lengths_mean(table, ids, n)": [TABLE[bag].sum(axis=0) / max(1, len(bag)) for bag in BAGS],
    "ops.lengths_to_segment_ids(n)": np.repeat(np.arange(3), N),
    "ops.lengths_to_offsets(n)": np.concatenate([[0], np.cumsum(N)]),
    "ops.lengths_to_positions(n)": [0, 1, 2, 3, 0, 1],
    "ops.lengths_to_mask(n)": np.arange(4) < N[:, None],
    "ops.pad(x, n).padded": padded(LISTS),
    "ops.unpad(ops.pad(x, n).padded, n)": X,
    "ops.expand(per_row, n)": np.repeat(PER_ROW, N),
    "ops.gather(table, ids)": TABLE[IDS],
    "ops.unique(ids).unique": np.unique(IDS),
    "ops.softmax_within(x, n)": np.concatenate([softmax(np.array(row)) for row in LISTS if row]),
    "ops.reverse_sequences(x, n)": [*chain.from_iterable(row[::-1] for row in LISTS)],
    "ops.sort_within(x, n)": [*chain.from_iterable(sorted(row) for row in LISTS)],
    "ops.concat_sequences([x, x], [n, n]).values": [*chain.from_iterable(row + row for row in LISTS)],
    "ops.topk_within(x, x, n, k=2).values": [*chain.from_iterable(sorted(row)[::-1][:2] for row in LISTS)],
    'ops.unique_within(x, n, order="first").values': [
        *chain.from_iterable(dict.fromkeys(row) for row in LISTS)
    ],
    "ops.boolean_mask(x, x > 3).rows": X[X > 3],
    "ops.truncate(x, n, max_length=2).values": [*chain.from_iterable(row[:2] for row in LISTS)],
    "ops.gather_sequences(x, [2, 0], n).values": LISTS[2] + LISTS[0],
    "ops.filter_sequences(x, n > 2, n).values": LISTS[0],
    "ops.unsorted_segment_sum(x, segments, num_segments=3)": np.bincount(SEGMENTS, X, 3),
    "ops.unsorted_segment_mean(x, segments, num_segments=3)": np.bincount(SEGMENTS, X, 3)
    / np.maximum(1, np.bincount(SEGMENTS, minlength=3)),
    "ops.segment_counts(segments, per_row)": np.bincount(SEGMENTS, minlength=3),
    'ops.pack_rows(x, n, capacity=3, strategy="concat").packed': X.reshape(2, 3),
    "sf.Sequence(x, [n])": X,
}


def computed(ours):
    source = pa.table({"x": LISTS})
    names = {
        "x": X, "n": N, "ids": IDS, "table": TABLE, "per_row": PER_ROW, "segments": SEGMENTS,
        "f": np.stack([X, -X], axis=1), "heads": np.stack([X, -X], axis=1)[:, None], "source": source, "ops": ops, "sf": sf, "np": np,
    }  # fmt: skip
    return eval(ours, names)


def test_the_page_has_tables():
    assert len(ROWS) > 60
    assert all(len(row) >= 2 for row in ROWS)


@pytest.mark.parametrize("ours", [one for one in OURS if not one.startswith("sf.Loader")])
def test_ours_computes_the_same_as_numpy(ours):
    found = computed(ours)
    np.testing.assert_allclose(found.values if isinstance(found, sf.Sequence) else found, EXPECTED[ours])


def test_batches_have_rows_of_similar_lengths():
    (ours,) = (one for one in OURS if one.startswith("sf.Loader"))
    assert sorted(sorted(batch["x.lengths"].tolist()) for batch in computed(ours)) == [[0, 2], [4]]
