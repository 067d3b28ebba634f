"""Attention and rotary positions: bands, windows, merged parts, Sequences, nets, and what is refused."""

import kernel_sets
import numpy as np
import pytest

import seqflow as sf
from seqflow import auto, kernels, ops
from seqflow.errors import LodError, OpError, ShapeError

RANDOM = np.random.default_rng(0)


@pytest.fixture(params=kernel_sets.ALL)
def any_kernels(request):
    with kernels.use(request.param):
        yield request.param


def heads(rows, count=2, width=4, dtype="float64"):
    return RANDOM.standard_normal((rows, count, width)).astype(dtype)


def test_a_window_of_all_keys_is_none_and_one_of_the_row_alone_gives_its_value(any_kernels):
    lengths = np.array([4, 0, 6])
    q, k, v = heads(10, 4), heads(10), heads(10, width=3)
    free = ops.attention_within(q, lengths, k, v)
    wide = ops.attention_within(q, lengths, k, v, before=6, after=6)
    np.testing.assert_array_equal(free.out, wide.out)
    own = ops.attention_within(q, lengths, k, v, before=0, after=0)
    np.testing.assert_allclose(own.out, np.repeat(v, 2, axis=1))
    np.testing.assert_allclose(own.lse, np.sum(q * np.repeat(k, 2, axis=1), axis=2) / 2)


@pytest.mark.parametrize("rows", range(7))
def test_a_causal_row_does_not_feel_later_rows(any_kernels, rows):
    lengths = np.array([7])
    q, k, v = heads(7), heads(7), heads(7)
    before = ops.attention_within(q, lengths, k, v, after=0)
    for array in (q, k, v):
        array[rows:] = RANDOM.standard_normal(array[rows:].shape)
    after = ops.attention_within(q, lengths, k, v, after=0)
    np.testing.assert_array_equal(before.out[:rows], after.out[:rows])


def test_decoding_with_a_cache_gives_the_last_rows_of_the_whole(any_kernels):
    q, k, v = heads(9), heads(9), heads(9)
    whole = ops.attention_within(q, [5, 4], k, v, after=0).out
    last = [4, 7, 8]
    steps = ops.attention_within(q[last], [1, 2], k, v, [5, 4], after=0, align="end").out
    np.testing.assert_allclose(steps, whole[last], atol=1e-15)


def test_parts_of_the_keys_are_merged_by_their_logarithms(any_kernels):
    q, k, v = heads(4), heads(6), heads(6)
    whole = ops.attention_within(q, [4], k, v, [6])
    parts = [ops.attention_within(q, [4], k[half], v[half], [3]) for half in (slice(3), slice(3, None))]
    lse = np.logaddexp(parts[0].lse, parts[1].lse)
    merged = sum(one.out * np.exp(one.lse - lse)[..., None] for one in parts)
    np.testing.assert_allclose(merged, whole.out)
    np.testing.assert_allclose(lse, whole.lse)


@pytest.mark.parametrize(("dtype", "close"), [("float16", 2e-3), ("float32", 1e-6)])
def test_narrow_floats_are_close_to_float64(any_kernels, dtype, close):
    lengths = np.array([50, 700])
    q, k, v = (heads(750, 2, 32, dtype) for _ in range(3))
    out, lse = ops.attention_within(q, lengths, k, v, after=0)
    exact = ops.attention_within(
        *(x.astype("float64") if x is not lengths else x for x in (q, lengths, k, v)), after=0
    )
    assert out.dtype == dtype
    assert lse.dtype == "float32"
    assert np.abs(out - exact.out).max() < close


def test_sequences_carry_their_lengths_through_it():
    x = sf.Sequence(heads(5), [[2, 3]])
    y = sf.Sequence(heads(7), [[4, 3]])
    own = auto.attention_within(x, x, x, after=0)
    assert own.out.lod == own.lse.lod == x.lod
    np.testing.assert_array_equal(
        own.out.values, ops.attention_within(x.values, [2, 3], x.values, x.values, after=0).out
    )
    other = auto.attention_within(x, y, y, after=0, align="end")
    assert other.out.lod == x.lod
    with pytest.raises(LodError, match="k and v have different lengths"):
        auto.attention_within(x, y, x)


def test_a_net_knows_sizes_and_rows_and_has_a_gradient():
    net = sf.Net(
        "found = attention_within(q, n, k, v, after=0)\nloss = reduce_sum(square(found.out)) + reduce_sum(found.lse)"
    )
    specs = {"q": sf.TensorSpec("float32", "{0..100,?,8}"), "n": sf.TensorSpec("int32", "{?}")} | {
        name: sf.TensorSpec("float32", "{?,2,8}") for name in "kv"
    }
    inferred = net.infer(specs)
    assert str(inferred.specs["found.out"].shape) == "{sum(n):0..100,q.shape[1],8}"
    assert inferred.specs["found.lse"].dtype == "float32"
    q, k, v, n = heads(6, 4), heads(6), heads(6), np.array([2, 0, 4])
    found = sf.run(net.gradient("loss", ["q", "k", "v"]), {"q": q, "k": k, "v": v, "n": n})
    for name, array in {"q": q, "k": k, "v": v}.items():
        step = np.zeros_like(array)
        step[3, 1, 2] = 1e-6
        given = {"q": q, "k": k, "v": v, "n": n}
        above, below = (sf.run(net, given | {name: array + sign * step})["loss"] for sign in (1, -1))
        np.testing.assert_allclose(found[f"grad.{name}"][3, 1, 2], (above - below) / 2e-6, atol=1e-6)


