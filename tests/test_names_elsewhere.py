"""Names that people type first are there, or their error names what is."""

import re

import numpy as np
import pyarrow as pa
import pytest
from command import seqflow

import seqflow as sf
from seqflow.names_elsewhere import table

FRAME = pa.table({"tokens": [[1, 2], [], [3]], "n": [1, 2, 3]})
LOADER = sf.Loader(FRAME, batch=3)
BATCH = next(iter(LOADER))
PLACES = {
    "sf": sf, "Sequence": sf.Sequence([1, 2, 3], [2, 0, 1]), "Loader": LOADER, "Record": BATCH, "sf.ops": sf.ops,
    "sf.auto": sf.auto,
}  # fmt: skip
NAMES = [one for one in table() if one[0] in PLACES and one[1] != "[]"]


@pytest.mark.parametrize(("place", "name"), NAMES)
def test_an_attribute_that_is_missing_names_what_is_there(place, name):
    with pytest.raises(AttributeError) as raised:
        getattr(PLACES[place], name)
    first, advice = str(raised.value).split("\n  ")
    assert first.endswith(f"has no attribute {name!r}")
    assert advice == table()[place, name]


@pytest.mark.parametrize("there", sorted({*table().values()}))
def test_what_the_table_names_is_there(there):
    if "torch" in there:
        pytest.importorskip("torch")
    for path in re.findall(r"\b(?:sf|seqflow)((?:\.\w+)+)", there):
        found = sf
        for name in path.strip(".").split("."):
            found = __import__(f"seqflow.{name}", fromlist="*") if name == "job" else getattr(found, name)
    for place, value in (("sequence", "Sequence"), ("loader", "Loader"), ("batch", "Record")):
        for name in re.findall(rf"\b{place}\.(\w+)", there):
            assert hasattr(PLACES[value], name)


@pytest.mark.parametrize(
    "name",
    ["batch_size", "num_workers", "drop_last", "seed", "collate_fn", "transform", "tokenizer", "max_length"],
)
def test_an_option_of_another_loader_names_ours(name):
    there = table()["option", name]
    with pytest.raises(sf.OpError, match=re.escape(f"Loader has no option {name!r}\n  write {there}")):
        sf.Loader(FRAME, **{name: 1})


OPS = {
    "sum": "lengths_sum", "mean": "lengths_mean", "segment_sum": "lengths_sum", "cumsum": "cumsum_within",
    "segment_mean": "sorted_segment_mean", "argmax": "lengths_argmax", "embedding": "gather", "linear": "fc",
    "embedding_bag": "sparse_lengths_sum", "conv1d": "context_windows", "masked_fill": "mask_sequences",
    "topk": "topk_within", "sort": "sort_within", "stack": "concat", "scatter_add": "unsorted_segment_sum",
    "diff": "shift", "rolling_mean": "context_windows", "bincount": "segment_counts", "histogram": "segment_counts",
    "randint": "random_integers", "sample": "random_integers",
}  # fmt: skip


@pytest.mark.parametrize("place", ["sf.ops", "sf.auto"])
@pytest.mark.parametrize(("name", "op"), OPS.items())
def test_an_op_of_another_library_names_ours_and_guesses_no_spelling(place, name, op):
    with pytest.raises(AttributeError, match=rf"^no op is named '{name}'\n  .*\b{op}\b"):
        getattr(PLACES[place], name)


def test_a_misspelt_op_is_told_its_spelling():
    with pytest.raises(AttributeError, match=r"no op is named 'trunkate' \(did you mean 'truncate'\?\)"):
        sf.ops.trunkate  # noqa: B018


@pytest.mark.parametrize(("name", "op"), [("softmax", "softmax_within"), ("mean", "lengths_mean"), ("sum", "lengths_sum"), ("pad_sequence", "pad")])  # fmt: skip
def test_an_op_typed_without_its_module_is_named(name, op):
    with pytest.raises(AttributeError, match=rf"ops of seqflow.ops: .*\b{op}\b"):
        getattr(sf, name)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("negative sampling", "random_integers"), ("most recent n", "topk_within"), ("last n", "topk_within"),
        ("ragged attention", "attention_within"), ("range start stop step", "lengths_range"),
        ("discounted cumulative sum", "discounted_sum_within"), ("from_pandas", "sf.from_arrow(frame)"),
        ("DataLoader", "sf.Loader"),
    ],
)  # fmt: skip
def test_the_search_finds_by_the_same_table(words, found):
    assert found in seqflow("ops", "--search", words).stdout


