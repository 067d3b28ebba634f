"""What a report says of a source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from seqflow.drawing.bars import Bar
from seqflow.kernels.arrays import Array
from seqflow.kernels.packing import plan_packing
from seqflow.printable import printable_line
from seqflow.providers import Provider
from seqflow.record import Record
from seqflow.report.page import chart, paragraph, section, table
from seqflow.report.ranks import imbalance_of_ranks
from seqflow.report.survey import Survey

_PERCENTILES = (1, 5, 25, 50, 75, 95, 99)
_ROWS, _TEXT, _NUMBERS = 5, 160, 12
"""How many rows are shown as examples, and how much of each."""


def survey_of(source: Provider, batch: int) -> Survey:
    """A survey of all rows of a source, read block by block."""
    survey = Survey(batch)
    for block in source.blocks():
        survey.add(source.read(block))
    return survey


def sections_of(survey: Survey, batch: int, capacity: int) -> Iterator[str]:
    """The tensors of a source, their lengths, what padding wastes, and the first rows."""
    found = survey.summary()
    rows = [
        (name, one["dtype"], " × ".join(map(str, ["N", *one["shape"]])), one["nulls"], one["lengths"])
        for name, one in found["tensors"].items()
    ]
    count = f"{found['rows']:,} rows in {found['blocks']:,} blocks."
    header = ("tensor", "dtype", "shape", "nulls", "described by")
    yield section("Tensors", paragraph(count), table(header, rows))
    for name, one in found["lengths"].items():
        if one["sequences"]:
            yield section(name, *_lengths(one, survey.sample_of(name), batch, capacity))
    if survey.first is not None:
        yield section("The first rows", examples(survey.first))


def _lengths(found: dict[str, Any], sample: Array, batch: int, capacity: int) -> Iterator[str]:
    yield paragraph(f"{found['sequences']:,} sequences, {found['elements']:,} elements.")
    percentiles = np.percentile(sample, _PERCENTILES, method="lower").tolist()
    header = ("shortest", *(f"{one} %" for one in _PERCENTILES), "longest", "mean")
    yield table(header, [(found["shortest"], *map(int, percentiles), found["longest"], float(found["mean"]))])
    yield chart("Sequences by their lengths", _histogram(found["histogram"], found["sequences"]))
    if found["elements"]:
        fills = [
            Bar(f"padded, {batch} rows", 1 - found["padding"]),
            Bar("of similar lengths", _fill_sorted(sample, batch)),
            Bar(f"packed, {capacity:,}", _fill_packed(sample, capacity)),
        ]
        yield chart("Elements of batches that are no padding", fills)
        tokens = np.add.reduceat(sample, np.arange(0, len(sample), batch))
        yield imbalance_of_ranks(tokens, f"of {len(tokens):,} batches of {batch} rows as they come")


def _histogram(entries: Sequence[dict[str, int]], sequences: int) -> list[Bar]:
    return [
        Bar(
            f"{entry['from']:,}" if entry["from"] == entry["to"] else f"{entry['from']:,} – {entry['to']:,}",
            entry["count"] / sequences,
        )
        for entry in entries
    ]


def _fill_sorted(lengths: Array, batch: int) -> float:
    ordered = np.sort(lengths)
    starts = np.arange(0, len(ordered), batch)
    longest = np.maximum.reduceat(ordered, starts)
    cells = int((longest * np.diff(np.append(starts, len(ordered)))).sum())
    return int(ordered.sum()) / cells if cells else 0.0


def _fill_packed(lengths: Array, capacity: int) -> float:
    rows = len(plan_packing(lengths, capacity).pieces)
    return int(lengths.sum()) / (rows * capacity) if rows else 0.0


def examples(record: Record) -> str:
    """The first rows of each column: texts decoded, numbers as they are."""
    names = [name for name in record if not name.endswith((".lengths", ".valid", ".keys"))]
    columns = [(name.removesuffix(".values"), _column(record, name)) for name in names]
    rows = [[of[row] for _, of in columns] for row in range(min(record.num_rows, _ROWS))]
    return table([name for name, _ in columns], rows)


def _column(record: Record, name: str) -> list[str]:
    values, parent = record[name], record.parents[name]
    if parent is None:
        return [_shown(values[row : row + 1]) for row in range(min(record.num_rows, _ROWS))]
    levels: list[Array] = []
    while parent is not None:
        levels.insert(0, record[parent])
        parent = record.parents[parent]
    edges = np.arange(min(record.num_rows, _ROWS) + 1)
    for level in levels:
        edges = np.concatenate([[0], np.cumsum(level)])[edges]
    return [_shown(values[start:stop]) for start, stop in pairwise(edges.tolist())]


def _shown(values: Array) -> str:
    if values.dtype == np.uint8 and values.ndim == 1:
        text = values[: _TEXT + 1].tobytes().decode("utf-8", "replace")
        return printable_line(text[:_TEXT]) + "…" * (len(values) > _TEXT)
    flat = values.ravel()
    inside = ", ".join(printable_line(str(one)) for one in flat[:_NUMBERS].tolist())
    return f"{inside}{', …' if flat.size > _NUMBERS else ''}"
