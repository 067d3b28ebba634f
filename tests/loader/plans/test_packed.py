"""Packed pieces that are padded to a multiple, and whose first elements are filled."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import BatchPlanError

LENGTHS = np.random.default_rng(4).integers(0, 90, 300)
TABLE = pa.table(
    {
        "tokens": [np.full(n, 1 + i) for i, n in enumerate(LENGTHS)],
        "labels": [np.arange(n) for n in LENGTHS],
        "vectors": pa.array(
            [[[i, j] for j in range(n)] for i, n in enumerate(LENGTHS)], pa.list_(pa.list_(pa.int32(), 2))
        ),
    }
)
COLUMNS = ("tokens", "labels", "vectors")


def batches_of(columns=COLUMNS, table=TABLE, capacity=64, options=None, **plan):
    packed = sf.Packed(capacity, columns, rows=5, **plan)
    return list(
        sf.Loader(table, batch=packed, shuffle=True, threads=0, rank=0, world_size=1, **(options or {}))
    )


def pieces_of(batch):
    """For each piece its row, where it begins, its length and that with padding."""
    row = np.repeat(np.arange(batch.num_rows), batch["pieces"])
    padded = batch["padded_lengths"]
    ends = np.cumsum(padded)
    first = np.concatenate([[0], np.cumsum(batch["pieces"])])[row]
    begin = ends - padded - np.concatenate([[0], ends])[first]
    return zip(row, begin, batch["piece_lengths"], padded, strict=True)


@settings(deadline=None, max_examples=30)
@given(
    st.sampled_from([2, 8, 16]),
    st.sampled_from(["best_fit", "first_fit", "concat"]),
    st.sampled_from(["split", "truncate"]),
)
def test_pieces_lie_at_multiples_and_nothing_is_lost(multiple, strategy, oversize):
    batches = batches_of(multiple_of=multiple, strategy=strategy, oversize=oversize, fill=-1)
    seen = []
    for batch in batches:
        assert (batch["padded_lengths"] == -(-batch["piece_lengths"] // multiple) * multiple).all()
        for row, begin, size, padded in pieces_of(batch):
            assert begin % multiple == 0
            assert begin + padded <= 64
            real, behind = slice(begin, begin + size), slice(begin + size, begin + padded)
            assert len({*batch["tokens"][row, real].tolist()}) == 1
            assert (batch["vectors"][row, real, 0] == batch["tokens"][row, real] - 1).all()
            assert (np.diff(batch["labels"][row, real]) == 1).all()
            for name in COLUMNS:
                assert (batch[name][row, behind] == -1).all()
            assert (batch["segment_ids"][row, behind] == 0).all()
            assert len({*batch["segment_ids"][row, real].tolist()}) == 1
            assert (batch["position_ids"][row, begin : begin + padded] == np.arange(padded)).all()
            seen += batch["tokens"][row, real].tolist()
        assert (batch["segment_ids"] > 0).sum() == batch["piece_lengths"].sum()
    expected = np.minimum(LENGTHS, 64) if oversize == "truncate" else LENGTHS
    assert (np.bincount(seen, minlength=301)[1:] == expected).all()


def test_counts_of_an_index_are_those_of_padded_pieces(tmp_path):
    plan = sf.Packed(64, ("tokens",), rows=5, multiple_of=8)
    loader = sf.Loader(
        TABLE, batch=plan, columns=["tokens"], index=tmp_path / "lengths.arrow", rank=0, world_size=1
    )
    assert len(loader) == len(list(loader))


def test_memory_that_is_used_again_changes_nothing():
    for plan in (
        {"multiple_of": 8},
        {"first_fills": {"labels": -100}},
        {"multiple_of": 4, "first_fills": {"tokens": 0}},
    ):
        plain = batches_of(**plan)
        packed = sf.Packed(64, COLUMNS, rows=5, **plan)
        loader = sf.Loader(TABLE, batch=packed, shuffle=True, threads=0, reuse=True, rank=0, world_size=1)
        for batch, other in zip(loader, plain, strict=True):
            for name in other:
                np.testing.assert_array_equal(batch[name], other[name])


@pytest.mark.parametrize("multiple", [1, 8])
def test_the_first_label_of_each_piece_is_filled(multiple):
    plain = batches_of(multiple_of=multiple)
    filled = batches_of(multiple_of=multiple, first_fills={"labels": -100})
    for batch, before in zip(filled, plain, strict=True):
        begins = (batch["position_ids"] == 0) & (batch["segment_ids"] > 0)
        assert begins.sum() == len(batch["piece_lengths"])
        assert (batch["labels"][begins] == -100).all()
        np.testing.assert_array_equal(batch["labels"][~begins], before["labels"][~begins])
        np.testing.assert_array_equal(batch["tokens"], before["tokens"])


def test_totals_count_what_is_filled():
    totals = {"trained": "labels.values != -100", "sum": "labels.values"}
    for balance in (None, sf.Balance(group=4, linear=1)):
        options = {"totals": totals, **({} if balance else {"steps_of": 4})}
        batches = batches_of(first_fills={"labels": -100}, balance=balance, options=options)
        for start in range(0, len(batches), 4):
            step = batches[start : start + 4]
            real = [batch["labels"][batch["segment_ids"] > 0] for batch in step]
            assert step[0]["step.trained"] == sum((labels != -100).sum() for labels in real)
            assert step[0]["step.sum"] == sum(labels.sum() for labels in real)


def test_offsets_of_padded_pieces_are_those_of_transformer_engine():
    torch = pytest.importorskip("torch")
    table = pa.table({"tokens": [[1] * 3, [2] * 5, [3] * 4]})
    packed = sf.Packed(16, ("tokens",), rows=2, multiple_of=4)
    loader = sf.Loader(table, batch=packed, rank=0, world_size=1)
    (batch,) = loader.to("torch", cu_seqlens=True)
    assert batch["cu_seqlens_padded"].tolist() == [0, 8, 12, 16]
    assert batch["cu_seqlens"].tolist() == [0, 5, 8, 12]
    assert batch["max_seqlen"] == 8
    assert batch["cu_seqlens"].dtype == torch.int32


@pytest.mark.parametrize(
    ("plan", "error", "text"),
    [
        ({"multiple_of": 3}, sf.OpError, "capacity is 64, expected a multiple of multiple_of = 3"),
        ({"multiple_of": 0}, sf.OpError, "multiple_of is 0"),
        ({"first_fills": {"ids": 0}}, sf.OpError, "first_fills has 'ids', which is not one of columns"),
        ({"first_fills": {"labels": 0.5}}, sf.OpError, "first_fills of Packed has 'labels'"),
    ],
)
def test_what_does_not_fit_is_an_error(plan, error, text):
    with pytest.raises(error, match=text):
        batches_of(
            table=pa.table({"tokens": [[1]], "labels": [[2]]}), **{"columns": ("tokens", "labels"), **plan}
        )


def test_a_fill_of_what_is_not_packed_is_an_error():
    with pytest.raises(BatchPlanError, match="first_fills has 'ids', which is not packed"):
        batches_of(None, pa.table({"tokens": [[1, 2]]}), first_fills={"ids": 0})


def test_texts_of_plans_without_them_are_as_before():
    assert "multiple_of" not in repr(sf.Packed(8))
    assert repr(sf.Packed(8, multiple_of=2, first_fills={"x": 1})).endswith(
        "oversize='split', multiple_of=2, first_fills={'x': 1})"
    )


CUT = "ids, n = truncate(tokens.values, tokens.lengths, max_length=2)\nreturn ids, n"


@pytest.mark.parametrize(
    ("column", "options", "told"),
    [
        ("tokens", {"prepare": CUT}, "prepare does not return it, .* on what it returns: ids$"),
        ("ids", {"net": CUT}, "net makes it, after .*: make it in prepare; before, there are tokens$"),
        ("token", {}, r"\(did you mean 'tokens'\?\)\n  there are tokens$"),
        ("idz", {"prepare": CUT}, r"\(did you mean 'ids'\?\)\n  there are ids$"),
    ],
)
def test_columns_that_nets_make_or_leave_out_are_explained(column, options, told):
    loader = sf.Loader({"tokens": [[1, 2, 3], [4]]}, batch=sf.Packed(4, (column,)), **options)
    with pytest.raises(sf.errors.BatchPlanError, match=told):
        next(iter(loader))
