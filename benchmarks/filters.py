"""Filters on Parquet: the rows that `where` keeps, beside pyarrow's scanner with the same filter, in CPU time.

python benchmarks/filters.py [rows]
"""

import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

import seqflow as sf

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


def own(path, where, *, counted=False):
    """The rows that are kept, of all columns."""
    source = sf.open(path, where=where)
    return sum(source.read(block).num_rows for block in source.blocks(counted=counted))


def arrow(path, expression):
    """The same by the scanner of pyarrow's datasets, opened anew each time as well."""
    batches = ds.dataset(path).scanner(filter=expression, use_threads=False).to_batches()
    return sum(batch.num_rows for batch in batches)


def minima(calls, rounds=5):
    """CPU milliseconds of each call, the best of some rounds in which the calls take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = process_time()
            call()
            best[name] = min(best[name], 1e3 * (process_time() - start))
    return best


if __name__ == "__main__":
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        write(path, rows)
        print(f"{rows:,} rows, {path.stat().st_size / 1e6:.0f} MB in 100 row groups; CPU ms with opening")
        for form, make in FILTERS.items():
            where = form.format(some=rows // 2, more=rows // 2 + rows // 100)
            expression = make(rows)
            kept = own(path, where)
            assert kept == arrow(path, expression) == len(sf.open(path, where=expression))
            found = minima(
                {
                    "where": lambda where=where: own(path, where),
                    "scanner": lambda expression=expression: arrow(path, expression),
                    "counted first": lambda where=where: own(path, where, counted=True),
                    "count alone": lambda where=where: len(sf.open(path, where=where)),
                }
            )
            times = ", ".join(f"{name} {found[name]:.0f}" for name in found)
            print(
                f"{where}: {kept:,} rows; {times}: {found['where'] / found['scanner']:.2f} of the scanner's"
            )
