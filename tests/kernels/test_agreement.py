"""Native kernels give what the reference gives, on any input, good or bad."""

import numpy as np
import numpy_kernels as reference
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqflow.kernels import ChunkedRows, KernelError, PackingPlan

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
each_isa = settings(
    max_examples=60,
    deadline=None,
)

NUMBERS = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
PLAIN = [*NUMBERS, "M8[s]", "m8[ms]", "c8", "c16", "S3", "U2", "V5", ">i4", ">f8", "i4,f8"]
INTEGERS = ["i8", "i8", "i4", "u1", "i2", "u8", ">i8", "u4"]
ROW_SHAPES = [
    (),
    (),
    (1,),
    (2,),
    (3,),
    (7,),
    (16,),
    (33,),
    (64,),
    (70,),
    (150,),
    (2, 3),
    (5, 1, 4),
    (0,),
    (2, 0),
]


@st.composite
def row_arrays(draw, dtypes, num_rows=None, row_shape=None):
    """[N, *d] of any dtype, strides and flags."""
    n = draw(st.integers(0, 60)) if num_rows is None else num_rows
    shape = draw(st.sampled_from(ROW_SHAPES)) if row_shape is None else row_shape
    dtype = np.dtype(draw(st.sampled_from(dtypes)))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return styled(draw, random_array(generator, (n, *shape), dtype))


def random_array(generator, shape, dtype):
    if dtype.kind == "f":
        array = (generator.standard_normal(shape) * 10).astype(dtype)
        if generator.random() < 0.3:
            array[generator.random(shape) < 0.1] = generator.choice([np.nan, np.inf, -np.inf, -0.0])
        return array
    if dtype.kind == "c":
        return (generator.standard_normal(shape) + 1j * generator.standard_normal(shape)).astype(dtype)
    if dtype.kind == "b":
        return generator.random(shape) < 0.5
    if dtype.kind in "SU":
        return generator.integers(0, 99, shape).astype(dtype)
    count = int(np.prod(shape)) * dtype.itemsize
    return (
        np.frombuffer(generator.bytes(count), dtype, int(np.prod(shape))).reshape(shape)
        if count
        else np.zeros(shape, dtype)
    )


def styled(draw, array):
    """The same values: as they are, read-only, strided, reversed, in Fortran order or misaligned."""
    match draw(st.sampled_from(["plain", "plain", "read-only", "strided", "reversed", "fortran", "shifted"])):
        case "read-only":
            array = array.copy()
            array.flags.writeable = False
        case "strided":
            array = np.repeat(array, 2, axis=0)[::2]
        case "reversed":
            array = array[::-1].copy()[::-1]
        case "fortran":
            array = np.asfortranarray(array)
        case "shifted" if array.dtype.names is None:
            room = np.zeros(array.nbytes + 1, np.uint8)
            moved = np.ndarray(array.shape, array.dtype, room.data, 1)
            moved[...] = array
            array = moved
    return array


@st.composite
def lengths_of(draw, total=None, most=70):
    """Counts, with many empty ones; adding up to `total` where that is given."""
    if total is None:
        lengths = draw(st.lists(st.one_of(st.just(0), st.integers(0, 5), st.integers(0, most)), max_size=12))
    else:
        cuts = sorted(draw(st.lists(st.integers(0, total), max_size=10)))
        lengths = np.diff([0, *cuts, total]).tolist()
        if total == 0 and draw(st.booleans()):
            lengths = []
    dtype = draw(st.sampled_from(INTEGERS)) if max(lengths, default=0) < 128 else "i8"
    return styled(draw, np.array(lengths, dtype))


@st.composite
def bad_lengths(draw, total):
    lengths = draw(lengths_of(total)).astype(np.int64)
    for _ in range(draw(st.integers(0, 2))):
        bad = draw(st.sampled_from([-1, -(2**63), 2**63 - 1, 2**62, 3, 0]))
        lengths = np.insert(lengths, draw(st.integers(0, len(lengths))), bad)
    return lengths


