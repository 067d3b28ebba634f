"""An epoch by parts: whoever makes them, the batches and counts are those of the whole epoch."""

import pickle
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import one_in

import seqflow as sf
from seqflow.errors import JobError
from seqflow.loader import Loader, Stats
from seqflow.loader.order.windows import Parts
from seqflow.loader.parts import joined, make_part, make_parts, plan_parts
from seqflow.loader.run.ledger import BadRowHandler, BadRows
from seqflow.record import to_arrow

COUNTED = (
    "rows",
    "rows_read",
    "rows_left",
    "tokens",
    "cells",
    "batches",
    "bad_rows",
    "dropped",
    "skipped",
    "filtered",
)
PLANS = {
    "rows": {"batch": sf.Rows(7)},
    "rows, the last dropped": {"batch": sf.Rows(64, drop_last=True)},
    "rows beyond a window": {"batch": sf.Rows(150)},
    "rows of some lengths": {"batch": sf.Rows(5, min_length=3)},
    "rows that a filter keeps": {"batch": sf.Rows(7), "where": "a.lengths > 3"},
    "few rows that a filter keeps": {"batch": sf.Rows(7), "where": "x == 3 or x == 390"},
    "packed": {"batch": sf.Packed(16)},
    "packed, shuffled": {"batch": sf.Packed(16), "shuffle": True},
    "rows, shuffled": {"batch": sf.Rows(9), "shuffle": True},
    "budget": {"batch": sf.TokenBudget(40)},
    "bad rows": {"batch": sf.TokenBudget(40), "bad_rows": BadRows("skip")},
    "prepared": {"batch": sf.Rows(6), "prepare": "t, n = truncate(a.values, a.lengths, max_length=3)\nreturn x, t, n"},
}  # fmt: skip

