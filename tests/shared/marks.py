"""Marks of parameters."""

import pytest


def slow(*values: object) -> list[object]:
    """These values of a parameter, or of several where they are tuples, for the slow tests only."""
    return [
        pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.slow)
        for value in values
    ]
