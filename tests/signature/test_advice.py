"""An argument in another form: the error names what makes lengths of it."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow import auto, ops
from seqflow.errors import LodError, OpTypeError, SeqflowError

X = np.arange(6.0)
N = np.array([2, 4])
LISTS = [[1, 2], [3]]
FORMS = {
    "a mask by rows": (np.array([[1, 1, 0, 0], [1, 1, 1, 1]], bool), "reduce_sum(mask, axes=1)"),
    "a mask of rows": (np.ones(6, bool), "boolean_mask_lengths(mask, lengths)"),
    "a padded array": (np.array([[5, 6, 0, 0], [7, 8, 9, 9]]), "reduce_sum(padded != fill, axes=1)"),
    "padded floats": (np.ones((2, 3)), "unpad(padded, lengths)"),
    "offsets": (np.array([0, 2, 6]), "offsets_to_lengths(offsets)"),
    "offsets with empty sequences": (np.array([0, 0, 6, 6], np.uint8), "offsets_to_lengths(offsets)"),
    "offsets without the last": (np.array([0, 2]), "offsets_to_lengths(np.append(offsets, 6))"),
    "ids": (np.array([0, 0, 1, 1, 1, 1]), "segment_ids_to_lengths(ids)"),
    "ids from 3 on": (np.array([3, 3, 4, 4, 4, 4], np.int32), "segment_ids_to_lengths(ids)"),
}
CALLS = {
    "op": lambda lengths: ops.lengths_sum(X, lengths),
    "net": lambda lengths: sf.run("y = lengths_sum(x, n)", {"x": X, "n": lengths}),
    "group": lambda lengths: ops.concat_sequences([X, X], [N, lengths]),
    "Sequence": lambda lengths: sf.Sequence(X, lengths),
    "levels": lambda lengths: sf.LoD(lengths, [1] * 6),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
@pytest.mark.parametrize(("given", "advice"), FORMS.values(), ids=FORMS)
def test_the_op_that_makes_lengths_is_named(call, given, advice):
    with pytest.raises(SeqflowError) as error:
        call(given)
    assert advice in error.value.advice


def test_the_named_ops_make_these_lengths():
    """The advice is followed."""
    mask, _ = FORMS["a mask by rows"]
    padded, _ = FORMS["a padded array"]
    assert ops.reduce_sum(mask, axes=1).tolist() == mask.sum(axis=1).tolist()
    assert ops.unpad(padded, ops.reduce_sum(padded != 0, axes=1)).tolist() == [5, 6, 7, 8, 9, 9]
    assert ops.offsets_to_lengths(FORMS["offsets"][0]).tolist() == N.tolist()
    assert ops.offsets_to_lengths(np.append(FORMS["offsets without the last"][0], 6)).tolist() == N.tolist()
    assert ops.segment_ids_to_lengths(FORMS["ids"][0]).tolist() == N.tolist()


def test_a_padded_array_where_rows_belong_is_to_be_flattened():
    with pytest.raises(LodError, match=r"unpad\(data, lengths\)"):
        ops.lengths_sum(np.ones((2, 3)), np.array([1, 3]))


@pytest.mark.parametrize("lengths", [[2, 3], [9, 9], [-1, 7], [4, 1, 2]])
def test_lengths_that_are_only_wrong_get_no_such_advice(lengths):
    with pytest.raises(LodError) as error:
        ops.lengths_sum(X, np.array(lengths))
    assert error.value.advice == ""


def columns():
    polars = pytest.importorskip("polars")
    even = [[1, 2], [3, 4]]
    return [
        pd.Series(LISTS), pd.Series([None, *LISTS]), pd.Series(even), pa.array(LISTS), pa.array(even),
        pa.chunked_array([LISTS]), polars.Series(LISTS), polars.Series(even),
    ]  # fmt: skip


def test_columns_of_lists_are_to_be_given_to_from_arrow():
    for column in columns():
        for call in (
            lambda one: ops.lengths_sum(X, one),
            lambda one: ops.lengths_sum(one, N),
            lambda one: sf.Sequence(X, one),
            lambda one: sf.run("y = lengths_sum(x, n)", {"x": X, "n": one}),
        ):
            with pytest.raises(SeqflowError, match="from_arrow"):
                call(column)
    with pytest.raises(OpTypeError, match="from_lists"):
        ops.lengths_sum(LISTS, N)


ARGUMENTS = {
    "max_len": (lambda call: call(X, N, max_len=3), "pad", "did you mean 'max_length'"),
    "an input": (lambda call: call(X, lenghts=N), "pad", "did you mean 'lengths'"),
    "causal": (
        lambda call: call(X.reshape(6, 1, 1), N, X.reshape(6, 1, 1), X.reshape(6, 1, 1), causal=True),
        "attention_within",
        "after=0",
    ),
    "no near one": (lambda call: call(X, N, qqq=3), "pad", "expected data, lengths, max_length, fill"),
}


@pytest.mark.parametrize(("call", "name", "advice"), ARGUMENTS.values(), ids=ARGUMENTS)
def test_an_unknown_argument_names_the_nearest_one(call, name, advice):
    with pytest.raises(TypeError) as error:
        call(getattr(ops, name))
    assert f"{name}: there is no argument" in str(error.value)
    assert advice in str(error.value)


def test_nets_and_sequences_name_the_argument_too():
    for call in (
        lambda: sf.Net("y, mask = pad(x, n, max_len=3)"),
        lambda: auto.pad(sf.Sequence(X, N), max_len=3),
    ):
        with pytest.raises(SeqflowError, match="did you mean 'max_length'"):
            call()
    with pytest.raises(SeqflowError, match=r"'causal' \(after=0 lets a query see no later key"):
        sf.Net("y, lse = attention_within(q, n, q, q, causal=true)")


def test_inputs_and_attributes_of_a_users_op_may_have_any_name():
    def named_freely(extra, unknown, *, check: int = 0, args: int = 1):
        """Return the sum."""
        return extra + unknown + check + args

    call = sf.op("extra[N], unknown[N] -> y[N]")(named_freely)
    try:
        assert call(np.arange(2), unknown=np.arange(2), check=3).tolist() == [4, 6]
    finally:
        from seqflow.registry.lookup import unregister

        unregister("named_freely")
