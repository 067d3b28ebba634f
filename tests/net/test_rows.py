"""Whose rows the tensors of a net hold: parents among outputs, and why."""

import pytest

from seqflow import LodError, Net, NetError, TensorSpec
from seqflow.signature import Described, OwnRows

RECORD = OwnRows("the record")
SPECS = {
    "doc.values": TensorSpec("int64", "{?}", Described("doc.lengths")),
    "doc.lengths": TensorSpec("int64", "{rows}", RECORD),
    "tag.values": TensorSpec("int64", "{?}", Described("tag.lengths")),
    "tag.lengths": TensorSpec("int64", "{rows}", RECORD),
}


def inferred(text):
    return Net(text).infer(SPECS)


def test_lengths_made_alike_describe_each_others_rows():
    net = inferred("a, n = truncate(doc.values, doc.lengths, max_length=2)\nm = minimum(doc.lengths, 2)")
    assert net.parents(["a", "m"]) == {"a": "m", "m": None}
    assert net.parents(["a"]) == {"a": None}


def test_a_selection_is_described_by_its_own_lengths():
    net = inferred(
        "mask = doc.values > 2\nr = boolean_mask(doc.values, mask)\nn = boolean_mask_lengths(mask, doc.lengths)"
    )
    assert net.parents(["r.rows", "r.positions", "n"]) == {"r.rows": "n", "r.positions": "n", "n": None}


def test_explain_says_where_rows_come_from():
    net = inferred(
        "a, n = truncate(doc.values, doc.lengths, max_length=2)\np = pad(a, n)\nm = p.padded * 0.5"
    )
    assert net.explain("a").splitlines() == [
        "a: axis 0 holds the rows that n describes",
        "  n is made in line 1: a, n = truncate(doc.values, doc.lengths, max_length=2)",
    ]
    assert "axis 0 holds the rows of the record, axis 1 holds steps padded" in net.explain("m")
    with pytest.raises(NetError, match="there is no tensor 'nope'"):
        net.explain("nope")


def test_a_plain_size_has_no_rows():
    assert inferred("m = reduce_mean(doc.values, axes=[0])").explain("m") == "m: plain sizes, no rows"


def test_same_lengths_holds_for_all_that_is_computed_alike_wherever_it_stands():
    text = (
        "a, n = truncate(doc.values, doc.lengths, max_length=2)\n"
        "b, m = truncate(tag.values, tag.lengths, max_length=2)\n"
        "s = lengths_sum(a * b, m)\n"
        "same_lengths(tag.lengths, doc.lengths)"
    )
    assert inferred(text).parents(["a", "m"])["a"] == "m"


def test_long_chains_are_explained_in_a_few_words():
    steps = "".join(f"m{i} = v{i} > 0\nv{i + 1}, p{i} = boolean_mask(v{i}, m{i})\n" for i in range(400))
    net = inferred(f"v0 = doc.values * 2\n{steps}")
    assert "a selection of a selection of" in net.explain("v400")
    assert len(net.explain("v400").splitlines()[0]) < 200
    with pytest.raises(LodError, match="a selection of … by"):
        inferred(f"v0 = doc.values * 2\n{steps}z = v400 + doc.values")


def test_deep_expressions_are_written_in_a_few_words():
    with pytest.raises(LodError, match=r"neg\(…\)"):
        inferred(f"y = lengths_sum(doc.values, {'-' * 600}doc.lengths)")


def test_values_are_described_by_the_lengths_of_their_name():
    net = inferred("same_lengths(doc.lengths, tag.lengths)")
    names = ["doc.lengths", "doc.values", "tag.lengths", "tag.values"]
    assert net.parents(names) == {
        "doc.lengths": None, "doc.values": "doc.lengths", "tag.lengths": None, "tag.values": "tag.lengths",
    }  # fmt: skip
    assert net.parents(["doc.lengths", "tag.values"])["tag.values"] == "doc.lengths"
