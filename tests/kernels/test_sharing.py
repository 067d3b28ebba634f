"""Kernels of shared sequences: every set of kernels gives what plain Python gives."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from per_sequence import assert_same, cut, lengths_arrays, ragged

from seqflow import kernels
from seqflow.kernels import KernelError

I64 = np.int64


@given(call=ragged())
def test_equal_sequences_have_one_number(any_kernels, call):
    data, lengths = call
    texts = [(len(one), one.tobytes()) for one in cut(data, lengths)]
    distinct = list(dict.fromkeys(texts))
    first, row, differing = kernels.distinct_sequences(data, lengths, None)
    assert_same(first, np.array([texts.index(one) for one in distinct], I64))
    assert_same(row, np.array([distinct.index(one) for one in texts], I64))
    assert_same(differing, np.zeros(0, I64))


def test_bytes_at_any_place_make_a_difference(any_kernels):
    """Sequences of 1 to 70 bytes, each with another one that differs in one byte."""
    for size in range(1, 71):
        alike = np.zeros((size + 2, size), np.uint8)
        alike[1:-1] += np.eye(size, dtype=np.uint8)
        first, row, _ = kernels.distinct_sequences(alike.ravel(), np.full(size + 2, size), None)
        assert row.tolist() == [*range(size + 1), 0]
        assert first.tolist() == [*range(size + 1)]


@given(call=ragged(dtypes=("int64", "float64")), data=st.data())
def test_sequences_of_one_key_that_differ_are_found(any_kernels, call, data):
    values, lengths = call
    keys = np.array(
        data.draw(st.lists(st.integers(-1, 1), min_size=len(lengths), max_size=len(lengths))), I64
    )
    texts, names = [one.tobytes() for one in cut(values, lengths)], keys.tolist()
    first, row, differing = kernels.distinct_sequences(values, lengths, keys)
    distinct = list(dict.fromkeys(names))
    assert_same(first, np.array([names.index(key) for key in distinct], I64))
    assert_same(row, np.array([distinct.index(key) for key in names], I64))
    sizes = lengths.tolist()
    differ = [i for i, j in enumerate(first[row].tolist()) if (sizes[i], texts[i]) != (sizes[j], texts[j])]
    assert_same(differing, np.array(differ, I64))


@given(
    lengths=lengths_arrays(longest=6, count=st.integers(0, 9)),
    data=st.data(),
    min_shared=st.integers(1, 3),
    keyed=st.booleans(),
)
def test_a_tree_has_each_shared_element_once(any_kernels, lengths, data, min_shared, keyed):
    size, count = int(lengths.sum()), len(lengths)
    dtype = data.draw(st.sampled_from([np.int32, np.int64]))
    values = np.array(data.draw(st.lists(st.integers(-1, 1), min_size=size, max_size=size)), dtype)
    keys = (
        np.array(data.draw(st.lists(st.integers(0, 1), min_size=count, max_size=count)), I64)
        if keyed
        else None
    )
    kept, node_lengths, parents, rows = kernels.prefix_tree(values, lengths, keys, min_shared)
    names = keys.tolist() if keyed else [0] * count
    texts = [tuple(one.tolist()) for one in cut(values, lengths)]
    nodes = set()
    for i, (key, text) in enumerate(zip(names, texts, strict=True)):
        own = -1 if len(text) >= min_shared else i  # a short one shares nothing
        nodes |= {(key, own, text[:min_shared], text[:end]) for end in range(1, len(text) + 1)}
    assert len(kept) == len(nodes) == node_lengths.sum()
    assert_same(values[kept][rows], values)
    assert (kept[rows] <= np.arange(size)).all()
    assert len(parents) == len(node_lengths) <= 2 * count
    assert not (node_lengths == 0).any()
    # the path to each sequence's last segment is the sequence
    keys_of, path_lengths, positions, previous, until = kernels.tree_paths(parents, node_lengths)
    paths, segments = cut(keys_of, path_lengths), np.repeat(np.arange(len(parents)), node_lengths)
    for own in cut(rows, lengths):
        if len(own):
            path = paths[segments[own[-1]]].tolist()
            assert path[: len(own)] == own.tolist()
            assert len(path) == len(own)  # a segment ends where a sequence does
            assert positions[own].tolist() == list(range(len(own)))
            assert previous[own].tolist() == [-1, *own[:-1].tolist()]
            sees = [j for j in range(own[-1] + 1) if own[-1] < until[j]]
            assert sees == own.tolist()
    begins = np.cumsum(node_lengths) - node_lengths
    for parent in set(parents.tolist()) - {-1}:
        children = values[kept[begins[parents == parent]]]
        assert (children[1:] > children[:-1]).all()


def test_large_calls_let_other_threads_run(native):
    """They release the lock of the interpreter, and take it again before they make their results."""
    answers = np.random.default_rng(0).integers(0, 9, (64, 400))
    data, lengths = (
        np.concatenate([np.tile(np.arange(2000), (64, 1)), answers], axis=1).ravel(),
        np.full(64, 2400),
    )
    first, row, _ = kernels.distinct_sequences(data, lengths, None)
    kept, node_lengths, parents, rows = kernels.prefix_tree(data, lengths, None, 1)
    keys, path_lengths, *_ = kernels.tree_paths(parents, node_lengths)
    assert len(first) == len(np.unique(answers, axis=0)) == row.max() + 1
    assert_same(data[kept][rows], data)
    assert len(keys) == path_lengths.sum()


def test_a_chain_of_many_prefixes_needs_no_stack(any_kernels):
    lengths = np.arange(1, 1200)
    kept, node_lengths, parents, _ = kernels.prefix_tree(np.zeros(lengths.sum(), I64), lengths, None, 1)
    assert (node_lengths == 1).all()
    assert_same(parents, np.arange(-1, 1198))
    assert len(kept) == 1199


@pytest.mark.parametrize("parents", [[0], [-2], [-1, 1], [-1, 0, 0, 1], [-1, -1, 0], [-1, 2**62]])
def test_parents_not_in_preorder_are_refused(any_kernels, parents):
    sizes = np.ones(len(parents), I64)
    wrong = len(parents) - 1
    with pytest.raises(
        KernelError, match=rf"parents\[{wrong}\] = {parents[-1]} is neither -1 nor on the path"
    ) as error:
        kernels.tree_paths(np.array(parents), sizes)
    assert (error.value.kind, error.value.position) == ("order", wrong)


def test_paths_that_no_memory_holds_are_refused(any_kernels):
    with pytest.raises(KernelError, match="the result needs"):
        kernels.tree_paths(np.array([-1, 0]), np.array([0, 2**60]))