@st.composite
def indices_into(draw, num_rows, count=None, ignore_index=None):
    """Indices, at times one outside."""
    some = [st.integers(0, num_rows - 1)] if num_rows else []
    if ignore_index is not None:
        some.append(st.just(ignore_index))
    if draw(st.integers(0, 4)) == 0 or not some:
        some.append(st.sampled_from([-1, -num_rows, -num_rows - 1, num_rows, 2**62, -(2**63)]))
    sizes = {"max_size": 80} if count is None else {"min_size": count, "max_size": count}
    values = np.array(draw(st.lists(st.one_of(*some), **sizes)), np.int64)
    fits = not len(values) or (abs(values) < 2**31).all()
    return styled(draw, values.astype(draw(st.sampled_from(["i8", "i4"])) if fits else "i8"))


def outcome(function, *arguments, **named):
    """The result, or what is to be known of the error."""
    try:
        return function(*arguments, **named)
    except KernelError as error:
        return {"message": str(error)} | vars(error)
    except (TypeError, ValueError, OverflowError) as error:
        return type(error)


def assert_same(found, expected, scale=None):
    if isinstance(expected, tuple):
        assert type(found) is type(expected)
        assert len(found) == len(expected)
        for a, b in zip(found, expected, strict=True):
            assert_same(a, b)
    elif isinstance(expected, np.ndarray):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        assert found.flags.c_contiguous
        if scale is None:
            assert_equal_bits(found, expected)
        else:
            assert_close(found, expected, scale)
    else:
        assert found == expected


def assert_equal_bits(found, expected):
    if expected.dtype.kind in "fc":
        np.testing.assert_array_equal(found, expected)
    else:
        assert found.tobytes() == expected.tobytes()


def assert_close(found, expected, scale):
    """Equal where not finite, else to 1e-6 of what was added up (1e-12 in float64)."""
    tolerance = {2: 1e-3, 4: 1e-6, 8: 1e-12}[expected.dtype.itemsize]
    finite = np.isfinite(expected) & np.isfinite(scale)
    np.testing.assert_array_equal(np.where(finite, 0, found), np.where(finite, 0, expected))
    assert (abs(found.astype(np.float64) - expected)[finite] <= (tolerance * scale)[finite]).all()


def scale_of(kind, data, lengths, expected):
    """What rounding errors are measured by; None where there are none."""
    if kind in ("max", "min") or expected.dtype.kind != "f":
        return None
    with np.errstate(all="ignore"):
        absolute = np.abs(data.astype(np.float64))
        return reference.segment_reduce(kind, absolute, lengths) + np.finfo(expected.dtype).tiny


@each_isa
@given(data=st.data())
def test_checks_of_lengths(native, data):
    lengths = data.draw(st.one_of(lengths_of(), bad_lengths(9), st.just([]), st.just(np.zeros((2, 2), int))))
    for name in ["check_lengths", "max_length"]:
        expected = outcome(getattr(reference, name), lengths)
        assert outcome(getattr(native, name), lengths) == expected
    if isinstance(outcome(reference.check_lengths, lengths), int) and np.max(lengths, initial=0) < 1000:
        for name in ["lengths_to_offsets", "lengths_to_segment_ids", "lengths_to_positions"]:
            assert_same(getattr(native, name)(lengths), getattr(reference, name)(lengths))


@each_isa
@given(data=st.data())
def test_offsets_to_lengths(native, data):
    numbers = data.draw(st.lists(st.integers(-1, 40), max_size=40))
    numbers = numbers if data.draw(st.booleans()) else sorted(max(0, number) for number in numbers)
    array = styled(data.draw, np.array(numbers, data.draw(st.sampled_from(["i8", "i4", "i1"]))))
    assert_same(outcome(native.offsets_to_lengths, array), outcome(reference.offsets_to_lengths, array))


@each_isa
@given(data=st.data())
def test_segment_ids_to_lengths(native, data):
    ids = sorted(data.draw(st.lists(st.integers(0, 9), max_size=40)))
    for _ in range(data.draw(st.sampled_from([0, 0, 1, 2]))):
        bad = data.draw(st.sampled_from([-1, -(2**63), 0, 5, 12]))
        ids.insert(data.draw(st.integers(0, len(ids))), bad)
    fits = min(ids, default=0) >= -128
    array = styled(data.draw, np.array(ids, data.draw(st.sampled_from(["i8", "i4", "i1"])) if fits else "i8"))
    limit = data.draw(st.sampled_from([None, 10, 0, 13]))
    expected = outcome(reference.segment_ids_to_lengths, array, limit)
    assert_same(outcome(native.segment_ids_to_lengths, array, limit), expected)


