"""Text as sequences of bytes."""

import numpy as np
import pytest

from seqflow import ops

BYTES = np.frombuffer("héj".encode(), np.uint8)


def test_bytes_keep_their_values_unless_an_offset_makes_room_for_specials():
    tokens, sizes = ops.bytes_to_tokens(BYTES, [3, 1])
    assert tokens.dtype == np.int32
    assert tokens.tolist() == [104, 195, 169, 106]
    assert sizes.tolist() == [3, 1]
    assert ops.bytes_to_tokens(BYTES, [4], offset=3).tokens.tolist() == [107, 198, 172, 109]


def test_specials_go_around_every_sequence_empty_ones_too():
    tokens, sizes = ops.bytes_to_tokens(BYTES, [3, 0, 1], begin=300, end=256)
    assert tokens.tolist() == [300, 104, 195, 169, 256, 300, 256, 300, 106, 256]
    assert sizes.tolist() == [5, 2, 3]
    assert ops.bytes_to_tokens(BYTES, [4], begin=300).tokens.tolist()[0] == 300


def test_only_bytes_are_taken():
    with pytest.raises(TypeError, match="bytes_to_tokens: data is int64, expected uint8"):
        ops.bytes_to_tokens([1, 2], [2])
