"""Tensors: specs, views without copies, slices, Arrow tensor messages."""

import gc
import mmap

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow.errors import OpError, OpTypeError, ShapeError
from seqflow.shape import PartialShape
from seqflow.tensor import TensorSlice, TensorSpec, buffer, describe, from_message, to_message, view

# Specs


def test_a_spec_has_a_dtype_a_shape_and_rows():
    spec = TensorSpec("float32", "{sum(lengths),8}", rows="words")
    assert spec.dtype == np.float32
    assert spec.shape == PartialShape.parse("{sum(lengths),8}")
    assert spec.rows == "words"
    assert str(spec) == "float32{sum(lengths),8}"
    assert spec == TensorSpec(np.float32, spec.shape, "words")
    assert spec != TensorSpec(np.float32, spec.shape)


def test_a_spec_bounds_the_bytes():
    assert TensorSpec("int16", "{0..10,3}").byte_bound == 60
    assert TensorSpec("int16", "{B,3}").byte_bound is None
    assert TensorSpec.of(np.zeros((2, 3))).byte_bound == 48


# Views


def test_twelve_elements_are_seen_in_many_shapes_over_one_buffer():
    values = np.arange(12)
    for shape in [(1, 12), (3, 4), (2, 6), (3, 2, 2), (12,)]:
        seen = view(values, shape)
        assert seen.shape == shape
        assert np.shares_memory(seen, values)
        assert describe(seen).owner is values


def test_a_view_takes_a_shape_and_one_open_size():
    assert view(np.arange(6), PartialShape([2, 3])).shape == (2, 3)
    assert view(np.arange(6), (2, -1)).shape == (2, 3)
    assert view(np.zeros((0, 3)), (3, 0)).shape == (3, 0)
    assert view(np.float64(3), ()).shape == ()


@pytest.mark.parametrize("shape", [(5,), (-1, -1), (4, -1), (-2, 6), (1,) * 300])
def test_a_view_that_does_not_fit_is_refused(shape):
    with pytest.raises(ShapeError, match="view: 6 elements of shape"):
        view(np.arange(6), shape)


def test_a_view_never_copies():
    with pytest.raises(ShapeError, match="without a copy, its strides are"):
        view(np.arange(6).reshape(2, 3).T, (6,))


def test_a_view_of_an_unknown_shape_is_refused():
    with pytest.raises(ShapeError, match="expected a static shape"):
        view(np.arange(6), PartialShape.parse("{2,?}"))


# Memory


def test_a_description_says_where_an_array_lies():
    values = np.arange(12, dtype=np.int32)
    found = describe(values.reshape(3, 4)[:, ::2])
    assert found == (np.int32, (3, 2), (16, 8), 24, values)


def test_the_owner_of_foreign_memory_is_found():
    data = b"12345678"
    assert describe(np.frombuffer(data, np.int32)).owner is data
    with mmap.mmap(-1, 64) as memory:
        array = np.frombuffer(memory, np.uint8)
        assert describe(array[3:]).owner is memory
        del array


@pytest.mark.slow
def test_a_buffer_holds_the_memory_alone():
    values = np.arange(3, dtype=np.int16)
    held = buffer(values)
    values[1] = 258
    assert held.tolist() == [0, 0, 2, 1, 2, 0]
    assert not held.flags.writeable
    assert describe(held).owner is values
    del values
    gc.collect()
    assert held.tolist() == [0, 0, 2, 1, 2, 0]


def test_a_buffer_spans_an_array_with_gaps():
    values = np.arange(10, dtype=np.uint8)
    assert buffer(values[1:8:3]).tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert buffer(values[7:1:-3]).tolist() == [4, 5, 6, 7]
    assert buffer(values[:0]).nbytes == 0


def test_there_is_no_buffer_of_objects():
    with pytest.raises(OpTypeError, match="Python objects"):
        buffer(np.array([None]))


# Slices


def test_a_slice_is_made_from_nothing_a_rank_pairs_a_message_or_text():
    assert TensorSlice().rank == 0
    assert TensorSlice.full(2) == TensorSlice.parse("-:-")
    assert TensorSlice.full(2).is_full
    part = TensorSlice((0, 0), (None, 10))
    assert TensorSlice.from_pairs([(0, None), (0, 10)]) == part
    assert TensorSlice.from_message({"extent": [{}, {"start": 0, "length": 10}]}) == part
    assert TensorSlice.parse("-:0,10") == part
    assert not part.is_full
    assert str(part) == "-:0,10"


