"""`seqflow.auto`: every op for Sequences. The first test is the table of the rule, row by row."""

import numpy as np
import pytest

from seqflow import LodError, Sequence, auto

RNG = np.random.default_rng(0)
DOCS, SENTENCES = np.array([2, 0, 1]), np.array([2, 0, 3])
WORDS = Sequence(RNG.random((5, 4), np.float32), [DOCS, SENTENCES])
"""Docs > sentences > words."""
IDS = Sequence(np.array([0, 2, 1, 1, 0]), WORDS.lod)
ONE = Sequence(np.array([1, 2, 3, 4, 5]), [3, 0, 2])
PER_SENTENCE = Sequence(RNG.random((3, 4), np.float32), DOCS)
TABLE = RNG.random((3, 2), np.float32)
SMALL = RNG.random((4, 4), np.float32)


def lod_of(result):
    """The levels of lengths of a Sequence, None for an array."""
    if isinstance(result, np.ndarray):
        return None
    assert isinstance(result, Sequence)
    return [level.tolist() for level in result.lod]


D, S = DOCS.tolist(), SENTENCES.tolist()
RULE = [
    ("lstm", lambda: auto.lstm(WORDS, np.zeros((8, 4), "f4"), np.zeros((8, 2), "f4")).h, [D, S]),
    ("lstm, last", lambda: auto.lstm(WORDS, np.zeros((8, 4), "f4"), np.zeros((8, 2), "f4")).h_last, [D]),
    ("fc", lambda: auto.fc(WORDS, SMALL), [D, S]),
    ("arithmetic", lambda: WORDS * 2, [D, S]),
    ("lengths_sum", lambda: auto.lengths_sum(WORDS), [D]),
    ("lengths_sum of one level", lambda: auto.lengths_sum(ONE), None),
    ("lengths_topk", lambda: auto.lengths_topk(IDS, k=2).values, [D]),
    ("lengths_topk of one level", lambda: auto.lengths_topk(ONE, k=2).values, None),
    ("pad", lambda: auto.pad(WORDS).padded, [D]),
    ("pad, mask", lambda: auto.pad(WORDS).mask, [D]),
    ("pad of one level", lambda: auto.pad(ONE).padded, None),
    ("unpad an array", lambda: auto.unpad(np.zeros((3, 3)), SENTENCES), [S]),
    ("unpad a Sequence", lambda: auto.unpad(auto.pad(WORDS).padded, SENTENCES), [D, S]),
    ("truncate", lambda: auto.truncate(WORDS, max_length=2).rows, [D, [2, 0, 2]]),
    ("split_sequences", lambda: auto.split_sequences(ONE, chunk=2).rows, [[2, 0, 1], [2, 1, 2]]),
    ("expand an array", lambda: auto.expand(np.arange(3), WORDS), [D, S]),
    ("expand a Sequence", lambda: auto.expand(PER_SENTENCE, WORDS), [D, S]),
    ("gather", lambda: auto.gather(TABLE, IDS), [D, S]),
    ("gather_sequences", lambda: auto.gather_sequences(WORDS, np.array([2, 0])).rows, [[3, 2]]),
    ("weighted sum", lambda: auto.sparse_lengths_weighted_sum(TABLE, np.ones(5, "f4"), IDS), [D]),
    ("weighted sum, Sequence", lambda: auto.sparse_lengths_weighted_sum(TABLE, IDS * 0.5, IDS), [D]),
    ("concat_sequences", lambda: auto.concat_sequences([ONE, ONE]).rows, [[6, 0, 4]]),
    ("pack_rows", lambda: auto.pack_rows(ONE, capacity=4).packed, None),
    ("sort_rows", lambda: auto.sort_rows(ONE), None),
    ("unique", lambda: auto.unique(ONE).unique, None),
    ("concat along another axis", lambda: auto.concat([WORDS, WORDS * 2], axis=1), [D, S]),
    ("cast", lambda: auto.cast(WORDS, dtype="float64"), [D, S]),
    ("reshape, size given", lambda: auto.reshape(WORDS, [5, 2, -1]), [D, S]),
    ("reshape, size left open", lambda: auto.reshape(WORDS, [-1, 2, 2]), [D, S]),
    ("reshape, other rows", lambda: auto.reshape(WORDS, [10, 2]), None),
]  # fmt: skip


@pytest.mark.parametrize(("call", "expected"), [row[1:] for row in RULE], ids=[row[0] for row in RULE])
def test_the_rule_row_by_row(call, expected):
    for _ in range(2):  # planned the first time, remembered the second
        assert lod_of(call()) == expected


def test_an_unequal_sequence_in_the_place_of_weights_is_refused():
    with pytest.raises(
        LodError, match=r"weights and indices have different lengths: lod\[0\]\[0\] is 1 and 2"
    ):
        auto.sparse_lengths_weighted_sum(TABLE, Sequence(np.ones(5, "f4"), [[1, 1, 1], S]), IDS)
