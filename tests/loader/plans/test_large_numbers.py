"""Numbers near the ends of int32, float64's integers and int64 are refused, or they bound nothing."""

import os
from dataclasses import fields
from typing import get_args, get_type_hints

import pyarrow as pa
import pytest
from in_child import outcome_in_child

import seqflow as sf

LARGE = [power + step for power in (2**31, 2**53, 2**61, 2**62, 2**63) for step in (-1, 0, 1)]
LENGTHS = [(i * 7) % 5 for i in range(40)]
TABLE = pa.table(
    {"id": range(40), "t": pa.array([[i] * n for i, n in enumerate(LENGTHS)], pa.list_(pa.int64()))}
)
BOUNDS_NOTHING = 1 << 20
"""Above all sizes of the table."""

ROWS = {"n": 3, "lengths": "t.lengths"}
TOKENS = {"max_tokens": 9, "lengths": "t.lengths"}
PACKED = {"capacity": 8, "columns": ["t"], "rows": 2}
PLANS = {
    "rows": (sf.Rows, ROWS),
    "tokens": (sf.TokenBudget, TOKENS),
    "tokens of few rows": (sf.TokenBudget, {**TOKENS, "max_rows": 2}),
    "padded": (sf.TokenBudget, {**TOKENS, "padded": True}),
    "padded to multiples": (sf.TokenBudget, {**TOKENS, "padded": True, "multiple_of": 4}),
    "split": (sf.TokenBudget, {**TOKENS, "oversize": "split", "padded": True}),
    "best fit": (sf.TokenBudget, {**TOKENS, "strategy": "best_fit"}),
    "best fit of few rows": (sf.TokenBudget, {**TOKENS, "strategy": "best_fit", "max_rows": 2}),
    "equal costs": (sf.TokenBudget, {**TOKENS, "strategy": "best_fit", "linear": 5}),
    "packed": (sf.Packed, PACKED),
    "first fit": (sf.Packed, {**PACKED, "strategy": "first_fit", "max_pieces": 2}),
    "concatenated": (sf.Packed, {**PACKED, "strategy": "concat"}),
    "packed to multiples": (sf.Packed, {**PACKED, "multiple_of": 4}),
}
BALANCES = {
    "linear": {"group": 2, "linear": 3},
    "pool": {"group": 2, "steps_of": 2, "pool": 2, "linear": 3},
    "window": {"group": 2, "pool": "window", "linear": 0.5},
}


def numbers_of(kind):
    """The fields of a dataclass that take an integer or a float."""
    hints = get_type_hints(kind)
    return [one.name for one in fields(kind) if {int, float} & {hints[one.name], *get_args(hints[one.name])}]


def epoch(plan, **options):
    """The ids of each batch; None where the numbers are refused."""
    try:
        loader = sf.Loader(TABLE, batch=plan(), threads=0, rank=0, world_size=1, **options)
        batches = [(batch.num_rows, batch.get("id", batch.get("sources")).tolist()) for batch in loader]
    except sf.SeqflowError:
        return None
    return batches


def rows_of(batches):
    return sorted(row for _, rows in batches for row in rows)


PLAN_CASES = [(name, field) for name, (kind, _) in PLANS.items() for field in numbers_of(kind)]


@pytest.mark.parametrize(("name", "field"), PLAN_CASES)
def test_a_large_number_of_a_plan_is_refused_or_bounds_nothing(name, field):
    kind, arguments = PLANS[name]
    usual = epoch(lambda: kind(**{**arguments, field: BOUNDS_NOTHING}))
    for number in LARGE[field == "capacity" :]:  # 2**31 - 1 elements of a packed row may fit the memory
        found = epoch(lambda number=number: kind(**{**arguments, field: number}))
        assert found is None or field in ("fill", "linear") or found == usual, (field, number)
        if found is not None and field == "linear":
            assert rows_of(found) == list(range(40))


@pytest.mark.parametrize("plan", ["rows", "tokens", "padded"])
@pytest.mark.parametrize("number", [2**31, 2**61, 2**63 - 1])
def test_buckets_around_a_large_number(plan, number):
    kind, arguments = PLANS[plan]
    first = next(iter(arguments))
    for inner, boundaries in ((number, 2), (3, number), (3, [2, number])):
        found = epoch(lambda inner=inner, b=boundaries: sf.Buckets(b, kind(**{**arguments, first: inner})))
        assert found is None or rows_of(found) == list(range(40))


