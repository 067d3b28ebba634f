"""Balance: costs of rows in a model, so that the ranks of a step get batches with equal costs."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from seqflow import kernels
from seqflow.arguments import at_least_one, is_number
from seqflow.deprecated_names import renamed_fields
from seqflow.errors import BatchPlanError, ExpressionError, OpError
from seqflow.expression import Expression
from seqflow.kernels.arrays import Array
from seqflow.loader.plans.window_rows import Pieces, WindowRows, elements_below
from seqflow.record import Record

LENGTH, LONGEST = "length", "longest"
"""Names in a cost besides columns: the elements of a piece, and those of the longest in its batch."""
_SCALE = float(1 << 40)
"""Largest cost after scaling costs that are not integers to whole units: totals are then the same on all machines."""
_MOST_BATCHES = 1 << 24
"""Largest number of batches whose rows are exchanged: several numbers are kept for each of them."""


@renamed_fields()
@dataclass(frozen=True, slots=True)
class Balance:
    """Assigns the rows of a training step so that all ranks, and all micro-batches, have equal costs.

        sf.Packed(8192, balance=sf.Balance(group=64, steps_of=8, linear=57_000))

    A step is `group * steps_of` consecutive batches: `steps_of` micro-batches for each of `group` ranks. Its
    packed rows, or the rows of `Rows`, are assigned in falling order of cost, each to the rank with the lowest
    sum so far, so that sums and micro-batches are alike; with `TokenBudget` and `Buckets`, whole batches are
    assigned. A rank of any world size that divides `group` is balanced, and the sequence of batches is the same
    for all world sizes.

    With `pool=1`, a step keeps the rows that the shuffle gave it: its gradient is the same as without balance.
    `pool=S` exchanges rows between S consecutive steps, and None between the steps of a window: there is less
    imbalance, but rows move by up to so many steps.

    A document of L tokens costs `L * (linear + L)`: `linear` is a model's parameters divided by its layers and
    its hidden size, 57,000 for 8 billion of them; 0 is attention alone. `cost`, given instead, is an expression
    of `length`, of `longest`, which is the longest row of a padded batch, and of columns with one number for
    each row.

    Raise OpError when a number is too small, or unless exactly one of `linear` and `cost` is given; raise
    ExpressionError when a cost cannot be parsed.

    >>> Balance(group=8, linear=24_576).costs_of(np.array([1, 2]))
    array([24577, 49156])
    """

    group: int
    """Number of ranks whose costs are made equal; world sizes that divide it are balanced too."""
    steps_of: int = 1
    """Number of batches of each rank in a step: accumulated, or micro-batches."""
    pool: int | Literal["window"] | None = 1
    """Number of consecutive steps that exchange rows; "window" and None are the steps that begin in a window."""
    linear: float | None = None
    """Parameters / (layers * hidden size) of the model; 0 is attention alone."""
    cost: str | None = None
    """Cost of a row or piece, in place of `linear`: an expression of `length`, `longest` and columns."""

    def __post_init__(self) -> None:
        if self.pool == "window":
            object.__setattr__(self, "pool", None)
        at_least_one("Balance", group=self.group, steps_of=self.steps_of, pool=self.steps_in_pool)
        together = self.step * (self.steps_in_pool or 1)
        if together > _MOST_BATCHES:
            raise OpError.of(
                "Balance.group",
                f"times steps_of and pool is {together} batches, expected at most {_MOST_BATCHES}",
                advice="%(pool)s exchanges rows between all steps of a window",
            )
        if (self.linear is None) == (self.cost is None):
            given = "neither linear nor cost is" if self.linear is None else "both linear and cost are"
            raise OpError.of(
                "Balance",
                f"{given} given, expected one of them",
                advice="linear is parameters / (layers * hidden size) of the model, such as 57_000 for 8 billion",
            )
        if self.linear is not None:
            check_linear("Balance", self.linear)
        if self.cost is not None:
            Expression(self.cost)

    @property
    def steps_in_pool(self) -> int | None:
        """Number of steps that exchange rows; None for those of a window."""
        return None if self.pool == "window" else self.pool

    @property
    def step(self) -> int:
        """Number of batches of a step."""
        return self.group * self.steps_of

    @property
    def needs_longest(self) -> bool:
        """Whether the cost of a row depends on the others in its batch, so that whole batches are assigned."""
        return self.cost is not None and LONGEST in Expression(self.cost).inputs

    def costs_of(self, sizes: Array) -> Array:
        """int64 or float64[P]: the costs of pieces of these sizes, by `linear`."""
        assert self.linear is not None
        linear, most = float(self.linear), int(sizes.max(initial=0))
        if linear.is_integer() and _sum_fits(most * (most + int(linear)), len(sizes)):
            return np.asarray(sizes * (sizes + int(linear)))
        with np.errstate(over="ignore"):
            return np.asarray(sizes * (sizes + linear))

    def piece_costs(
        self, pieces: Pieces, rows: WindowRows, longest: Array | None = None, cut: Collection[str] = ()
    ) -> Array:
        """int64 or float64[P]: the cost of each piece of the rows of a window; `longest` is that of its batch, `cut`
        are the lengths of columns that are cut.
        """
        if self.cost is None:
            costs = self.costs_of(pieces.sizes)
            # what a piece shares was counted with those before it: the rest costs what each element sees of its path
            return costs if pieces.trees is None else np.asarray(costs - self.costs_of(pieces.shared))
        self.check(rows.records[0])
        expression = Expression(self.cost)
        known = {LENGTH: pieces.sizes, LONGEST: longest}
        values = {
            name: known[name] if name in known else _number_of(name, pieces, rows, cut)
            for name in expression.inputs
        }
        found = np.asarray(expression(**values))
        if found.dtype.kind in "iu":
            with suppress(ExpressionError):  # of operators on bits, which take no floats
                # integers wrap without an error: the same expression in floats shows it
                about = np.asarray(
                    expression(**{name: np.asarray(of, np.float64) for name, of in values.items()})
                )
                found = found if _sum_fits(np.abs(about).max(initial=0), len(pieces.sizes)) else about
        return np.broadcast_to(found, pieces.sizes.shape)

    def check(self, record: Record) -> None:
        """Raise BatchPlanError when a cost names a tensor that records like this one do not have."""
        for name in () if self.cost is None else Expression(self.cost).inputs:
            if name in (LENGTH, LONGEST):
                continue
            if name not in record or record[name].ndim != 1 or record[name].dtype.kind not in "biuf":
                numbers = [
                    one for one in record if record[one].ndim == 1 and record[one].dtype.kind in "biuf"
                ]
                raise BatchPlanError(
                    f"Balance: cost names {name!r}, expected {LENGTH}, {LONGEST} or a tensor with a number a row, or "
                    "an item, whose numbers are summed\n"
                    f"  such tensors are {', '.join(numbers) or 'none'}"
                )


def _number_of(name: str, pieces: Pieces, rows: WindowRows, cut: Collection[str]) -> Array:
    """Return a tensor's number of each piece: that of its row, or the sum over what the piece has of the row."""
    source = rows.source
    above = source.parents[name]
    if above is None:
        if name in pieces.items or name in cut:
            return rows.below(name, pieces, cut).sizes
        return rows.tensor(name)[pieces.rows]
    values = kernels.gather_slices(source.chunks[name], *(ranges := elements_below(rows, above, pieces, cut)))
    return kernels.segment_reduce("sum", values, ranges.sizes)


