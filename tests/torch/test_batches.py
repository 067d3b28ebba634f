"""Batches as PyTorch tensors, and what attention and recurrent layers take."""

import itertools
import warnings

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
import seqflow.torch as st_torch

torch = pytest.importorskip("torch")

LISTS = {
    "tokens": pa.array([[1, 2, 3], [4], [5, 6], [7, 8, 9, 10]], pa.list_(pa.int32())),
    "label": [0, 1, 2, 3],
}


def test_tensors_share_the_memory_of_the_batch():
    loader = sf.Loader(LISTS, shuffle=True, batch=2, pad={"tokens": sf.Pad(dtype="int64")})
    batch = loader.take(1)[0]
    tensors = st_torch.to_tensors(batch)
    assert {name: tensor.data_ptr() for name, tensor in tensors.items()} == {
        name: batch[name].ctypes.data for name in batch
    }
    assert tensors["tokens"].dtype == torch.int64
    assert tensors["tokens.mask"].dtype == torch.bool


@pytest.mark.parametrize("shuffle", [False, True])
def test_no_warning_about_memory_that_may_not_be_written(shuffle):
    loader = sf.Loader(LISTS, shuffle=shuffle, batch=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for batch in loader.to("torch"):
            batch["tokens.values"] += 1
    assert next(iter(loader))["label"].tolist() == next(iter(loader))["label"].tolist()


def test_integers_become_int64_where_asked_for():
    loader = sf.Loader(LISTS, batch=4)
    assert next(iter(loader.to("torch")))["tokens.values"].dtype == torch.int32
    assert next(iter(loader.to("torch", int64=True)))["tokens.values"].dtype == torch.int64
    named = next(iter(loader.to("torch", int64=["tokens.values"])))
    assert named["tokens.values"].dtype == torch.int64


def test_integers_that_int64_has_not_and_names_of_no_integers_are_refused():
    batch = {"id": np.array([1, 2**64 - 1], np.uint64), "score": np.array([0.5, 1.0], np.float32)}
    with pytest.raises(sf.OpError, match=r"id is uint64 and has 18446744073709551615 at 1, expected at most"):
        st_torch.to_tensors(batch, int64=True)
    assert st_torch.to_tensors(batch)["id"].dtype == torch.uint64
    with pytest.raises(TypeError, match="score is float32, expected integers"):
        st_torch.to_tensors(batch, int64=["score"])
    with pytest.raises(KeyError, match=r"no tensor 'ids' .did you mean 'id'"):
        st_torch.to_tensors(batch, int64=["ids"])


def test_arrays_that_run_backwards_are_copied():
    assert st_torch.to_tensors({"x": np.arange(3)[::-1]})["x"].tolist() == [2, 1, 0]


def test_to_keeps_epoch_state_and_length():
    loader = sf.Loader(LISTS, shuffle=True, batch=1)
    tensors = loader.to("torch")
    assert tensors
    batches = iter(tensors)
    next(batches)
    state = tensors.state_dict()
    assert (len(tensors), tensors.epoch, state["batch"]) == (4, 0, 1)
    tensors.load_state_dict(state)
    assert len(list(tensors)) == 3
    assert tensors.epoch == 1
    assert tensors.stats().batches == 3
    with pytest.raises(sf.OpError, match="library is 'tensorflow', expected 'torch'"):
        loader.to("tensorflow")


def test_a_dtype_that_torch_has_not_is_named():
    with pytest.raises(sf.OpError, match=r"day is datetime64\[D\]\[1\], which PyTorch does not have"):
        st_torch.to_tensors({"day": np.array(["2020-01-01"], "datetime64[D]")})


@pytest.fixture
def packed():
    lists = pa.array([[1] * 5, [2] * 3, [3] * 4, [4] * 2, [5] * 1], pa.list_(pa.int64()))
    return next(iter(sf.Loader({"tokens": lists}, batch=sf.Packed(8))))


def test_cu_seqlens_are_the_offsets_of_pieces_and_padding(packed):
    offsets, longest = st_torch.cu_seqlens(packed)
    flat = packed["segment_ids"].ravel()
    assert offsets.dtype == torch.int32
    assert (int(offsets[0]), int(offsets[-1])) == (0, flat.size)
    pieces = [flat[start:stop] for start, stop in itertools.pairwise(offsets)]
    assert all(len(set(piece.tolist())) == 1 for piece in pieces)
    assert longest == max(map(len, pieces)) == 5
    assert st_torch.cu_seqlens(st_torch.to_tensors(packed)).max_seqlen == 5


def test_packed_batches_bring_what_variable_length_attention_takes_on_request():
    lists = pa.array([[1] * 5, [2] * 3, [3] * 4, [4] * 2, [5] * 1], pa.list_(pa.int64()))
    loader = sf.Loader({"tokens": lists}, batch=sf.Packed(8, rows=1))
    datasets = [loader.to("torch", int64=True, cu_seqlens=True), st_torch.iterable(loader, cu_seqlens=True)]
    for dataset in datasets:
        for batch in dataset:
            assert batch["cu_seqlens"].dtype == torch.int32
            assert int(batch["cu_seqlens"][-1]) == batch["tokens"].numel()
            assert batch["max_seqlen"] == int(batch["cu_seqlens"].diff().max())
    assert "cu_seqlens" not in next(iter(loader.to("torch")))
    with pytest.raises(sf.OpError, match="the batch has a tensor max_seqlen already"):
        st_torch.to_tensors({"max_seqlen": np.zeros(3)}, cu_seqlens=True)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_over_packed_rows_is_attention_over_each_piece(packed, causal):
    torch.manual_seed(0)
    rows, capacity = packed["tokens"].shape
    q, k, v = (torch.randn(rows, 2, capacity, 4) for _ in range(3))
    mask = st_torch.block_diagonal_mask(packed, causal=causal)
    found = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    ids = torch.from_numpy(packed["segment_ids"])
    for row in range(rows):
        for piece in ids[row].unique():
            at = ids[row] == piece
            alone = torch.nn.functional.scaled_dot_product_attention(
                q[row, :, at], k[row, :, at], v[row, :, at], is_causal=causal
            )
            torch.testing.assert_close(found[row, :, at], alone)


def test_a_mask_is_made_of_a_whole_batch(packed):
    with pytest.raises(
        sf.OpError, match="batch is ndarray, expected a packed batch, which maps names to tensors"
    ):
        st_torch.block_diagonal_mask(packed["segment_ids"])


@pytest.mark.parametrize("causal", [False, True])
def test_a_block_mask_says_the_same(packed, causal):
    block_mask = st_torch.flex_block_mask(packed, causal=causal)
    rows, capacity = packed["segment_ids"].shape
    dense = st_torch.block_diagonal_mask(packed, causal=causal)
    index = torch.arange(capacity)
    found = torch.stack(
        [block_mask.mask_mod(torch.tensor(r), 0, index[:, None], index[None, :]) for r in range(rows)]
    )
    assert torch.equal(found[:, None], dense)
    assert block_mask.shape == (rows, 1, capacity, capacity)


def test_a_batch_that_is_not_packed_is_refused():
    with pytest.raises(sf.OpError, match="no segment_ids, expected a packed batch"):
        st_torch.cu_seqlens({"tokens": np.zeros(3)})


LENGTHS = st.lists(st.integers(0, 5), max_size=6)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_tensors_of_both_layouts_have_values_and_lengths(layout):
    parts = [torch.ones(2, 3), torch.zeros(1, 3), torch.full((3, 3), 2.0)]
    values, lengths = st_torch.from_nested(torch.nested.nested_tensor(parts, layout=layout))
    assert (values.shape, values.dtype, lengths.tolist()) == ((6, 3), np.float32, [2, 1, 3])
    assert values.tolist() == torch.cat(parts).tolist()


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors is in prototype")
@pytest.mark.parametrize(
    "tensor",
    [
        lambda: torch.ones(2, 3),
        lambda: torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 4)]),
        lambda: torch.nested.nested_tensor([torch.tensor(1.0), torch.tensor(2.0)]),
        lambda: torch.nested.nested_tensor(
            [torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged
        ).transpose(1, 2),
    ],
)
def test_nested_tensors_without_one_ragged_axis_are_refused(tensor):
    with pytest.raises(sf.LodError, match="from_nested"):
        st_torch.from_nested(tensor())


