"""What the steps of one window cost, and what its batches hold, before a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from seqflow.kernels.arrays import Array
from seqflow.loader.plans.balance import Balance, Slots, StepCosts, whole_costs
from seqflow.loader.plans.dealing import deal_pool
from seqflow.loader.plans.dealt import Span, deals_rows, dealt_batches, item_costs, item_counts
from seqflow.loader.run.windows import OpenWindow
from seqflow.loader.schedule.recipe import Recipe


class _Pool(NamedTuple):
    """Steps that exchange rows: their batches as planned, and which of the items each batch has when dealt."""

    span: Span
    slots: Slots
    costs: Array
    items: Array


def window_costs(window: OpenWindow, recipe: Recipe) -> StepCosts | None:
    """The costs of the steps that begin with the first batch of a window; None where the plan has no balance."""
    balance = recipe.batch.balance
    if balance is None:
        return None
    found = StepCosts()
    for pool in _pools(window, recipe, balance):
        found.add(pool.costs, pool.slots, pool.items, balance.group)
    return found


def window_tokens(window: OpenWindow, recipe: Recipe) -> Array:
    """int64[batches]: the elements of the planned column in each batch of a window.

    Where the plan has a balance they are those of whole steps, as they are dealt.
    """
    balance, planned = recipe.batch.balance, window.batches.sizes[:, 1]
    if balance is None:
        return planned
    rows, found = deals_rows(recipe.batch, balance), [planned[:0]]
    for span, slots, _, items in _pools(window, recipe, balance):
        if rows:
            found.append(dealt_batches([span], items, slots.counts).sizes[:, 1])
        else:
            found.append(planned[span.start : span.stop][items])
    return np.concatenate(found)


def _pools(window: OpenWindow, recipe: Recipe, balance: Balance) -> Iterator[_Pool]:
    batches, rows = window.batches, deals_rows(recipe.batch, balance)
    whole = len(batches) // balance.step * balance.step
    pool = (balance.steps_in_pool or max(1, whole // balance.step)) * balance.step
    for first in range(0, whole, pool):
        span = Span(batches, first, min(first + pool, whole))
        numbers = np.arange(span.stop - span.start)
        slots = Slots(numbers // balance.step, numbers % balance.group, item_counts(span, rows))
        costs = item_costs(span, balance, rows)
        yield _Pool(span, slots, costs, deal_pool(whole_costs(costs), slots, first))