def check_linear(plan: str, linear: Any) -> None:
    """Raise OpError unless a linear term is a number, 0 or more."""
    if not is_number(linear) or linear < 0:
        raise OpError.of(f"{plan}.linear", f"is {linear!r}, expected a number, 0 or more")


def whole_costs(costs: Array) -> Array:
    """int64[N]: costs in whole units, whose sums are exact; raise BatchPlanError when one is not a valid cost."""
    if costs.dtype.kind in "iub" and (not costs.size or (int(costs.min()) >= 0 and _fit(costs))):
        return costs.astype(np.int64)
    found = costs.astype(np.float64)
    bad = np.flatnonzero(~((found >= 0) & np.isfinite(found)))
    if len(bad):
        raise BatchPlanError(
            f"Balance: the cost of row {int(bad[0])} of a pool is {costs[bad[0]]}, expected a number, 0 or more"
        )
    most = float(found.max(initial=0.0))
    return np.rint(found * (_SCALE / most)).astype(np.int64) if most else np.zeros(len(found), np.int64)


def _fit(costs: Array) -> bool:
    """Return whether the sum of integers fits an int64."""
    return _sum_fits(int(costs.max()), len(costs))


def _sum_fits(most: float, count: int) -> bool:
    """Return whether an int64 holds the sum of so many integers up to `most`."""
    return most < 2**62 // max(1, count)


