"""Recipes of docstrings that no case of `test_peer_cases.py` covers."""

import numpy as np
import pytest
from strategies.text import text_arrays

from seqflow import ops

A = np.array
N = A([3, 0, 2])


def strings(values, lengths):
    return ops.as_text(values, lengths).tolist()


def test_rows_are_standardised_and_constant_ones_become_0():
    x, i = A([5.0, 1, 3, 2, 2]), ops.lengths_to_segment_ids(N)
    found = (x - ops.lengths_mean(x, N)[i]) / np.maximum(ops.lengths_std(x, N), 1e-6)[i]
    assert found == pytest.approx([1.5**0.5, -(1.5**0.5), 0, 0, 0])


def test_bits_of_negative_numbers_are_reduced():
    bits, powers = (A([6, -3, 5])[:, None] >> np.arange(64)) & 1, 1 << np.arange(64)
    found = [
        ops.lengths_max(bits, [3]) @ powers,
        ops.lengths_min(bits, [3]) @ powers,
        ops.lengths_sum(bits, [3]) % 2 @ powers,
    ]
    assert np.ravel(found).tolist() == [6 | -3 | 5, 6 & -3 & 5, 6 ^ -3 ^ 5]


def test_running_maximum_goes_by_padding():
    x = A([1.0, 3, 2, 5, -4])
    largest = np.maximum.accumulate(ops.pad(x, N, fill=-np.inf).padded, axis=1)
    assert ops.unpad(largest, N).tolist() == [1, 3, 3, 5, 5]


def test_missing_numbers_are_replaced_by_the_next_one():
    x = A([np.nan, 3, np.nan, np.nan, -4])
    runs = ops.starts_to_lengths(np.append(True, ~np.isnan(x))[:-1], N).lengths
    np.testing.assert_array_equal(ops.expand(ops.lengths_last(x, runs), runs), [3, 3, np.nan, -4, -4])


def test_the_first_place_of_a_text():
    texts = text_arrays(["hello world", "none", "wor"])
    _, n, counts = ops.split_text(**texts, delimiter="wor", max_splits=1)
    assert np.where(counts > 1, ops.lengths_first(n, counts), -1).tolist() == [6, -1, 0]


def test_characters_and_lines_by_regular_expressions():
    part = ops.replace_text(
        **text_arrays(["añbcdef", "x", "ab\ncd"]), regex="(?s)^.{0,2}(.{0,3}).*$", by=r"\1"
    )
    assert strings(*part) == ["bcd", "", "\ncd"]
    kept = ops.replace_text(**text_arrays(["A mark.\nno mark\nReally?", "no"]), regex=r"(?m)^.*[^.!?\n]$\n?")
    assert strings(*kept) == ["A mark.\nReally?", ""]


def test_rows_that_are_not_valid_are_skipped_by_every_reducer():
    x, valid = A([5.0, 1, 3, 2, 2]), A([False, True, True, False, False])
    assert ops.lengths_max(*ops.mask_sequences(x, valid, N), empty=-1).tolist() == [3, -1, -1]
    assert ops.lengths_mean(*ops.mask_sequences(x, valid, N)).tolist() == [2, 0, 0]
