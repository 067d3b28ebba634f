"""Sequences divided among the ranks of context parallelism: their attention is that of whole ones."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow import ops
from seqflow.errors import LodError

ORDERS = ["zigzag", "zigzag_row", "contiguous"]
RNG = np.random.default_rng(3)


def attention(queries, keys, values, query_at, key_at):
    """Causal attention inside documents: `…_at` are pairs of a document and a position."""
    seen = (query_at[:, None, 0] == key_at[None, :, 0]) & (query_at[:, None, 1] >= key_at[None, :, 1])
    scores = np.where(seen, queries @ keys.T / np.sqrt(queries.shape[1]), -np.inf)
    return scores, values


def softmax_over_ring(blocks):
    """The softmax over keys that come in blocks, with a running maximum and sum."""
    most = total = result = None
    for scores, values in blocks:
        own = scores.max(axis=1, initial=-np.inf)
        new = own if most is None else np.maximum(most, own)
        safe = np.where(np.isinf(new), 0.0, new)
        weights = np.exp(scores - safe[:, None])
        if most is None:
            total, result = weights.sum(axis=1), weights @ values
        else:
            scale = np.where(np.isinf(most), 0.0, np.exp(most - safe))
            total, result = total * scale + weights.sum(axis=1), result * scale[:, None] + weights @ values
        most = new
    return result / total[:, None]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("parts", range(1, 9))
def test_attention_over_shards_is_that_of_whole_sequences(parts, order):
    lengths = 2 * parts * RNG.integers(0, 4, 5)
    rows = int(lengths.sum())
    queries, keys, values = RNG.normal(size=(3, rows, 4))
    positions = np.concatenate([np.arange(n) for n in lengths])
    at = np.stack([np.repeat(np.arange(5), lengths), positions], axis=1)
    whole = softmax_over_ring([attention(queries, keys, values, at, at)])
    shards = [
        [
            ops.shard_sequences(each, lengths, parts=parts, part=part, order=order).values
            for each in (queries, keys, values, at)
        ]
        for part in range(parts)
    ]
    found = []
    for part in range(parts):
        q, _, _, q_at = shards[part]
        ring = [shards[(part - turn) % parts] for turn in range(parts)]
        found.append(softmax_over_ring([attention(q, k, v, q_at, k_at) for _, k, v, k_at in ring]))
    together = ops.unshard_sequences(np.concatenate(found), lengths, parts=parts, order=order).values
    np.testing.assert_allclose(together, whole, atol=1e-12)


@given(st.integers(1, 4), st.lists(st.integers(0, 4), max_size=6), st.sampled_from(ORDERS))
def test_shares_are_equal_and_make_the_whole_again(parts, counts, order):
    lengths = 2 * parts * np.array(counts, np.int64)
    data = np.arange(int(lengths.sum()))
    shares = [
        ops.shard_sequences(data, lengths, parts=parts, part=part, order=order) for part in range(parts)
    ]
    assert {len(share.values) for share in shares} == {len(data) // parts}
    assert (sum(share.lengths for share in shares) == lengths).all()
    owner = np.repeat(np.arange(len(lengths)), lengths)
    for share in shares:
        assert (owner[share.values] == np.repeat(np.arange(len(lengths)), share.lengths)).all()
        if order == "zigzag":
            assert (share.lengths == lengths // parts).all()
    whole = ops.unshard_sequences(
        np.concatenate([share.values for share in shares]), lengths, parts=parts, order=order
    ).values
    np.testing.assert_array_equal(whole, data)


def test_zigzag_is_the_rule_of_transformer_engine():
    """Local offset i of a document of n is in chunk r or 2 * parts - 1 - r, of n / (2 * parts) each."""
    parts, lengths = 3, np.array([12, 6])
    for part in range(parts):
        expected = []
        for start, n in ((0, 12), (12, 6)):
            chunk = n // (2 * parts)
            for i in range(n // parts):
                of = part if i < chunk else 2 * parts - 1 - part
                expected.append(start + of * chunk + i % chunk)
        found = ops.shard_sequences(np.arange(18), lengths, parts=parts, part=part).values
        assert found.tolist() == expected


def test_all_ranks_have_the_same_causal_work():
    lengths = np.array([16, 48, 8])
    positions = np.concatenate([np.arange(n) for n in lengths])
    work = [ops.shard_sequences(positions + 1, lengths, parts=4, part=part).values.sum() for part in range(4)]
    assert len(set(work)) == 1


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            {"lengths": [4, 6], "parts": 2, "part": 0},
            LodError,
            r"sequence 1 has 6 rows, expected a multiple of 2 \* parts = 4",
        ),
        (
            {"lengths": [4, 5], "parts": 2, "part": 0, "order": "contiguous"},
            LodError,
            "together have 9 rows, expected a multiple of parts = 2",
        ),
        (
            {"lengths": [4, 6], "parts": 2, "part": 0, "order": "zigzag_row"},
            LodError,
            "together have 10 rows",
        ),
        ({"lengths": [4, 4], "parts": 2, "part": 2}, sf.OpError, "part is 2, expected less than parts = 2"),
        ({"lengths": [4, 4], "parts": 0, "part": 0}, sf.OpError, "parts is 0"),
        ({"lengths": [4, 4], "parts": 2, "part": 0, "order": "zagzig"}, sf.OpError, "order is 'zagzig'"),
    ],
)
def test_what_cannot_be_divided_is_an_error(call, error, text):
    lengths = np.array(call.pop("lengths"))
    with pytest.raises(error, match=text):
        ops.shard_sequences(np.arange(lengths.sum()), lengths, **call)


def test_shares_that_are_not_all_there_are_an_error():
    with pytest.raises(LodError, match="data has 6 rows, expected the sum of lengths, 8"):
        ops.unshard_sequences(np.arange(6), np.array([4, 4]), parts=2)


def test_a_packed_batch_is_divided_by_its_padded_lengths():
    table = pa.table({"tokens": [np.arange(n) for n in (5, 9, 16, 3, 7)]})
    packed = sf.Packed(32, ("tokens",), rows=2, multiple_of=4)
    (batch,) = sf.Loader(table, batch=packed, rank=0, world_size=1)
    lengths = ops.packed_cu_seqlens(batch["padded_lengths"], batch["pieces"], capacity=32)
    shards = [
        ops.shard_sequences(batch["tokens"].ravel(), np.diff(lengths), parts=2, part=part).values
        for part in (0, 1)
    ]
    whole = ops.unshard_sequences(np.concatenate(shards), np.diff(lengths), parts=2).values
    np.testing.assert_array_equal(whole, batch["tokens"].ravel())
