"""Ops on ids beside their peers: gathering, hashing, bucketing, telling apart, grouping, membership.

    python benchmarks/ids.py [NAME …] [--rounds 15] [--threads 1]

The table is that of `ops.py`. Each op is meant to take at most twice the time of a copy of its result, or half the
time of every peer; the limits are of the latter. `torch` runs on as many threads as we do.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from comparison import Call, Row, main, optional
from seqflow import ops

torch, pandas = optional("torch"), optional("pandas")
COUNT = 4_000_000
HALF = {"numpy": 0.5, "pandas": 0.5, "torch": 0.5}


def gathers() -> Iterator[Row]:
    random = np.random.default_rng(0)
    for name, rows, width, count in (
        ("100k×1", 100_000, 1, COUNT), ("4M×1", COUNT, 1, COUNT), ("100k×16", 100_000, 16, COUNT // 8),
        ("1M×64", 1_000_000, 64, COUNT // 32),
    ):  # fmt: skip
        table = random.standard_normal((rows, width), dtype=np.float32)
        indices = random.integers(0, rows, count)
        picked = table[indices]
        peers: dict[str, Call] = {"numpy": lambda t=table, i=indices: np.take(t, i, 0)}
        if torch:
            pair = torch.from_numpy(table), torch.from_numpy(indices)
            peers["torch"] = lambda pair=pair: torch.index_select(pair[0], 0, pair[1])
        copied = {"copy of the result": picked.copy}
        yield Row(
            f"gather {name}", lambda t=table, i=indices: ops.gather(t, i), peers, floors=copied,
            why="one load and one store a row: all wait for memory",
        )  # fmt: skip


def hashes() -> Iterator[Row]:
    ids = np.random.default_rng(0).integers(0, 2**62, COUNT)
    peers: dict[str, Call] = {}
    limits = {}
    if pandas:
        peers["pandas"] = lambda: pandas.util.hash_array(ids) % np.uint64(1_000_003)
        limits = {"pandas": 0.5}
    yield Row(
        "hash_indices 4M", lambda: ops.hash_indices(ids, num_buckets=1_000_003), peers, limits,
        {"copy of the result": ids.copy}, agree=as_many,
    )  # fmt: skip
    lengths = np.random.default_rng(1).integers(1, 20, COUNT // 10)
    text = np.random.default_rng(2).integers(97, 123, lengths.sum()).astype(np.uint8)
    peers = {}
    if pandas:
        ends = np.cumsum(lengths).tolist()
        whole = text.tobytes().decode()
        strings = np.array(
            [whole[end - n : end] for end, n in zip(ends, lengths.tolist(), strict=True)], object
        )
        peers["pandas"] = lambda: pandas.util.hash_array(strings, categorize=False) % np.uint64(1_000_003)
    yield Row(
        "hash_strings 400k", lambda: ops.hash_strings(text, lengths, num_buckets=1_000_003), peers, limits,
        {"copy of the text": text.copy}, agree=as_many,
    )  # fmt: skip


def as_many(ours: Any, theirs: Any) -> None:
    """Other hash functions give other buckets."""
    assert ours.shape == theirs.shape


def buckets() -> Iterator[Row]:
    random = np.random.default_rng(0)
    x = random.standard_normal(COUNT, dtype=np.float32)
    for count in (15, 100, 1000):
        boundaries = np.sort(random.standard_normal(count, dtype=np.float32))
        peers: dict[str, Call] = {"numpy": lambda b=boundaries: np.searchsorted(b, x)}
        if pandas:
            peers["pandas"] = lambda b=boundaries: pandas.cut(x, [-np.inf, *b, np.inf], labels=False)
        if torch:
            pair = torch.from_numpy(x), torch.from_numpy(boundaries)
            peers["torch"] = lambda pair=pair: torch.bucketize(*pair)
        copied = {"copy of the result": np.zeros(COUNT, np.int64).copy}
        yield Row(f"bucketize 4M, {count}", lambda b=boundaries: ops.bucketize(x, b), peers, HALF, copied)


def distinct() -> Iterator[Row]:
    random = np.random.default_rng(0)
    for name, ids in (
        ("rows of 100k", random.integers(0, 100_000, COUNT)),
        ("rows, Zipf", np.minimum(random.zipf(1.2, COUNT), 1_000_000)),
        ("100k hashes", random.integers(0, 2**62, 100_000)[random.integers(0, 100_000, COUNT)]),
        ("1M hashes", random.integers(0, 2**62, 1_000_000)[random.integers(0, 1_000_000, COUNT)]),
        ("all different", random.integers(0, 2**62, COUNT)),
    ):
        peers: dict[str, Call] = {
            "numpy": lambda ids=ids: np.unique(ids, return_inverse=True, return_counts=True)
        }
        if pandas:
            peers["pandas"] = lambda ids=ids: factorized(ids)
        if torch:
            tensor = torch.from_numpy(ids)
            peers["torch"] = lambda t=tensor: torch.unique(t, return_inverse=True, return_counts=True)
        yield Row(f"unique 4M, {name}", lambda ids=ids: ops.unique(ids), peers, HALF)


def groups() -> Iterator[Row]:
    random = np.random.default_rng(0)
    for name, count, ids in (
        ("4M among 1k", 1000, random.integers(0, 1000, COUNT)),
        ("4M among 100k", 100_000, random.integers(0, 100_000, COUNT)),
        ("4M among 1M", 1_000_000, random.integers(0, 1_000_000, COUNT)),
        ("4M among 1M, Zipf", 1_000_000, np.minimum(random.zipf(1.2, COUNT), 1_000_000) - 1),
        ("100k among 64", 64, random.integers(0, 64, 100_000)),
    ):
        yield Row(
            f"group_order {name}", lambda ids=ids, count=count: ops.group_order(ids, num_segments=count),
            {"numpy": lambda ids=ids, count=count: sorted_stably(ids, count)}, {"numpy": 1 / 3},
        )  # fmt: skip


def sorted_stably(ids: Any, count: int) -> Any:
    """The results of `group_order`, by a stable sort."""
    order = np.argsort(ids, kind="stable")
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return order, np.bincount(ids, minlength=count), back


def memberships() -> Iterator[Row]:
    random = np.random.default_rng(0)
    for mean, most in ((20, 100), (200, 1000), (2000, 10_000), (20, 2**62), (200, 2**62), (2000, 2**62)):
        lengths, other_lengths = (random.integers(1, 2 * mean, 1_000_000 // mean) for _ in range(2))
        names = random.integers(0, most, 10 * mean)  # some of which are in both lists
        data, other = (
            names[random.integers(0, len(names), int(one.sum()))] for one in (lengths, other_lengths)
        )

        def loop(
            data: Any = data, lengths: Any = lengths, other: Any = other, held: Any = other_lengths
        ) -> Any:
            parts = (np.split(one, np.cumsum(sizes)[:-1]) for one, sizes in ((data, lengths), (other, held)))
            return np.concatenate([np.isin(*pair) for pair in zip(*parts, strict=True)])

        yield Row(
            f"isin_within 1M, lists of {mean}{' hashes' if most == 2**62 else ''}",
            lambda d=data, n=lengths, o=other, m=other_lengths: ops.isin_within(d, n, o, m),
            {"loop of np.isin": loop}, {"loop of np.isin": 0.1}, rounds=5,
            why="a long list hides the cost of a call, and NumPy uses a table of close values, too",
        )  # fmt: skip


def factorized(ids: Any) -> Any:
    """What `unique` gives, by pandas."""
    codes, values = pandas.factorize(ids, sort=True)
    return values, codes, np.bincount(codes)


FAMILIES = [gathers, hashes, buckets, distinct, groups, memberships]

if __name__ == "__main__":
    main(FAMILIES)
