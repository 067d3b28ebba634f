"""Several sequences in each row."""

# mypy: disable-error-code="no-any-return"

from typing import Any

from seqflow.kernels import choice
from seqflow.kernels.arrays import Array, PackingPlan


def plan_packing(lengths: Array, capacity: int, strategy: str = "best_fit") -> PackingPlan:
    """Which sequences share a row of `capacity`: lengths[B] -> sources[P], starts[P], piece_lengths[P], pieces[R].

    An empty sequence has no piece; a sequence longer than `capacity` has several, in increasing order.
    "concat" cuts the stream of all sequences every `capacity`. "best_fit" takes the longest first (ties in
    input order) and puts each into the row with the least room that is enough; of equal rooms, the row that
    changed last. "first_fit" takes them in input order, each into the first row with room. Full pieces of a
    long sequence have rows of their own: before all others in best_fit, which treats the remainder like any
    sequence; in first_fit in their turn, and the remainder opens one more row.
    """
    return choice.chosen.plan_packing(lengths, capacity, strategy)


def fill_packed(
    data: Array,
    lengths: Array,
    plan: tuple[Array, Array, Array, Array],
    capacity: int,
    value: Any = 0,
    *,
    out: tuple[Array, Array, Array] | None = None,
) -> tuple[Array, Array, Array]:
    """Write the rows of a plan: packed[R, capacity, *d], int32 segment_ids and position_ids[R, capacity].

    segment_ids count from 1 in each row, position_ids from 0 in each piece; padding is 0 in both and `value` in
    packed. `out` is an array for each of the three. Any plan that stays inside data[sum(lengths), *d] will do.
    """
    return choice.chosen.fill_packed(data, lengths, plan, capacity, value, out=out)
