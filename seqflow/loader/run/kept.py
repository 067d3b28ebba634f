"""KeptWindow: rows that are read once for all epochs, because one window holds all of them."""

from __future__ import annotations

from collections.abc import Sequence

from seqflow.loader.run.recipe import PreparedPart, Recipe
from seqflow.loader.schedule.windows import Part
from seqflow.record import Record
from seqflow.record.row_source import RowSource


class KeptWindow:
    """What was read and prepared of each part, and the rows of all."""

    def __init__(self) -> None:
        self._parts: dict[tuple[int, int], PreparedPart] = {}
        """By the places of the parts."""
        self._rows: RowSource | None = None
        self._of: Sequence[Record] = ()
        """The records that the rows are of."""

    def read(self, recipe: Recipe, part: Part, epoch: int) -> PreparedPart:
        """As `Recipe.read`, the first time."""
        found = self._parts.get(part.place)
        if found is None:
            found = self._parts[part.place] = recipe.read(part, epoch)
        return found

    def rows(self, records: Sequence[Record]) -> RowSource:
        """The rows of the records, which are the same in each epoch."""
        if self._rows is None or [*map(id, records)] != [*map(id, self._of)]:
            self._rows, self._of = RowSource(records), records
        return self._rows
