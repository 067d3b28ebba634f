"""Shared sequences: computing each once gives the same as computing all of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow import ops
from seqflow.errors import OpError, ShapeError

A = np.array
POOLED = "y = gather(sparse_lengths_sum(table, values, n), row)"


def repeated(seed, sessions=5, each=4):
    """Ids of several sessions, those of each in several rows, in any order."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 6, sessions)
    rows = rng.permutation(np.repeat(np.arange(sessions), each))
    values, lengths = ops.gather_sequences(rng.integers(0, 20, sizes.sum()), rows, sizes)
    return values, lengths, rows


@given(seed=st.integers(0, 99), dtype=st.sampled_from(["float32", "float64"]))
def test_pooling_distinct_sequences_is_pooling_all_to_the_bit(seed, dtype):
    values, lengths, _ = repeated(seed)
    table = np.random.default_rng(1).standard_normal((20, 3)).astype(dtype)
    once = ops.distinct_sequences(values, lengths)
    pooled = ops.sparse_lengths_sum(table, once.values, once.lengths)
    np.testing.assert_array_equal(pooled[once.row], ops.sparse_lengths_sum(table, values, lengths))
    np.testing.assert_array_equal(ops.gather_sequences(once.values, once.row, once.lengths).values, values)


def test_the_gradient_of_a_table_is_that_of_all_sequences():
    values, lengths, _ = repeated(3)
    rng = np.random.default_rng(1)
    given_ = {"table": rng.standard_normal((20, 3)), "w": rng.standard_normal((len(lengths), 3))}
    loss = "\nloss = reduce_sum(y * w)"
    plain = sf.Net("y = sparse_lengths_sum(table, values, n)" + loss).gradient("loss", ["table"])
    net = sf.Net(
        "distinct, m, row, _ = distinct_sequences(values, n)\n"
        + POOLED.replace("values, n", "distinct, m")
        + loss
    )
    given_ |= {"values": values, "n": lengths}
    found = sf.run(net.gradient("loss", ["table"]), given_)["grad.table"]
    np.testing.assert_allclose(found, sf.run(plain, given_)["grad.table"], rtol=1e-12, atol=1e-12)


def test_the_gradient_of_shared_values_goes_to_the_first_that_holds_them():
    net = sf.Net("values, m, row, first = distinct_sequences(x, n)\nloss = reduce_sum(values * w)")
    given_ = {"x": A([1.0, 2.0, 5.0, 1.0, 2.0]), "n": A([2, 1, 2]), "w": A([3.0, 4.0, 7.0])}
    assert sf.run(net.gradient("loss", ["x"]), given_)["grad.x"].tolist() == [3, 4, 7, 0, 0]


def test_floats_are_compared_by_their_bytes():
    data = A([np.nan, 0.0, np.nan, -0.0, 0.0])
    assert ops.distinct_sequences(data, np.ones(5, int)).row.tolist() == [0, 1, 0, 2, 1]


def test_rows_without_elements_are_equal_if_they_are_as_many():
    once = ops.distinct_sequences(np.zeros((5, 0)), [1, 2, 1, 0, 1])
    assert once.row.tolist() == [0, 1, 0, 2, 0]
    assert once.lengths.tolist() == [1, 2, 0]


def test_sequences_of_one_key_must_be_equal():
    same = ops.distinct_sequences(
        A([1, 2, 1, 2, 1, 2]), [2, 2, 2], A(["2024-01-01", "2024-01-02", "2024-01-01"], "M8[D]")
    )
    assert same.row.tolist() == [0, 1, 0]
    expected = r"^distinct_sequences: sequence 2 is not equal to sequence 0, expected equal ones for keys\[2\] = 7.5\n"
    with pytest.raises(OpError, match=expected):
        ops.distinct_sequences(A([1, 2, 3]), [1, 1, 1], A([7.5, 8.5, 7.5]))
    with pytest.raises(ShapeError, match=r"keys.shape\[0\] is 2, expected 3"):
        ops.distinct_sequences(A([1, 2, 3]), [1, 1, 1], A([7, 8]))


def test_what_is_computed_once_has_no_more_rows_than_there_are():
    specs = {
        "values": sf.TensorSpec("int64", "{?}"),
        "n": sf.TensorSpec("int64", "{100}"),
        "table": sf.TensorSpec("float32", "{20,3}"),
    }
    text = "d, m, row, first = distinct_sequences(values, n)\np = sparse_lengths_sum(table, d, m)\n"
    inferred = sf.Net(text + "y = gather(p, row)\nreturn m, y").infer(specs)
    assert inferred.specs["m"].shape[0].max_length == 100
    assert str(inferred.specs["y"].shape) == "{100,3}"


def test_sequences_of_different_keys_share_no_prefix():
    tree = ops.prefix_tree(A([1, 2, 1, 3, 1, 2]), [2, 2, 2], A([7, 7, 8]))
    assert tree.node_lengths.tolist() == [1, 1, 1, 2]
    assert tree.parents.tolist() == [-1, 0, 0, -1]
    assert tree.rows.tolist() == [0, 1, 0, 2, 3, 4]


