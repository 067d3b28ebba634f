"""Maps of lists by key, against plain dictionaries."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow import ops
from seqflow.errors import OpTypeError

KEYS = [7, -3, 0, 2**40]
rows_of_pairs = st.lists(
    st.lists(st.tuples(st.sampled_from(KEYS), st.lists(st.integers(0, 99), max_size=3)), max_size=4),
    max_size=4,
)
rows_of_maps = rows_of_pairs.map(lambda rows: [list(dict(row).items()) for row in rows])


def tensors(rows):
    pairs = [pair for row in rows for pair in row]
    values = np.array([value for _, listed in pairs for value in listed], np.int32)
    keys, lengths = (
        np.array([key for key, _ in pairs], np.int64),
        np.array([len(listed) for _, listed in pairs], int),
    )
    return values, keys, lengths, np.array([len(row) for row in rows], int)


def pairs_of(values, lengths, keys, counts):
    lists = iter(zip(keys.tolist(), sf.Sequence(values, lengths).to_lists(), strict=True))
    return [[next(lists) for _ in range(count)] for count in counts]


@given(rows=rows_of_pairs, names=st.lists(st.sampled_from(KEYS), unique=True))
def test_selecting_keeps_order_and_duplicates(rows, names):
    found = pairs_of(*ops.keyed_select(*tensors(rows), names=names))
    assert found == [[pair for pair in row if pair[0] in names] for row in rows]


@given(rows=rows_of_pairs, names=st.permutations(KEYS))
def test_permuting_sorts_each_row_by_the_names(rows, names):
    inputs = tensors(rows)
    found = pairs_of(*ops.keyed_permute(*inputs, names=names), inputs[-1])
    assert found == [sorted(row, key=lambda pair: names.index(pair[0])) for row in rows]


@given(rows=rows_of_maps, names=st.lists(st.sampled_from(KEYS), unique=True))
def test_splitting_gives_a_list_for_each_row_and_name(rows, names):
    found = ops.keyed_split(*tensors(rows), names=names)
    lists = [sf.Sequence(*one).to_lists() for one in zip(found.values, found.lengths, strict=True)]
    assert lists == [[dict(row).get(name, []) for row in rows] for name in names]


@given(rows=rows_of_pairs, names=st.permutations(KEYS), cut=st.integers(0, 4))
def test_regrouping_joins_in_the_order_of_the_group_then_of_the_row(rows, names, cut):
    groups = [names[:cut], names[cut:]]
    found = ops.regroup(*tensors(rows), groups=groups, duplicates="join")
    lists = [sf.Sequence(*one).to_lists() for one in zip(found.values, found.lengths, strict=True)]
    expected = [
        [[value for name in group for key, listed in row if key == name for value in listed] for row in rows]
        for group in groups
    ]
    assert lists == expected


@given(rows=rows_of_maps, cut=st.sampled_from(KEYS))
def test_joining_what_was_selected_gives_the_whole_again(rows, cut):
    inputs, low = tensors(rows), [key for key in KEYS if key < cut]
    parts = [ops.keyed_select(*inputs, names=names) for names in (low, [key for key in KEYS if key >= cut])]
    joined = ops.keyed_concat(
        *([getattr(part, name) for part in parts] for name in ("values", "keys", "lengths", "counts"))
    )
    assert pairs_of(*joined) == [sorted(row, key=lambda pair: pair[0] >= cut) for row in rows]


def test_names_of_strings_are_their_positions():
    data, lengths = np.frombuffer("bébé".encode(), np.uint8), np.array([1, 2, 0, 3])
    assert ops.match_names(data, lengths, names=["bé", "", "b"]).tolist() == [2, -1, 1, 0]
    assert ops.match_names(data, lengths, names=[]).tolist() == [-1] * 4


TWICE = tensors([[(1, [5])], [(2, [6]), (1, [7]), (2, [8])]])


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        (lambda: ops.keyed_split(*TWICE, names=[1, 2]), sf.OpError, r"keys\[3\] = 2 is in row 1 already"),
        (lambda: ops.regroup(*TWICE, groups=[[1, 2]]), sf.OpError, r"keys\[3\] = 2 is in row 1 already"),
        (lambda: ops.keyed_concat(*([one, one] for one in TWICE)), sf.OpError, r"keys\[1\] = 1 is in row 0 already"),
        (lambda: ops.keyed_permute(*TWICE, names=[2]), sf.OpError, r"keys\[0\] = 1, in row 0, is not among names"),
        (lambda: ops.keyed_split(*TWICE, names=[1, 1]), sf.OpError, r"names\[1\] is 1, which is names\[0\] already"),
        (lambda: ops.keyed_split(*TWICE, names=[2**63]), sf.OpError, r"names\[0\] is \d+, which does not fit int64"),
        (lambda: ops.regroup(*TWICE, groups=[[1], [2, 1]]), sf.OpError, r"groups\[2\] is 1, which is groups\[0\]"),
        (lambda: ops.regroup(*TWICE, groups=[1]), OpTypeError, "expected a list of lists of integers"),
        (lambda: ops.match_names(np.zeros(0, "u1"), [0], names="ab"), OpTypeError, "names is 'ab', expected a list of texts"),
        (lambda: ops.match_names(np.zeros(0, "u1"), [0], names=["a", "a"]), sf.OpError, "names has 'a' twice"),
    ],
)  # fmt: skip
def test_what_is_refused_names_its_place(run, error, message):
    with pytest.raises(error, match=message):
        run()


def test_a_key_twice_is_joined_where_that_is_asked_for():
    found = ops.keyed_split(*TWICE, names=[2], duplicates="join")
    assert (found.values[0].tolist(), found.lengths[0].tolist()) == ([6, 8], [0, 2])


def test_a_net_splits_a_column_with_texts_as_keys():
    maps = pa.array([[("a", [1, 2])], [("b", [3]), ("a", [])]], pa.map_(pa.string(), pa.list_(pa.int64())))
    net = """
    keys = match_names(f.keys.values, f.keys.lengths, names=["a", "b"])
    each = keyed_split(f.values.values, keys, f.values.lengths, f.lengths, names=[0, 1])
    a    = lengths_sum(each.values.0, each.lengths.0)
    b    = lengths_sum(each.values.1, each.lengths.1)
    return a, b
    """
    (batch,) = sf.Loader(pa.table({"f": maps}), batch=2, net=net)
    assert (batch["a"].tolist(), batch["b"].tolist()) == ([3, 0], [0, 3])