@given(LENGTHS)
def test_nested_tensors_and_back(lengths):
    values = np.arange(sum(lengths) * 2.0).reshape(-1, 2)
    nested = st_torch.to_nested(values, np.array(lengths, np.int64))
    assert nested.values().data_ptr() == torch.from_numpy(values).data_ptr() or not len(values)
    again, back = st_torch.from_nested(nested)
    assert np.array_equal(again, values)
    assert back.tolist() == lengths


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_packed_sequences_are_those_of_torch_and_back(lengths):
    values = np.arange(sum(lengths) * 2.0).reshape(-1, 2)
    packed = st_torch.to_packed_sequence(values, np.array(lengths))
    padded = torch.nn.utils.rnn.pad_sequence(torch.from_numpy(values).split(lengths), batch_first=True)
    expected = torch.nn.utils.rnn.pack_padded_sequence(
        padded, torch.tensor(lengths), batch_first=True, enforce_sorted=False
    )
    assert torch.equal(packed.batch_sizes, expected.batch_sizes)
    padded_again, counts = torch.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    assert torch.equal(padded_again, padded)
    assert counts.tolist() == lengths
    for one in (packed, expected):
        again, back = st_torch.from_packed_sequence(one)
        assert np.array_equal(again, values)
        assert back.tolist() == lengths


