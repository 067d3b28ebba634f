"""How the time of a piece of work grows: with rows, mean length, skew, levels, columns, files, ranks.

A `Series` has points along one size. What is shown of each is the time of one element (or of one file, one rank): a
level line says that work grows as its size.
"""

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import seqflow as sf
from comparison import Call, fastest, on_threads, optional
from seqflow import ops

torch, awkward = optional("torch"), optional("awkward")


@dataclass(frozen=True)
class Point:
    """A size, the calls at this size, and by what their times are divided."""

    size: float
    calls: dict[str, Call]
    elements: float


@dataclass(frozen=True)
class Series:
    """One piece of work at growing sizes; `unit` is of a time divided by its elements."""

    name: str
    along: str
    unit: str
    points: Callable[[], Iterator[Point]]
    quick: bool = False
    nanoseconds: float = field(default=1e6)
    """The unit in milliseconds, inverted: 1e6 for ns, 1 for ms."""


def measure(series: Series, rounds: int) -> dict[str, Any]:
    """The series with its times, as JSON."""
    points = []
    for point in series.points():
        times = fastest(point.calls, rounds)
        scaled = {name: series.nanoseconds * time / point.elements for name, time in times.items()}
        points.append({"size": point.size, "times": {name: round(time, 4) for name, time in scaled.items()}})
    return {"name": series.name, "along": series.along, "unit": series.unit, "points": points}


def sums(data: Any, lengths: Any) -> dict[str, Call]:
    calls: dict[str, Call] = {"seqflow": lambda: ops.lengths_sum(data, lengths)}
    if (lengths > 0).all():  # reduceat and empty segments: not its meaning
        calls["np.add.reduceat"] = lambda: np.add.reduceat(data, np.cumsum(lengths) - lengths)
    if torch:
        values, sizes = torch.from_numpy(data), torch.from_numpy(lengths)
        calls["torch.segment_reduce"] = lambda: torch.segment_reduce(values, "sum", lengths=sizes, initial=0)
    return calls


def of_lengths(lengths: Any) -> Any:
    return np.random.default_rng(1).standard_normal(int(lengths.sum()), dtype=np.float32)


