"""`benchmarks/growth.py`: the work that it measures takes a number of calls that grows as its size, and no faster."""

import importlib
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not BENCHMARKS.exists(), reason="a source distribution may have no benchmarks"),
]


@pytest.fixture(scope="module")
def growth():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        before = set(sys.modules)
        yield importlib.import_module("growth")
        for name in set(sys.modules) - before:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(BENCHMARKS)):
                del sys.modules[name]


def number_of_calls(work):
    """Return the number of calls of functions, those written in C included."""
    count = 0

    def see(frame, event, argument):
        nonlocal count
        count += event in ("call", "c_call")

    work()  # first uses fill caches
    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def test_the_number_of_calls_grows_as_the_size(growth, tmp_path):
    found = {}
    for number, one in enumerate(growth.GROWTHS):
        least = min(one.sizes[0], 50) if one.sizes[0] > 2 else 4
        folder = tmp_path / str(number)
        folder.mkdir()
        calls = one.calls(folder, (least, 2 * least, 4 * least))
        first, second, third = (number_of_calls(work) for work in calls.values())
        # differences have no part that is the same at each size; of work that grows as its size the ratio is 2, of
        # work that grows as the square 4
        found[one.name] = (third - second) / max(1, second - first)
    assert {name: ratio for name, ratio in found.items() if ratio > 2.2} == {}


def test_the_exponent_is_that_of_the_largest_sizes(growth):
    assert growth.exponent((1, 10, 100), (5, 1, 100)) == pytest.approx(2)
