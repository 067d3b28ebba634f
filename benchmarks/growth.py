"""How the time of a piece of work grows: with rows, mean length, skew, levels, columns, files, ranks.

    python benchmarks/growth.py [NAME …] [--rounds 3] [--large]

A `Series` has points along one size. What is shown of each is the time of one element (or of one file, one rank): a
level line says that work grows as its size.

The command measures each `Growth`: processor time at several sizes in turns, the least of all rounds, and the
exponent of the time from the last size but one to the last, the largest exponents first. Work that grows as its size
has 1; an exponent above `LIMIT` has a "!". `--large` also measures 100,000 files, which takes many minutes.
"""

import argparse
import gc
import math
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import seqflow as sf
from comparison import Call, fastest, on_threads, optional
from seqflow import kernels, ops

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


LIMIT = 1.1


@dataclass(frozen=True)
class Growth:
    """One piece of work at growing sizes; `call` prepares its data, in an empty folder, and returns what is timed."""

    name: str
    sizes: tuple[int, ...]
    call: Callable[[int, Path], Call]
    large: tuple[int, ...] = ()
    """Sizes that are measured with `--large` only."""

    def calls(self, folder: Path, sizes: tuple[int, ...]) -> dict[int, Call]:
        """The work by its size."""
        made = {}
        for size in sizes:
            place = folder / str(size)
            place.mkdir()
            made[size] = self.call(size, place)
        return made


def epoch(source: Any, **options: Any) -> Call:
    """An epoch of a new loader in this thread."""
    return lambda: [batch.num_rows for batch in sf.Loader(source, **{"batch": 64, "threads": 0, **options})]


def wide(columns: int, value: Any = 1) -> pa.Table:
    """Two rows of so many columns."""
    return pa.table({f"c{number}": [value, value] for number in range(columns)})


LIST, STRUCT = [1, 2], {"a": 1}


def with_nulls(columns: int) -> Call:
    table = pa.table({f"c{number}": [1, None] for number in range(columns)})
    return lambda: sf.from_arrow(table, fill=dict.fromkeys(table.schema.names, 0), valid=table.schema.names)


def back(table: pa.Table) -> Call:
    record = sf.from_arrow(table, valid=True)
    return lambda: sf.to_arrow(record)


def small_files(count: int, folder: Path, suffix: str = "parquet") -> str:
    """A folder of so many equal files of one row."""
    first = folder / f"0.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.table({"a": [1]}), first)
    else:
        first.write_text('{"a": 1}\n')
    content = first.read_bytes()
    for number in range(1, count):
        (folder / f"{number}.{suffix}").write_bytes(content)
    return str(folder)


def listing(folder: str) -> Call:
    """The blocks of open files, listed again."""
    source = sf.open(folder)
    return lambda: list(source.blocks())


def resuming(folder: str) -> Call:
    """The first batch of a new loader with the state of another."""
    options: dict[str, Any] = {"batch": 16, "threads": 0, "window": "64 KiB"}
    loader = sf.Loader(folder, **options)
    next(iter(loader))
    state = loader.state_dict()

    def resume() -> Any:
        again = sf.Loader(folder, **options)
        again.load_state_dict(state)
        return next(iter(again))

    return resume


def groups(count: int, folder: Path) -> str:
    """A file of so many row groups of one row."""
    path = str(folder / "rows.parquet")
    pq.write_table(pa.table({"a": np.arange(count)}), path, row_group_size=1)
    return path


def wide_file(columns: int, folder: Path) -> str:
    path = str(folder / "wide.parquet")
    pq.write_table(wide(columns), path)
    return path


def nested(depth: int) -> pa.Table:
    values: Any = pa.array(range(64))
    for _ in range(depth):
        values = pa.ListArray.from_arrays(np.arange(65, dtype=np.int32), values)
    return pa.table({"t": values})


def chain(lines: int) -> str:
    """The text of a net in which each line reads the one before."""
    return "\n".join(f"y{at + 1} = y{at} + 1.0" for at in range(lines)) + f"\nreturn y{lines}"


def fan(lines: int) -> str:
    """The text of a net with an output for each column of a table."""
    return "\n".join(f"y{at} = c{at} + 1" for at in range(lines))


def infers(lines: int) -> Call:
    net, specs = sf.Net(chain(lines)), {"y0": sf.TensorSpec("float64", "{rows}")}
    return lambda: net.infer(specs)


def runs(lines: int) -> Call:
    net, record = sf.Net(chain(lines)), {"y0": np.ones(3)}
    return lambda: sf.run(net, record)


def on_tables(columns: int) -> Call:
    net, table = sf.Net(fan(columns)), wide(columns)
    return lambda: sf.arrow_function(net)(table)


def mixed(sources: int, **options: Any) -> Call:
    """An epoch of a mix: five batches, each with four rows of each source."""
    tables = {f"s{number}": pa.table({"id": range(20)}) for number in range(sources)}
    weights = dict.fromkeys(tables, 1)
    return lambda: [
        one.num_rows for one in sf.Mix(tables, weights=weights, batch=4 * sources, threads=0, **options)
    ]


def all_ranks(ranks: int) -> Call:
    """The epochs of all ranks together, 16 batches of each."""
    table = pa.table({"a": np.arange(64 * 16)})
    loaders = [epoch(table, batch=4, rank=rank, world_size=ranks, tail="pad") for rank in range(ranks)]
    return lambda: [one() for one in loaders]


def skipping(spans: int) -> Call:
    table = pa.table({"a": np.arange(4 * spans)})
    return epoch(table, batch=1, skip=[(4 * at, 4 * at + 1) for at in range(spans)])


def filtered(terms: int) -> Call:
    return epoch(wide(400), where=" and ".join(f"c{at % 400} > 0" for at in range(terms)))