def over_rows() -> Iterator[Point]:
    for size in (1_000, 10_000, 100_000, 1_000_000, 10_000_000):
        lengths = np.random.default_rng(0).integers(1, 40, size // 20)
        data = of_lengths(lengths)
        yield Point(size, sums(data, lengths), len(data))


def over_mean_length() -> Iterator[Point]:
    for mean in (1, 4, 16, 64, 256, 4096, 65_536):
        lengths = np.random.default_rng(0).integers(1, 2 * mean, 4_000_000 // mean)
        data = of_lengths(lengths)
        yield Point(mean, sums(data, lengths), len(data))


def padded(data: Any, lengths: Any) -> dict[str, Call]:
    def by_mask() -> Any:
        padded = np.zeros((len(lengths), lengths.max()), data.dtype)
        padded[np.arange(lengths.max()) < lengths[:, None]] = data
        return padded

    calls: dict[str, Call] = {"seqflow": lambda: ops.pad(data, lengths), "zeros, assign by mask": by_mask}
    if torch:
        pad_sequence = torch.nn.utils.rnn.pad_sequence
        parts = torch.split(torch.from_numpy(data), lengths.tolist())
        calls["torch pad_sequence, split given"] = lambda: pad_sequence(parts, batch_first=True)
    return calls


def padding_over_mean_length() -> Iterator[Point]:
    for mean in (4, 16, 64, 256, 1024):
        lengths = np.random.default_rng(0).integers(1, 2 * mean, 2_000_000 // mean)
        data = of_lengths(lengths)
        yield Point(mean, padded(data, lengths), len(data))


def over_skew() -> Iterator[Point]:
    """One sequence has so many percent of all elements, others share the rest; at 100 all others are empty."""
    total = 4_000_000
    for percent in (0, 25, 50, 90, 100):
        giant = total * percent // 100
        lengths = np.full(10_000, (total - giant) // 10_000)
        lengths[5_000] += giant
        data = of_lengths(lengths)
        calls = {}
        for count in (1, 2):
            calls[f"sum, {count} thread{'s' * (count > 1)}"] = on_threads(
                count, lambda data=data, lengths=lengths: ops.lengths_sum(data, lengths)
            )
        for count in (1, 2):
            calls[f"softmax, {count} thread{'s' * (count > 1)}"] = on_threads(
                count, lambda data=data, lengths=lengths: ops.softmax_within(data, lengths)
            )
        yield Point(percent, calls, len(data))


def over_levels() -> Iterator[Point]:
    """All levels summed, from the innermost outwards."""
    for levels in (1, 2, 3, 4):
        lengths = [np.full(4_000_000 // 8**levels * 8**level, 8) for level in range(levels)]
        data = of_lengths(lengths[-1])

        def ours(data: Any = data, lengths: list[Any] = lengths) -> Any:
            for own in reversed(lengths):
                data = ops.lengths_sum(data, own)
            return data

        calls: dict[str, Call] = {"seqflow": ours}
        if awkward:
            nested = data
            for own in reversed(lengths):
                nested = awkward.unflatten(nested, own)

            def theirs(nested: Any = nested, levels: int = levels) -> Any:
                for _ in range(levels):
                    nested = awkward.sum(nested, axis=-1)
                return nested

            calls["awkward, wrapped already"] = theirs
        yield Point(levels, calls, len(data))


def list_table(columns: int, rows: int) -> pa.Table:
    rng = np.random.default_rng(0)
    found = {}
    for column in range(columns):
        offsets = np.append(0, np.cumsum(rng.integers(0, 20, rows))).astype(np.int32)
        found[f"c{column}"] = pa.ListArray.from_arrays(offsets, rng.integers(0, 1000, offsets[-1]))
    return pa.table(found)


def over_columns() -> Iterator[Point]:
    with tempfile.TemporaryDirectory() as folder:
        for columns in (1, 4, 16, 64):
            path = f"{folder}/{columns}.parquet"
            pq.write_table(list_table(columns, 20_000), path)

            def epoch(path: str = path) -> Any:
                return [batch.num_rows for batch in sf.Loader(path, batch=256)]

            yield Point(
                columns,
                {"a loader's epoch": epoch, "pq.read_table": lambda path=path: pq.read_table(path)},
                20_000 * columns,
            )


def over_files() -> Iterator[Point]:
    with tempfile.TemporaryDirectory() as folder:
        for files in (1, 10, 100, 1000):
            place = Path(folder) / str(files)
            place.mkdir()
            for number in range(files):
                pq.write_table(list_table(1, 100), place / f"{number:05}.parquet")

            def epoch(place: Path = place) -> Any:
                return [batch.num_rows for batch in sf.Loader(str(place), batch=256)]

            def table(place: Path = place) -> Any:
                return ds.dataset(place).to_table(use_threads=False)

            yield Point(files, {"a loader's epoch": epoch, "pyarrow.dataset": table}, files)


def over_ranks() -> Iterator[Point]:
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/rows.parquet"
        pq.write_table(list_table(1, 640_000), path, row_group_size=2_000)
        for ranks in (1, 2, 4, 8, 16):

            def epoch(ranks: int = ranks, streams: int = 16) -> Any:
                loader = sf.Loader(
                    path, batch=64, window="1 MiB", streams=streams, rank=0, world_size=ranks, shuffle=True
                )
                return [batch.num_rows for batch in loader]

            yield Point(ranks, {"one rank's epoch": epoch}, 1)


SERIES = (
    Series("Sum of each sequence, mean length 20", "elements", "ns an element", over_rows, quick=True),
    Series("Sum of each sequence, 4M elements", "mean length", "ns an element", over_mean_length),
    Series(
        "Pad to the longest, 2M elements",
        "mean length",
        "ns an element",
        padding_over_mean_length,
        quick=True,
    ),
    Series("One giant sequence among others", "% of 4M elements in one sequence", "ns an element", over_skew),
    Series("Sums over all levels, 4M elements", "levels", "ns an element", over_levels),
    Series("An epoch of a loader, 20,000 rows", "list columns", "ns a row and column", over_columns),
    Series("An epoch over small files, 100 rows each", "files", "ms a file", over_files, nanoseconds=1),
    Series("An epoch of one rank, 640,000 rows, 16 streams", "ranks", "ms", over_ranks, nanoseconds=1),
)
