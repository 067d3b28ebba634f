"""From a map column to the jagged features a model wants, in one call."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import OpTypeError, UnknownColumnError
from seqflow.record import Record

IDS = pa.map_(pa.int64(), pa.list_(pa.int64()))
NAMED = pa.map_(pa.string(), pa.list_(pa.int64()))
PROPOSAL = pa.table(
    {"f": pa.array([[(1, [10, 11]), (3, [101])], [(1, [11]), (2, [50]), (3, [102, 103])]], IDS)}
)


NO_MAP = Record(
    {"f.lengths": np.array([1]), "f.keys": np.array([1]), "f.values": np.array([5])},
    {"f.lengths": None, "f.keys": "f.lengths", "f.values": None},
    1,
)


def table(maps, kind=NAMED):
    return pa.table({"f": pa.array(maps, kind)})


def lists(record, name):
    return sf.Sequence(record[f"{name}.values"], record[f"{name}.lengths"]).to_lists()


def test_a_map_of_id_lists_is_the_four_tensors_of_the_proposal():
    """ex1 = {1: {10, 11}, 3: {101}}, ex2 = {1: {11}, 2: {50}, 3: {102, 103}}."""
    record = sf.from_arrow(PROPOSAL)
    assert {name: tensor.tolist() for name, tensor in record.items()} == {
        "f.lengths": [2, 3],
        "f.keys": [1, 3, 1, 2, 3],
        "f.values.lengths": [2, 1, 1, 1, 2],
        "f.values.values": [10, 11, 101, 11, 50, 102, 103],
    }


def test_integer_keys_give_a_feature_each_and_a_mapping_names_them():
    found = sf.features(PROPOSAL, "f", [3, 2])
    assert (lists(found, "3"), lists(found, "2")) == ([[101], [102, 103]], [[], [50]])
    assert lists(sf.features(PROPOSAL, "f", {1: "pages"}), "pages") == [[10, 11], [11]]


map_rows = st.none() | st.dictionaries(
    st.sampled_from(["a", "b", "é", ""]), st.lists(st.integers(-9, 9), max_size=3)
)


@given(rows=st.lists(map_rows, max_size=4), names=st.lists(st.sampled_from(["é", "b", "none"]), unique=True))
def test_features_are_what_each_rows_map_has(rows, names):
    maps = table([None if row is None else list(row.items()) for row in rows])
    found = sf.features(sf.from_arrow(maps, fill={"f": {}}), "f", names)
    for name in names:
        assert lists(found, name) == [(row or {}).get(name, []) for row in rows]
    assert found.num_rows == len(rows)


def test_numbers_are_0_where_a_row_does_not_have_the_key():
    found = sf.features(
        table([[("a", 1.5)], [], [("b", 7), ("a", 0)]], pa.map_(pa.string(), pa.float64())), "f", ["a"]
    )
    assert (found["a"].tolist(), found["a.valid"].tolist()) == ([1.5, 0, 0], [True, False, True])


def test_texts_and_deeper_lists_keep_their_arrow_types():
    maps = table(
        [[("a", ["x", "yz"])], [], [("b", []), ("a", [""])]], pa.map_(pa.string(), pa.list_(pa.string()))
    )
    found = sf.to_arrow(sf.features(maps, "f", ["a", "b"]))
    assert found["a"].to_pylist() == [["x", "yz"], [], [""]]
    assert found.schema.field("b").type == pa.list_(pa.string())


def test_a_part_of_a_table_and_chunks_are_what_they_hold():
    whole = pa.concat_tables([PROPOSAL, PROPOSAL]).slice(1, 2)
    assert lists(sf.features(whole, "f", [3]), "3") == [[102, 103], [101]]


def test_it_is_a_prepare_function_of_a_loader(tmp_path):
    loader = sf.Loader(PROPOSAL, prepare=lambda record: sf.features(record, "f", {1: "pages"}), batch=2)
    assert [lists(batch, "pages") for batch in loader] == [[[10, 11], [11]]]


@pytest.mark.parametrize(
    ("run", "error", "message"),
    [
        (lambda: sf.features(PROPOSAL, "g", [1]), UnknownColumnError, "no map 'g'"),
        (lambda: sf.features(sf.from_arrow(pa.table({"ids": [[1]]})), "ids", ["a"]), UnknownColumnError,
         "already a feature: ids.values, ids.lengths"),
        (lambda: sf.features(PROPOSAL, "f", ["a"]), OpTypeError, "the keys of f are integers"),
        (lambda: sf.features(PROPOSAL, "f", [1, "a"]), OpTypeError, "keys that are all integers or all texts"),
        (lambda: sf.features(PROPOSAL, "f", [True]), OpTypeError, "keys that are all integers or all texts"),
        (lambda: sf.features(PROPOSAL, "f", {1: "x", 2: "x"}), sf.OpError, "gives two features one name"),
        (lambda: sf.features(table([[], [("a", []), ("a", [])]]), "f", ["a"]), sf.OpError,
         r"keys\[1\] = a is in row 1 already, expected each key once in a row"),
        (lambda: sf.features(NO_MAP, "f", [1]), sf.LodError, "f.values does not hold the rows that f.lengths describes"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_said(run, error, message):
    with pytest.raises(error, match=message):
        run()


def test_a_key_twice_is_no_matter_where_nobody_asks_for_it():
    assert lists(sf.features(table([[("b", [1]), ("b", [2]), ("a", [3])]]), "f", ["a"]), "a") == [[3]]


# pooling

TABLE = np.array([[1.0, -1.0], [10.0, -10.0], [100.0, -100.0]], np.float32)
CLICKS = table([[("a", [0, 2]), ("b", [1])], [], [("a", [1])]])


def test_many_features_are_pooled_in_one_call():
    record = sf.features(CLICKS, "f", ["a", "b"])
    pooled = sf.pool_features({"a": TABLE, "b": 2 * TABLE}, record, ["a", "b"])
    assert pooled["a"].tolist() == [[101, -101], [0, 0], [10, -10]]
    assert pooled["b"].tolist() == [[20, -20], [0, 0], [0, 0]]
    assert (pooled.num_rows, sf.pool_features(TABLE, record, ["b"])["b"][0, 0]) == (3, 10)


def test_missing_ids_are_left_out_where_they_are_nulls_or_a_number():
    nulls = table([[("a", [0, None])], [("a", [None])]])
    masked = sf.features(sf.from_arrow(nulls, valid=True), "f", ["a"])
    filled = sf.features(sf.from_arrow(nulls, fill=-1), "f", ["a"])
    for record in (masked, filled):
        assert sf.pool_features(TABLE, record, ["a"], ignore_index=-1)["a"].tolist() == [[1, -1], [0, 0]]
        with pytest.raises(sf.OpError):
            sf.pool_features(TABLE, record, ["a"])


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda record: sf.pool_features(TABLE, record, ["a"], "som"), r"reduce is 'som' \(did you mean 'sum'\?\)"),
        (lambda record: sf.pool_features({"b": TABLE}, record, ["a"]), "there is no table for the feature 'a'"),
        (lambda record: sf.pool_features(TABLE, record, ["c"]), "the record has no tensor 'c.values'"),
        (lambda record: sf.pool_features(TABLE[:1], record, ["a"]), r"indices\[1\] = 2"),
        (lambda record: sf.pool_features(TABLE, {**record, "b.lengths": [1], "b.values": [0]}, ["a", "b"]),
         "expected as many of each"),
    ],
)  # fmt: skip
def test_what_pooling_cannot_do_is_said(run, message):
    with pytest.raises(sf.SeqflowError, match=message):
        run(sf.features(CLICKS, "f", ["a"]))


def test_weights_are_arrays_or_tensors_of_the_record_and_any_pooling_op_is_taken():
    signature = "float table[R, *d], float weights[sum(lengths)], index(R) indices[sum(lengths)], lengths[B] -> out[B, *d]"

    @sf.op(signature)
    def sparse_lengths_scaled(table, weights, indices, lengths):
        """Weighted sums; an empty segment gives 0."""
        return sf.ops.lengths_sum(table[indices] * weights[:, None], lengths)

    record = sf.features(CLICKS, "f", ["a"])
    weights = np.array([1, 2, 3], np.float32)
    try:
        by_array = sf.pool_features(TABLE, record, ["a"], "scaled", weights={"a": weights})
        by_name = sf.pool_features(TABLE, {**record, "w": weights}, ["a"], "scaled", weights={"a": "w"})
        with pytest.raises(sf.OpError, match="weights are missing"):
            sf.pool_features(TABLE, record, ["a"], "scaled")
    finally:
        sf.registry.unregister("sparse_lengths_scaled")
    assert by_array["a"].tolist() == by_name["a"].tolist() == [[201, -201], [0, 0], [30, -30]]


def test_a_batch_of_tensors_has_features_as_tensors():
    torch = pytest.importorskip("torch")
    expected = sf.features(PROPOSAL, "f", [3, 1])
    (batch,) = sf.Loader(PROPOSAL).to("torch")
    for tensors in (batch, dict(batch)):
        found = sf.features(tensors, "f", [3, 1])
        assert all(isinstance(one, torch.Tensor) for one in found.values())
        assert {name: one.tolist() for name, one in found.items()} == {
            name: one.tolist() for name, one in expected.items()
        }
    arrays = sf.features({name: one.numpy() for name, one in batch.items()}, "f", [3, 1])
    assert arrays.parents == expected.parents
    with pytest.raises(UnknownColumnError, match="the record has no map 'g'"):
        sf.features(batch, "g", [1])