@each_isa
@given(data=st.data(), kind=st.sampled_from(["sum", "mean", "max", "min"]))
def test_segment_reduce(native, data, kind):
    rows = data.draw(row_arrays(NUMBERS))
    lengths = data.draw(st.one_of(lengths_of(len(rows)), lengths_of(len(rows)), bad_lengths(len(rows))))
    empty = data.draw(st.sampled_from([0, 0, 1, True]))
    expected = outcome(reference.segment_reduce, kind, rows, lengths, empty)
    found = outcome(native.segment_reduce, kind, rows, lengths, empty)
    scale = scale_of(kind, rows, lengths, expected) if isinstance(expected, np.ndarray) else None
    assert_same(found, expected, scale)


@each_isa
@given(data=st.data(), kind=st.sampled_from(["sum", "mean", "max", "min"]))
def test_long_segments_of_one_column(native, data, kind):
    size = data.draw(st.integers(0, 3000))
    dtype = np.dtype(data.draw(st.sampled_from(NUMBERS)))
    rows = random_array(np.random.default_rng(size), (size,), dtype)
    lengths = data.draw(lengths_of(size))
    expected = reference.segment_reduce(kind, rows, lengths)
    assert_same(native.segment_reduce(kind, rows, lengths), expected, scale_of(kind, rows, lengths, expected))


@each_isa
@given(data=st.data(), kind=st.sampled_from(["max", "min", "sum"]))
def test_reductions_of_times_and_other_dtypes(native, data, kind):
    rows = data.draw(row_arrays(["m8[s]", "M8[D]", "c8", "c16", ">f4", "g", "S2"], row_shape=()))
    lengths = data.draw(lengths_of(len(rows)))
    expected = outcome(reference.segment_reduce, kind, rows, lengths)
    found = outcome(native.segment_reduce, kind, rows, lengths)
    if rows.dtype.kind in "fc" and isinstance(expected, np.ndarray):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)
    else:
        assert_same(found, expected)


@each_isa
@given(data=st.data(), kind=st.sampled_from(["sum", "mean", "max", "min"]))
def test_gather_segment_reduce(native, data, kind):
    table = data.draw(row_arrays(NUMBERS))
    ignore_index = data.draw(st.sampled_from([None, None, 0, -1, 3, 2**70]))
    indices = data.draw(
        indices_into(len(table), ignore_index=ignore_index if ignore_index != 2**70 else None)
    )
    lengths = data.draw(st.one_of(lengths_of(len(indices)), bad_lengths(len(indices))))
    arguments = (kind, table, indices, lengths, data.draw(st.sampled_from([0, 1])), ignore_index)
    expected = outcome(reference.gather_segment_reduce, *arguments)
    found = outcome(native.gather_segment_reduce, *arguments)
    scale = None
    if isinstance(expected, np.ndarray) and kind in ("sum", "mean") and expected.dtype.kind == "f":
        with np.errstate(all="ignore"):
            scale = (
                reference.gather_segment_reduce(
                    kind, np.abs(table.astype(np.float64)), indices, lengths, 0, ignore_index
                )
                + np.finfo(expected.dtype).tiny
            )
    assert_same(found, expected, scale)


@each_isa
@given(data=st.data(), wrap=st.booleans(), with_out=st.booleans())
def test_gather(native, data, wrap, with_out):
    rows = data.draw(row_arrays(PLAIN))
    ignore_index = data.draw(st.sampled_from([None, None, 0, -1, 2]))
    indices = data.draw(indices_into(len(rows), ignore_index=ignore_index))
    if data.draw(st.booleans()):
        indices = indices.reshape(
            data.draw(st.sampled_from([(-1, 1), (1, -1, 1)])) if indices.size else (0, 2)
        )
    named = {"wrap": wrap, "ignore_index": ignore_index}
    expected = outcome(reference.gather, rows, indices, **named)
    if with_out and isinstance(expected, np.ndarray):
        named["out"] = np.empty_like(expected, order="C")
        assert native.gather(rows, indices, **named) is named["out"]
    assert_same(outcome(native.gather, rows, indices, **named), expected)