def test_a_sequence_has_the_methods_of_a_column():
    sequence = PLACES["Sequence"]
    assert sequence.tolist() == sequence.to_list() == sequence.to_lists()
    np.testing.assert_array_equal(sequence.sum(), [3, 0, 3])
    np.testing.assert_array_equal(sequence.mean(), [1.5, 0, 3])
    np.testing.assert_array_equal(sequence.pad(fill=7).padded, [[1, 2], [7, 7], [3, 7]])
    np.testing.assert_array_equal(sequence.offsets, [0, 2, 2, 3])
    assert sf.Sequence([1, 2, 3], [[2], [2, 1]]).sum().lod == sf.LoD([2])


def test_a_column_of_a_batch_is_a_sequence():
    assert BATCH["tokens"].to_lists() == [[1, 2], [], [3]]
    deep = sf.from_arrow(pa.table({"c": [[[1], [2, 3]], []]}))
    assert deep["c"].to_lists() == [[[1], [2, 3]], []]
    assert deep["c.values"].to_lists() == [[1], [2, 3]]
    assert "tokens" not in BATCH
    with pytest.raises(KeyError, match="the record has no tensor 'toks'"):
        BATCH["toks"]
    with pytest.raises(
        AttributeError, match=r"'Record' object has no attribute 'tokens'\n  .* batch\['tokens'\]"
    ):
        BATCH.tokens  # noqa: B018


def test_a_loader_takes_its_batch_by_position_and_is_iterated():
    assert sf.Loader(FRAME, 2).batch == sf.Rows(2)
    with pytest.raises(TypeError, match=r"iterated, not indexed\n  next\(iter\(loader\)\).*batch_at"):
        LOADER[0]
    with pytest.raises(sf.OpError, match="expected 'torch'\n  the loader itself gives NumPy arrays"):
        LOADER.to("numpy")
    with pytest.raises(TypeError, match=r"to has no option 'device'\n  tensor.to\(device\)"):
        LOADER.to("torch", device="cpu")


def test_inputs_and_attributes_of_an_op_that_are_missing_are_named():
    values, lengths = PLACES["Sequence"].unpack()
    with pytest.raises(TypeError, match=r"^pad: lengths is missing\n  .*seqflow.auto.pad\(sequence\)"):
        sf.ops.pad(PLACES["Sequence"])
    with pytest.raises(TypeError, match=r"^truncate: max_length is missing\n  max_length=an integer"):
        sf.ops.truncate(values, lengths)
    with pytest.raises(
        TypeError, match=r"^truncate: found 3 inputs, expected 2\n  .*by keyword: max_length="
    ):
        sf.ops.truncate(values, lengths, 2)


def test_an_awkward_array_is_told_how_it_becomes_arrow():
    ak = pytest.importorskip("awkward")
    array = ak.Array([[1, 2], [], [3]])
    for call in (sf.from_arrow, sf.open, sf.Loader, lambda one: sf.Sequence(one, [3]), sf.auto.lengths_sum):
        with pytest.raises((sf.SeqflowError, ValueError), match=r"ak\.to_arrow_table"):
            call(array)


@pytest.mark.parametrize("place", ["sf", "Loader", "Record", "sf.ops"])
def test_dir_lists_public_names_only(place):
    names = dir(PLACES[place])
    inside = "Any TYPE_CHECKING import_module renamed printable cursor lod version signature assignment recipe pipeline place "
    inside += "window_maker batches data_fingerprint is_resuming iteration epochs_differ builtins os file"
    assert {*names}.isdisjoint(inside.split())
    assert not any(name.startswith("_") for name in names)
    assert all(hasattr(PLACES[place], name) for name in names)
    if place == "sf":
        assert names == sorted(sf.__all__)
