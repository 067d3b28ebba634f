"""Filters on Parquet: the rows that `where` keeps, beside pyarrow's scanner with the same filter, in CPU time.

    python benchmarks/filters.py [FILTER …] [--rounds 5]

2,000,000 rows in 100 row groups, opened anew each time.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import seqflow as sf
from comparison import Row, main

FILTERS = {
    "id >= {some} and id < {more}": lambda n: (
        (pc.field("id") >= n // 2) & (pc.field("id") < n // 2 + n // 100)
    ),
    "score < 0.01": lambda n: pc.field("score") < 0.01,
    "lang == 'py'": lambda n: pc.field("lang") == "py",
    "tokens.lengths > 30": lambda n: pc.list_value_length(pc.field("tokens")) > 30,
}
"""Of 1 % of the row groups, of rows everywhere, of a quarter of all rows, and on the lengths of lists."""


def write(path, rows):
    """A file of 100 row groups: id, lang, score, and 0 to 40 tokens."""
    draw = np.random.default_rng(0)
    offsets = np.append(0, np.cumsum(draw.integers(0, 41, rows)))
    tokens = pa.array(draw.integers(0, 1000, offsets[-1]).astype(np.int16))
    columns = {
        "id": np.arange(rows),
        "lang": np.array(["py", "c", "go", "rs"])[draw.integers(0, 4, rows)],
        "score": draw.random(rows),
        "tokens": pa.LargeListArray.from_arrays(offsets, tokens),
    }
    pq.write_table(pa.table(columns), path, row_group_size=-(-rows // 100))


def own(path, where):
    """The rows that are kept, of all columns."""
    source = sf.open(path, where=where)
    return sum(source.read(block).num_rows for block in source.blocks())


def arrow(path, expression):
    """The same by the scanner of pyarrow's datasets, opened anew each time as well."""
    batches = ds.dataset(path).scanner(filter=expression, use_threads=False).to_batches()
    return sum(batch.num_rows for batch in batches)


def filters() -> Iterator[Row]:
    rows = 2_000_000
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, rows)
        for form, make in FILTERS.items():
            where = form.format(some=rows // 2, more=rows // 2 + rows // 100)
            expression = make(rows)
            yield Row(
                where,
                lambda where=where: own(path, where),
                {"pyarrow's scanner": lambda expression=expression: arrow(path, expression)},
                {"pyarrow's scanner": 1.1},
                clock=process_time,
                unit="CPU ms",
                rounds=5,
                why="the same scanner reads; blocks, counts and checks come on top",
            )


FAMILIES = [filters]

if __name__ == "__main__":
    main(FAMILIES)
