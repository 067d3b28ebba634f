"""The main job by hand: a plain streaming pyarrow program, for `pack_source.py` to compare with.

It reads the standard library's source files, adds an end-of-file token to each, cuts the stream into rows of
2,048 tokens and writes the columns of examples/pack_source.toml with the same encodings to one Parquet file.
(It cuts the stream where a row is full, the simplest packing there is; seqflow's job packs best fit.)

    python benchmarks/pack_source_plain.py OUT.parquet [FOLDER]
"""

import sys
import sysconfig
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CAPACITY, END_OF_FILE, WINDOW = 2048, 256, 4_000_000
SCHEMA = pa.schema(
    {
        "tokens": pa.list_(pa.int32(), CAPACITY),
        "segment_ids": pa.list_(pa.int32(), CAPACITY),
        "position_ids": pa.list_(pa.int32(), CAPACITY),
        "piece_lengths": pa.list_(pa.int64()),
        "sources": pa.list_(pa.int64()),
    }
)


def table(files: list[bytes], first_source: int) -> tuple[pa.Table, int]:
    """The rows of one window of files, and how many pieces they have."""
    lengths = np.array([len(file) + 1 for file in files])
    ends = np.cumsum(lengths)
    tokens = np.full(-(-ends[-1] // CAPACITY) * CAPACITY, 0, np.int32)
    tokens[: ends[-1]] = np.frombuffer(b"\0".join([*files, b""]), np.uint8)
    tokens[ends - 1] = END_OF_FILE
    cuts = np.union1d(np.arange(0, ends[-1] + 1, CAPACITY), np.append(ends, 0))
    cuts = cuts[cuts <= ends[-1]]
    pieces = np.diff(cuts)
    row = cuts[:-1] // CAPACITY
    per_row = np.bincount(row)
    first_piece = np.cumsum(per_row) - per_row
    segment = np.zeros(len(tokens), np.int32)
    segment[: ends[-1]] = np.repeat(np.arange(len(pieces)) - first_piece[row] + 1, pieces)
    position = np.zeros(len(tokens), np.int32)
    position[: ends[-1]] = np.arange(ends[-1]) - np.repeat(cuts[:-1], pieces)
    offsets = pa.array(np.append(0, np.cumsum(per_row)), pa.int32())
    sources = np.arange(first_source, first_source + len(pieces))
    columns = [pa.FixedSizeListArray.from_arrays(pa.array(x), CAPACITY) for x in (tokens, segment, position)]
    columns += [pa.ListArray.from_arrays(offsets, pa.array(x)) for x in (pieces, sources)]
    return pa.Table.from_arrays(columns, schema=SCHEMA), len(pieces)


def main(out: str, folder: str | None = None) -> None:
    root = Path(folder or sysconfig.get_paths()["stdlib"])
    paths = sorted(p for p in root.rglob("*.py") if "site-packages" not in p.parts)
    writer = pq.ParquetWriter(
        out,
        SCHEMA,
        use_dictionary=["tokens.list.element", "segment_ids.list.element"],
        column_encoding={
            "position_ids.list.element": "DELTA_BINARY_PACKED",
            "piece_lengths.list.element": "DELTA_BINARY_PACKED",
            "sources.list.element": "DELTA_BINARY_PACKED",
        },
    )
    with writer:
        files: list[bytes] = []
        size = num_pieces = 0
        for i, path in enumerate(paths):
            files.append(path.read_bytes())
            size += len(files[-1])
            if size >= WINDOW or i == len(paths) - 1:
                rows, pieces = table(files, num_pieces)
                writer.write_table(rows)
                num_pieces += pieces
                files, size = [], 0


if __name__ == "__main__":
    main(*sys.argv[1:])
