"""Rows that rules leave out, next to slow definitions."""

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.curation import Decontaminate, Deduplicate, NearDuplicates
from seqflow.curation.keyed_rows import band
from seqflow.curation.verdicts import find_verdicts

DRAW = np.random.default_rng(7)
COUNT = 500
HIGH, LOW = DRAW.integers(0, 40, COUNT), DRAW.integers(0, 4, COUNT)
SCORE = DRAW.integers(0, 9, COUNT)


def keys_of(places=None, **columns):
    table = pa.table({"place": np.arange(COUNT) if places is None else places, **columns})
    return sf.open(table.to_batches(max_chunksize=64))


def first_by(order, keys):
    seen, kept = set(), set()
    for row in order:
        if keys[row] not in seen:
            seen.add(keys[row])
            kept.add(row)
    return sorted({*range(len(keys))} - kept)


@pytest.mark.slow
@pytest.mark.parametrize("memory", [1 << 30, 10_000, 64])
@pytest.mark.parametrize("keep", ["first", "last", "highest:q"])
def test_one_of_equal_rows_stays(keep, memory):
    pairs = list(zip(HIGH.tolist(), LOW.tolist(), strict=True))
    order = {
        "first": range(COUNT),
        "last": range(COUNT - 1, -1, -1),
        "highest:q": sorted(range(COUNT), key=lambda row: -SCORE[row]),
    }[keep]
    found = find_verdicts(
        keys_of(high=HIGH, low=LOW, score=SCORE // 3, score_low=SCORE % 3),
        (Deduplicate(columns=("a",), keep=keep),),
        memory=memory,
    )
    assert found.places.tolist() == first_by(order, pairs)
    assert found.by_rule["deduplicate"].tolist() == found.places.tolist()


@pytest.mark.parametrize("memory", [1 << 30, 10_000])
@pytest.mark.parametrize("keep", ["first", "last"])
def test_rows_of_another_set_leave_out_those_that_are_equal(keep, memory):
    against = sf.open(pa.table({"place": [0, 1], "high": HIGH[:2], "low": LOW[:2]}))
    rules = (Deduplicate(columns=("a",), keep=keep, against="others/"),)
    found = find_verdicts(keys_of(high=HIGH, low=LOW), rules, against, memory).places.tolist()
    known = {(HIGH[row], LOW[row]) for row in (0, 1)}
    assert {row for row in range(COUNT) if (HIGH[row], LOW[row]) in known} <= set(found)
    stays = [row for row in range(COUNT) if row not in found]
    assert len({(HIGH[row], LOW[row]) for row in stays}) == len(stays)
    assert len(stays) == len({*zip(HIGH.tolist(), LOW.tolist(), strict=True)} - known)


def test_rows_that_are_alike_through_others_are_one_cluster():
    bands = {
        band(0): np.array([5, 5, 6, 7, -1, -1, 8]),
        band(1): np.array([1, 2, 2, 3, -1, -1, 4]),
        band(2): np.array([9, 8, 7, 8, -1, -1, 5]),  # 3 is like 1
    }
    found = find_verdicts(keys_of(np.arange(7), **bands), (NearDuplicates(column="t", bands=3),))
    assert found.places.tolist() == [1, 2, 3]


def test_rules_judge_the_rows_that_those_before_have_left():
    # 0 is contaminated, 1 is equal to 0, 2 to 1; 3 is like 2 and like 0
    columns = {
        "share": [0.5, 0.0, 0.0, 0.0],
        "high": [1, 1, 1, 2],
        "low": [1, 1, 1, 2],
        band(0): [4, 4, 4, 4],
    }
    rules = (
        Decontaminate(column="t", against="e/"),
        Deduplicate(columns=("t",), keep="last"),
        NearDuplicates(column="t", bands=1),
    )
    found = find_verdicts(keys_of(np.array([10, 11, 20, 21]), **columns), rules)
    assert {name: places.tolist() for name, places in found.by_rule.items()} == {
        "decontaminate": [10],
        "deduplicate": [11],
        "near_duplicates": [21],
    }
    assert found.places.tolist() == [10, 11, 21]


def test_a_share_up_to_the_largest_may_be_known():
    rules = (Decontaminate(column="t", against="e/", max_share=0.5),)
    assert find_verdicts(keys_of(np.arange(3), share=[0.5, 0.51, 0.0]), rules).places.tolist() == [1]


def test_without_rows_none_is_left_out():
    empty = sf.open(
        pa.table(
            {"place": pa.array([], "int64"), "high": pa.array([], "int64"), "low": pa.array([], "int64")}
        )
    )
    assert find_verdicts(empty, (Deduplicate(columns=("a",)),)).places.tolist() == []
