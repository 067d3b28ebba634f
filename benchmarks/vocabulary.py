"""Keys to ids: `encode` and `encode_strings` beside pandas' Index and Arrow's index_in, on one thread.

python benchmarks/vocabulary.py
"""

from time import perf_counter

import numpy as np
import pandas as pd
import pyarrow as pa
from pyarrow import compute

import seqflow as sf
from seqflow import kernels, ops


def minima(calls, rounds=5):
    """Milliseconds of each call, the best of some rounds in which the calls take turns."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(rounds):
        for name, call in calls.items():
            start = perf_counter()
            call()
            best[name] = min(best[name], 1e3 * (perf_counter() - start))
    return best


def integers(num_keys, num_asked):
    rng = np.random.default_rng(0)
    keys = rng.choice(10**9, num_keys, replace=False)
    asked = rng.choice(keys, num_asked)
    table, index = sf.Vocabulary(keys).freeze().table, pd.Index(keys)
    known, wanted = pa.array(keys), pa.array(asked)
    np.testing.assert_array_equal(ops.encode(asked, table), index.get_indexer(asked) + 1)
    return {
        "seqflow": lambda: ops.encode(asked, table),
        "pandas": lambda: index.get_indexer(asked),
        "arrow": lambda: compute.index_in(wanted, value_set=known),
    }


def strings(num_keys, num_asked):
    keys = np.array([f"module_{i}.name" for i in range(num_keys)])
    asked = np.random.default_rng(0).choice(keys, num_asked)
    table, index = sf.Vocabulary(keys).freeze().table, pd.Index(keys.astype(object))
    known, wanted, objects = pa.array(keys), pa.array(asked), asked.astype(object)
    data, lengths = sf.from_arrow(wanted).unpack()
    np.testing.assert_array_equal(ops.encode_strings(data, lengths, table), index.get_indexer(objects) + 1)
    return {
        "seqflow": lambda: ops.encode_strings(data, lengths, table),
        "pandas": lambda: index.get_indexer(objects),
        "arrow": lambda: compute.index_in(wanted, value_set=known),
    }


if __name__ == "__main__":
    kernels.set_num_threads(1)
    cases = {
        "4M integers among 1M": integers(1_000_000, 4_000_000),
        "4M integers among 20k": integers(20_000, 4_000_000),
        "1M strings among 200k": strings(200_000, 1_000_000),
    }
    for case, calls in cases.items():
        found = minima(calls)
        ratios = ", ".join(
            f"{found['seqflow'] / found[name]:.2f} of {name}" for name in calls if name != "seqflow"
        )
        print(f"{case}: {found['seqflow']:.1f} ms, {ratios}")