@each_isa
@given(data=st.data())
def test_move_slices(native, data):
    source = data.draw(row_arrays(PLAIN))
    target_rows = data.draw(st.integers(0, 60))
    count = data.draw(st.integers(0, 8))
    odd = st.sampled_from([-1, 2**63 - 1, -(2**63), 61, 0])
    numbers = st.lists(
        st.one_of(st.integers(0, 8), st.integers(0, 8), odd) if data.draw(st.booleans()) else st.integers(0, 8),
        min_size=count, max_size=count,
    )  # fmt: skip
    source_starts, sizes, target_starts = (np.array(data.draw(numbers), np.int64) for _ in range(3))
    targets = [np.zeros((target_rows, *source.shape[1:]), source.dtype.newbyteorder("=")) for _ in range(2)]
    arguments = (source_starts, sizes)
    expected = outcome(reference.move_slices, source, *arguments, targets[0], target_starts)
    assert outcome(native.move_slices, source, *arguments, targets[1], target_starts) == expected
    assert targets[0].tobytes() == targets[1].tobytes()


@each_isa
@given(
    data=st.data(), side=st.sampled_from(["left", "right"]), truncate=st.booleans(), with_out=st.booleans()
)
def test_pad(native, data, side, truncate, with_out):
    rows = data.draw(row_arrays(PLAIN))
    lengths = data.draw(st.one_of(lengths_of(len(rows)), lengths_of(len(rows)), bad_lengths(len(rows))))
    width = data.draw(st.integers(0, 70))
    value = data.draw(st.sampled_from([0, 0, 1]))
    named = {"truncate": truncate}
    expected = outcome(reference.pad, rows, lengths, width, value, side, **named)
    if with_out and isinstance(expected, tuple):
        named |= {"out": np.empty_like(expected[0], order="C"), "mask": np.empty_like(expected[1])}
    assert_same(outcome(native.pad, rows, lengths, width, value, side, **named), expected)


@each_isa
@given(data=st.data(), side=st.sampled_from(["left", "right"]), with_out=st.booleans())
def test_unpad(native, data, side, with_out):
    lengths = data.draw(st.one_of(lengths_of(most=20), bad_lengths(5)))
    num_rows = len(lengths) + data.draw(st.sampled_from([0, 0, 0, 1]))
    width = data.draw(st.integers(0, 21))
    padded = data.draw(row_arrays(PLAIN, num_rows * width, data.draw(st.sampled_from(ROW_SHAPES))))
    padded = padded.reshape(num_rows, width, *padded.shape[1:])
    named = {}
    expected = outcome(reference.unpad, padded, lengths, side)
    if with_out and isinstance(expected, np.ndarray):
        named["out"] = np.empty_like(expected, order="C")
    assert_same(outcome(native.unpad, padded, lengths, side, **named), expected)


@each_isa
@given(data=st.data(), with_out=st.booleans())
def test_pack_by_time(native, data, with_out):
    rows = data.draw(row_arrays(PLAIN))
    lengths = data.draw(st.one_of(lengths_of(len(rows)), lengths_of(len(rows)), bad_lengths(len(rows))))
    num_steps = data.draw(st.integers(0, 70))
    value = data.draw(st.sampled_from([0, 0, 1]))
    named = {}
    expected = outcome(reference.pack_by_time, rows, lengths, num_steps, value)
    if with_out and isinstance(expected, np.ndarray):
        named["out"] = np.empty_like(expected, order="C")
    assert_same(outcome(native.pack_by_time, rows, lengths, num_steps, value, **named), expected)


@each_isa
@given(data=st.data(), with_out=st.booleans())
def test_unpack_by_time(native, data, with_out):
    lengths = data.draw(st.one_of(lengths_of(most=20), bad_lengths(5)))
    num_columns = len(lengths) + data.draw(st.sampled_from([0, 0, 0, 1]))
    steps = data.draw(st.integers(0, 21))
    packed = data.draw(row_arrays(PLAIN, steps * num_columns, data.draw(st.sampled_from(ROW_SHAPES))))
    packed = packed.reshape(steps, num_columns, *packed.shape[1:])
    named = {}
    expected = outcome(reference.unpack_by_time, packed, lengths)
    if with_out and isinstance(expected, np.ndarray):
        named["out"] = np.empty_like(expected, order="C")
    assert_same(outcome(native.unpack_by_time, packed, lengths, **named), expected)


