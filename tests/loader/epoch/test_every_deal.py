"""Every number of ranks, streams and threads gives the same sequence, from wherever it is resumed.

All of the product with SEQFLOW_TESTS=thorough, else a sample of it.
"""

import itertools
import json
import random

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marks import THOROUGH

import seqflow as sf

WORLD_SIZES, STREAMS, THREADS = (1, 2, 3, 4, 7, 8), (1, 4, 8), (0, 1, 2)
ROWS = 480
PLANS = {
    "rows": sf.Rows(7),
    "rows, drop_last": sf.Rows(7, drop_last=True),
    "rows, filtered": sf.Rows(7, min_length=2),
    "tokens": sf.TokenBudget(40),
    "padded tokens": sf.TokenBudget(60, padded=True),
    "buckets of rows": sf.Buckets([3, 6], sf.Rows(5)),
    "buckets of tokens": sf.Buckets(2, sf.TokenBudget(40)),
    "packed": sf.Packed(16, rows=4),
    "packed first_fit": sf.Packed(16, rows=2, strategy="first_fit"),
    "packed concat": sf.Packed(16, rows=4, strategy="concat"),
}
MIXES = {
    "mix of rows": sf.Rows(10),
    "mix of batches": sf.TokenBudget(40),
    "mix of packed": sf.Packed(16, rows=4),
}
PRODUCT = list(itertools.product((*PLANS, *MIXES), STREAMS, (False, True)))
SAMPLE = random.Random(0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Four files of twelve row groups of ten rows: a number from 1, and a list of it, 0 to 8 times."""
    path = tmp_path_factory.mktemp("docs")
    for number in range(4):
        ids = np.arange(number * 120, number * 120 + 120) + 1
        lists = pa.array([[int(n)] * (int(n) % 9) for n in ids], pa.list_(pa.int32()))
        pq.write_table(pa.table({"id": ids, "tokens": lists}), path / f"{number}.parquet", row_group_size=10)
    return path


def loader_of(folder, kind, streams, shuffle, indexes, **options):
    options |= {"streams": streams, "shuffle": sf.Shuffle(3) if shuffle else None, "window": 400}
    if kind in PLANS:
        return sf.Loader(folder, batch=PLANS[kind], index=indexes / f"{kind}.arrow", **options)
    sources = {folder / "0.parquet": 0.6, folder / "1.parquet": 0.4}
    if kind == "mix of rows":
        return sf.Mix(sources, seed=2, batch=MIXES[kind], **options)
    loaders = {
        sf.Loader(path, batch=MIXES[kind], index=indexes / f"{kind}{path.stem}.arrow", **options): weight
        for path, weight in sources.items()
    }
    return sf.Mix(loaders, seed=2)


def sequence(loader):
    return [tuple((name, batch[name].tolist()) for name in batch) for batch in loader]


def joined(ranks):
    return [batch for step in zip(*ranks, strict=True) for batch in step]


def numbers(batches, name):
    return sorted(n for batch in batches for n in np.ravel(dict(batch)[name]).tolist() if n)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "streams", "shuffle"), PRODUCT if THOROUGH else SAMPLE.sample(PRODUCT, 3))
def test_ranks_and_resumes_share_one_sequence(folder, tmp_path, kind, streams, shuffle):
    def loader(**options):
        return loader_of(folder, kind, streams, shuffle, tmp_path, **options)

    drawn = random.Random(f"{kind} {streams} {shuffle}")
    alone = sequence(loader(threads=0))
    if kind in PLANS and "drop" not in kind:
        everything = range(1, ROWS + 1)
        if "packed" in kind:
            assert numbers(alone, "tokens") == sorted(n for n in everything for _ in range(n % 9))
        else:
            assert numbers(alone, "id") == [n for n in everything if n % 9 > 1 or "filtered" not in kind]
    elif kind not in PLANS:
        found = numbers(alone, "tokens" if "packed" in kind else "id")
        assert len(set(found)) > 150
        assert "packed" in kind or len(set(found)) == len(found)
    product = list(itertools.product(WORLD_SIZES, THREADS))
    for world_size, threads in product if THOROUGH else drawn.sample(product, 2):
        ranks = [
            sequence(loader(rank=rank, world_size=world_size, threads=threads)) for rank in range(world_size)
        ]
        assert joined(ranks) == alone[: len(alone) // world_size * world_size]
        steps = drawn.randint(1, len(alone) // world_size - 1)
        stopped = loader(rank=drawn.randrange(world_size), world_size=world_size, threads=threads)
        batches = iter(stopped)
        for _ in range(steps):
            next(batches)
        state = json.loads(json.dumps(stopped.state_dict()))
        batches.close()
        rest = alone[steps * world_size :]
        after = drawn.choice([size for size in WORLD_SIZES if size <= len(rest)])
        resumed = []
        for rank in range(after):
            one = loader(rank=rank, world_size=after, threads=drawn.choice(THREADS))
            one.load_state_dict(state)
            resumed.append(sequence(one))
        assert joined(resumed) == rest[: len(rest) // after * after]
