"""Attention: what all kernels give, against the definition and its derivative."""

import resource

import numpy as np
import numpy_kernels as reference
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqflow import kernels
from seqflow.kernels import KernelError, attention
from seqflow.kernels.attention import AttentionSettings

FAR = 10**9
CASES = [
    {}, {"after": 0}, {"after": 0, "before": 3}, {"before": 2, "after": 2}, {"softcap": 1.5},
    {"after": 0, "slopes": True}, {"scale": 0.3, "softcap": 0.5, "slopes": True, "before": 70},
]  # fmt: skip
RANDOM = np.random.default_rng(0)


def form(depth, *, scale=None, before=FAR, after=FAR, from_end=False, softcap=0.0):
    return AttentionSettings(depth**-0.5 if scale is None else scale, before, after, from_end, softcap)


def arrays(*shapes, dtype="float64", random=RANDOM):
    return [random.standard_normal(shape).astype(dtype) for shape in shapes]


def given_arrays(lengths, kv_lengths, heads, groups, depth, width, dtype="float64", random=RANDOM):
    n, m = int(lengths.sum()), int(kv_lengths.sum())
    return arrays((n, heads, depth), (m, groups, depth), (m, groups, width), dtype=dtype, random=random)


def by_definition(q, lengths, k, v, kv_lengths, slopes, how):
    """All scores of each sequence at once."""
    out, lse = np.zeros((*q.shape[:2], v.shape[2])), np.full(q.shape[:2], -np.inf)
    at = keys_at = 0
    for n, m in zip(lengths, kv_lengths, strict=True):
        rows, keys = slice(at, at + n), slice(keys_at, keys_at + m)
        at, keys_at = at + n, keys_at + m
        distance = np.arange(m) - np.arange(n)[:, None] - (m - n if how.from_end else 0)
        seen = (distance >= -how.before) & (distance <= how.after)
        for head in range(q.shape[1]):
            group = head // (q.shape[1] // k.shape[1])
            s = how.scale * q[rows, head] @ k[keys, group].T
            if how.softcap:
                s = how.softcap * np.tanh(s / how.softcap)
            if slopes is not None:
                s = s - slopes[head] * np.abs(distance)
            s = np.where(seen, s, -np.inf)
            for i in np.flatnonzero(seen.any(axis=1)):
                lse[rows, head][i] = np.logaddexp.reduce(s[i])
                out[rows, head][i] = np.exp(s[i] - lse[rows, head][i]) @ v[keys, group]
    return out, lse


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("lengths", [[0, 7, 1, 12, 5, 9], [70, 0, 300, 1, 130]], ids=["short", "long"])
@pytest.mark.parametrize("cross", [None, "start", "end"])
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_results_are_those_of_the_definition(any_kernels, case, groups, cross, lengths, monkeypatch):
    if len(lengths) == 6:  # small tiles, so that their edges are met
        monkeypatch.setattr(attention, "QUERY_ROWS", 3)
        monkeypatch.setattr(attention, "KEY_ROWS", 4)
    lengths = np.array(lengths)
    kv_lengths = (
        lengths if cross is None else np.resize([3, 0, 4, 9, 11, 9], len(lengths)) * (lengths.max() // 10)
    )
    q, k, v = given_arrays(lengths, kv_lengths, 4, groups, 5, 6)
    slopes = np.array([0.5, 0.25, 0.125, 0.06]) if "slopes" in case else None
    how = form(5, from_end=cross == "end", **{name: one for name, one in case.items() if name != "slopes"})
    out, lse = kernels.attention_within(q, lengths, k, v, kv_lengths, slopes, how)
    expected, logs = by_definition(q, lengths, k, v, kv_lengths, slopes, how)
    np.testing.assert_allclose(out, expected, atol=1e-12)
    np.testing.assert_allclose(lse, logs, atol=1e-12)


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("cross", [None, "start", "end"])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_gradients_are_those_of_differences(any_kernels, case, groups, cross):
    random = np.random.default_rng(1)
    lengths = np.array([0, 6, 1, 9])
    kv_lengths = lengths if cross is None else np.array([2, 0, 4, 7])
    q, k, v = given_arrays(lengths, kv_lengths, 2, groups, 3, 4, random=random)
    slopes = np.array([0.5, 0.25]) if "slopes" in case else None
    how = form(3, from_end=cross == "end", **{name: one for name, one in case.items() if name != "slopes"})
    out, lse = kernels.attention_within(q, lengths, k, v, kv_lengths, slopes, how)
    d_out, d_lse = arrays(out.shape, lse.shape, random=random)
    found = kernels.attention_within_backward(
        q, k, v, out, lse, d_out, d_lse, lengths, kv_lengths, slopes, how
    )

    def loss():
        out, lse = by_definition(q, lengths, k, v, kv_lengths, slopes, how)
        return (out * d_out).sum() + (np.where(np.isfinite(lse), lse, 0) * d_lse).sum()

    for array, gradient in zip((q, k, v, slopes), found, strict=True):
        if array is None:
            assert gradient is None
            continue
        for place in random.choice(array.size, min(array.size, 12), replace=False):
            before = array.flat[place]
            array.flat[place] = before + 1e-5
            above = loss()
            array.flat[place] = before - 1e-5
            below = loss()
            array.flat[place] = before
            np.testing.assert_allclose(gradient.flat[place], (above - below) / 2e-5, atol=1e-7)


def run(lengths, q, k, v, d_out, d_lse, how):
    out, lse = kernels.attention_within(q, lengths, k, v, lengths, None, how)
    back = kernels.attention_within_backward(q, k, v, out, lse, d_out, d_lse, lengths, lengths, None, how)
    return [out, lse, *back[:3]]


def rows_of(lengths, order):
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return np.concatenate([np.arange(starts[b], starts[b + 1]) for b in order])


@pytest.mark.slow
@pytest.mark.parametrize("band", [{}, {"after": 0}, {"before": 40, "after": 3}], ids=str)
def test_bits_of_a_sequence_depend_on_nothing_else_in_the_batch(any_kernels, two_threads, band):
    lengths, order = np.array([5, 0, 1500, 333, 1, 64]), np.array([3, 2, 5, 4, 0, 1])
    count = int(lengths.sum())
    shapes = [(count, 4, 16), (count, 2, 16), (count, 2, 16), (count, 4, 16), (count, 4)]
    given = arrays(*shapes, dtype="float32")
    how = form(16, **band)
    together = run(lengths, *given, how)
    rows = rows_of(lengths, order)
    moved = run(lengths[order], *(x[rows] for x in given), how)
    with kernels.single_thread():
        alone = run(lengths, *given, how)
    for whole, other, single in zip(together, moved, alone, strict=True):
        np.testing.assert_array_equal(whole[rows], other)
        np.testing.assert_array_equal(whole, single)
    for b in range(len(lengths)):
        rows = rows_of(lengths, [b])
        separate = run(lengths[b : b + 1], *(x[rows] for x in given), how)
        for whole, one in zip(together, separate, strict=True):
            np.testing.assert_array_equal(whole[rows], one)


@pytest.mark.parametrize("size", [6, 400])
@pytest.mark.parametrize("which", range(5))
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_stays_with_the_rows_that_see_it(any_kernels, size, which, bad):
    lengths, how = np.array([size, 3]), form(4, before=size // 3, after=0)
    count = size + 3
    shapes = [(count, 2, 4), (count, 1, 4), (count, 1, 4), (count, 2, 4), (count, 2)]
    given = arrays(*shapes)
    plain = run(lengths, *given, how)
    row = size // 2
    given[which][row] = bad
    out, lse, d_q, d_k, d_v = run(lengths, *given, how)
    window = size // 3
    # queries that see the row, and keys that those queries see
    queries = {
        0: [row],
        1: range(row, row + window + 1),
        2: range(row, row + window + 1),
        3: [row],
        4: [row],
    }[which]
    feels = [query for query in queries if query < size]
    keys = [key for key in range(size) if any(query - window <= key <= query for query in feels)]
    others = np.setdiff1d(np.arange(count), feels)
    exact = 1e-12 if any_kernels == "reference" else 0  # BLAS sums tiles of one row in another order
    for found, expected in ((out, plain[0]), (lse, plain[1]), (d_q, plain[2])):
        np.testing.assert_allclose(found[others], expected[others], rtol=exact, atol=exact)
    others = np.setdiff1d(np.arange(count), keys)
    for found, expected in ((d_k, plain[3]), (d_v, plain[4])):
        np.testing.assert_allclose(found[others], expected[others], rtol=exact, atol=exact)
    if which < 3 and np.isnan(bad):
        assert np.isnan(out[feels]).all()
        assert np.isnan(d_q[feels]).all()
        assert np.isnan(d_k[keys]).all()


def test_a_query_that_sees_no_key_gives_nothing(any_kernels):
    for lengths, kv_lengths in (([3, 2], [0, 0]), ([2], [1]), ([0], [4]), ([], [])):
        lengths, kv_lengths = np.array(lengths, int), np.array(kv_lengths, int)
        q, k, v = given_arrays(lengths, kv_lengths, 2, 1, 3, 3)
        how = form(3, before=0, after=0)
        out, lse = kernels.attention_within(q, lengths, k, v, kv_lengths, None, how)
        unseen = np.setdiff1d(np.arange(len(q)), range(min(len(q), len(k))))
        assert (out[unseen] == 0).all()
        assert (lse[unseen] == -np.inf).all()
        back = kernels.attention_within_backward(
            q, k, v, out, lse, np.full_like(out, np.nan), 0 * q[..., 0], lengths, kv_lengths, None, how
        )
        assert (back[0][unseen] == 0).all()
        assert (back[1][len(q) :] == 0).all()


def test_scores_of_minus_infinity_have_no_weight(any_kernels):
    q, k, v = (
        np.ones((1, 1, 1)),
        np.array([-np.inf, 0.0]).reshape(2, 1, 1),
        np.array([5.0, 7.0]).reshape(2, 1, 1),
    )
    out, lse = kernels.attention_within(q, np.array([1]), k, v, np.array([2]), None, form(1))
    assert out.item() == 7
    assert lse.item() == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1, 1), (8, 8, 64, 64), (6, 2, 40, 33), (3, 1, 7, 130), (2, 2, 0, 3), (2, 1, 3, 0)]
)
def test_native_kernels_agree_with_numpy_for_any_head_size(native, dtype, shape):
    lengths = np.array([0, 65, 300, 17, 1])
    q, k, v = given_arrays(lengths, lengths, *shape, dtype=dtype)
    how = AttentionSettings(0.25, 100, 3, False, 0.0)
    out, lse = native.attention_within(q, lengths, k, v, lengths, None, how)
    expected, logs = reference.attention_within(q, lengths, k, v, lengths, None, how)
    close = {"float32": 3e-6, "float64": 1e-13}[dtype]
    np.testing.assert_allclose(out, expected, atol=close)
    np.testing.assert_allclose(lse, logs, rtol=close, atol=close)
    arriving = arrays(out.shape, lse.shape, dtype=dtype)
    given = (q, k, v, out, lse, *arriving, lengths, lengths, None, how)
    ours, theirs = native.attention_within_backward(*given), reference.attention_within_backward(*given)
    for one, other in zip(ours[:3], theirs[:3], strict=True):
        np.testing.assert_allclose(one, other, rtol=20 * close, atol=20 * close)


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_native_kernels_agree_with_numpy_on_any_lengths_and_bands(native, data):
    sizes = st.integers(0, 600) if data.draw(st.booleans()) else st.integers(0, 9)
    pairs = data.draw(st.lists(st.tuples(sizes, sizes), max_size=4))
    lengths, kv_lengths = (np.array([pair[i] for pair in pairs], int) for i in (0, 1))
    bound = st.sampled_from([0, 1, 5, 70, 300, FAR, 2**62])
    how = AttentionSettings(
        0.5,
        data.draw(bound),
        data.draw(bound),
        data.draw(st.booleans()),
        data.draw(st.sampled_from([0.0, 2.0])),
    )
    q, k, v = given_arrays(lengths, kv_lengths, 2, data.draw(st.sampled_from([1, 2])), 3, 4)
    slopes = np.array([0.5, 0.1]) if data.draw(st.booleans()) else None
    out, lse = native.attention_within(q, lengths, k, v, kv_lengths, slopes, how)
    expected, logs = reference.attention_within(q, lengths, k, v, kv_lengths, slopes, how)
    np.testing.assert_allclose(out, expected, atol=1e-12)
    np.testing.assert_allclose(lse, logs, atol=1e-12)
    given = (q, k, v, out, lse, *arrays(out.shape, lse.shape), lengths, kv_lengths, slopes, how)
    for one, other in zip(
        native.attention_within_backward(*given), reference.attention_within_backward(*given), strict=True
    ):
        if other is not None:
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("lengths", "kv_lengths", "error"),
    [
        ([2, -1], [3], "lengths[1] = -1 is negative"),
        ([4], [3], "sum(lengths) is 4 but q has 3 rows"),
        ([3], [4], "sum(kv_lengths) is 4 but k has 3 rows"),
        ([3], [-3], "kv_lengths[0] = -3 is negative"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(any_kernels, lengths, kv_lengths, error):
    q, k, v = arrays((3, 1, 2), (3, 1, 2), (3, 1, 2))
    kv_lengths = np.resize(kv_lengths, len(lengths)) if len(lengths) == 1 else np.array([1, 2])
    with pytest.raises(KernelError) as caught:
        kernels.attention_within(q, np.array(lengths), k, v, kv_lengths, None, form(2))
    assert str(caught.value) == error


def test_a_long_sequence_with_a_narrow_band_needs_a_few_tiles(any_kernels):
    if any_kernels == "reference":
        pytest.skip("peak memory is measured once, on native kernels")
    count = 100_000
    q, k, v, d_out = arrays(*[(count, 1, 16)] * 4, dtype="float32")
    lengths, how, d_lse = np.array([count]), form(16, before=100, after=0), np.zeros((count, 1), "float32")
    out, lse = kernels.attention_within(q, lengths, k, v, lengths, None, how)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    out, lse = kernels.attention_within(q, lengths, k, v, lengths, None, how)
    back = kernels.attention_within_backward(q, k, v, out, lse, d_out, d_lse, lengths, lengths, None, how)
    results = sum(one.nbytes for one in (out, lse, *back[:3]))
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown <= results + (16 << 20)