BALANCE_CASES = [(name, field) for name in BALANCES for field in numbers_of(sf.Balance)]


@pytest.mark.parametrize(("name", "field"), BALANCE_CASES)
@pytest.mark.parametrize("plan", ["rows", "packed", "tokens"])
def test_a_large_number_of_a_balance_is_refused_or_each_row_comes_once(plan, name, field):
    kind, arguments = PLANS[plan]
    usual = epoch(lambda: kind(**arguments, balance=sf.Balance(**BALANCES[name])), shuffle=True)
    for number in (*LARGE[1::3], 1.5e308):
        balance = {**BALANCES[name], field: number}
        found = epoch(lambda b=balance: kind(**arguments, balance=sf.Balance(**b)), shuffle=True)
        assert found is None or rows_of(found) == rows_of(usual), number


@pytest.mark.parametrize("cost", ["length + {}", "length * {}", "length ** 2 * {}", "length << 62"])
def test_a_cost_that_int64_cannot_hold_is_dealt_as_a_float_or_refused(cost):
    for number in LARGE[1::3]:
        balance = cost.format(number)
        found = epoch(lambda b=balance: sf.Rows(**ROWS, balance=sf.Balance(2, cost=b)))
        assert found is None or rows_of(found) == list(range(40)), balance


@pytest.mark.parametrize(
    "option", ["steps_of", "streams", "steps_per_epoch", "window", "prefetch", "threads"]
)
@pytest.mark.parametrize("number", LARGE[1::3])
def test_a_large_number_of_a_loader_is_refused_or_bounds_nothing(option, number):
    options = {option: number, **({"totals": ["t.lengths"]} if option == "steps_of" else {})}
    if option == "threads":
        with pytest.raises(sf.SeqflowError):
            sf.Loader(TABLE, batch=3, rank=0, world_size=1, threads=number)
        return
    found = epoch(lambda: sf.Rows(3), **options)
    assert found is None or rows_of(found) == list(range(40))


WEIGHTS = {"a": 0.5, "b": 0.5}
MIXES = {
    "weight": lambda n: {"weights": {"a": n, "b": 1}},
    "weights": lambda n: {"weights": {"a": n, "b": n}},
    "weight of a schedule": lambda n: {"weights": {"a": sf.Schedule({0: 1, 7: n}, linear=True), "b": 1}},
    "point": lambda n: {"weights": {"a": sf.Schedule({0: 1, n: 2}), "b": 1}},
    "skip": lambda n: {"weights": WEIGHTS, "skip": [(0, n)]},
    "start of a skip": lambda n: {"weights": WEIGHTS, "skip": [(n, n + 1)]},
    **{
        name: lambda n, name=name: {"weights": WEIGHTS, name: n}
        for name in ("seed", "steps_of", "steps_per_epoch", "streams", "window", "memory", "threads")
    },
}
RANGE = [*LARGE[1::3], -(2**63), 2**64, 10**400]


def all_of(mix):
    return [batch.num_rows for _, batch in zip(range(100), mix, strict=False)]


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("stop", ["first", "all"])
@pytest.mark.parametrize("number", [*RANGE, 1.7e308, 1e308, 5e-324], ids=lambda n: f"{n!s:.20}")
def test_a_large_number_of_a_mix_is_refused_or_a_mix_is_made(number, stop):
    def draw():
        for name, options in MIXES.items():
            for batch in (3, sf.TokenBudget(**TOKENS)):
                usual = {"threads": 0, "rank": 0, "world_size": 1, "stop": stop, "batch": batch}
                try:
                    all_of(sf.Mix({"a": TABLE, "b": TABLE}, **{**usual, **options(number)}))
                except sf.SeqflowError:
                    continue
                except Exception as error:
                    raise AssertionError(name) from error

    assert outcome_in_child(draw) == "made"


def test_weights_whose_sum_float64_cannot_hold_are_refused():
    with pytest.raises(sf.OpError, match="the sum of the weights is inf"):
        sf.Mix({"a": TABLE, "b": TABLE}, weights={"a": 1e308, "b": 1e308})
    mix = sf.Mix({"a": TABLE, "b": TABLE}, weights={"a": 8e307, "b": 8e307}, batch=4, threads=0)
    assert "'a' 0.5, 'b' 0.5" in repr(mix)
