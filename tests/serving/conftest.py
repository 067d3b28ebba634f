"""Loaders of some files, and servers of them in this process."""

from contextlib import ExitStack

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf

ROWS = 600
LENGTHS = np.minimum(np.random.default_rng(3).lognormal(3.3, 1.0, ROWS).astype(np.int64) + 1, 400)
TABLE = pa.table(
    {
        "id": np.arange(ROWS),
        "tokens": [np.random.default_rng(n).integers(0, 1 << 20, n, np.int32) for n in LENGTHS],
    }
)
PLANS = {
    "packed": sf.Packed(256, ("tokens",), rows=2),
    "rows": sf.Rows(7),
    "budget": sf.TokenBudget(600, lengths="tokens"),
    "balance": sf.TokenBudget(
        600, lengths="tokens", balance=sf.Balance(group=2, steps_of=2, pool=2, linear=2000)
    ),
}


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("served")
    for number in range(4):
        pq.write_table(TABLE.slice(150 * number, 150), path / f"{number}.parquet", row_group_size=5)
    return path


@pytest.fixture
def loader_of(folder):
    def made(plan="packed", *, index=True, mix=False, **options):
        options = {
            "batch": PLANS[plan], "shuffle": sf.Shuffle(5), "window": "5 kB", "threads": 1, "rank": 0, "world_size": 1,
            **options,
        }  # fmt: skip
        if mix:
            sources = {"a": str(folder / "[01].parquet"), "b": str(folder / "[23].parquet")}
            return sf.Mix(sources, weights={"a": 3, "b": 1}, **options)
        name = plan if index is True else index  # an index of other rows has a name of its own
        path = folder / f"{name}.arrow" if index and plan != "rows" else None
        return sf.Loader(str(folder / "*.parquet"), index=path, **options)

    return made


@pytest.fixture
def serve():
    """Begin servers, which end with the test."""
    with ExitStack() as stack:
        yield lambda loader, **options: stack.enter_context(sf.serve(loader, **{"port": 0, **options}))


@pytest.fixture
def content():
    def of(batch):
        tensors = {name: (tensor.dtype.str, tensor.shape, tensor.tobytes()) for name, tensor in batch.items()}
        further = [getattr(batch, name, None) for name in ("totals", "step", "sources", "shares")]
        return batch.number, batch.num_rows, tensors, dict(batch.parents), further

    return of
