"""Marks of parameters, and how much is tested."""

import os
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

THOROUGH = os.environ.get("SEQFLOW_TESTS") == "thorough"
"""Also what says little more than the rest."""


def slow(*values: object) -> list[object]:
    """These values of a parameter, or of several where they are tuples, for the slow tests only."""
    return _marked(values, pytest.mark.slow)


def thorough(*values: object) -> list[object]:
    """These values for the thorough tests only."""
    return _marked(values, [pytest.mark.slow, pytest.mark.thorough])


def one_in(
    n: int, values: Iterable[object], kind: Callable[[Any], object] = lambda _: None, first: int = 0
) -> list[object]:
    """The values of a parameter of a slow test: of each kind one at `first` and each n-th after it, the others for the
    thorough tests only. Tests of the same values that differ in `first` together have all of them.
    """
    counts: Counter[object] = Counter()
    found: list[object] = []
    for value in values:
        found += [value] if counts[kind(value)] % n == first % n else thorough(value)
        counts[kind(value)] += 1
    return found


def _marked(values: tuple[object, ...], marks: Any) -> list[object]:
    return [pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks) for value in values]
