"""Find what sequences share: equal sequences, and the tree of their common prefixes."""

from itertools import pairwise

import numpy as np

from seqflow.kernels.arrays import Array, int64_counts, rows
from seqflow.kernels.checks import check_same_size, check_sum, offsets_of, total_of
from seqflow.kernels.dispatch import kernel
from seqflow.kernels.error import not_in_preorder
from seqflow.kernels.forms import COUNTS, ROWS
from seqflow.kernels.memory import check_memory

__all__ = ["distinct_sequences", "prefix_tree", "tree_paths"]


@kernel(data=ROWS, lengths=COUNTS, keys=COUNTS)
def distinct_sequences(data: Array, lengths: Array, keys: Array | None) -> tuple[Array, Array, Array]:
    """Find equal sequences: data[sum(lengths), *d], lengths[B] -> int64 first[U], int64 row[B], int64 differing[D].

    `first` is the index of the first of equal sequences, in ascending order, and `row` the index of each sequence
    among those. Sequences are equal if their lengths and bytes are. With keys[B], those of equal keys are taken as
    equal; `differing` are the sequences that are not equal to the first with their key, in ascending order.
    """
    data, lengths = rows(data, "data"), int64_counts(lengths, "lengths")
    check_sum(lengths, len(data), "data")
    offsets = offsets_of(lengths).tolist()
    texts = [(stop - start, data[start:stop].tobytes()) for start, stop in pairwise(offsets)]
    if keys is not None:
        keys = int64_counts(keys, "keys")
        check_same_size(lengths=lengths, keys=keys)
    found: dict[object, int] = {}
    first: list[int] = []
    row, differing = np.empty(len(lengths), np.int64), []
    for i, one in enumerate(texts if keys is None else keys.tolist()):
        row[i] = found.setdefault(one, len(first))
        if row[i] == len(first):
            first.append(i)
        elif texts[i] != texts[first[row[i]]]:
            differing.append(i)
    return np.array(first, np.int64), row, np.array(differing, np.int64)


@kernel(data=COUNTS, lengths=COUNTS, keys=COUNTS)
def prefix_tree(
    data: Array, lengths: Array, keys: Array | None, min_shared: int
) -> tuple[Array, Array, Array, Array]:
    """Build the trie of sequences of int64: data[sum(lengths)], lengths[B] -> int64 kept[K], int64 node_lengths[S],
    int64 parents[S], int64 rows[sum(lengths)].

    Segments stand in preorder, children in ascending order of their elements; a segment ends where sequences part, or
    where one ends. `kept` is the element of the data at each element of the tree, from the first of the sequences
    that share it. `rows` is the element of the tree at each element of the data. Two sequences share a common prefix
    of at least `min_shared` elements, if their keys[B] are equal.
    """
    data, lengths = int64_counts(data, "data"), int64_counts(lengths, "lengths")
    check_sum(lengths, len(data), "data")
    names = np.zeros(len(lengths), np.int64)
    if keys is not None:
        names = int64_counts(keys, "keys")
        check_same_size(lengths=lengths, keys=names)
    offsets = offsets_of(lengths).tolist()
    texts = [
        (key, tuple(data[start:stop].tolist()))
        for key, start, stop in zip(names.tolist(), offsets[:-1], offsets[1:], strict=True)
    ]
    order = sorted(range(len(texts)), key=texts.__getitem__)
    pairs = zip(order, order[:1] + order[:-1], strict=True)
    shared = [0 if one == two else _common(texts[one], texts[two]) for one, two in pairs]
    shared = [0 if count < min_shared else count for count in shared]
    # elements at which later sequences part from one of the order: the running minima of what they share with it
    ends: list[list[int]] = []
    parting: list[int] = []
    for i, shares in zip(reversed(order), reversed(shared), strict=True):
        parts = {int(lengths[i])}
        while parting and parting[-1] > shares:
            parts.add(parting.pop())
        ends.append(sorted(end for end in parts if end > shares))
        if shares and (not parting or parting[-1] < shares):
            parting.append(shares)
    node_lengths: list[int] = []
    parents: list[int] = []
    tree, before, size = np.empty(len(data), np.int64), 0, 0
    path: list[tuple[int, int]] = []  # the end and the number of each segment of the last sequence
    for i, shares, own in zip(order, shared, reversed(ends), strict=True):
        start = offsets[i]
        tree[start : start + shares] = tree[before : before + shares]
        added = offsets[i + 1] - start - shares
        tree[start + shares : offsets[i + 1]] = np.arange(size, size + added)
        size += added
        while path and path[-1][0] > shares:
            path.pop()
        for end in own:
            parents.append(path[-1][1] if path else -1)
            path.append((end, len(node_lengths)))
            node_lengths.append(end - shares)
            shares = end
        before = start
    kept = np.unique(tree, return_index=True)[1]
    return kept, np.array(node_lengths, np.int64), np.array(parents, np.int64), tree


def _common(one: tuple[int, tuple[int, ...]], two: tuple[int, tuple[int, ...]]) -> int:
    """Return the number of elements of the common prefix of two sequences, 0 when their keys differ."""
    if one[0] != two[0]:
        return 0
    pairs = enumerate(zip(one[1], two[1], strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(one[1]), len(two[1])))


@kernel(parents=COUNTS, node_lengths=COUNTS)
def tree_paths(parents: Array, node_lengths: Array) -> tuple[Array, Array, Array, Array, Array]:
    """Return the elements on the path of each segment of a tree: parents[S], node_lengths[S] -> int64
    keys[sum(path_lengths)], int64 path_lengths[S], int64 positions[N], int64 previous[N], int64 until[N].

    `keys` are the elements from the root of each segment to its own last one. For each of the N elements of the tree,
    `positions` is the number of elements before it on its path, `previous` the last of these (-1 if there is none),
    and `until` the end of the part of the tree that its segment begins. Raises KernelError unless each parent is -1
    or a segment whose part of the tree has not ended.
    """
    parents, sizes = int64_counts(parents, "parents"), int64_counts(node_lengths, "node_lengths")
    check_same_size(parents=parents, node_lengths=sizes)
    check_memory((4, total_of(sizes, "node_lengths")), np.dtype(np.int64))
    offsets = offsets_of(sizes).tolist()
    size = offsets[-1]
    path_lengths = np.zeros(len(sizes), np.int64)
    ends = np.full(len(sizes), size, np.int64)
    previous = np.arange(-1, size - 1)
    last = np.full(len(sizes), -1, np.int64)
    path: list[int] = []
    paths: list[list[int]] = []
    for i, parent in enumerate(parents.tolist()):
        while path and path[-1] != parent:
            ends[path.pop()] = offsets[i]
        if parent != (path[-1] if path else -1):
            raise not_in_preorder("parents", i, parent)
        path.append(i)
        paths.append(path.copy())
        path_lengths[i] = sizes[i] + (path_lengths[parent] if parent >= 0 else 0)
        before = last[parent] if parent >= 0 else -1
        last[i] = offsets[i + 1] - 1 if sizes[i] else before
        if sizes[i]:
            previous[offsets[i]] = before
    total = sum(path_lengths.tolist())
    check_memory((total,), np.dtype(np.int64))
    keys = [np.arange(offsets[k], offsets[k + 1]) for one in paths for k in one]
    until = np.repeat(ends, sizes)
    positions = np.arange(size) + np.repeat(path_lengths - sizes - offsets_of(sizes)[:-1], sizes)
    return np.concatenate([np.zeros(0, np.int64), *keys]), path_lengths, positions, previous, until
