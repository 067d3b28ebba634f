"""What batch plans share: options that are counts, and the lengths that batches are planned on."""

from __future__ import annotations

from seqflow.errors import BatchPlanError, OpError
from seqflow.record import Record


def at_least_one(plan: str, **counts: int | None) -> None:
    """OpError unless each count is an int, 1 or more, or left out."""
    for name, count in counts.items():
        if count is not None and (not isinstance(count, int) or isinstance(count, bool) or count < 1):
            raise OpError(f"{plan}: {name} is {count!r}, expected an integer, 1 or more")


def planned_lengths(record: Record, name: str | None, needed_by: str | None = None) -> str | None:
    """The lengths tensor to plan on: `name`, or the one that describes the only list column of numbers.

    None where there is none or more than one. BatchPlanError where a plan cannot do without, or
    where `name` is not the lengths of a list column.
    """
    of_rows = [
        parent for tensor, parent in record.parents.items()
        if parent is not None and record.parents.get(parent) is None and record[tensor].dtype.kind in "biuf"
    ]  # fmt: skip
    candidates = list(dict.fromkeys(of_rows))
    if name is None:
        if len(candidates) != 1 and needed_by is not None:
            raise BatchPlanError(
                f"{needed_by}: there is not just one list column of numbers; name its lengths with lengths=\n"
                f"  the records have {', '.join(record)}"
            )
        return candidates[0] if len(candidates) == 1 else None
    if f"{name}.lengths" in candidates:
        return f"{name}.lengths"
    if name not in candidates:
        raise BatchPlanError(
            f"lengths = {name!r} are not the lengths of a list column of numbers\n"
            f"  there are {', '.join(candidates) or 'none'}"
        )
    return name
