"""The lengths that batches are planned on."""

from __future__ import annotations

from seqflow.errors import BatchPlanError
from seqflow.record import Record


def planned_lengths(record: Record, name: str | None, needed_by: str | None = None) -> str | None:
    """The lengths tensor to plan on.

    `name` is a lengths tensor of any level, or a list column, which stands for its innermost level: a nested
    document is planned on its words. Without a name it is the only list column of numbers, and None where
    there is none or more than one. BatchPlanError where a plan cannot do without, or there is no such name.
    """
    candidates = _innermost(record)
    if name is None:
        if len(candidates) != 1 and needed_by is not None:
            raise BatchPlanError(
                f"{needed_by}: there is not just one list column of numbers; name its lengths with lengths=\n"
                f"  the records have {', '.join(record)}"
            )
        return candidates[0] if len(candidates) == 1 else None
    if name in record.parents.values():
        return name
    of_column = [lengths for lengths in candidates if lengths.startswith(f"{name}.")]
    if name in record and record.parents[name] is not None:
        of_column = [lengths for lengths in (record.parents[name],) if lengths is not None]
    if len(of_column) != 1:
        raise BatchPlanError(
            f"lengths = {name!r} are not the lengths of a list column of numbers\n"
            f"  there are {', '.join(of_column or candidates) or 'none'}"
        )
    return of_column[0]


def is_text(record: Record, lengths: str) -> bool:
    """Whether these are the lengths of a column of text or bytes, which counts as one value a row."""
    import pyarrow.types as types

    column = lengths.removesuffix(".lengths")
    if record.schema is None or column not in record.schema.names or column == lengths:
        return False
    found = record.schema.field(column).type
    tests = (types.is_string, types.is_binary, types.is_large_string, types.is_large_binary)
    return any(test(found) for test in (*tests, types.is_string_view, types.is_binary_view))


def _innermost(record: Record) -> list[str]:
    """The lengths that describe numbers, without those of text."""
    above = set(record.parents.values())
    of_numbers = [
        parent
        for tensor, parent in record.parents.items()
        if parent is not None and tensor not in above and record[tensor].dtype.kind in "biuf"
    ]
    return [lengths for lengths in dict.fromkeys(of_numbers) if not is_text(record, lengths)]
