"""Hash tables: native kernels give what NumPy gives, for sound tables and for damaged ones."""

import numpy as np
import numpy_kernels as reference
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqflow import kernels

int64s = st.integers(-(2**63), 2**63 - 1)
words = st.lists(st.integers(-3, 3) | int64s, max_size=60).map(lambda keys: np.array(keys, np.int64))
texts = st.lists(st.binary(max_size=20) | st.sampled_from([b"", b"\0", b"\0" * 8, b"12345678"]), max_size=12)


def bytes_of(pieces):
    return np.frombuffer(b"".join(pieces), np.uint8), np.array([len(piece) for piece in pieces], np.int64)


@given(keys=words, asked=words)
def test_words_find_their_ids(keys, asked):
    slots = kernels.hash_slots(keys)
    np.testing.assert_array_equal(slots, reference.hash_slots(keys))
    first = {word: keys.tolist().index(word) + 1 for word in keys.tolist()}
    for find in (kernels.find_words, reference.find_words):
        assert find(slots, keys).tolist() == [first[word] for word in keys.tolist()]
        assert find(slots, asked).tolist() == [first.get(word, 0) for word in asked.tolist()]


@given(known=texts, asked=texts)
def test_strings_find_their_ids(known, asked):
    text, sizes = bytes_of(known)
    hashes = kernels.words_of_strings(text, sizes)
    np.testing.assert_array_equal(hashes, reference.words_of_strings(text, sizes))
    slots, offsets = kernels.hash_slots(hashes), kernels.lengths_to_offsets(sizes)
    for find in (kernels.find_strings, reference.find_strings):
        found = find(slots, offsets, text, *bytes_of([*known, *asked])).tolist()
        assert found == [known.index(piece) + 1 if piece in known else 0 for piece in [*known, *asked]]


def test_strings_of_one_hash_are_told_apart():
    text, sizes = bytes_of([b"a", b"b"])
    hashes = kernels.words_of_strings(text, sizes)
    slots = kernels.hash_slots(np.repeat(hashes[1], 2))
    for find in (kernels.find_strings, reference.find_strings):
        assert find(slots, np.array([0, 1, 2]), text, text, sizes).tolist() == [0, 2]


@settings(max_examples=200)
@given(data=st.data(), size=st.sampled_from([1, 2, 8]))
def test_damaged_tables_are_never_read_out_of_bounds(data, size):
    """Whatever the numbers are: without a free slot the search ends, and an id without a slice matches nothing."""
    some = st.sampled_from([-1, 0, 1, 2, 3, 9, 2**62, -(2**63)])
    slots = np.array(data.draw(st.lists(some, min_size=2 * size, max_size=2 * size))).reshape(size, 2)
    offsets = np.array(data.draw(st.lists(some, max_size=4)), np.int64)
    text, lengths = bytes_of([b"a", b"", b"bc"])
    if data.draw(st.booleans()):
        slots[:, 0] = kernels.words_of_strings(text, lengths)[data.draw(st.integers(0, 2))]
    found = kernels.find_strings(slots, offsets, text, text, lengths)
    np.testing.assert_array_equal(found, reference.find_strings(slots, offsets, text, text, lengths))
    asked = np.array([0, 1, 9])
    np.testing.assert_array_equal(kernels.find_words(slots, asked), reference.find_words(slots, asked))


@pytest.mark.parametrize("shape", [(0, 2), (3, 2), (4,), (4, 3)])
def test_slots_of_another_shape_are_refused(shape):
    with pytest.raises(ValueError, match="S a power of two"):
        kernels.find_words(np.zeros(shape, np.int64), np.array([1]))


@pytest.mark.parametrize("count", [1, 5, 70_000])
def test_many_words_and_threads_change_nothing(count):
    keys = np.random.default_rng(3).permutation(count) * 977
    slots = kernels.hash_slots(keys.astype(np.int64))
    with kernels.single_thread():
        alone = kernels.find_words(slots, keys)
    np.testing.assert_array_equal(alone, np.arange(1, count + 1))
    np.testing.assert_array_equal(kernels.find_words(slots, keys.reshape(1, -1)), [alone])