def test_a_slice_shares_the_memory_of_the_array():
    values = np.arange(60).reshape(3, 20)
    part = TensorSlice.parse("-:5,10").apply(values)
    assert part.tolist() == values[:, 5:15].tolist()
    assert np.shares_memory(part, values)
    assert np.shares_memory(TensorSlice().apply(np.array(3)), np.array(3)) is False
    scalar = np.array(3)
    assert TensorSlice().apply(scalar).base is scalar


def test_a_slice_of_a_shape():
    assert str(TensorSlice.parse("-:0,10").apply_to_shape("{B,20}")) == "{B,10}"
    assert str(TensorSlice.parse("-:0,10").apply_to_shape("?")) == "{?,10}"
    with pytest.raises(ShapeError, match="15,10 ends after axis 1, which has 20 elements"):
        TensorSlice.parse("-:15,10").apply_to_shape("{B,20}")


def test_a_slice_that_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match="15,10 ends after axis 0, which has 20 elements"):
        TensorSlice.parse("15,10").apply(np.zeros(20))
    with pytest.raises(ShapeError, match="rank 1 but the tensor has shape"):
        TensorSlice.parse("-").apply(np.zeros((2, 2)))


@pytest.mark.parametrize(
    ("left", "right", "both"),
    [
        ("-:-", "-:-", "-:-"),
        ("-:0,10", "2,3:5,10", "2,3:5,5"),
        ("0,5", "5,5", None),
        ("0,5", "4,5", "4,1"),
        ("3,0", "0,9", None),
        ("", "", ""),
    ],
)
def test_intersection(left, right, both):
    a, b = TensorSlice.parse(left), TensorSlice.parse(right)
    found = a.intersect(b)
    assert (None if found is None else str(found)) == both
    assert found == b.intersect(a)
    assert a.overlaps(b) == (both is not None)


def test_slices_of_different_ranks_do_not_intersect():
    with pytest.raises(ShapeError, match="has rank 1 but"):
        TensorSlice.full(1).intersect(TensorSlice.full(2))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-:0", "found '0' at column 3"),
        ("0,-1", "found '0,-1' at column 1"),
        ("-::-", "found '' at column 3"),
        ("1,2,3", "found '1,2,3' at column 1"),
        ("-:1, 2", "found '1, 2' at column 3"),
        ("9" * 5000 + ",1", "found '999"),
    ],
)
def test_malformed_text_of_a_slice_is_an_error_with_a_column(text, message):
    with pytest.raises(ShapeError) as error:
        TensorSlice.parse(text)
    assert message in str(error.value)


@pytest.mark.parametrize(
    "make",
    [
        lambda: TensorSlice((0,), ()),
        lambda: TensorSlice((-1,), (2,)),
        lambda: TensorSlice((1,), (None,)),
        lambda: TensorSlice.from_message({"extent": [{"start": 1}]}),
        lambda: TensorSlice.from_message({"extent": [{"start": "1", "length": 2}]}),
        lambda: TensorSlice.from_message({"extent": [{"start": None, "length": 3}]}),
        lambda: TensorSlice((10**5000,), (1,)),
        lambda: TensorSlice(("a",), (1,)),
        lambda: TensorSlice((0,), (0.5,)),
        lambda: TensorSlice.from_message({"extents": []}),
        lambda: TensorSlice.from_message({"extent": 3}),
    ],
)
def test_a_malformed_slice_is_refused(make):
    with pytest.raises(ShapeError, match="slice: "):
        make()


extents = st.just((0, None)) | st.tuples(st.integers(0, 9), st.integers(0, 9))


@given(st.lists(extents, max_size=4).map(TensorSlice.from_pairs))
def test_text_and_message_give_the_slice_back(part):
    assert TensorSlice.parse(str(part)) == part
    assert TensorSlice.from_message(part.to_message()) == part


