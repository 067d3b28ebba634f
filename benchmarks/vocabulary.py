"""Keys to ids: `encode` and `encode_strings` beside pandas' Index and Arrow's index_in.

python benchmarks/vocabulary.py [NAME …] [--rounds 15] [--threads 1]
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute

import seqflow as sf
from comparison import Row, main
from seqflow import ops


def integers() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for name, num_keys in (("4M integers among 1M", 1_000_000), ("4M integers among 20k", 20_000)):
        keys = rng.choice(10**9, num_keys, replace=False)
        asked = rng.choice(keys, 4_000_000)
        table, index = sf.Vocabulary(keys).freeze().table, pd.Index(keys)
        known, wanted = pa.array(keys), pa.array(asked)
        yield Row(
            name,
            lambda asked=asked, table=table: ops.encode(asked, table),
            {
                "pandas": lambda index=index, asked=asked: index.get_indexer(asked),
                "Arrow": lambda wanted=wanted, known=known: compute.index_in(wanted, value_set=known),
            },
            {"best": 1.0},
            agree=from_one,
        )


def strings() -> Iterator[Row]:
    keys = np.array([f"module_{i}.name" for i in range(200_000)])
    asked = np.random.default_rng(0).choice(keys, 1_000_000)
    table, index = sf.Vocabulary(keys).freeze().table, pd.Index(keys.astype(object))
    known, wanted, objects = pa.array(keys), pa.array(asked), asked.astype(object)
    data, lengths = sf.from_arrow(wanted).unpack()
    yield Row(
        "1M strings among 200k",
        lambda: ops.encode_strings(data, lengths, table),
        {
            "pandas": lambda: index.get_indexer(objects),
            "Arrow": lambda: compute.index_in(wanted, value_set=known),
        },
        {"best": 1.0},
        agree=from_one,
    )


def from_one(ours: Any, theirs: Any) -> None:
    """Our ids are from 1 on, theirs from 0."""
    np.testing.assert_array_equal(ours, np.asarray(theirs) + 1)


FAMILIES = [integers, strings]

if __name__ == "__main__":
    main(FAMILIES)
