"""Quantiles of each segment are those of NumPy."""

import numpy as np
import pytest

from seqflow import ops
from seqflow.errors import OpError

A = np.array


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("q", [0, 0.3, 0.5, [0.25, 1.0]])
def test_quantiles_are_those_of_numpy(interpolation, q):
    random = np.random.default_rng(0)
    lengths = random.integers(0, 9, 50)
    data = random.standard_normal(lengths.sum())
    found = ops.lengths_quantile(data, lengths, q=q, interpolation=interpolation, empty=-1)
    pieces = np.split(data, np.cumsum(lengths)[:-1])
    expected = [
        np.quantile(one, q, method=interpolation) if len(one) else np.full(np.shape(q), -1.0)
        for one in pieces
    ]
    np.testing.assert_allclose(found, expected)


def test_nan_gives_nan():
    assert np.isnan(ops.lengths_median(A([1.0, np.nan, 2.0]), [3])[0])


@pytest.mark.parametrize("q", [1.5, -0.1, float("nan"), [0.5, 2]])
def test_a_share_outside_0_to_1_is_an_error(q):
    with pytest.raises(OpError, match=r"lengths_quantile: q.* expected 0 to 1"):
        ops.lengths_quantile(A([1.0]), [1], q=q)


@pytest.mark.parametrize("interpolation", ["linear", "lower", "higher", "nearest", "midpoint"])
@pytest.mark.parametrize("q", [0, 0.25, 0.5, 0.6, 1])
def test_quantiles_next_to_an_infinity_or_of_huge_numbers_lie_between_two_rows(interpolation, q):
    inf, huge = np.inf, 1.7e308
    rows = [
        [1, 2, inf],
        [-inf, 1, 2],
        [-inf, inf, 0],
        [inf, inf],
        [-huge, huge],
        [-huge, huge, huge],
        [1, inf],
        [-inf, 3],
        [7],
    ]
    for dtype in (np.float64, np.float32):
        data = A([x for row in rows for x in row])
        data = (
            data
            if dtype is np.float64
            else np.clip(data, -3e38, 3e38, where=np.isfinite(data), out=data).astype(dtype)
        )
        found = ops.lengths_quantile(data, [len(row) for row in rows], q=q, interpolation=interpolation)
        for row, number in zip(
            np.split(data, np.cumsum([len(row) for row in rows])[:-1]), found, strict=True
        ):
            place, values = q * (len(row) - 1), sorted(row.astype(float).tolist())
            low, high, part = values[int(place)], values[min(int(place) + 1, len(row) - 1)], place % 1
            part = {"linear": part, "lower": 0, "higher": np.ceil(part), "midpoint": 0.5 * (part > 0)}.get(
                interpolation, np.rint(place) - int(place)
            )
            expected = (
                low if part == 0 or low == high else high if part == 1 else low * (1 - part) + high * part
            )
            np.testing.assert_allclose(number, expected, rtol=1e-6, atol=1e-6)


def test_medians_are_those_of_statistics_next_to_infinities():
    inf = np.inf
    rows = [
        [1, 2, inf],
        [-inf, 1, 2],
        [inf, 5, 4],
        [-inf, inf, 0],
        [inf, inf, inf],
        [3],
        [-1.7e308, 1.7e308, 1e308, 1e308],
    ]
    found = ops.lengths_median(A([x for row in rows for x in row]), [len(row) for row in rows])
    assert found.tolist() == [2, 1, 5, 0, inf, 3, 1e308]
