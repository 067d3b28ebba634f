"""Curate first, with Polars; then train on what is left: a loader reads a data frame, or the files that one writes.

python examples/curate_first.py

DuckDB does the same: `sf.Loader(duckdb.sql("select …"))`.
"""

import polars as pl

import seqflow as sf

pages = pl.DataFrame(
    {
        "text": [
            "a long page about cats",
            "short",
            "a long page about cats",
            "another long page, on dogs",
            None,
        ],
        "score": [0.9, 0.8, 0.9, 0.7, 0.1],
    }
)
kept = (
    pages.lazy()
    .filter(pl.col("score") > 0.5, pl.col("text").str.len_bytes() > 10)
    .unique("text", maintain_order=True)
)
kept.collect().write_parquet("kept.parquet")
prepare = """
ids, n = bytes_to_tokens(text.values, text.lengths, end=256)
return ids, n
"""
for source in (kept.collect(), "kept.parquet"):
    (batch,) = sf.Loader(source, columns=["text"], prepare=prepare, batch=sf.Packed(64))
    assert batch["pieces"].sum() == 2
print(f"{len(pages)} pages, 2 are left, in {len(batch['ids'])} row of 64 tokens")