@each_isa
@given(
    dtype=st.sampled_from(["u1", "f2", "f4", "i8", "c16", "S3"]),
    count=st.integers(200, 700),
    seed=st.integers(0, 9),
)
def test_many_sequences_by_time(native, dtype, count, seed):
    """More than one tile of them, and more steps than a tile has."""
    generator = np.random.default_rng(seed)
    lengths = generator.integers(0, 60, count) * generator.integers(0, 2, count)
    data = random_array(generator, (int(lengths.sum()),), np.dtype(dtype))
    packed = native.pack_by_time(data, lengths, 150, 1)
    assert_same(packed, reference.pack_by_time(data, lengths, 150, 1))
    assert_same(native.unpack_by_time(packed, lengths), data)


@each_isa
@given(data=st.data(), strategy=st.sampled_from(["best_fit", "first_fit", "concat"]))
def test_plan_packing(native, data, strategy):
    lengths = data.draw(st.one_of(lengths_of(), st.lists(st.integers(0, 12), max_size=200).map(np.array)))
    if lengths.dtype.kind == "f":
        lengths = lengths.astype(int)
    capacity = data.draw(st.integers(1, 40))
    assert_same(
        native.plan_packing(lengths, capacity, strategy), reference.plan_packing(lengths, capacity, strategy)
    )


@each_isa
@given(data=st.data())
def test_deal(native, data):
    room = data.draw(lengths_of())
    costs = data.draw(st.lists(st.integers(0, 9), min_size=int(room.sum()), max_size=int(room.sum())))
    costs = np.array(costs, data.draw(st.sampled_from([np.int32, np.int64])))
    assert_same(native.assign(costs, room), reference.assign(costs, room))


@each_isa
@given(data=st.data(), strategy=st.sampled_from(["best_fit", "first_fit", "concat"]), with_out=st.booleans())
def test_fill_packed(native, data, strategy, with_out):
    rows = data.draw(row_arrays(PLAIN))
    lengths = data.draw(st.one_of(lengths_of(len(rows)), lengths_of(len(rows)), bad_lengths(len(rows))))
    capacity = data.draw(st.integers(1, 40))
    planned = lengths if isinstance(outcome(reference.check_lengths, lengths), int) else np.array([3])
    plan = reference.plan_packing(
        planned if np.max(planned, initial=0) < 1000 else np.array([3]), capacity, strategy
    )
    plan = PackingPlan(*map(np.copy, plan))
    for array in plan:
        if len(array) and data.draw(st.integers(0, 7)) == 0:
            array[data.draw(st.integers(0, len(array) - 1))] = data.draw(
                st.sampled_from([-1, 0, 1, 2, 50, 2**62, 2**63 - 1, -(2**63)])
            )
    named = {}
    expected = outcome(reference.fill_packed, rows, lengths, plan, capacity, 1)
    if with_out and isinstance(expected, tuple):
        named["out"] = tuple(np.empty_like(array, order="C") for array in expected)
    assert_same(outcome(native.fill_packed, rows, lengths, plan, capacity, 1, **named), expected)


ORDERED = [*NUMBERS, "M8[s]", "m8[ms]", ">i4", ">f8", "S3", "U2"]


@st.composite
def segmented_rows(draw, dtypes, row_shape=None):
    """Rows with many ties at times, short segments or long ones, at times with lengths that do not add up."""
    rows = draw(row_arrays(dtypes, row_shape=row_shape))
    if draw(st.integers(0, 3)) == 0:
        many = np.random.default_rng(len(rows)).integers(0, max(1, len(rows)), draw(st.integers(0, 400)))
        rows = rows[many] if len(rows) else rows
    if rows.dtype.kind in "iuf" and draw(st.booleans()):
        with np.errstate(all="ignore"):
            rows = rows // rows.dtype.type(8)
    return rows, draw(st.one_of(lengths_of(len(rows)), lengths_of(len(rows)), bad_lengths(len(rows))))