@given(st.lists(st.tuples(extents, extents), max_size=3))
def test_the_intersection_holds_what_is_in_both(pairs):
    a = TensorSlice.from_pairs(left for left, _ in pairs)
    b = TensorSlice.from_pairs(right for _, right in pairs)
    positions = np.arange(20 ** len(pairs)).reshape((20,) * len(pairs))
    expected = np.intersect1d(a.apply(positions), b.apply(positions))
    both = a.intersect(b)
    assert (both.apply(positions).ravel().tolist() if both else []) == expected.tolist()


# Messages


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6.0).reshape(2, 3),
        np.arange(6, dtype=np.int8).reshape(2, 3).T,
        np.array(3.5, np.float16),
        np.zeros((0, 4), np.int32),
        np.arange(24).reshape(2, 3, 4)[:, ::2],
        np.arange(4, dtype=">u4"),
        np.array([[True, False], [False, True]]).T,
        np.array(True),
        np.zeros((0, 3), np.bool_),
        np.zeros((3, 0), "M8[s]"),
        np.array(["2020-01-01", "NaT"], "M8[D]"),
        np.array(3, ">m8[us]"),
    ],
)
def test_a_message_gives_the_array_back_over_its_own_buffer(array):
    message = to_message(array)
    found = from_message(message)
    assert found.dtype == array.dtype.newbyteorder("=")
    assert found.shape == array.shape
    assert found.tolist() == array.tolist()
    assert not found.flags.writeable
    if array.size:
        assert message.address <= found.ctypes.data < message.address + message.size


@pytest.mark.slow
def test_a_message_is_kept_alive_by_its_array():
    found = from_message(to_message(np.arange(1000)))
    gc.collect()
    assert found.sum() == 499500


def test_a_message_may_be_bytes():
    data = to_message(np.arange(4)).to_pybytes()
    found = from_message(data)
    assert found.tolist() == [0, 1, 2, 3]
    assert np.shares_memory(found, np.frombuffer(data, np.uint8))


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([b"a"]), np.array([1j]), np.array([None])])
def test_what_arrow_tensors_do_not_hold_is_refused(array):
    with pytest.raises(OpTypeError, match="expected integers, floats, bools or times"):
        to_message(array)


def test_a_byte_that_is_no_bool_is_found_in_a_message():
    data = to_message(np.array([True, False] * 20)).to_pybytes()
    with pytest.raises(OpError, match="a bool is 7, expected 0 or 1"):
        from_message(data.replace(b"\1\0\1\0\1\0", b"\1\0\7\0\1\0", 1))


def test_an_empty_slice_overlaps_nothing():
    for one, other in (
        ("3,0", "0,10"),
        ("3,0", "3,0"),
        ("1,0:0,5", "0,5:0,5"),
        ("0,0", "-"),
        ("-:0,0", "0,1:-"),
    ):
        first, second = TensorSlice.parse(one), TensorSlice.parse(other)
        assert not first.overlaps(second)


@pytest.mark.parametrize("damage", [b"", b"not a message", lambda data: data[:100], lambda data: data[:-64]])
def test_a_damaged_message_is_refused(damage):
    whole = to_message(np.arange(100)).to_pybytes()
    with pytest.raises(OpError, match="are not an Arrow tensor message"):
        from_message(damage(whole) if callable(damage) else damage)


def test_a_message_of_more_elements_than_there_can_be_is_refused():
    """The sizes and strides are in front of the numbers; those of an empty axis may be anything."""
    data = to_message(np.zeros((0, 5))).to_pybytes()
    assert data.count((5).to_bytes(8, "little")) == 1
    with pytest.raises(OpError, match="are not an Arrow tensor message"):
        from_message(data.replace((5).to_bytes(8, "little"), (2**62).to_bytes(8, "little")))


def test_what_is_no_buffer_is_refused():
    with pytest.raises(OpTypeError, match="from_message: the message is int, expected a buffer"):
        from_message(3)


def test_another_kind_of_arrow_message_is_refused():
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"x": [1]})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    with pytest.raises(OpError, match="are not an Arrow tensor message"):
        from_message(sink.getvalue())


def test_an_empty_slice_overlaps_nothing_but_a_whole_axis():
    """As TensorFlow says."""
    empty = TensorSlice.parse("2,0")
    assert not empty.overlaps(TensorSlice.parse("0,5"))
    assert not TensorSlice.parse("0,5").overlaps(empty)
    assert empty.intersect(TensorSlice.full(1)) == empty
