"""Ops beside their nearest peers: how long each takes, and how long it may take.

    python benchmarks/ops.py [NAME …] [--rounds 15] [--threads 1]
    SEQFLOW_KERNELS=baseline python benchmarks/ops.py

A row of the table is one op on one piece of work, beside other ways to do the same. Their results are compared
once; then everything in a row is timed in turns, in one process, round by round; what counts is the fastest round of
each. Printed are the milliseconds of ours and of each peer, their ratio (ours / peer; below 1 ours is faster), and
the limit that ratio should keep, with `!` where it does not. NAMEs pick the rows whose name contains one of them.
Peers that are not installed are left out.

To add rows: write a function that yields `Row`s, and put it into FAMILIES.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from comparison import Call, Row, main, on_threads, optional
from seqflow import kernels, ops

torch, awkward, signal = optional("torch"), optional("awkward"), optional("scipy.signal")


def scaling(name: str, call: Call, limit: float) -> Row:
    """Two threads beside one."""
    return Row(
        f"{name}, 2 threads", on_threads(2, call), {"1 thread": on_threads(1, call)}, {"1 thread": limit},
        why="one thread takes all that the memory gives, or the other core had other work",
    )  # fmt: skip


def lengths_about(total: int, mean: int) -> Any:
    """Lengths from 1 to twice the mean: no empty ones, which not every peer takes."""
    return np.random.default_rng(0).integers(1, 2 * mean, total // mean)


def floats(*shape: int) -> Any:
    return np.random.default_rng(1).standard_normal(shape, dtype=np.float32)


def sums() -> Iterator[Row]:
    lengths = lengths_about(4_000_000, 20)
    data, starts = floats(lengths.sum()), np.cumsum(lengths) - lengths

    def reduceat() -> Any:
        return np.add.reduceat(data, np.cumsum(lengths) - lengths)

    peers = {"np.add.reduceat": reduceat}
    if torch:
        values, sizes = torch.from_numpy(data), torch.from_numpy(lengths)
        peers["torch.segment_reduce"] = lambda: torch.segment_reduce(values, "sum", lengths=sizes)
    yield Row("lengths_sum 4M", lambda: ops.lengths_sum(data, lengths), peers, {"best": 0.8})
    yield scaling("lengths_sum 4M", lambda: ops.lengths_sum(data, lengths), 0.63)

    wide_lengths = lengths_about(400_000, 20)
    wide = floats(wide_lengths.sum(), 64)
    peers, limits = {}, {}
    if torch:
        rows, row_sizes = torch.from_numpy(wide), torch.from_numpy(wide_lengths)
        everything, offsets = (
            torch.arange(len(wide)),
            torch.from_numpy(np.cumsum(wide_lengths) - wide_lengths),
        )
        bag = torch.nn.functional.embedding_bag
        peers["torch.segment_reduce"] = lambda: torch.segment_reduce(rows, "sum", lengths=row_sizes)
        peers["EmbeddingBag, offsets given"] = lambda: bag(everything, rows, offsets, mode="sum")
        limits = {"torch.segment_reduce": 0.4, "EmbeddingBag, offsets given": 1.0}
    yield Row("lengths_sum 400k×64", lambda: ops.lengths_sum(wide, wide_lengths), peers, limits)
    yield scaling("lengths_sum 400k×64", lambda: ops.lengths_sum(wide, wide_lengths), 0.63)

    few_lengths = np.full(32, 20)
    few = floats(640, 64)
    peers = {"np.add.reduceat": lambda: np.add.reduceat(few, np.cumsum(few_lengths) - few_lengths)}
    if torch:
        pair = torch.from_numpy(few), torch.from_numpy(few_lengths)
        peers["torch.segment_reduce"] = lambda: torch.segment_reduce(pair[0], "sum", lengths=pair[1])
    yield Row(
        "lengths_sum 32×20×64", lambda: ops.lengths_sum(few, few_lengths), peers,
        floors={"its kernel": lambda: kernels.segment_reduce("sum", few, few_lengths)},
    )  # fmt: skip

    def variance_by_reduceat() -> Any:
        means = np.add.reduceat(data, starts) / lengths
        return np.add.reduceat((data - np.repeat(means, lengths)) ** 2, starts) / lengths

    yield Row(
        "lengths_var 4M", lambda: ops.lengths_var(data, lengths), {"np.add.reduceat": variance_by_reduceat},
        {"np.add.reduceat": 1.0},
    )  # fmt: skip
    yield Row(
        "lengths_prod 4M", lambda: ops.lengths_prod(data, lengths),
        {"np.multiply.reduceat": lambda: np.multiply.reduceat(data, starts)}, {"np.multiply.reduceat": 1.0},
    )  # fmt: skip


def sums_by_id() -> Iterator[Row]:
    ids = np.random.default_rng(2).integers(0, 200_000, 4_000_000)
    data = floats(len(ids))

    def bincount() -> Any:
        return np.bincount(ids, data, 200_000).astype(np.float32)

    peers: dict[str, Call] = {"np.bincount": bincount}
    if torch:
        values, places = torch.from_numpy(data), torch.from_numpy(ids)
        peers["torch.index_add"] = lambda: torch.zeros(200_000).index_add(0, places, values)
    limits = {"np.bincount": 1.0, "torch.index_add": 0.8}
    yield Row(
        "unsorted_segment_sum 4M",
        lambda: ops.unsorted_segment_sum(data, ids, num_segments=200_000),
        peers,
        limits,
        why="both wait for the sums, one at random for each element; ours are float64",
    )

    wide_ids = np.random.default_rng(2).integers(0, 20_000, 400_000)
    wide = floats(len(wide_ids), 64)

    def add_at() -> Any:
        sums = np.zeros((20_000, 64), np.float32)
        np.add.at(sums, wide_ids, wide)
        return sums

    peers = {"np.add.at": add_at}
    if torch:
        rows, row_places = torch.from_numpy(wide), torch.from_numpy(wide_ids)
        peers["torch.index_add"] = lambda: torch.zeros(20_000, 64).index_add(0, row_places, rows)
    yield Row(
        "unsorted_segment_sum 400k×64",
        lambda: ops.unsorted_segment_sum(wide, wide_ids),
        peers,
        {"np.add.at": 1.0},
    )


def softmaxes() -> Iterator[Row]:
    lengths = lengths_about(4_000_000, 20)
    data = floats(lengths.sum())

    def softmax_by_reduceat() -> Any:
        starts = np.cumsum(lengths) - lengths
        exponentials = np.exp(data - np.repeat(np.maximum.reduceat(data, starts), lengths))
        return exponentials / np.repeat(np.add.reduceat(exponentials, starts), lengths)

    def logsumexp_by_reduceat() -> Any:
        starts = np.cumsum(lengths) - lengths
        largest = np.maximum.reduceat(data, starts)
        return largest + np.log(np.add.reduceat(np.exp(data - np.repeat(largest, lengths)), starts))

    def log_softmax_by_reduceat() -> Any:
        starts = np.cumsum(lengths) - lengths
        shifted = data - np.repeat(np.maximum.reduceat(data, starts), lengths)
        return shifted - np.repeat(np.log(np.add.reduceat(np.exp(shifted), starts)), lengths)

    by_reduceat = {"reduceat": softmax_by_reduceat}
    yield Row("softmax_within 4M", lambda: ops.softmax_within(data, lengths), by_reduceat, {"reduceat": 0.9})
    yield scaling("softmax_within 4M", lambda: ops.softmax_within(data, lengths), 0.63)
    yield Row(
        "log_softmax_within 4M",
        lambda: ops.log_softmax_within(data, lengths),
        {"reduceat": log_softmax_by_reduceat},
        {"reduceat": 0.9},
    )
    yield Row(
        "lengths_logsumexp 4M", lambda: ops.lengths_logsumexp(data, lengths), {"reduceat": logsumexp_by_reduceat},
        {"reduceat": 0.9},
    )  # fmt: skip

    def cumsum_over_all() -> Any:
        sums = np.cumsum(data, dtype=np.float64)
        starts = np.cumsum(lengths) - lengths
        return (sums - np.repeat(sums[starts] - data[starts], lengths)).astype(np.float32)

    yield Row(
        "cumsum_within 4M", lambda: ops.cumsum_within(data, lengths), {"cumsum less its start": cumsum_over_all},
        {"cumsum less its start": 1.0},
    )  # fmt: skip


def orders() -> Iterator[Row]:
    lengths = lengths_about(4_000_000, 20)
    data = floats(lengths.sum())
    ends = np.cumsum(lengths).tolist()
    views = list(zip([0, *ends[:-1]], ends, strict=True))

    def loop_of_sorts() -> Any:
        out = data.copy()
        for start, end in views:
            out[start:end].sort()
        return out

    def loop_of_argsorts() -> Any:
        out = np.empty(len(data), np.int64)
        for start, end in views:
            out[start:end] = data[start:end].argsort(kind="stable")
        return out

    yield Row(
        "sort_within 4M", lambda: kernels.sort_within(data, lengths), {"loop of sorts": loop_of_sorts},
        {"loop of sorts": 0.3},
    )  # fmt: skip
    yield scaling("sort_within 4M", lambda: kernels.sort_within(data, lengths), 0.63)
    yield Row(
        "argsort_within 4M", lambda: kernels.argsort_within(data, lengths), {"loop of argsorts": loop_of_argsorts},
        {"loop of argsorts": 0.3},
    )  # fmt: skip

    peers = {}
    if torch:

        def pad_and_topk() -> Any:
            padded = kernels.pad(data, lengths, int(lengths.max()), -np.inf)[0]
            return torch.topk(torch.from_numpy(padded), 5)

        peers["pad, torch.topk"] = pad_and_topk

    def agree_but_for_padding(ours: Any, theirs: Any) -> None:
        values = theirs.values.numpy()
        np.testing.assert_array_equal(ours.values[np.isfinite(values)], values[np.isfinite(values)])

    yield Row(
        "lengths_topk(5) 4M", lambda: ops.lengths_topk(data, lengths, k=5), peers, {"pad, torch.topk": 0.4},
        agree=agree_but_for_padding,
    )  # fmt: skip
    peers = {}
    if awkward:
        jagged = awkward.unflatten(data, lengths)
        peers["awkward, wrapped already"] = lambda: awkward.argmax(jagged, axis=1)
    yield Row(
        "lengths_argmax 4M",
        lambda: ops.lengths_argmax(data, lengths),
        peers,
        {"awkward, wrapped already": 1.2},
        why="its lists are made before it is timed; both read each element once",
    )

    long_lengths = lengths_about(4_000_000, 20_000)
    long_data = floats(long_lengths.sum())
    long_ends = np.cumsum(long_lengths).tolist()

    def loop_of_long_sorts() -> Any:
        out = long_data.copy()
        for start, end in zip([0, *long_ends[:-1]], long_ends, strict=True):
            out[start:end].sort()
        return out

    yield Row(
        "sort_within 200×20k", lambda: kernels.sort_within(long_data, long_lengths),
        {"loop of sorts": loop_of_long_sorts}, {"loop of sorts": 1.1},
        why="NumPy sorts in vectors, too; NaN and the sign of 0 are looked for on top",
    )  # fmt: skip


def loops() -> Iterator[Row]:
    """Ops whose only peer is a call for each sequence."""
    shares = [0.25, 0.5, 0.75]
    for mean in (20, 200, 2000):
        lengths = lengths_about(1_000_000, mean)
        data, ends = floats(lengths.sum()), np.cumsum(lengths).tolist()
        views = list(zip([0, *ends[:-1]], ends, strict=True))
        if signal:
            ones = np.ones(len(data), np.float32)
            yield Row(
                f"discounted_sum_within 1M, mean {mean}",
                lambda d=data, n=lengths, o=ones: ops.discounted_sum_within(d, o, n, gamma=0.99),
                {"loop of scipy lfilter": lambda d=data, v=views: filtered(d, v)}, {"loop of scipy lfilter": 0.1},
                why="a long sequence hides the cost of a call, and each step waits for the one before it",
            )  # fmt: skip
        yield Row(
            f"lengths_quantile 1M, mean {mean}",
            lambda d=data, n=lengths: ops.lengths_quantile(d, n, q=shares),
            {"loop of np.quantile": lambda d=data, v=views: [np.quantile(d[i:j], shares) for i, j in v]},
            {"loop of np.quantile": 0.1}, agree=agree_but_for_rounding, rounds=5,
            why="a long sequence hides the cost of a call: its sort takes longer than a selection",
        )  # fmt: skip


def agree_but_for_rounding(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


def filtered(data: Any, views: Any) -> Any:
    """Discounted sums by a filter of each sequence, from its end."""
    out = np.empty_like(data)
    one, by = np.ones(1, np.float32), np.array([1, -0.99], np.float32)
    for start, end in views:
        out[start:end] = signal.lfilter(one, by, data[start:end][::-1])[::-1]
    return out


def sequences(count: int, most: int) -> Any:
    """Log-normal lengths, mean about 200."""
    drawn = np.random.default_rng(0).lognormal(np.log(200) - 0.32, 0.8, count)
    return np.clip(drawn, 1, most).astype(np.int64)


def padding() -> Iterator[Row]:
    width = 512
    lengths = sequences(32_768, width)
    data = np.arange(lengths.sum())
    padded, marks = np.empty((len(lengths), width), np.int64), np.empty((len(lengths), width), bool)

    def mask() -> Any:
        return np.arange(width) < lengths[:, None]

    def fill_and_assign() -> Any:
        padded.fill(0)
        padded[mask()] = data
        return padded

    def fresh_and_assign() -> Any:
        fresh = np.zeros_like(padded)
        fresh[mask()] = data
        return fresh

    yield Row(
        "pad 32768×512 int64, out=", lambda: ops.pad(data, lengths, max_length=width, out=(padded, marks)),
        {"fill, assign by mask": fill_and_assign}, {"fill, assign by mask": 0.4},
    )  # fmt: skip
    yield Row(
        "pad 32768×512 int64, fresh", lambda: ops.pad(data, lengths, max_length=width),
        {"zeros, assign by mask": fresh_and_assign}, {"zeros, assign by mask": 0.4},
    )  # fmt: skip
    fill_and_assign()
    kept, flat = mask(), np.empty_like(data)
    by_mask = {"padded[mask], mask given": lambda: padded[kept]}
    yield Row(
        "unpad 32768×512 int64, fresh", lambda: ops.unpad(padded, lengths), by_mask, {"padded[mask], mask given": 0.6}
    )  # fmt: skip
    yield Row(
        "unpad 32768×512 int64, out=", lambda: ops.unpad(padded, lengths, out=flat), by_mask,
        {"padded[mask], mask given": 0.3},
    )  # fmt: skip
    yield Row(
        "lengths_to_mask 32768×512", lambda: ops.lengths_to_mask(lengths, max_length=width),
        {"arange < lengths": mask}, {"arange < lengths": 1.0},
    )  # fmt: skip


def time_steps() -> Iterator[Row]:
    for name, count, row in (("4100×512 int64", 4100, ()), ("256×512×64 float32", 256, (64,))):
        lengths = sequences(count, 512)
        data = np.arange(lengths.sum()) if row == () else floats(lengths.sum(), *row)
        packed = np.empty((512, count, *row), data.dtype)
        yield from _by_time(name, data, lengths, packed)

    def by_index() -> Any:
        order = np.argsort(-lengths, kind="stable")
        steps = np.arange(lengths.max())[:, None]
        alive = steps < lengths[order]
        starts = (np.cumsum(lengths) - lengths)[order]
        return data[(starts + steps)[alive]], alive.sum(axis=1), order

    lengths = sequences(4100, 512)
    data = np.arange(lengths.sum())
    yield Row(
        "pack_sequence 4100",
        lambda: ops.pack_sequence(data, lengths),
        {"index by mask": by_index},
        {"index by mask": 1.0},
    )


def _by_time(name: str, data: Any, lengths: Any, packed: Any) -> Iterator[Row]:
    by_sequence = packed.swapaxes(0, 1)

    def mask() -> Any:
        return np.arange(len(packed)) < lengths[:, None]

    def fill_and_assign() -> Any:
        packed.fill(0)
        by_sequence[mask()] = data
        return packed

    fill_and_assign()

    yield Row(
        f"pack_by_time {name}", lambda: ops.pack_by_time(data, lengths, max_length=len(packed), out=packed),
        {"fill, assign by mask": fill_and_assign}, {"fill, assign by mask": 1.0},
    )  # fmt: skip
    yield Row(
        f"unpack_by_time {name}", lambda: ops.unpack_by_time(packed, lengths),
        {"packed[mask]": lambda: by_sequence[mask()]}, {"packed[mask]": 1.0},
    )  # fmt: skip


def descriptions() -> Iterator[Row]:
    for name, lengths in (("32768×200", sequences(32_768, 2048)), ("400k×10", lengths_about(4_000_000, 10))):
        yield from _describe(name, lengths, ops.lengths_to_segment_ids(lengths))


def _describe(name: str, lengths: Any, ids: Any) -> Iterator[Row]:
    yield Row(
        f"lengths_to_segment_ids {name}", lambda: ops.lengths_to_segment_ids(lengths),
        {"np.repeat": lambda: np.repeat(np.arange(len(lengths)), lengths)}, {"np.repeat": 0.6},
    )  # fmt: skip
    yield Row(
        f"lengths_to_positions {name}", lambda: ops.lengths_to_positions(lengths),
        {"arange - np.repeat": lambda: np.arange(len(ids)) - np.repeat(np.cumsum(lengths) - lengths, lengths)},
        {"arange - np.repeat": 1.0},
    )  # fmt: skip
    yield Row(
        f"segment_ids_to_lengths {name}", lambda: ops.segment_ids_to_lengths(ids),
        {"np.bincount": lambda: np.bincount(ids)}, {"np.bincount": 1.0},
    )  # fmt: skip


FAMILIES: list[Callable[[], Iterator[Row]]] = [
    sums, sums_by_id, softmaxes, orders, loops, padding, time_steps, descriptions,
]  # fmt: skip


if __name__ == "__main__":
    main(FAMILIES)
