"""Settings of all tests.

`pytest` runs the quick set. `pytest -m slow` runs what is marked slow, and every hypothesis test on more examples.
"""

import os
import signal

import pytest
from hypothesis import is_hypothesis_test, settings

# No test is about time: a first call imports and compiles.
# All but the thorough profile draw the same examples every time, so that a red run is about the change.
settings.register_profile("quick", deadline=None, max_examples=20, derandomize=True)
settings.register_profile("slow", deadline=None, max_examples=40, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=200)

# A shell's background jobs, and what runs under nohup, ignore signals that tests send to processes they start.
for number, usual in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, usual)


def pytest_configure(config: pytest.Config) -> None:
    """Load the profile before test modules read it."""
    profile = "slow" if config.getoption("markexpr") == "slow" else "quick"
    settings.load_profile(os.environ.get("SEQFLOW_TESTS", profile))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A hypothesis test is quick on few examples and slow on many."""
    for item in items if config.getoption("markexpr") == "slow" else []:
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("slow")


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Processes that have no tests left take some of others."""
    if config.getoption("dist") == "load":
        from xdist.scheduler import WorkStealingScheduling

        return WorkStealingScheduling(config, log)
    return None
