"""Marks of parameters, and how much is tested."""

import os
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


def _marked(values: tuple[object, ...], marks: Any) -> list[object]:
    return [pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=marks) for value in values]