def test_lengths_that_do_not_fit_are_refused():
    with pytest.raises(sf.LodError, match=r"sum\(lengths\) is 4 but values has 3 rows"):
        st_torch.to_nested(np.zeros(3), np.array([4]))
    with pytest.raises(sf.LodError, match=r"lengths\[1\] is 0, expected sequences of 1 or more"):
        st_torch.to_packed_sequence(np.zeros(3), np.array([3, 0]))


@pytest.mark.parametrize("convert", [st_torch.to_nested, st_torch.to_packed_sequence])
@pytest.mark.parametrize("lengths", [[1], [2, 1, 1]])
def test_lengths_that_add_up_to_fewer_or_more_rows_are_refused(convert, lengths):
    with pytest.raises(sf.LodError, match=rf"sum\(lengths\) is {sum(lengths)} but values has 3 rows"):
        convert(np.zeros((3, 2), np.float32), np.array(lengths))


def test_bytes_and_pixels_stay_bytes_unless_they_are_named():
    batch = {"patches": np.zeros((2, 12), np.uint8), "n": np.array([1, 2], np.uint16)}
    tensors = st_torch.to_tensors(batch, int64=True)
    assert (tensors["patches"].dtype, tensors["n"].dtype) == (torch.uint8, torch.int64)
    assert st_torch.to_tensors(batch, int64=["patches"])["patches"].dtype == torch.int64


def test_cu_seqlens_of_lengths_are_those_of_sequences_end_to_end():
    for lengths in (np.array([24, 0, 6], np.uint16), torch.tensor([24, 0, 6])):
        offsets, longest = st_torch.cu_seqlens(lengths=lengths)
        assert (offsets.dtype, offsets.tolist(), longest) == (torch.int32, [0, 24, 24, 30], 24)
    assert st_torch.cu_seqlens(lengths=np.array([])).cu_seqlens.tolist() == [0]
    for wrong, message in (
        ([-1], r"lengths\[0\] = -1 is negative"),
        ([[1]], r"lengths is int64\[1, 1\], expected integers of one axis"),
        ([0.5], r"lengths is float64\[1\], expected integers of one axis"),
    ):
        with pytest.raises(sf.LodError, match=message):
            st_torch.cu_seqlens(lengths=np.array(wrong))
    with pytest.raises(sf.OpError, match=r"sum\(lengths\) is 2147483648, expected at most 2147483647"):
        st_torch.cu_seqlens(lengths=np.array([2**31]))


def test_cu_seqlens_are_of_a_batch_or_of_lengths(packed):
    with pytest.raises(TypeError, match="batch and lengths are both given"):
        st_torch.cu_seqlens(packed, lengths=np.array([1]))
    with pytest.raises(TypeError, match="batch is NoneType, expected a packed batch"):
        st_torch.cu_seqlens()


