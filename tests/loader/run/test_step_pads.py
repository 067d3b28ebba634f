"""Steps of a net that pad columns: batches are those of the net that pads rows which were gathered before."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import LodError, SeqflowError
from seqflow.loader.run import making
from seqflow.loader.run.step_pads import padded_early
from seqflow.record import Record

ROWS = 97


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, 9, ROWS)
    lists = [rng.integers(-50, 50, size).tolist() for size in lengths]
    table = pa.table(
        {
            "id": np.arange(ROWS),
            "x": pa.array(lists, pa.list_(pa.int16())),
            "y": pa.array([[value / 3 for value in one] for one in lists[::-1]], pa.list_(pa.float32())),
        }
    )
    found = tmp_path_factory.mktemp("pads") / "rows.parquet"
    pq.write_table(table, found, row_group_size=20)
    return found


@pytest.fixture
def early(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The steps that were done before each net that ran on batches of a window."""
    found = []

    def noted(*given: Any) -> Any:
        batches, steps = padded_early(*given)
        found.append(steps)
        return batches, steps

    monkeypatch.setattr(making, "padded_early", noted)
    return found


def by_net(monkeypatch: pytest.MonkeyPatch, make: Callable[[], sf.Loader]) -> list[Record]:
    """The batches when the net pads itself."""
    with monkeypatch.context() as patched:
        patched.setattr(making, "padded_early", lambda batches, net: (batches, ()))
        return list(make())


def check_equal(found: list[Record], expected: list[Record]) -> None:
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert (list(one), one.parents, one.num_rows) == (list(other), other.parents, other.num_rows)
        assert (one.schema, one.dictionaries, one.number) == (other.schema, other.dictionaries, other.number)
        for name in one:
            assert one[name].dtype == other[name].dtype
            np.testing.assert_array_equal(one[name], other[name])
            assert one[name].flags.writeable == other[name].flags.writeable


PAD = "ids, mask = pad(x.values, x.lengths{})"
NETS = {
    "returned": (PAD.format("") + "\nreturn ids, mask", 1),
    "all": (PAD.format(""), 1),
    "no mask": ("ids, _ = pad(x.values, x.lengths)", 1),
    "group": ("ids = pad(x.values, x.lengths, multiple_of=4)", 1),
    "left": (PAD.format(', side="left", fill=-1'), 1),
    "cut": (PAD.format(", max_length=3, truncate=True"), 1),
    "cut, left": (PAD.format(', max_length=3, truncate=True, side="left"'), 1),
    "wide": (PAD.format(", max_length=30"), 1),
    "two": (PAD.format("") + "\nb, k = pad(y.values, y.lengths, fill=0.5)\nreturn ids, b, k, id", 2),
    "used on": (PAD.format("") + "\nz = where(mask, ids, 7)\nn = lengths_sum(y.values, y.lengths)", 1),
    "lengths used": (PAD.format("") + "\nn = x.lengths + 1\nback = unpad(ids, x.lengths)", 1),
    "random": (PAD.format("") + "\nv = shuffle_within(y.values, y.lengths, seed=3)", 1),
    "values used": (PAD.format("") + "\nz = x.values + 1", 0),
    "values returned": (PAD.format("") + "\nreturn ids, x.values, x.lengths", 0),
    "nothing wide": (PAD.format(", max_length=0, truncate=True"), 0),
    "made first": ("v, n = truncate(x.values, x.lengths, max_length=3)\nids, mask = pad(v, n)", 0),
    "taken name": ("id, mask = pad(x.values, x.lengths)", 0),
}


@pytest.mark.each_choice
@pytest.mark.parametrize("name", NETS)
@pytest.mark.parametrize("threads", [0, 2])
def test_batches_are_those_of_the_net(
    path: Path, name: str, threads: int, early: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    text, steps = NETS[name]

    def make() -> sf.Loader:
        return sf.Loader(path, 16, net=text, shuffle=True, threads=threads)

    check_equal(list(make()), by_net(monkeypatch, make))
    assert {len(one) for one in early} == {steps}


@pytest.mark.parametrize(
    ("options", "steps"),
    [
        ({"batch": sf.TokenBudget(40, lengths="x.lengths")}, 0),
        ({"batch": sf.Buckets([3, 6], sf.TokenBudget(40, lengths="x.lengths")), "shuffle": True}, 1),
        ({"batch": 16}, 0),
        ({"batch": 16, "shuffle": True, "pad": {"y": 0}}, 0),
        ({"batch": 16, "shuffle": True, "prepare": "xs = x.values * 2\nreturn xs, x.lengths, id"}, 1),
        ({"batch": 16, "shuffle": True, "window": 800}, 1),
        ({"batch": 16, "shuffle": True, "world_size": 4, "rank": 3, "tail": "pad"}, 1),
        ({"batch": 16, "shuffle": True, "world_size": 4, "rank": 3, "tail": "repeat"}, 1),
    ],
)
def test_any_plan(
    path: Path,
    options: dict[str, Any],
    steps: int,
    early: list[tuple[int, ...]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values = "xs" if "prepare" in options else "x.values"

    def make() -> sf.Loader:
        return sf.Loader(path, net=f"ids, mask = pad({values}, x.lengths)", **options)

    check_equal(list(make()), by_net(monkeypatch, make))
    assert {len(one) for one in early} == {steps}


def test_reused_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(reuse: bool) -> sf.Loader:
        return sf.Loader(path, 16, net=NETS["used on"][0], shuffle=True, reuse=reuse)

    found = [{name: array.copy() for name, array in batch.items()} for batch in make(True)]
    expected = by_net(monkeypatch, lambda: make(False))
    for one, other in zip(found, expected, strict=True):
        for name, array in one.items():
            np.testing.assert_array_equal(array, other[name])


@pytest.mark.parametrize(
    "text",
    [
        PAD.format(", max_length=5"),
        PAD.format("") + "\nv = pad_lengths(y.values, y.lengths, target_length=5)",
    ],
)
def test_errors_and_refused_rows_are_those_of_the_net(
    path: Path, text: str, early: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(**options: Any) -> sf.Loader:
        return sf.Loader(path, 16, net=text, shuffle=True, **options)

    def error(run: Callable[[], object]) -> tuple[type[Exception], str, list[str]]:
        with pytest.raises(SeqflowError) as raised:
            run()
        return raised.type, str(raised.value), raised.value.__notes__

    assert error(lambda: list(make())) == error(lambda: by_net(monkeypatch, make))
    assert issubclass(error(lambda: list(make()))[0], LodError | SeqflowError)
    skipping = make(bad_rows="skip")
    check_equal(list(skipping), by_net(monkeypatch, lambda: make(bad_rows="skip")))
    assert 0 < skipping.stats().bad_rows < ROWS
    assert {len(one) for one in early} == {1}


def test_spec_is_that_of_the_net(path: Path) -> None:
    loader = sf.Loader(path, 16, net=NETS["returned"][0], shuffle=True)
    batch = next(iter(loader))
    for name, spec in loader.spec.items():
        assert batch[name].dtype == spec.dtype
        assert str(spec.shape[1]) == "max(x.lengths)"