@each_isa
@given(data=st.data(), name=st.sampled_from(["sort_within", "argsort_within"]), descending=st.booleans())
def test_sorting(native, data, name, descending):
    rows, lengths = data.draw(segmented_rows(ORDERED))
    expected = outcome(getattr(reference, name), rows, lengths, descending)
    assert_same(outcome(getattr(native, name), rows, lengths, descending), expected)


@each_isa
@given(data=st.data(), k=st.integers(1, 150))
def test_topk(native, data, k):
    rows, lengths = data.draw(segmented_rows(ORDERED, row_shape=()))
    assert_same(
        outcome(native.segment_topk, rows, lengths, k), outcome(reference.segment_topk, rows, lengths, k)
    )


@each_isa
@given(data=st.data(), kind=st.sampled_from(["max", "min"]))
def test_positions_of_extremes(native, data, kind):
    rows, lengths = data.draw(segmented_rows([*NUMBERS, "M8[s]", ">i4"]))
    assert_same(
        outcome(native.segment_arg, kind, rows, lengths), outcome(reference.segment_arg, kind, rows, lengths)
    )


@each_isa
@given(data=st.data(), form=st.sampled_from(["softmax", "log", "logsumexp"]))
def test_softmax(native, data, form):
    rows, lengths = data.draw(segmented_rows(NUMBERS))
    name, last = ("segment_logsumexp", 1) if form == "logsumexp" else ("softmax_within", form == "log")
    expected = outcome(getattr(reference, name), rows, lengths, last)
    found = outcome(getattr(native, name), rows, lengths, last)
    if not isinstance(expected, np.ndarray):
        assert found == expected
        return
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    tolerance = 1e-6 if expected.dtype == np.float32 else 1e-12
    if form == "softmax":  # how far a row is below the largest is rounded before its exponential is taken
        finite = rows[np.isfinite(rows)].astype(np.float64)
        tolerance *= max(1, np.ptp(finite) / 8) if finite.size else 1
    smallest = 1e-9 if form == "softmax" else 1  # logs are as exact as what they are taken of
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance * smallest)


@each_isa
@given(data=st.data(), reverse=st.booleans(), exclusive=st.booleans())
def test_running_sums(native, data, reverse, exclusive):
    rows, lengths = data.draw(segmented_rows(NUMBERS))
    expected = outcome(reference.cumsum_within, rows, lengths, reverse, exclusive)
    found = outcome(native.cumsum_within, rows, lengths, reverse, exclusive)
    assert_same(found, expected)  # to the bit: both add up one by one


@each_isa
@given(data=st.data())
def test_products(native, data):
    rows, lengths = data.draw(segmented_rows(NUMBERS))
    expected = outcome(reference.segment_reduce, "prod", rows, lengths, 1)
    found = outcome(native.segment_reduce, "prod", rows, lengths, 1)
    scale = None
    if isinstance(expected, np.ndarray) and expected.dtype.kind == "f":
        scale = np.abs(expected.astype(np.float64)) + np.finfo(expected.dtype).tiny
    assert_same(found, expected, scale)


@each_isa
@given(data=st.data(), ddof=st.integers(0, 3))
def test_variances(native, data, ddof):
    rows, lengths = data.draw(segmented_rows(NUMBERS))
    expected = outcome(reference.segment_variance, rows, lengths, ddof, 7)
    found = outcome(native.segment_variance, rows, lengths, ddof, 7)
    if not isinstance(expected, np.ndarray):
        assert found == expected
        return
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    with np.errstate(all="ignore"):
        finite = rows.astype(np.float64)[np.isfinite(rows.astype(np.float64))]
        largest = np.square(np.abs(finite).max(initial=0))
    tolerance = 1e-6 if expected.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=1e-15 * min(largest, 1e300))


@each_isa
@given(data=st.data(), num_groups=st.integers(0, 9))
def test_grouping_rows(native, data, num_groups):
    ids = data.draw(indices_into(num_groups))
    assert_same(outcome(native.group_rows, ids, num_groups), outcome(reference.group_rows, ids, num_groups))