def test_rows_of_others_are_refused_before_there_are_data():
    net = sf.Net("x = truncate(a, n, max_length=2)\nfound = attention_within(a, n, x.values, x.values)")
    specs = {"a": sf.TensorSpec("float32", "{?,2,8}"), "n": sf.TensorSpec("int32", "{?}")}
    with pytest.raises(LodError, match="attention_within"):
        net.infer(specs)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"q": heads(5, 3)}, ShapeError, r"q.shape\[1\] is 3, expected G\*R for some R, G is 2 as in k.shape\[1\]"),
        ({"v": heads(4)}, LodError, r"sum\(kv_lengths\) is 5 but v has 4 rows"),
        ({"k": heads(5, 1)}, ShapeError, r"v.shape\[1\] is 2, expected 1 as in k.shape\[1\]"),
        ({"k": heads(5, width=3)}, ShapeError, r"k.shape\[2\] is 3, expected 4 as in q.shape\[2\]"),
        ({"lengths": [2, 4]}, LodError, r"sum\(lengths\) is 6 but q has 5 rows"),
        ({"kv_lengths": [5]}, ShapeError, r"kv_lengths.shape\[0\] is 1, expected 2"),
        ({"slopes": np.ones(3)}, ShapeError, r"slopes.shape\[0\] is 3, expected 4"),
        ({"kv_lengths": [1, 4], "after": 0}, OpError, "align is None, expected \"start\" or \"end\": sequence 0 has 2 queries and 1 keys"),
        ({"before": -1}, OpError, "before is -1, expected an integer, 0 or more, or None"),
        ({"after": -2}, OpError, "after is -2, expected an integer, 0 or more, or None"),
        ({"scale": 0.0}, OpError, "scale is 0.0, expected a finite number other than 0"),
        ({"scale": float("nan")}, OpError, "scale is nan, expected a finite number other than 0"),
        ({"softcap": 0.0}, OpError, "softcap is 0.0, expected a finite number above 0"),
        ({"align": "middle"}, OpError, "align is 'middle', expected 'start' or 'end'"),
    ],
)  # fmt: skip
def test_bad_input_is_an_error_that_says_what_was_expected(change, error, message):
    given = {"q": heads(5, 4), "lengths": [2, 3], "k": heads(5), "v": heads(5)} | change
    with pytest.raises(error, match=f"^attention_within: {message}"):
        ops.attention_within(**given)


def test_rotated_products_depend_on_differences_of_positions():
    q, k = RANDOM.standard_normal(8), RANDOM.standard_normal(8)
    positions = np.array([3, 7, 103, 107])
    for interleaved in (False, True):
        rotated_q = ops.rotary(np.tile(q, (4, 1)), positions, interleaved=interleaved)
        rotated_k = ops.rotary(np.tile(k, (4, 1)), positions, interleaved=interleaved)
        np.testing.assert_allclose(rotated_q[0] @ rotated_k[1], rotated_q[2] @ rotated_k[3])
        back = ops.rotary(rotated_q, positions, interleaved=interleaved, inverse=True)
        np.testing.assert_allclose(back, np.tile(q, (4, 1)))


def test_equal_positions_in_all_rows_are_one_position():
    x, positions = heads(5, 2, 12), np.array([0, 4, 1, 9, 9])
    three = np.stack([positions] * 3, axis=1)
    np.testing.assert_array_equal(ops.rotary(x, three, sections=(1, 2, 3)), ops.rotary(x, positions))


def test_each_section_is_rotated_by_its_own_position():
    x = heads(1, 1, 8)
    found = ops.rotary(x, np.array([[5, 6, 7]]), sections=(2, 1, 1))
    for pair, position in enumerate([5, 5, 6, 7]):
        expected = ops.rotary(x, np.array([position]))
        np.testing.assert_array_equal(found[..., pair::4], expected[..., pair::4])


def test_its_gradient_is_the_rotation_back():
    net = sf.Net("loss = reduce_sum(rotary(x, places, interleaved=True) * w)")
    x, w, places = heads(3), heads(3), np.array([0, 1, 2])
    found = sf.run(net.gradient("loss", ["x"]), {"x": x, "w": w, "places": places})["grad.x"]
    np.testing.assert_allclose(found, ops.rotary(w, places, interleaved=True, inverse=True))


@pytest.mark.parametrize(
    ("x", "positions", "named", "message"),
    [
        (np.ones((2, 3)), [0, 1], {}, "x has 3 elements in a row, expected an even number"),
        (np.ones((2, 4)), [0, 1], {"base": 0.0}, "base is 0.0, expected a finite number above 0"),
        (np.ones((2, 4)), [[0, 1, 2]] * 2, {}, r"sections are \[\] for positions \[2, 3\], expected"),
        (
            np.ones((2, 4)),
            [[0, 1, 2]] * 2,
            {"sections": (1, 1)},
            r"sections are \[1, 1\] for positions \[2, 3\]",
        ),
        (np.ones((2, 4)), [0, 1], {"sections": (2,)}, r"sections are \[2\] for positions \[2\]"),
    ],
)
def test_rows_that_cannot_be_rotated_are_refused(x, positions, named, message):
    with pytest.raises(OpError, match=f"^rotary: {message}"):
        ops.rotary(x, positions, **named)


def test_slopes_need_align_where_queries_and_keys_differ_in_number():
    q, k = np.zeros((3, 2, 1)), np.zeros((6, 2, 1))
    slopes = np.array([0.5, 0.25])
    with pytest.raises(OpError, match="align is None"):
        ops.attention_within(q, np.array([1, 2]), k, k, np.array([4, 2]), slopes)
    lse = ops.attention_within(q, np.array([1, 2]), k, k, np.array([4, 2]), slopes, align="end").lse
    np.testing.assert_allclose(lse[0], np.log(np.exp(-slopes[:, None] * np.arange(4)).sum(axis=1)))