@pytest.fixture
def with_images():
    """Packed rows of documents in which some tokens are of images: two that touch, one that is cut."""
    images = [[0, 1, 1, 2, 2], [0, 1, 1], [1, 1, 0, 2], [0, 0], [1]]
    table = {"tokens": pa.array([[7] * len(one) for one in images]), "images": pa.array(images)}
    return next(iter(sf.Loader(table, batch=sf.Packed(8, ("tokens", "images"), rows=3))))


def test_tokens_of_an_image_attend_to_all_of_it(with_images):
    mask = st_torch.block_diagonal_mask(with_images, image_ids="images")[:, 0]
    segments, images = with_images["segment_ids"], with_images["images"]
    for row, query, key in np.ndindex(*mask.shape):
        same = segments[row, query] == segments[row, key]
        in_image = images[row, query] == images[row, key] > 0
        assert bool(mask[row, query, key]) == (same and (query >= key or in_image))
    assert (mask != st_torch.block_diagonal_mask(with_images)[:, 0]).any()
    both_ways = st_torch.block_diagonal_mask(with_images, causal=False, image_ids="images")
    assert torch.equal(both_ways, st_torch.block_diagonal_mask(with_images, causal=False))


def test_a_block_mask_of_images_says_the_same(with_images):
    block_mask = st_torch.flex_block_mask(with_images, image_ids="images")
    dense = st_torch.block_diagonal_mask(with_images, image_ids="images")
    rows, capacity = with_images["segment_ids"].shape
    index = torch.arange(capacity)
    found = [block_mask.mask_mod(torch.tensor(r), 0, index[:, None], index[None, :]) for r in range(rows)]
    assert torch.equal(torch.stack(found)[:, None], dense)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_mask_of_floats_is_added_to_scores(packed, dtype):
    mask = st_torch.block_diagonal_mask(packed)
    added = st_torch.block_diagonal_mask(packed, dtype=dtype)
    assert added.dtype == dtype
    assert torch.equal(added == 0, mask)
    assert (added[~mask] == torch.finfo(dtype).min).all()


@pytest.mark.parametrize("dtype", [torch.int32, "float32"])
def test_a_mask_is_of_bools_or_floats(packed, dtype):
    with pytest.raises(TypeError, match=f"dtype is {dtype}, expected a float dtype of torch, or None"):
        st_torch.block_diagonal_mask(packed, dtype=dtype)


def test_position_ids_are_those_of_the_text_and_then_of_time_height_and_width():
    lists = pa.array([[1] * 5, [2] * 3, [3] * 4], pa.list_(pa.int64()))
    places = [[[k, k + 10, k + 20] for k in range(len(one))] for one in lists]
    table = {"tokens": lists, "mrope": pa.array(places, pa.list_(pa.list_(pa.int64(), 3)))}
    batch = next(iter(sf.Loader(table, batch=sf.Packed(8, ("tokens", "mrope")))))
    text = st_torch.position_ids(batch)
    assert (text.dtype, text.tolist()) == (torch.int64, batch["position_ids"].tolist())
    found = st_torch.position_ids(batch, mrope="mrope")
    rows, capacity = text.shape
    assert found.shape == (4, rows, capacity)
    assert torch.equal(found[0], text)
    for axis in range(3):
        assert found[1 + axis].tolist() == batch["mrope"][:, :, axis].tolist()
    assert torch.equal(st_torch.position_ids(st_torch.to_tensors(batch), mrope="mrope"), found)


def test_tensors_of_packed_tokens_have_an_entry_for_each(packed):
    with pytest.raises(KeyError, match=r"mrope: the batch has no tensor 'tokns' .did you mean 'tokens'"):
        st_torch.position_ids(packed, mrope="tokns")
    rows, capacity = packed["tokens"].shape
    expected = rf"mrope: tokens is int64\[{rows}, {capacity}\], expected integers \[{rows}, {capacity}, 3\]"
    with pytest.raises(sf.ShapeError, match=expected):
        st_torch.position_ids(packed, mrope="tokens")
    for mask in (st_torch.block_diagonal_mask, st_torch.flex_block_mask):
        with pytest.raises(KeyError, match="image_ids: the batch has no tensor 'images'"):
            mask(packed, image_ids="images")
        with pytest.raises(sf.ShapeError, match=r"image_ids: pieces is int64.*one entry for each token"):
            mask(packed, image_ids="pieces")
