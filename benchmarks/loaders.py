"""Loaders beside reading alone: a million lists of int32 in eight Parquet files, padded in batches of 256.

    python benchmarks/loaders.py [--times 5] [--threads N] [--peers]

Lengths are log-normal (mean 128, at most 2048), row groups have 16,384 rows. Each batch is padded to its longest row,
as int64 with a mask, and summed by the one who takes it. All cases are measured in turn, in one process; for each the
least time counts. Printed is its rate beside that of `pq.read_table`, with or without threads, whichever is faster.
`--peers` measures other loaders too, those that are installed, each on the first seconds of an epoch after its first
batch; their rates count as percent of the same reading. Needs about 1.5 GB of memory and 300 MB on disk.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seqflow as sf

ROWS, FILES, GROUP, BATCH = 1_000_000, 8, 16_384, 256
SECONDS = 3.0
"""For which a peer is measured."""


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--threads", type=int, help="of the loader; by default its own number")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        paths = write_files(Path(folder), options.rows)
        compare(paths, options)


def compare(paths: list[str], options: argparse.Namespace) -> None:
    window = sum(pq.read_metadata(path).num_rows for path in paths) * 140 * 4 // 8
    rates: dict[str, float] = {}
    for _ in range(options.times):
        for name, measure in cases(paths, window, options.threads).items():
            for label, rate in measure(name):
                rates[label] = max(rate, rates.get(label, 0.0))
    if options.peers:
        for name, batches in PEERS.items():
            try:
                rates[name] = rate_after_first(batches(paths))
            except ImportError as error:
                print(f"{name}: not measured, {error}")
    reading = max(rates["read_table"], rates["read_table, use_threads=False"])
    for name, rate in rates.items():
        print(f"{name:32}{rate / 1e3:10.0f} k rows/s {rate / reading:8.1%}", flush=True)


def write_files(folder: Path, rows: int) -> list[str]:
    """The data, a file at a time; ids are drawn from a vocabulary of 50,000."""
    rng = np.random.default_rng(0)
    paths = []
    for number in range(FILES):
        lengths = np.clip(rng.lognormal(np.log(93), 0.8, rows // FILES).astype(np.int32), 1, 2048)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        ids = rng.integers(0, 50_000, offsets[-1], np.int32)
        paths.append(str(folder / f"part-{number}.parquet"))
        table = pa.table({"tokens": pa.ListArray.from_arrays(offsets, ids)})
        pq.write_table(table, paths[-1], row_group_size=GROUP)
    return paths


def cases(
    paths: list[str], window: int, threads: int | None
) -> dict[str, Callable[[str], Iterator[tuple[str, float]]]]:
    """What is measured, each giving rates by name."""

    def reading(use_threads: bool) -> Callable[[str], Iterator[tuple[str, float]]]:
        def measure(name: str) -> Iterator[tuple[str, float]]:
            started = time.perf_counter()
            table = pq.read_table(paths, columns=["tokens"], use_threads=use_threads)
            yield name, table.num_rows / (time.perf_counter() - started)

        return measure

    def epochs(count: int, **settings: Any) -> Callable[[str], Iterator[tuple[str, float]]]:
        def measure(name: str) -> Iterator[tuple[str, float]]:
            loader = sf.Loader(
                paths, columns=["tokens"], batch=BATCH, pad={"tokens": sf.Pad(0, dtype="int64")}, reuse=True,
                threads=threads, **settings,
            )  # fmt: skip
            for epoch in range(count):
                yield name if epoch == 0 else f"{name}, next epoch", rate_of_all(loader)

        return measure

    return {
        "read_table": reading(True),
        "read_table, use_threads=False": reading(False),
        "exact shuffle": epochs(2, shuffle=True, window="4 GiB", memory="8 GiB"),
        "shuffle in windows of 1/8": epochs(1, shuffle=True, window=window),
        "no shuffle": epochs(1),
    }


def rate_of_all(batches: Iterable[Any]) -> float:
    """Rows a second over a whole epoch, each batch summed."""
    rows = total = 0
    started = time.perf_counter()
    for batch in batches:
        total += int(batch["tokens"].sum())
        rows += len(batch["tokens"])
    assert total
    return rows / (time.perf_counter() - started)


def rate_after_first(batches: Iterator[Any]) -> float:
    """Rows a second from the second batch on, for some seconds."""
    next(batches)
    rows, started = 0, time.perf_counter()
    for ids, _ in batches:
        int(ids.sum())
        rows += len(ids)
        if time.perf_counter() - started > SECONDS:
            break
    return rows / (time.perf_counter() - started)


def flat(paths: list[str]) -> tuple[Any, Any]:
    """All ids one after another, and the offsets of the rows."""
    column = pq.read_table(paths, columns=["tokens"]).column("tokens").combine_chunks()
    return column.values.to_numpy(), column.offsets.to_numpy()


def pad_rows(rows: list[Any]) -> tuple[Any, Any]:
    """Rows as int64, padded, and the mask: in NumPy."""
    lengths = np.array([len(row) for row in rows])
    mask = np.arange(lengths.max()) < lengths[:, None]
    ids = np.zeros(mask.shape, np.int64)
    ids[mask] = np.concatenate(rows)
    return ids, mask


def torch_batches(paths: list[str]) -> Iterator[Any]:
    """Rows are views of one tensor; a shuffled map-style data set, no worker processes (they are slower here)."""
    import torch
    from torch.nn.utils.rnn import pad_sequence
    from torch.utils.data import DataLoader, Dataset

    values, offsets = flat(paths)
    ids = torch.from_numpy(values.copy())

    class Rows(Dataset[Any]):
        def __len__(self) -> int:
            return len(offsets) - 1

        def __getitem__(self, row: int) -> Any:
            return ids[offsets[row] : offsets[row + 1]]

    def collate(rows: list[Any]) -> tuple[Any, Any]:
        padded = pad_sequence(rows, batch_first=True).long()
        lengths = torch.tensor([len(row) for row in rows])
        return padded, torch.arange(padded.shape[1]) < lengths[:, None]

    torch.set_num_threads(1)
    return iter(DataLoader(Rows(), BATCH, shuffle=True, collate_fn=collate))


def datasets_batches(paths: list[str]) -> Iterator[Any]:
    """A shuffled map-style data set of Arrow files (which are written before the clock starts), as torch tensors."""
    from datasets import load_dataset
    from torch.nn.utils.rnn import pad_sequence
    from torch.utils.data import DataLoader

    folder = str(Path(paths[0]).parent / "cache")
    data = load_dataset("parquet", data_files=paths, split="train", cache_dir=folder).with_format("torch")

    def collate(rows: list[Any]) -> tuple[Any, Any]:
        import torch

        padded = pad_sequence([row["tokens"] for row in rows], batch_first=True).long()
        lengths = torch.tensor([len(row["tokens"]) for row in rows])
        return padded, torch.arange(padded.shape[1]) < lengths[:, None]

    return iter(DataLoader(data, BATCH, shuffle=True, collate_fn=collate))


def grain_batches(paths: list[str]) -> Iterator[Any]:
    """A shuffled MapDataset of rows in memory, without read threads (they are slower here)."""
    import grain

    values, offsets = flat(paths)

    class Rows:
        def __len__(self) -> int:
            return len(offsets) - 1

        def __getitem__(self, row: int) -> Any:
            return values[offsets[row] : offsets[row + 1]]

    data = grain.MapDataset.source(Rows()).shuffle(seed=0).batch(BATCH, batch_fn=pad_rows)
    return iter(data.to_iter_dataset(grain.ReadOptions(num_threads=0, prefetch_buffer_size=0)))


def ray_batches(paths: list[str]) -> Iterator[Any]:
    """Blocks shuffled in a buffer of 10,000 rows, as Arrow."""
    import ray

    os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # or it keeps a token in the home folder
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False)
    data = ray.data.read_parquet(paths, columns=["tokens"])
    for batch in data.iter_batches(
        batch_size=BATCH, batch_format="pyarrow", local_shuffle_buffer_size=10_000, local_shuffle_seed=0
    ):
        lists = batch.column("tokens").combine_chunks()
        lengths = np.diff(lists.offsets.to_numpy())
        mask = np.arange(lengths.max()) < lengths[:, None]
        ids = np.zeros(mask.shape, np.int64)
        ids[mask] = lists.flatten().to_numpy()
        yield ids, mask


PEERS: dict[str, Callable[[list[str]], Iterator[Any]]] = {
    "torch DataLoader": torch_batches,
    "Hugging Face datasets": datasets_batches,
    "grain": grain_batches,
    "Ray Data": ray_batches,
}
"""Other loaders: pairs of ids and mask, from a shuffled data set."""


if __name__ == "__main__":
    main()