class Slots(NamedTuple):
    """The batches of a pool of steps, as places for items: each array has an entry for each batch, in order."""

    steps: Array
    """The step of each batch, counted from the first of the pool."""
    columns: Array
    """The rank of the group that gets each batch."""
    counts: Array
    """The number of items of each batch."""


@dataclass(slots=True)
class StepCosts:
    """Costs of the ranks in the steps so far, with and without balancing: sums over steps."""

    steps: int = 0
    """Number of whole steps; an epoch's last, incomplete step is not counted."""
    most_expensive: float = 0.0
    """Cost of the most expensive rank, summed over steps."""
    undealt: float = 0.0
    """Cost that the most expensive rank would have without balancing, summed over steps."""
    mean: float = 0.0
    """Cost of the mean rank, summed over steps."""
    rows: int = 0
    """Number of items that were assigned: rows, packed rows or whole batches."""
    most: float = 0.0
    """Cost of the most expensive row."""
    least: float = float("inf")
    """Cost of the cheapest row."""
    above_share: int = 0
    """Rows that cost more than a rank's share of their step. Lower the capacity, cut them, or take more
    `steps_of`."""

    @property
    def imbalance(self) -> float:
        """Cost of the most expensive ranks divided by that of the mean: 1.2 means that ranks wait for 17 % of
        their time.
        """
        return self.most_expensive / self.mean if self.mean else 1.0

    @property
    def imbalance_undealt(self) -> float:
        """Imbalance without balancing."""
        return self.undealt / self.mean if self.mean else 1.0

    def bound(self, steps: int) -> float:
        """Return an upper bound of the imbalance if single rows are sorted and exchanged between so many steps."""
        return 1.0 + (self.most - self.least) / (self.mean / self.steps * steps) if self.mean else 1.0

    def pool_for(self, imbalance: float = 1.02) -> int:
        """Return the number of steps that must exchange rows with each other, so that `imbalance` is not exceeded."""
        if not self.mean:
            return 1
        return max(1, int(np.ceil((self.most - self.least) / (self.mean / self.steps) / (imbalance - 1))))

    def add(self, costs: Array, slots: Slots, items: Array, group: int) -> None:
        """Count a pool: the costs of its items, batch after batch, and the items that each batch has now."""
        slot = np.repeat(np.arange(len(slots.counts)), slots.counts)
        steps = int(slots.steps.max(initial=0)) + 1
        columns = np.zeros((steps, group), bool)
        columns[slots.steps, slots.columns] = True
        whole: Array = np.all(columns, axis=1)
        if not whole.any():
            return
        cell = slots.steps[slot] * group + slots.columns[slot]
        dealt, undealt = (
            np.bincount(cell, costs[of], steps * group).reshape(steps, group)[whole]
            for of in (items, slice(None))
        )
        shares = np.bincount(cell, costs[items], steps * group).reshape(steps, group).mean(axis=1)
        self.steps += len(dealt)
        self.most_expensive += float(dealt.max(axis=1).sum())
        self.undealt += float(undealt.max(axis=1).sum())
        self.mean += float(shares[whole].sum())
        counted = whole[slots.steps[slot]]
        of_whole = costs[items][counted].astype(np.float64)
        self.rows += len(of_whole)
        self.most = max(self.most, float(of_whole.max(initial=0)))
        self.least = min(self.least, float(of_whole.min(initial=np.inf)))
        # a share is a rounded mean: a row that costs exactly a share is not above it
        self.above_share += int(np.count_nonzero(of_whole > shares[slots.steps[slot]][counted] * (1 + 1e-9)))

    @staticmethod
    def of(parts: "Iterable[StepCosts]") -> "StepCosts":
        """Return the sums over several sources."""
        found = StepCosts()
        for one in parts:
            for name in ("steps", "most_expensive", "undealt", "mean", "rows", "above_share"):
                setattr(found, name, getattr(found, name) + getattr(one, name))
            found.most, found.least = max(found.most, one.most), min(found.least, one.least)
        return found