@st.composite
def chunked_slices(draw, dtypes):
    """Several arrays, and slices of which most are inside one of them."""
    first = draw(row_arrays(dtypes))
    generator = np.random.default_rng(len(first))
    others = [
        styled(draw, random_array(generator, (count, *first.shape[1:]), first.dtype))
        for count in draw(st.lists(st.integers(0, 9), max_size=3))
    ]
    arrays = [first, *others]
    firsts = np.cumsum([0, *map(len, arrays)])
    starts, sizes = [], []
    for _ in range(draw(st.integers(0, 9))):
        at = draw(st.integers(0, len(arrays) - 1))
        start = draw(st.integers(0, len(arrays[at])))
        starts.append(int(firsts[at]) + start)
        sizes.append(draw(st.integers(0, len(arrays[at]) - start)))
    if starts and draw(st.integers(0, 5)) == 0:
        bad = draw(st.sampled_from([-1, 3, 50, 2**62, 2**63 - 1, -(2**63)]))
        draw(st.sampled_from([starts, sizes]))[draw(st.integers(0, len(starts) - 1))] = bad
    return arrays, styled(draw, np.array(starts, np.int64)), styled(draw, np.array(sizes, np.int64))


@each_isa
@given(data=st.data())
def test_gathering_slices_agrees(native, data):
    arrays, starts, sizes = data.draw(chunked_slices(PLAIN))
    chunks = ChunkedRows(arrays)
    expected = outcome(reference.gather_slices, chunks, starts, sizes)
    assert_same(outcome(native.gather_slices, chunks, starts, sizes), expected)
    if isinstance(expected, np.ndarray):
        assert_same(
            native.gather_slices(chunks, starts, sizes, out=np.empty_like(expected, order="C")), expected
        )


@each_isa
@given(data=st.data(), side=st.sampled_from(["right", "left"]), truncate=st.booleans())
def test_padding_slices_agrees(native, data, side, truncate):
    arrays, starts, sizes = data.draw(chunked_slices(NUMBERS))
    chunks, width = ChunkedRows(arrays), data.draw(st.integers(0, 70))
    dtype = data.draw(st.sampled_from([None, *map(np.dtype, NUMBERS)]))
    shape = 3, len(sizes), width
    native_dtype = np.dtype(dtype or chunks.dtype).newbyteorder("=")
    padded, masks = np.zeros((*shape, *chunks.row_shape), native_dtype), np.zeros(shape, bool)
    batches = [(starts, sizes, *pair) for pair in zip(padded, masks, strict=True)]
    named = {"truncate": truncate, "dtype": dtype}
    expected = outcome(reference.pad_batches, chunks, batches[:1], 1, side, **named)
    assert_same(outcome(native.pad_batches, chunks, batches[1:], 1, side, **named), expected)
    if expected is None:
        for one in (1, 2):
            assert_same(padded[one], padded[0])
            assert_same(masks[one], masks[0])


@each_isa
@given(data=st.data(), num_groups=st.integers(0, 9), counted=st.booleans())
def test_sums_by_id(native, data, num_groups, counted):
    ids = data.draw(indices_into(num_groups))
    column = data.draw(
        row_arrays(["f4", "f8", ">f4"], len(ids) + data.draw(st.sampled_from([0, 0, 0, 1])), ())
    )
    arguments = (column, ids, num_groups, counted)
    assert_same(outcome(native.add_by_id, *arguments), outcome(reference.add_by_id, *arguments))


