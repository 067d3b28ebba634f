"""Settings of all tests.

`pytest` runs the quick set, `pytest -m slow` the rest: each test is in one of them. With SEQFLOW_TESTS=thorough,
`pytest -m thorough` runs more cases of slow tests.
"""

import gc
import os
import re
import signal
import sys
import zlib
from collections import defaultdict
from collections.abc import Generator
from itertools import combinations, count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, seed, settings

from stores import addresses, bucket, own, start_store, store  # noqa: F401  fixtures

# No test is about time: a first call imports and compiles.
# All but the thorough profile draw the same examples every time, so that a red run is about the change.
CHECKS = [HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture]
for name, more in {
    "quick": {"max_examples": 12, "derandomize": True},
    "slow": {"max_examples": 16, "derandomize": True},
    "thorough": {"max_examples": 200},
}.items():
    settings.register_profile(name, deadline=None, suppress_health_check=CHECKS, **more)

# Tests start hundreds of processes: without byte code each of them would compile the package first.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# With as many test processes as processors, threads of torch and of NumPy's products wait for each other by computing:
# a notebook took seven times as much processor time. Not OMP_NUM_THREADS, which Arrow's pool obeys, too.
for variable in ("MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# A shell's background jobs, and what runs under nohup, ignore signals that tests send to processes they start.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


# A fork in a process with threads is a promise that is tested. Marks count more than `-W error`.
FORKS = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


def pytest_configure(config: pytest.Config) -> None:
    """Load the profile before test modules read it."""
    profile = "quick" if config.getoption("markexpr") == "not slow" else "slow"
    settings.load_profile(os.environ.get("SEQFLOW_TESTS", profile))


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Leave what is collected out of collections of garbage: a million objects, half a second each time, and forks copy them."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


FOLDERS = count()


@pytest.fixture
def tmp_path(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for each test below one of its module.

    pytest's is among those of all tests. It lists them for each, and so does each source, in search of a table's log.
    """
    name = re.sub(r"\W", "_", request.node.name)[:30]
    folder = tmp_path_factory.getbasetemp() / request.path.stem / f"{name}{next(FOLDERS)}"
    folder.mkdir(parents=True)
    return folder


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Let tests fork; mark most cases of `each_choice` as slow or thorough."""
    tables = defaultdict(list)
    for item in items:
        item.add_marker(FORKS)
        function = getattr(item, "obj", None)
        # without a seed, examples that are always the same begin with the reading and cutting of the test's source, each time
        if hasattr(function, "hypothesis") and settings.default.derandomize:
            seed(zlib.crc32(function.__qualname__.encode()))(function)
        if item.get_closest_marker("each_choice"):
            tables[item.nodeid.partition("[")[0]].append(item)
    for cases in tables.values():
        quick = covering(cases, 1, set())
        # all pairs of two parameters are all cases: those of another covering, or one alone, say nearly as much
        mark, of = cases[0].get_closest_marker("each_choice"), len(cases[0].callspec.params)
        others = [case for case in cases if case not in quick and not case.get_closest_marker("slow")]
        pairs = mark.kwargs.get("pairs", of > 2)
        slow = covering(cases, 2, quick) if pairs else quick | covering(others, 1, set())
        for case in cases:
            if case not in quick:
                case.add_marker("slow")
            if case not in slow:
                case.add_marker("thorough")
    if os.environ.get("SEQFLOW_TESTS") != "thorough":
        left_out = [item for item in items if item.get_closest_marker("thorough")]
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
        config.hook.pytest_deselected(items=left_out)


def covering(cases: list[Any], strength: int, chosen: set[Any]) -> set[Any]:
    """A covering array of the cases, the chosen ones among them: each `strength` values of parameters occur together
    in one of them, as they do in the cases.
    """
    values = {case: [(name, id(value)) for name, value in case.callspec.params.items()] for case in cases}
    combined = {case: set(combinations(found, min(strength, len(found)))) for case, found in values.items()}
    missing = set().union(*combined.values()).difference(*(combined[case] for case in chosen))
    while missing:
        most = max(cases, key=lambda case: len(missing & combined[case]))
        chosen = chosen | {most}
        missing -= combined[most]
    return chosen


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Processes that have no tests left take some of others."""
    if config.getoption("dist") == "load":
        from xdist.scheduler import WorkStealingScheduling

        return WorkStealingScheduling(config, log)
    return None
