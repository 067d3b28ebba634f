"""What the steps of one window cost, before a run."""

from __future__ import annotations

import numpy as np

from seqflow.loader.plans.balance import Slots, StepCosts, whole_costs
from seqflow.loader.plans.dealing import deal_pool
from seqflow.loader.plans.dealt import Span, deals_rows, item_costs, item_counts
from seqflow.loader.run.windows import OpenWindow
from seqflow.loader.schedule.recipe import Recipe


def window_costs(window: OpenWindow, recipe: Recipe) -> StepCosts | None:
    """The costs of the steps that begin with the first batch of a window; None where the plan has no balance."""
    balance, batches = recipe.batch.balance, window.batches
    if balance is None:
        return None
    found, rows = StepCosts(), deals_rows(recipe.batch, balance)
    whole = len(batches) // balance.step * balance.step
    pool = (balance.steps_in_pool or max(1, whole // balance.step)) * balance.step
    for first in range(0, whole, pool):
        span = Span(batches, first, min(first + pool, whole))
        numbers = np.arange(span.stop - span.start)
        slots = Slots(numbers // balance.step, numbers % balance.group, item_counts(span, rows))
        costs = item_costs(span, balance, rows)
        found.add(costs, slots, deal_pool(whole_costs(costs), slots, first), balance.group)
    return found