@each_isa
@given(data=st.data(), positional=st.booleans())
def test_gather_segment_weigh(native, data, positional):
    wide = data.draw(st.booleans())
    table = data.draw(row_arrays(NUMBERS if wide else ["f4", "f2"]))
    ignore_index = data.draw(st.sampled_from([None, None, 0, -1, 3]))
    indices = data.draw(indices_into(len(table), ignore_index=ignore_index))
    lengths = data.draw(st.one_of(lengths_of(len(indices)), bad_lengths(len(indices))))
    count = data.draw(st.sampled_from([70, 80, 3])) if positional else len(indices)
    weights = data.draw(row_arrays(["f8" if wide else "f4"], count, ()))
    arguments = (
        table,
        weights,
        indices,
        lengths,
        positional,
        data.draw(st.sampled_from([0, 1])),
        ignore_index,
    )
    expected = outcome(reference.gather_segment_weigh, *arguments)
    found = outcome(native.gather_segment_weigh, *arguments)
    scale = None
    if isinstance(expected, np.ndarray):
        with np.errstate(all="ignore"):
            sizes = np.abs(table.astype(np.float64)), np.abs(weights.astype(np.float64))
            scale = reference.gather_segment_weigh(*sizes, *arguments[2:5], 0, ignore_index)
            scale += np.finfo(expected.dtype).tiny
    assert_same(found, expected, scale)


@st.composite
def quantized_rows(draw, bits, scale):
    """Rows of any integers, at times of none, with scales and biases of which some are not finite."""
    count, size = (
        draw(st.integers(0, 40)),
        draw(st.sampled_from([0, 1, 2, 4, 7, 8, 16, 31, 33, 64, 100, 150])),
    )
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ends = random_array(generator, (count, 2), np.dtype(scale)).view(np.uint8)
    table = np.concatenate([generator.integers(0, 256, (count, size), np.uint8), ends], axis=1)
    return styled(draw, table)


@each_isa
@given(
    data=st.data(),
    kind=st.sampled_from(["sum", "mean"]),
    bits=st.sampled_from([8, 4, 2]),
    scale=st.sampled_from(["float32", "float16"]),
)
def test_pooling_quantized_rows(native, data, kind, bits, scale):
    table = data.draw(quantized_rows(bits, scale))
    pruned, weighted = data.draw(st.booleans()), data.draw(st.booleans())
    indices = data.draw(indices_into(len(table), ignore_index=-1 if pruned else None))
    lengths = data.draw(st.one_of(lengths_of(len(indices)), bad_lengths(len(indices))))
    weights = data.draw(row_arrays(["f4"], len(indices), ())) if weighted else None
    arguments = (indices, lengths, bits, scale, pruned)
    expected = outcome(reference.pool_quantized, kind, table, weights, *arguments)
    found = outcome(native.pool_quantized, kind, table, weights, *arguments)
    measure = None
    if isinstance(expected, np.ndarray):
        magnitudes = table.copy()
        size = table.shape[1] - 2 * np.dtype(scale).itemsize
        ends = np.ascontiguousarray(table[:, size:]).view(scale)
        magnitudes[:, size:] = np.abs(ends).view(np.uint8)
        sizes = None if weights is None else np.abs(weights)
        measure = reference.pool_quantized(kind, magnitudes, sizes, *arguments).astype(np.float64)
        measure += np.finfo(np.float32).tiny
    assert_same(found, expected, measure)


@pytest.mark.parametrize("width", [3, 8, 12, 64, 97, 104, 105, 208, 209, 300])
@pytest.mark.parametrize("dtype", ["i4", "i8"])
def test_tables_of_any_width_are_pooled_by_short_and_long_segments(native, width, dtype):
    generator = np.random.default_rng(width)
    memory = np.zeros(50 * width + 16, np.float32)
    lengths = generator.choice([0, 1, 2, 20, 63, 64, 65, 700], 40)
    indices = generator.integers(0, 50, lengths.sum()).astype(dtype)
    weights = generator.integers(-9, 9, len(indices)).astype(
        np.float32
    )  # whole numbers, so that sums are exact
    for begin in (0, 1 - memory.ctypes.data // 4 % 16):  # anywhere, and behind the beginning of a line
        table = memory[begin % 16 :][: 50 * width].reshape(50, width)
        table[:] = generator.integers(-9, 9, table.shape)
        for ignored in (None, 3, -1):
            for kind in ("sum", "mean", "max", "min"):
                arguments = kind, table, indices, lengths, 0, ignored
                assert_same(
                    outcome(native.gather_segment_reduce, *arguments),
                    outcome(reference.gather_segment_reduce, *arguments),
                )
            arguments = table, weights, indices, lengths, False, 0, ignored
            assert_same(
                outcome(native.gather_segment_weigh, *arguments),
                outcome(reference.gather_segment_weigh, *arguments),
            )