def asked(requests: int) -> Call:
    loader = sf.Loader(wide(20), batch=2, threads=0)
    rows = [{f"c{number}": 1 for number in range(20)}] * requests
    return lambda: sf.from_rows(rows, like=loader)


def map_keys(keys: int) -> Call:
    names = [f"k{number}" for number in range(keys)]
    kind = pa.map_(pa.string(), pa.list_(pa.int64()))
    record = sf.from_arrow(pa.table({"m": pa.array([[(name, [1]) for name in names]] * 4, kind)}))
    return lambda: sf.features(record, "m", names)


def rows_of(count: int) -> pa.Table:
    return pa.table({"a": np.arange(count), "ids": pa.array([[1, 2, 3]] * count)})


COLUMNS, FILES, LINES, MANY = (625, 2_500, 10_000), (100, 1_000, 10_000), (100, 400, 1_600), (100_000,)
GROWTHS = (
    Growth("from_arrow, columns", COLUMNS, lambda n, _: partial(sf.from_arrow, wide(n))),
    Growth("from_arrow, list columns", COLUMNS, lambda n, _: partial(sf.from_arrow, wide(n, LIST))),
    Growth("from_arrow with fill and valid, columns", COLUMNS, lambda n, _: with_nulls(n)),
    Growth("to_arrow, columns", COLUMNS, lambda n, _: back(wide(n))),
    Growth("to_arrow, list columns", COLUMNS, lambda n, _: back(wide(n, LIST))),
    Growth("to_arrow, struct columns", COLUMNS, lambda n, _: back(wide(n, STRUCT))),
    Growth("epoch, columns", COLUMNS, lambda n, _: epoch(wide(n))),
    Growth("epoch, list columns", COLUMNS, lambda n, _: epoch(wide(n, LIST))),
    Growth("epoch, text columns", COLUMNS, lambda n, _: epoch(wide(n, "text"))),
    Growth("epoch of a file, columns", COLUMNS, lambda n, folder: epoch(wide_file(n, folder))),
    Growth("arrow_function, columns", LINES, lambda n, _: on_tables(n)),
    Growth("features, keys", LINES, lambda n, _: map_keys(n)),
    Growth("from_rows, requests", (100, 1_000, 10_000), lambda n, _: asked(n)),
    Growth("epoch, rows", (1_000, 10_000, 100_000, 1_000_000), lambda n, _: epoch(rows_of(n))),
    Growth(
        "epoch shuffled, rows", (1_000, 10_000, 100_000, 1_000_000), lambda n, _: epoch(rows_of(n), shuffle=True)
    ),
    Growth("epoch, list depth", (4, 15, 60), lambda n, _: epoch(nested(n))),
    Growth("open, files", FILES, lambda n, folder: partial(sf.open, small_files(n, folder)), MANY),
    Growth("blocks, files", FILES, lambda n, folder: listing(small_files(n, folder)), MANY),
    Growth("resume, files", FILES, lambda n, folder: resuming(small_files(n, folder)), MANY),
    Growth("epoch, files", FILES, lambda n, folder: epoch(small_files(n, folder)), MANY),
    Growth("epoch, JSON files", FILES, lambda n, folder: epoch(small_files(n, folder, "jsonl")), MANY),
    Growth("epoch, row groups", (500, 2_000, 8_000), lambda n, folder: epoch(groups(n, folder))),
    Growth(
        "epoch shuffled, row groups",
        (500, 2_000, 8_000),
        lambda n, folder: epoch(groups(n, folder), shuffle=True),
    ),
    Growth("epoch of a mix, sources", (2, 20, 200), lambda n, _: mixed(n)),
    Growth("epoch of a mix to the last source, sources", (2, 20, 200), lambda n, _: mixed(n, stop="all")),
    Growth("epochs of all ranks, ranks", (4, 16, 64), lambda n, _: all_ranks(n)),
    Growth("epoch, skip spans", (250, 1_000, 4_000), lambda n, _: skipping(n)),
    Growth("Net, lines", LINES, lambda n, _: partial(sf.Net, chain(n))),
    Growth("Net.infer, lines", LINES, lambda n, _: infers(n)),
    Growth("run, lines", LINES, lambda n, _: runs(n)),
    Growth("epoch, terms of where", LINES, lambda n, _: filtered(n)),
)  # fmt: skip


def exponent(sizes: tuple[float, ...], costs: tuple[float, ...]) -> float:
    """The exponent of cost by size, from the last size but one to the last."""
    (before, size), (less, cost) = sizes[-2:], costs[-2:]
    return math.log(cost / less) / math.log(size / before)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="also the greatest numbers of files")
    options = parser.parse_args()
    kernels.set_num_threads(1)
    rows = []
    for one in GROWTHS:
        if options.names and not any(name in one.name for name in options.names):
            continue
        sizes = one.sizes + one.large * options.large
        with tempfile.TemporaryDirectory() as folder:
            calls = {str(size): call for size, call in one.calls(Path(folder), sizes).items()}
            gc.collect()
            gc.freeze()  # collections walk over new objects only: not over all that is imported and prepared
            times = fastest(calls, options.rounds, time.process_time)
        rows.append((exponent(sizes, tuple(times.values())), one.name, times))
        print(f"{one.name}: {rows[-1][0]:.2f}", flush=True)
    print(f"\n{'':45}{'exponent':>8}   ms of processor time by size")
    for found, name, times in sorted(rows, reverse=True):
        shown = ", ".join(f"{int(size):,}: {milliseconds:.4g}" for size, milliseconds in times.items())
        print(f"{name:45}{found:8.2f} {'!' if found > LIMIT else ' '} {shown}")


if __name__ == "__main__":
    main()
