"""Times that a user gives: one that is not a wait of at most a day is an error at once, wherever it is given."""

import inspect
import time

import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.arguments import LONGEST_WAIT
from seqflow.cli.bench import bench
from seqflow.errors import SeqflowError
from seqflow.files.options import TIMES, store_options
from seqflow.job import Job, sections

NUMBERS = [0, -1, 86_401, 1e300, 2**70, 10**400, float("inf"), float("nan"), True, "x", None, [1], 1j]
TEXTS = [
    "0s",
    "2d",
    "86401s",
    "25h",
    "99999999999999999999s",
    "1y",
    "5",
    "",
    "1e9s",
    "1..5s",
    "12h 13h",
    None,
    7,
    True,
]
TABLE = pa.table({"n": [1, 2]})


def served(value):
    sf.served("flight://127.0.0.1:1", timeout=value)


def job(value):
    Job.from_dict({"source": {"served": "flight://127.0.0.1:1", "timeout": value}})


def retried(value):
    sf.open("s3://bucket/a.parquet", storage_options={"retry_seconds": value})


def opened(name):
    return lambda value: sf.open("s3://bucket/a.parquet", storage_options={name: value})


def consumer(value):
    bench("no.toml", consumer=value)


WAITS = {"served.timeout": served, "[source] timeout": job, "retry_seconds": retried}
TEXT_WAITS = {name: opened(name) for name in (*TIMES, "aws_timeout")} | {"bench --consumer": consumer}
PLACES = [(name, value) for name in WAITS for value in NUMBERS]
PLACES += [
    (name, value)
    for name in TEXT_WAITS
    for value in TEXTS
    if name != "bench --consumer" or (isinstance(value, str) and value != "0s")
]


@pytest.mark.parametrize(("name", "value"), PLACES)
def test_a_wait_that_is_a_hang_is_an_error_at_once(name, value):
    started = time.monotonic()
    what = name.split(".")[-1].split()[-1].strip("-").removeprefix("aws_")
    with pytest.raises(
        SeqflowError, match=rf"{what} is .*expected .*(at most|seconds above 0|a number|such as)"
    ):
        (WAITS | TEXT_WAITS)[name](value)
    assert time.monotonic() - started < 1


@pytest.mark.parametrize("text", ["10s", "500ms", "1.5 s", "1h 5m", "1d", "86400s"])
def test_a_time_of_a_request_is_given_to_the_client(text):
    for name in TIMES:
        assert store_options({name: text}, "s3").client[name] == text


def test_every_argument_and_key_that_is_a_wait_is_drawn():
    """A new one is added to the lists above."""
    found = set()
    for name in sf.__all__ if hasattr(sf, "__all__") else dir(sf):
        one = getattr(sf, name)
        if callable(one) and not isinstance(one, type(sf)):
            try:
                parameters = inspect.signature(one).parameters
            except (TypeError, ValueError):
                continue
            found |= {f"{name}.{key}" for key in parameters if "timeout" in key or "seconds" in key}
    for name, section in vars(sections).items():
        if inspect.isclass(section) and name.endswith("Section"):
            found |= {
                f"{name}.{key.name}"
                for key in sections.keys_of(section)
                if "timeout" in key.name or "seconds" in key.name
            }
    assert found == {"served.timeout", "ServedSection.timeout"}


def test_a_day_is_a_wait():
    assert store_options({"retry_seconds": LONGEST_WAIT}, "s3").retry_seconds == LONGEST_WAIT
    assert (
        Job.from_dict({"source": {"served": "flight://a:1", "timeout": LONGEST_WAIT}}).source.served
        is not None
    )
