"""Encoding keys by the table of a vocabulary, sound or damaged."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow import auto, ops
from seqflow.errors import OpIndexError, OpTypeError

INTEGERS, STRINGS = sf.Vocabulary([30, 700]).freeze().table, sf.Vocabulary(["re", "", "os"]).freeze().table
TEXT, LENGTHS = np.frombuffer(b"osrenumpy", np.uint8), np.array([2, 2, 0, 5])


def test_unknown_keys_have_id_0():
    assert ops.encode(np.array([[700, 5], [30, -1]]), INTEGERS).tolist() == [[2, 0], [1, 0]]
    assert ops.encode_strings(TEXT, LENGTHS, STRINGS).tolist() == [3, 1, 2, 0]


def test_an_empty_vocabulary_knows_neither_integers_nor_strings():
    empty = sf.Vocabulary().freeze()
    assert ops.encode([0, 7], empty).tolist() == [0, 0]
    assert ops.encode_strings(TEXT, LENGTHS, empty).tolist() == [0, 0, 0, 0]


def test_a_table_may_lie_anywhere_in_memory():
    room = np.zeros(len(STRINGS) + 1, np.uint8)
    room[1:] = STRINGS
    assert ops.encode_strings(TEXT, LENGTHS, room[1:]).tolist() == [3, 1, 2, 0]
    assert ops.encode_strings(TEXT, LENGTHS, np.repeat(STRINGS, 2)[::2]).tolist() == [3, 1, 2, 0]


def test_lengths_ride_along():
    names = sf.Sequence(TEXT, [[3, 1], LENGTHS])
    encoded = auto.encode_strings(names, STRINGS)
    assert encoded.to_lists() == [[3, 1, 2], [0]]
    assert auto.encode(encoded, sf.Vocabulary([3]).freeze()).to_lists() == [[1, 0, 0], [0]]


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        (lambda: ops.encode([[30, 5]], INTEGERS, on_unknown="raise"), OpIndexError, r"ids\[1\] = 5 is not in the voc"),
        (lambda: ops.encode_strings(TEXT, LENGTHS, STRINGS, on_unknown="raise"), OpIndexError, r"strings\[3\] = b'numpy'"),
        (lambda: ops.encode([1], STRINGS), OpTypeError, "has strings as keys, expected integers\n  `encode_strings`"),
        (lambda: ops.encode_strings(TEXT, LENGTHS, INTEGERS), OpTypeError, "has integers as keys, expected strings"),
        (lambda: ops.encode([1], np.zeros(5, np.uint8)), sf.OpError, "vocabulary has 5 bytes, fewer than its header"),
        (lambda: ops.encode([1], np.zeros(500, np.uint8)), sf.OpError, "vocabulary has other bytes at its start"),
        (lambda: ops.encode([1], INTEGERS[:-1]), sf.OpError, r"has 127 bytes, but its header says 128, expected the tab"),
        (lambda: ops.encode(np.array([2**63], np.uint64), INTEGERS, on_unknown="raise"), OpIndexError, f"= {2**63} is not in"),
    ],
)  # fmt: skip
def test_what_is_refused_says_what_was_found(run, error, message):
    with pytest.raises(error, match=message):
        run()


@given(
    place=st.integers(0, len(STRINGS) - 1), byte=st.integers(0, 255), word=st.integers(-(2**63), 2**63 - 1)
)
def test_a_damaged_table_gives_ids_or_our_error(place, byte, word):
    one, eight = STRINGS.copy(), STRINGS.copy()
    one[place] = byte
    eight.view(np.int64)[place // 8] = word
    for damaged in (one, eight):
        try:
            found, message = ops.encode_strings(TEXT, LENGTHS, damaged), None
        except sf.OpError as error:
            found, message = LENGTHS, str(error)
        assert found.shape == LENGTHS.shape
        assert message is None or message.startswith("encode_strings: vocabulary has ")