BALANCED = {
    "rows, balanced": {"batch": sf.Rows(9, lengths="a", balance=sf.Balance(group=4, linear=1)), "shuffle": True},
    "packed, balanced": {"batch": sf.Packed(16, rows=2, balance=sf.Balance(group=2, pool=3, linear=1))},
    "budget, balanced": {"batch": sf.TokenBudget(40, balance=sf.Balance(group=2, pool=None, linear=1))},
}  # fmt: skip


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty row groups of ten rows."""
    random = np.random.default_rng(0)
    rows = [list(range(n)) for n in random.integers(0, 9, 400)]
    table = pa.table(
        {"x": np.arange(400), "a": pa.array([None if i % 37 == 5 else row for i, row in enumerate(rows)])}
    )
    path = tmp_path_factory.mktemp("parts") / "in.parquet"
    pq.write_table(table, path, row_group_size=10)
    return path


def loader_of(path: Path, name: str, **options: object) -> Loader:
    options = {"fill": None if name == "bad rows" else {"a": []}, **{**PLANS, **BALANCED}[name], **options}
    return Loader(str(path), window=600, threads=0, rank=0, world_size=1, **options)  # type: ignore[arg-type]


def content(batches: list[object]) -> list[object]:
    return [to_arrow(batch).to_pylist() for batch in batches]  # type: ignore[arg-type]


def counts(stats: Stats) -> dict[str, int]:
    return {name: getattr(stats, name) for name in COUNTED}


def whole(path: Path, name: str, **options: object) -> tuple[list[object], dict[str, int]]:
    loader = loader_of(path, name, **options)
    found = content(list(loader))
    return found, counts(loader.stats())


def added(counted: list[dict[str, int]]) -> dict[str, int]:
    return {name: sum(one[name] for one in counted) for name in COUNTED}


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("size", [1, 700, 2500, 10**9])
@pytest.mark.parametrize("name", PLANS)
def test_parts_that_are_made_one_after_another_are_the_epoch(path: Path, name: str, size: int) -> None:
    loader, stats = loader_of(path, name), Stats()
    handler = BadRowHandler(BadRows("skip"))
    found, numbers = [], []
    with closing(make_parts(loader, Parts(size), 0, handler, stats)) as parts:
        for part in parts:
            numbers.append(part.number)
            found += content(list(part))
    assert numbers == list(range(len(numbers)))
    assert (found, counts(stats)) == whole(path, name)
    assert loader.epoch == 1


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("size", [1, 700, 2500, 10**9])
@pytest.mark.parametrize("name", PLANS)
def test_parts_that_others_make_from_the_plan_alone_are_the_epoch(path: Path, name: str, size: int) -> None:
    """Each part is made by itself, in any order; what it needs can be sent to another process."""
    planned = [pickle.loads(pickle.dumps(part)) for part in plan_parts(loader_of(path, name), Parts(size))]
    made, counted = {}, []
    for part in reversed(planned):
        stats = Stats()
        with make_part(loader_of(path, name), part, BadRowHandler(BadRows("skip")), stats) as batches:
            made[part.number] = content(list(batches))
        counted.append(counts(stats))
    found = [batch for number in sorted(made) for batch in made[number]]
    assert (found, added(counted)) == whole(path, name)


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("size", [1, 700, 2500])
@pytest.mark.parametrize("name", BALANCED)
def test_steps_begin_anew_with_each_part_whoever_makes_it(path: Path, name: str, size: int) -> None:
    handler = BadRowHandler(BadRows("skip"))
    with closing(make_parts(loader_of(path, name), Parts(size), 0, handler, Stats())) as parts:
        found = [content(list(part)) for part in parts]
    made = []
    for part in plan_parts(loader_of(path, name), Parts(size)):
        with make_part(loader_of(path, name), part, handler, Stats()) as batches:
            made.append(content(list(batches)))
    assert found == made
    assert sum(len(part) for part in made) == len(whole(path, name)[0])
    assert found != [content(list(loader_of(path, name)))]


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(3, PLANS))
def test_after_each_part_another_goes_on_there(path: Path, name: str) -> None:
    """The state at the end of a part, with its number, is all that is needed; counts are those of the parts."""
    expected, expected_counts = whole(path, name)
    planned = list(plan_parts(loader_of(path, name), Parts(900)))
    first, states, before = loader_of(path, name), [], []
    stats, found = Stats(), []
    with closing(make_parts(first, Parts(900), 0, BadRowHandler(BadRows("skip")), stats)) as parts:
        for part in parts:
            found += content(list(part))
            if part.number < len(planned) - 1:
                assert part.is_full
                states.append((part.number + 1, first.state_dict()))
                before.append((len(found), counts(stats)))
    for (number, state), (made, counted) in zip(states, before, strict=True):
        later, stats = loader_of(path, name), Stats(**counted)
        later.load_state_dict(state)
        rest: list[object] = []
        with closing(make_parts(later, Parts(900), number, BadRowHandler(BadRows("skip")), stats)) as parts:  # fmt: skip
            for part in parts:
                rest += content(list(part))
        assert expected[made:] == rest
        assert counts(stats) == expected_counts


@pytest.mark.parametrize("name", ["packed", "bad rows", "few rows that a filter keeps"])
def test_an_index_changes_neither_parts_nor_counts(path: Path, name: str, tmp_path: Path) -> None:
    index = tmp_path / "lengths.arrow"
    loader_of(path, name, index=index).lengths_index()
    loader, stats = loader_of(path, name, index=index), Stats()
    ends, places = [], []
    with closing(make_parts(loader, Parts(900), 0, BadRowHandler(BadRows("skip")), stats)) as parts:
        for part in parts:
            list(part)
            ends.append(counts(stats))
            places.append(loader.state_dict()["batch"])
    loader, stats, without = loader_of(path, name), Stats(), []
    with closing(make_parts(loader, Parts(900), 0, BadRowHandler(BadRows("skip")), stats)) as parts:
        for part in parts:
            list(part)
            without.append(counts(stats))
    assert ends == without


@settings(max_examples=30)
@given(size=st.integers(1, 5000), rows=st.none() | st.integers(1, 300))
def test_a_part_ends_with_the_window_that_reaches_its_size(path: Path, size: int, rows: int | None) -> None:
    planned = list(plan_parts(loader_of(path, "packed"), Parts(size, rows)))
    assert [part.is_full for part in planned[:-1]] == [True] * (len(planned) - 1)
    windows = [window.number for part in planned for window in part.windows]
    assert windows == list(range(len(windows)))
    for part in planned:
        sizes = np.cumsum([window.nbytes for window in part.windows])
        counted = np.cumsum([window.num_rows or 0 for window in part.windows])
        full = (sizes >= size) | (counted >= (rows or 10**9))
        assert not full[:-1].any()
        assert bool(full[-1]) == part.is_full


def test_rows_that_nobody_knows_cannot_be_counted(tmp_path: Path) -> None:
    lines = tmp_path / "in.jsonl"
    lines.write_text('{"x": 1}\n' * 10)
    with pytest.raises(JobError, match=r"rows_per_file cuts by rows of the source, but those of .*in\.jsonl"):
        list(plan_parts(Loader(str(lines), batch=2), Parts(10**9, 5)))


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("number", [1, 2, 5, 1000])
@pytest.mark.parametrize("name", PLANS)
def test_joined_parts_are_the_epoch(path: Path, name: str, number: int) -> None:
    """What is planned window by window can be made in larger parts."""
    planned = list(plan_parts(loader_of(path, name), Parts(0)))
    made: list[object] = []
    for first in range(0, len(planned), number):
        part = joined(planned[first : first + number])
        with make_part(loader_of(path, name), part, BadRowHandler(BadRows("skip")), Stats()) as batches:
            made += content(list(batches))
    assert made == whole(path, name)[0]
