"""Batches that are left out by their numbers."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import OpError, OpTypeError
from seqflow.loader.epoch.assign_ranks import Skips, spans_of

TABLE = pa.table({"id": np.arange(1000)})
SPANS = st.lists(st.tuples(st.integers(0, 40), st.integers(1, 6)), max_size=4)


def _loader(**options):
    options = {"batch": 8, "shuffle": sf.Shuffle(3), "threads": 0, "rank": 0, "world_size": 1, **options}
    return sf.Loader(TABLE, **options)


def _ids(batches):
    return {batch.number: batch["id"].tolist() for batch in batches}


@given(SPANS, st.integers(0, 60), st.integers(0, 60))
def test_kept_batches_are_counted_by_their_numbers(drawn, first, end):
    left_out = {number for start, length in drawn for number in range(start, start + length)}
    spans, start = [], None
    for number in range(60):
        if number in left_out and start is None:
            start = number
        if number not in left_out and start is not None:
            spans.append((start, number))
            start = None
    skips = Skips(spans_of(spans), 0)
    kept = [number for number in range(60) if number not in left_out]
    assert [skips.number(index) for index in range(len(kept))] == kept
    assert all(skips.kept_before(number) == sum(one < number for one in kept) for number in range(60))
    assert list(skips.between(0, 60)) == sorted(left_out)
    assert list(skips.between(first, end)) == [one for one in sorted(left_out) if first <= one < end]


@pytest.mark.parametrize("world_size", [1, 2, 3, 8])
def test_what_is_left_has_the_numbers_and_rows_it_had(world_size):
    everything = _ids(_loader())
    skip = [(0, 2), (50, 53), (10, 17)]
    found = {}
    for rank in range(world_size):
        loader = _loader(skip=skip, rank=rank, world_size=world_size, tail="pad")
        assert len(loader) == -(-(125 - 12) // world_size)
        found |= _ids(batch for batch in loader if batch.num_rows)
    expected = {number for number in everything if not any(a <= number < b for a, b in skip)}
    assert found == {number: everything[number] for number in expected}


def test_rows_that_are_skipped_are_counted():
    loader = _loader(skip=[(3, 5), (120, 400)])
    rows = sum(batch.num_rows for batch in loader)
    stats = loader.stats()
    assert (stats.rows, stats.skipped, stats.rows_left) == (rows, 7 * 8, 0)


def test_other_epochs_skip_nothing():
    loader = _loader(skip=[(3, 5, 1)])
    assert [sum(1 for _ in loader) for _ in range(3)] == [125, 123, 125]


@pytest.mark.parametrize("stop", range(0, 30, 3))
def test_a_resumed_run_goes_on_behind_what_it_skips(stop):
    skip = [(4, 9), (12, 13)]
    whole = _ids(_loader(skip=skip))
    first = _loader(skip=skip, rank=0, world_size=3, tail="pad")
    batches = iter(first)
    for _ in range(stop):
        next(batches)
    state = first.state_dict()
    batches.close()
    seen = {number: whole[number] for number in list(whole)[: 3 * stop]}
    for rank in range(2):
        second = _loader(skip=skip, rank=rank, world_size=2, tail="pad")
        second.load_state_dict(state)
        for number, ids in _ids(batch for batch in second if batch.num_rows).items():
            assert number not in seen
            seen[number] = ids
    assert seen == whole


def test_the_state_names_a_skip_that_differs():
    state = _loader(skip=[(3, 5)]).state_dict()
    with pytest.raises(sf.OpError, match=r"skip was \[\[3, 5, 0\]\] and is None now"):
        _loader().load_state_dict(state)


def test_a_mix_skips_its_own_batches():
    def mix(**options):
        sources = {"a": TABLE, "b": pa.table({"id": np.arange(1000, 1400)})}
        weights = {"a": 3, "b": 1}
        plan = sf.TokenBudget(64, lengths="id")
        tables = {
            name: pa.table({"id": [[one] * 9 for one in table["id"].to_pylist()]})
            for name, table in sources.items()
        }
        return sf.Mix(tables, weights=weights, batch=plan, stop="all", shuffle=True, threads=0, **options)

    def rows(mix):
        return {batch.number: batch["id.values"][::9].tolist() for batch in mix}

    everything = rows(mix())
    found = rows(mix(skip=[(2, 7), (50, 51)]))
    assert found == {
        number: ids for number, ids in everything.items() if not 2 <= number < 7 and number != 50
    }


@pytest.mark.parametrize(
    ("skip", "text"),
    [
        ([(5, 5)], "expected a first batch before the end"),
        ([(5,)], r"skip has \(5,\)"),
        ([(-1, 4)], r"skip has \(-1, 4\)"),
        ([(1, 5), (4, 6)], r"\(1, 5\) and \(4, 6\) of epoch 0, which overlap"),
        ([(1.5, 5)], r"skip has \(1.5, 5\)"),
        (7, "skip is 7, expected spans"),
        ((5000, 5024), "expected spans"),
    ],
)
def test_what_is_no_span_is_an_error(skip, text):
    with pytest.raises((OpError, OpTypeError), match=text):
        _loader(skip=skip)


def test_a_resumed_run_may_skip_others():
    loader = _loader()
    batches = iter(loader)
    seen = [next(batches).number for _ in range(7)]
    state = loader.state_dict()
    batches.close()
    other = _loader(skip=[(5, 9), (100, 120)])
    with pytest.raises(sf.OpError, match="skip was None and is"):
        other.load_state_dict(state)
    other.load_state_dict(state, changes="accept")
    found = [batch.number for batch in other]
    assert seen + found == [*range(7), *range(9, 100), *range(120, 125)]
    back = _loader()
    back.load_state_dict(_loader(skip=[(0, 3)]).state_dict(), changes="accept")
    assert sum(1 for _ in back) == 125


@pytest.mark.parametrize("world_size", [1, 3])
@pytest.mark.parametrize("plan", [sf.Rows(2), sf.TokenBudget(2)])
def test_a_span_may_be_longer_than_any_epoch(plan, world_size):
    source = {"t": [[n] for n in range(20)]}
    loader = sf.Loader(source, batch=plan, skip=[(3, 10**15)], rank=0, world_size=world_size, tail="pad")
    assert [batch.number for batch in loader] == list(range(0, 3, world_size))
