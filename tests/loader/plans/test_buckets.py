"""Batches of rows of similar lengths."""

from bisect import bisect_left
from itertools import accumulate, chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from windows_of import lists, made, window_of

from seqflow import OpError
from seqflow.loader import Buckets, Packed, Rows, TokenBudget

BLOCKS = st.lists(st.lists(st.integers(0, 12), max_size=12), min_size=1, max_size=4)
BOUNDARIES = st.integers(1, 5) | st.sets(st.integers(1, 12), min_size=1).map(sorted)
PLANS = st.builds(Rows, st.integers(1, 4), st.booleans()) | st.builds(
    TokenBudget, st.integers(12, 30), st.booleans(), drop_last=st.booleans()
)


@given(BLOCKS, st.none() | st.integers(0, 99), BOUNDARIES, PLANS, st.integers(0, 99))
def test_batches_hold_rows_of_one_bucket_in_their_order(blocks, order_key, boundaries, plan, key):
    rows = window_of(blocks, order_key)
    buckets = Buckets(boundaries, plan)
    planned = buckets.of_window(rows, "x.lengths", key, 0)
    batches = [lists(batch) for batch in made(planned)]
    whole = lists(rows.take(slice(0, 99)))
    lengths = sorted(map(len, whole))
    if isinstance(boundaries, int):
        tokens = list(accumulate(lengths))
        shares = [tokens[-1] * i // boundaries for i in range(1, boundaries)] if tokens else []
        boundaries = sorted({lengths[bisect_left(tokens, share)] for share in shares})
    expected = []
    for bucket in range(len(boundaries) + 1):
        inside = [row for row in whole if bisect_left(boundaries, len(row)) == bucket]
        alone = window_of([[len(row) for row in inside]])
        of_bucket = plan.of_window(alone, "x.lengths")
        stops = np.cumsum([of_bucket.size(number).rows for number in range(len(of_bucket))]).tolist()
        expected += [inside[start:stop] for start, stop in zip([0, *stops], stops, strict=False)]
    assert sorted(batches) == sorted(expected)
    if not plan.drop_last:
        assert sorted(chain(*batches)) == sorted(whole)
    else:
        assert planned.dropped.rows + sum(map(len, batches)) == len(whole)
    if isinstance(plan, Rows):
        sizes = [len(batch) == plan.n for batch in batches]
        assert sizes == sorted(sizes, reverse=True), "short batches come last"


def test_batches_come_in_the_order_of_the_key_also_without_shuffle():
    rows = window_of([list(range(1, 13)) * 4])
    orders = [
        [lists(batch) for batch in made(Buckets(6, Rows(4)).of_window(rows, "x.lengths", key, 0))]
        for key in (1, 1, 2)
    ]
    assert orders[0] == orders[1] != orders[2]
    longest = [max(map(len, batch)) for batch in orders[0]]
    assert longest != sorted(longest)


def test_buckets_need_less_padding():
    lengths = np.random.default_rng(0).lognormal(4, 1, 20_000).astype(int) + 1
    rows = window_of([lengths.tolist()])

    def waste(plan):
        planned = plan.of_window(rows, "x.lengths")
        sizes = [planned.size(number) for number in range(len(planned))]
        return 1 - sum(size.tokens for size in sizes) / sum(size.cells for size in sizes)

    assert waste(Rows(32)) > 0.7
    assert waste(Buckets(16, Rows(32))) < 0.2
    assert waste(Buckets(16, TokenBudget(16_384, padded=True))) < 0.2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Buckets([4, 4], Rows(2)), "boundaries has 4 after 4, expected lengths in increasing order"),
        (lambda: Buckets([8, 4], Rows(2)), "boundaries has 4 after 8, expected lengths in increasing order"),
        (lambda: Buckets([], Rows(2)), "boundaries is empty, expected at least one length"),
        (lambda: Buckets([1, 2.5], Rows(2)), r"boundaries\[1\] is 2.5, expected an integer, 1 or more"),
        (lambda: Buckets(0, Rows(2)), "boundaries is 0, expected an integer, 1 or more"),
        (lambda: Buckets("4", Rows(2)), r"boundaries\[0\] is '4', expected an integer, 1 or more"),
        (lambda: Buckets(4, 32), "plan is 32, expected Rows or TokenBudget"),
        (lambda: Buckets(4, Packed(8)), r"plan is Packed"),
    ],
)
def test_buckets_that_make_no_sense_are_refused(make, message):
    with pytest.raises(OpError, match=message):
        make()