def test_short_prefixes_are_not_shared():
    values, lengths = A([1, 2, 3, 1, 2, 4, 1, 9]), [3, 3, 2]
    tree = ops.prefix_tree(values, lengths, min_shared=2)
    assert tree.node_lengths.tolist() == [2, 1, 1, 2]
    assert tree.parents.tolist() == [-1, 0, 0, -1]
    assert ops.prefix_tree(values, lengths, min_shared=10**30).parents.tolist() == [-1, -1, -1]


def test_parents_that_are_not_in_preorder_are_refused():
    with pytest.raises(
        OpError, match=r"^tree_paths: parents\[2\] = 0 is neither -1 nor on the path to the segment"
    ):
        ops.tree_paths(A([-1, -1, 0]), [1, 1, 1])


LAYER = """
q# = reshape(fc(x#, wq), shape=[-1, 4, 8])
k# = reshape(fc(x#, wk), shape=[-1, 2, 8])
v# = reshape(fc(x#, wv), shape=[-1, 2, 8])
same_rows(q#, positions)
same_rows(k#, positions)
same_rows(v#, positions)
turned# = rotary(k#, positions)
a# = ATTENTION
b# = reshape(a#.out, shape=[-1, 32])
same_rows(b#, positions)
y# = x# + fc(b#, wo)
h# = y# + fc(tanh(fc(y#, w1)), w2)
"""
SEPARATE = "attention_within(rotary(q#, positions), n, turned#, v#, after=0)"
SHARED = "attention_within(rotary(q#, positions), n, gather(turned#, keys), gather(v#, keys), m, after=0, align='end')"


def model(attention, rows):
    """Two layers with the same weights, and a loss in the layout of rows."""
    layer = LAYER.replace("ATTENTION", attention)
    text = "places = lengths_to_positions(n)\nsame_rows(tokens, places)\nsame_rows(positions, places)\n"
    text += (
        "same_rows(keys, lengths_to_positions(m))\n" * ("keys" in attention)
        + "x1 = gather(emb, tokens)\n"
        + layer.replace("#", "1")
    )
    text += layer.replace("x#", "h1").replace("#", "2")
    return sf.Net(text + f"loss = reduce_sum({rows} * weights)\nlast = h2 * 1\nreturn last, loss")


def random_rows(rng):
    rows = [rng.integers(0, 50, rng.integers(0, 8))]
    for _ in range(rng.integers(1, 9)):
        old = rows[rng.integers(len(rows))]
        new = rng.integers(0, 50 if rng.random() < 0.7 else 2, rng.integers(0, 6))
        rows.append(np.concatenate([old[: rng.integers(0, len(old) + 1)], new]))
    return rows


@given(seed=st.integers(0, 10**6), keyed=st.booleans())
def test_a_model_of_a_tree_is_that_of_separate_sequences(seed, keyed):
    """Logits and gradients of two layers with rotary positions and grouped heads; attention to the bit in float32."""
    rng = np.random.default_rng(seed)
    rows = random_rows(rng)
    lengths, tokens = A([len(row) for row in rows]), np.concatenate(rows)
    tree = ops.prefix_tree(tokens, lengths, rng.integers(0, 2, len(rows)) if keyed else None)
    paths = ops.tree_paths(tree.parents, tree.node_lengths)
    shapes = {
        "emb": (50, 32),
        "wq": (32, 32),
        "wk": (16, 32),
        "wv": (16, 32),
        "wo": (32, 32),
        "w1": (64, 32),
        "w2": (32, 64),
    }
    learned = {name: rng.standard_normal(shape) * 0.2 for name, shape in shapes.items()}
    given_ = learned | {"weights": rng.standard_normal((len(tokens), 32))}
    plain = given_ | {"tokens": tokens, "n": lengths, "positions": ops.lengths_to_positions(lengths)}
    shared = given_ | {
        "tokens": tokens[tree.kept], "n": tree.node_lengths, "positions": paths.positions, "rows": tree.rows,
        "keys": paths.keys, "m": paths.path_lengths,
    }  # fmt: skip
    one, two = model(SEPARATE, "h2"), model(SHARED, "gather(h2, rows)")
    near = {"rtol": 1e-12, "atol": 1e-12}
    np.testing.assert_allclose(sf.run(two, shared)["last"][tree.rows], sf.run(one, plain)["last"], **near)
    found, expected = (
        sf.run(net.gradient("loss", [*learned]), x) for net, x in ((two, shared), (one, plain))
    )
    for name in learned:
        np.testing.assert_allclose(found[f"grad.{name}"], expected[f"grad.{name}"], rtol=1e-12, atol=1e-11)
    q, k, v = (rng.standard_normal((len(tree.kept), heads, 8)).astype(np.float32) for heads in (4, 2, 2))
    once = ops.attention_within(
        q, tree.node_lengths, k[paths.keys], v[paths.keys], paths.path_lengths, after=0, align="end"
    ).out
    each = ops.attention_within(q[tree.rows], lengths, k[tree.rows], v[tree.rows], after=0).out
    np.testing.assert_array_equal(once[tree.rows], each)
