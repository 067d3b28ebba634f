"""The lengths that batches are planned on."""

import numpy as np
import pyarrow as pa
import pytest

from seqflow.errors import BatchPlanError
from seqflow.loader.plans.selection import planned_lengths
from seqflow.record import Record, from_arrow

LISTS = from_arrow(pa.table({"x": [[1, 2], [3]], "path": ["a", "b"], "id": [1, 2]}))
NESTED = from_arrow(pa.table({"doc": [[[1, 2], [3]], [[4]]], "id": [1, 2]}))
TWO = from_arrow(pa.table({"x": [[1, 2], [3]], "y": [[1, 2], [3]]}))
MADE = Record(
    {"n": np.array([1, 2]), "ids": np.arange(3), "label": np.arange(2)},
    {"n": None, "ids": "n", "label": None},
    2,
)


def test_the_only_list_column_of_numbers_is_planned_on():
    assert planned_lengths(LISTS, None) == "x.lengths"
    assert planned_lengths(MADE, None) == "n"
    assert planned_lengths(TWO, None) is None
    with pytest.raises(BatchPlanError, match="Packed: there is not just one list column of numbers"):
        planned_lengths(TWO, None, needed_by="Packed")


def test_a_nested_document_is_planned_on_its_words_unless_a_level_is_named():
    assert planned_lengths(NESTED, None) == "doc.values.lengths"
    assert planned_lengths(NESTED, "doc") == "doc.values.lengths"
    assert planned_lengths(NESTED, "doc.lengths") == "doc.lengths"


def test_lengths_are_named_by_themselves_or_by_their_column():
    assert planned_lengths(TWO, "y") == "y.lengths"
    assert planned_lengths(TWO, "y.lengths") == "y.lengths"
    assert planned_lengths(MADE, "ids") == "n"
    with pytest.raises(BatchPlanError, match=r"lengths = 'z' are not the lengths.*\n  there are x.lengths"):
        planned_lengths(LISTS, "z")
    assert planned_lengths(MADE, "label") == "label"  # a number a row
