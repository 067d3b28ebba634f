"""Parts that sequences share, once each: equal sequences, and common prefixes as a tree."""

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.comparable import as_integers
from seqflow.ops.shared.slices import int64, move_sequences, starts_of
from seqflow.registry import NoDerivative, op
from seqflow.signature import Positive


@op(
    "data[sum(lengths), *d], lengths[B], ordered keys[B]?"
    " -> values[sum(lengths'), *d], int64 lengths'[U] <= max(lengths), index(U) row[B], index(B) first[U],"
    " U <= B, sum(lengths') <= sum(lengths)",
    grad={
        "data": """
            origin, _ = gather_sequences(row_numbers(data), out.first, lengths)
            scatter_rows(reshape_like(d.values, gather(data, origin)), origin, data)
        """,
        "keys": NoDerivative("it picks by value"),
    },
)
def distinct_sequences(data: Array, lengths: Array, keys: Array | None) -> tuple[Array, ...]:
    """Return each of equal sequences once, in order of first appearance, and the index of each sequence among them.

    `gather_sequences(values, row, lengths)` of the results are the given sequences, so what is computed for each
    sequence is computed once: `gather(y, row)` is then y for all. `first` is the sequence that each distinct one was
    taken from. Sequences are equal if their bytes are: NaN is equal to itself, and 0.0 is not -0.0. The gradient goes
    to the first of equal sequences. Empty sequences are equal to each other.

    With `keys`, sequences are shared if their keys are equal (NaN is equal to NaN). Raises OpError if two sequences
    of one key differ.

    >>> distinct_sequences(np.array([7, 8, 5, 7, 8]), np.array([2, 1, 2]))
    DistinctSequencesResult(values=array([7, 8, 5]), lengths=array([2, 1]), row=array([0, 1, 0]), first=array([0, 1]))
    """
    sizes = int64(lengths)
    first, row, differing = kernels.distinct_sequences(
        data, sizes, None if keys is None else as_integers(keys)
    )
    if keys is not None and len(differing):
        later = int(differing[0])
        before = int(first[row[later]])
        raise OpError(
            f"sequence {later} is not equal to sequence {before}, expected equal ones for keys[{later}] = "
            f"{keys[later]}\n  without keys, sequences are shared by what they hold"
        )
    taken = kernels.gather(sizes, first)
    return move_sequences(data, kernels.gather(starts_of(sizes), first), taken), taken, row, first


@op(
    "ordered data[sum(lengths)], lengths[B], ordered keys[B]?"
    " -> index(sum(lengths)) kept[sum(node_lengths)], lens node_lengths[S], int64 parents[S] <= S-1,"
    " index(sum(node_lengths)) rows[sum(lengths)], S <= 2*B, sum(node_lengths) <= sum(lengths)",
)
def prefix_tree(
    data: Array, lengths: Array, keys: Array | None, *, min_shared: Positive = 1
) -> tuple[Array, ...]:
    """Return the tree of the common prefixes of all sequences, with each shared element once.

    The tree is a list of segments in preorder: `node_lengths` are their lengths, and `parents` the segment that each
    continues, -1 at the beginning of sequences. A segment ends where sequences part, or where one ends. The elements
    of the tree are `gather(data, kept)`, and those of each sequence are at `rows`: `gather(gather(data, kept), rows)`
    is the data. So what is computed for each element of the tree becomes that of sequences by `gather(y, rows)`, and
    its gradient is the sum over the sequences that share it. `tree_paths` gives what attention needs.

    Sequences with different `keys` share nothing, such as those of different images. Sequences whose common prefix
    has fewer than `min_shared` elements share nothing. NaN is equal to NaN, and 0.0 to -0.0. An empty sequence has no
    segment. Trees are in ascending order of keys, and the parts of one in ascending order of their first elements.

    >>> tree = prefix_tree(np.array([5, 6, 7, 5, 6, 8, 9]), np.array([3, 4]))
    >>> tree.node_lengths, tree.parents, tree.rows
    (array([2, 1, 2]), array([-1,  0,  0]), array([0, 1, 2, 0, 1, 3, 4]))
    """
    names = None if keys is None else as_integers(keys)
    # no sequences share more elements than there are
    return kernels.prefix_tree(as_integers(data), lengths, names, min(min_shared, len(data) + 1))


@op(
    "int64 parents[S], lens node_lengths[S]"
    " -> index(sum(node_lengths)) keys[sum(path_lengths)], lens path_lengths[S] <= sum(node_lengths),"
    " int64 positions[sum(node_lengths)] <= sum(node_lengths)-1,"
    " int64 previous[sum(node_lengths)] <= sum(node_lengths)-1,"
    " int64 until[sum(node_lengths)] <= sum(node_lengths)",
)
def tree_paths(parents: Array, node_lengths: Array) -> tuple[Array, ...]:
    """Return what each segment of a `prefix_tree` sees, and where each element of the tree stands.

    `keys` are the elements on the path of each segment: those of the segments it continues, then its own;
    `path_lengths` are their numbers. For each element, `positions` is the number of elements before it in its
    sequences, `previous` the element whose logits predict it (-1 at the beginning), and `until` the end of the part
    of the tree that its segment begins: element i sees j if `j <= i < until[j]`. Attention over sequences that share
    prefixes, each element computed once, is

        attention_within(q, node_lengths, gather(k, keys), gather(v, keys), path_lengths, after=0, align="end")

    Raises OpError unless each parent is -1, or the segment before, or one on the path to it. A segment may be empty.

    >>> paths = tree_paths(np.array([-1, 0, 0]), np.array([2, 1, 2]))
    >>> paths.keys, paths.path_lengths
    (array([0, 1, 0, 1, 2, 0, 1, 3, 4]), array([2, 3, 4]))
    >>> paths.positions, paths.previous, paths.until
    (array([0, 1, 2, 2, 3]), array([-1,  0,  1,  1,  3]), array([5, 5, 3, 5, 5]))
    """
    return kernels.tree_paths(parents, node_lengths)
