"""Features merged into maps, against plain loops over the examples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow import ops

features = st.lists(
    st.lists(st.none() | st.lists(st.integers(0, 99), max_size=3), min_size=3, max_size=3),
    min_size=1,
    max_size=4,
)


def columns(lists):
    """A feature as values, presence and lengths; None is absent."""
    present = [one for one in lists if one is not None]
    values = np.array([value for one in present for value in one], np.int64)
    return values, np.array([one is not None for one in lists]), np.array([len(one or []) for one in lists])


@given(features=features)
def test_each_example_has_its_present_lists_in_order(features):
    ids = [10 + i for i in range(len(features))]
    data, presence, lengths = (list(each) for each in zip(*map(columns, features), strict=True))
    merged = ops.merge_list_features(data, presence, lengths, feature_ids=ids)
    expected = [
        [(key, lists[row]) for key, lists in zip(ids, features, strict=True) if lists[row] is not None]
        for row in range(3)
    ]
    pairs = list(
        zip(merged.keys.tolist(), sf.Sequence(merged.values, merged.lengths).to_lists(), strict=True)
    )
    assert pairs == [pair for row in expected for pair in row]
    assert merged.counts.tolist() == [len(row) for row in expected]
    with_keys = ops.merge_map_features(data, [-one for one in data], presence, lengths, feature_ids=ids)
    np.testing.assert_array_equal(with_keys.value_keys, -with_keys.values)
    np.testing.assert_array_equal(with_keys.values, merged.values)


@given(features=features)
def test_splitting_what_was_merged_gives_the_features_again(features):
    ids = list(range(len(features)))
    data, presence, lengths = (list(each) for each in zip(*map(columns, features), strict=True))
    merged = ops.merge_list_features(data, presence, lengths, feature_ids=ids)
    again = ops.keyed_split(merged.values, merged.keys, merged.lengths, merged.counts, names=ids)
    for i in ids:
        np.testing.assert_array_equal(again.values[i], data[i])
        np.testing.assert_array_equal(again.lengths[i], lengths[i])


def test_scalars_of_a_matrix_and_of_columns_are_the_same():
    data, presence = np.array([[1.5, 2], [3, 4]]), np.array([[True, False], [True, True]])
    dense = ops.merge_dense_features(data, presence, feature_ids=[7, 8])
    single = ops.merge_scalar_features(list(data.T), list(presence.T), feature_ids=[7, 8])
    for merged in (dense, single):
        assert [array.tolist() for array in merged] == [[1.5, 3, 4], [1, 2], [7, 7, 8]]


def test_values_may_be_rows():
    data, yes = np.arange(4.0).reshape(2, 2), np.array([True, True])
    assert (
        ops.merge_scalar_features([data, -data], [yes, ~yes], feature_ids=[1, 2]).values.tolist()
        == data.tolist()
    )


@given(rows=st.lists(st.integers(0, 2), max_size=4), others=st.data())
def test_maps_of_several_inputs_are_joined_example_by_example(rows, others):
    counts = [np.array(rows, int), np.array([others.draw(st.integers(0, 2)) for _ in rows], int)]
    keys = [100 * i + np.arange(one.sum()) for i, one in enumerate(counts)]
    lengths = [np.arange(len(one)) % 3 for one in keys]
    data = [1000 * i + np.arange(one.sum()) for i, one in enumerate(lengths)]
    merged = ops.merge_multi_list_features(data, keys, lengths, counts)
    scalars = ops.merge_multi_scalar_features(keys, keys, counts)
    np.testing.assert_array_equal(scalars.values, merged.keys)
    np.testing.assert_array_equal(scalars.lengths, merged.counts)
    whole = [
        sf.Sequence(*three).to_lists() for three in zip(data, zip(counts, lengths, strict=True), strict=True)
    ]
    joined = sf.Sequence(merged.values, [merged.counts, merged.lengths]).to_lists()
    assert joined == [first + second for first, second in zip(*whole, strict=True)]
    maps = ops.merge_multi_map_features(data, [-one for one in data], keys, lengths, counts)
    np.testing.assert_array_equal(maps.value_keys, -merged.values)


YES = np.array([True])


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        (lambda: ops.merge_dense_features([[1, 2]], [[True, True]], feature_ids=[1]), sf.OpError,
         "feature_ids has 1 entries, expected 2, one for each feature"),
        (lambda: ops.merge_dense_features([[1, 2]], [[True, True]], feature_ids=[3, 3]), sf.OpError,
         r"feature_ids\[1\] is 3, which is feature_ids\[0\] already"),
        (lambda: ops.merge_dense_features([[1, 2]], [[True]], feature_ids=[1, 2]), sf.ShapeError, "presence.shape"),
        (lambda: ops.merge_scalar_features([[1], [2]], [YES, [1]], feature_ids=[1, 2]), sf.OpError, "expected bool"),
        (lambda: ops.merge_list_features([[5]], [~YES], [[1]], feature_ids=[1]), sf.OpError,
         r"lengths\[0\]\[0\] is 1 but presence\[0\]\[0\] is False, expected 0 where a feature is absent"),
        (lambda: ops.merge_multi_list_features([[5]], [[1]], [[1]], [[2]]), sf.SeqflowError, r"sum\(counts\)"),
    ],
)  # fmt: skip
def test_what_is_refused_names_its_place(run, error, message):
    with pytest.raises(error, match=message):
        run()


def test_keys_that_int64_cannot_hold_are_refused():
    ones, key = [np.array([1])] * 2, np.array([2**63 + 1], np.uint64)
    data, keys = [np.array([0.5])] * 2, [np.array([1])] * 2
    for call in (
        lambda: ops.merge_multi_scalar_features(data, [key, key], ones),
        lambda: ops.merge_multi_list_features(data, [key, key], ones, ones),
        lambda: ops.merge_multi_map_features(data, [key, key], keys, ones, ones),
    ):
        with pytest.raises(sf.SeqflowError, match="keys"):
            call()
