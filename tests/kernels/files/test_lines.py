"""Where lines start and stop, and how often letters are in them."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from seqflow import kernels
from seqflow.kernels.dispatch import KERNELS, extension


def split(data, blanks=b" \r", letters=b"[{"):
    found = kernels.split_lines(*(np.frombuffer(part, np.uint8) for part in (data, blanks, letters)))
    assert [array.dtype for array in found] == [np.int64] * 3
    return [array.tolist() for array in found]


def test_lines_are_without_newlines_and_blanks_around_them(any_kernels):
    assert split(b"  a [[ {\r\n\n \r \n[\nrest") == [[2, 15], [8, 16], [[2, 1], [1, 0]]]


def test_no_lines(any_kernels):
    for text in (b"", b"a", b"\n", b" \r\n\n "):
        assert split(text) == [[], [], [[], []]]


@pytest.mark.parametrize("size", [1, 15, 16, 17, 255 * 16, 255 * 16 + 1, 2 * 255 * 16 + 15])
def test_all_letters_are_counted_in_lines_of_any_size(any_kernels, size):
    text = b"\xff" * size + b"\n" + b"\xff" * size + b"\n"
    assert split(text, letters=b"\xff") == [[0, size + 1], [size, 2 * size + 1], [[size, size]]]


def test_other_dtypes_are_refused(any_kernels):
    with pytest.raises(TypeError, match="letters is int64 with 1 dimensions, expected one of uint8"):
        kernels.split_lines(np.zeros(1, np.uint8), np.zeros(1, np.uint8), np.zeros(1, np.int64))


TEXTS = st.lists(st.binary(max_size=40) | st.text(" \r\n[{\x00", max_size=40).map(str.encode), max_size=8)


@pytest.mark.skipif(extension() is None, reason="native kernels were not built")
@given(TEXTS, st.sampled_from([b"", b"\r", b" \t\r", b"\n ", b"\x00"]), st.binary(max_size=3))
@example([b"a"], b"", b"\x00")
def test_native_and_numpy_agree_on_any_bytes(parts, blanks, letters):
    text = b"\n".join(parts) + b"\n"
    found = split(text, blanks, letters)
    with kernels.use("reference"):
        assert split(text, blanks, letters) == found


@pytest.mark.skipif(extension() is None, reason="native kernels were not built")
def test_the_loop_is_native():
    one = np.frombuffer(b"a\n", np.uint8)
    assert KERNELS["split_lines"].native(one, one[:1], one[:1]) is not NotImplemented
