"""Values that a conversion changes: found exactly, by NumPy's dtypes and the numbers at their edges."""

import math
from fractions import Fraction

import numpy as np
import pytest

from seqflow.kernels.exact import converted

NUMBERS = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8"]
TIMES = ["M8[Y]", "M8[D]", "M8[h]", "M8[s]", "M8[us]", "M8[ns]", "m8[D]", "m8[s]", "m8[ns]"]
TEXTS = ["S1", "S3", "U1", "U3"]
EDGES = [
    0, 1, 2, -1, 127, 128, 255, 256, 2**11 + 1, 2**15, 2**24 + 1, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1,
    -128, -129, -(2**31) - 1, -(2**53) - 1, -(2**63), 0.5, -0.5, 1e-8, 65504, 65520, 3.4e38, 1e39, 2.0**63, 2.0**64, 1e300,
    math.inf, -math.inf, math.nan,
]  # fmt: skip


def array_of(dtype):
    """The edges that a dtype has."""
    kind = np.dtype(dtype).kind
    if kind in "iub":
        limits = (0, 1) if kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return np.array(
            [one for one in EDGES if isinstance(one, int) and limits[0] <= one <= limits[1]], dtype
        )
    if kind == "f":
        with np.errstate(over="ignore"):
            return np.array([float(one) for one in EDGES], dtype)
    if kind in "SU":
        return np.array(["", "a", "ab", "1"], dtype)
    most = 300 if dtype == "M8[Y]" else 10**9
    return (
        np.array([0, 1, -1, 86400, most, "NaT"], dtype)
        if kind == "m"
        else np.array([0, 1, -1, 59, most, 0]).view(dtype)
    )


def exact(value):
    """A value as one that Python compares exactly; None for NaN and NaT, which are equal here."""
    if isinstance(value, np.datetime64 | np.timedelta64):
        if np.isnat(value):
            return None
        unit = np.datetime_data(value.dtype)[0]
        value = value.astype("M8[D]") if unit == "Y" else value
        seconds = {"D": 86400, "h": 3600, "s": 1, "us": Fraction(1, 10**6), "ns": Fraction(1, 10**9)}
        return type(value).__name__, int(value.astype(np.int64)) * seconds[np.datetime_data(value.dtype)[0]]
    value = value.item()
    return None if value != value else value


@pytest.mark.parametrize("dtype", [*NUMBERS, *TIMES, *TEXTS])
def test_a_value_is_changed_where_python_says_so(dtype):
    values = array_of(dtype)
    for target in [*NUMBERS, *TIMES, *TEXTS]:
        kinds = np.dtype(dtype).kind + np.dtype(target).kind
        if not (set(kinds) <= set("biuf") or kinds[0] == kinds[1]):
            continue
        made, wrong = converted(values, target)
        for before, after, found in zip(values, made, wrong, strict=True):
            is_other = (
                np.isfinite(before) != np.isfinite(after) if kinds == "ff" else exact(before) != exact(after)
            )
            assert found == is_other, (before, after, target)


def test_texts_are_not_numbers_nor_numbers_times():
    for values, dtype in (
        (np.array(["7"]), "i8"),
        (np.array([7]), "U1"),
        (np.array([7]), "M8[s]"),
        (np.array(["a"]), "S1"),
    ):
        assert converted(values, dtype)[1].all()
