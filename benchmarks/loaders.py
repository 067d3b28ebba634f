"""Loaders beside others: a shuffled epoch of lists of int32 in eight Parquet files, padded in batches of 256.

    python benchmarks/loaders.py [NAME …] [--rounds 3]

Lengths are log-normal (mean 128, at most 2048), row groups have 16,384 rows. Each batch is padded to its longest row,
as int64 with a mask. Each epoch begins with opening the files. Loaders take the
threads they take by themselves. What the machine has to do at least is to decode the columns (`pq.read_table`, on all
cores) and to write all batches once (`memcpy` into memory that is used again).
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seqflow as sf
from comparison import Call, Row, main
from seqflow import kernels

ROWS, FILES, GROUP, BATCH = 200_000, 8, 16_384, 256


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


def epochs() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        paths = write_files(Path(folder), ROWS)
        window = ROWS * 140 * 4 // 8
        exact = {"shuffle": True, "window": "4 GiB", "memory": "8 GiB"}
        written = sum(ids.nbytes + mask.nbytes for ids, mask in pairs(loader(paths, **exact)))
        peers = {name: peer for name, peer in PEERS.items() if is_there(peer, paths)}
        floors = {
            "decode, write at copy bandwidth": lambda: decode_and_write(paths, written),
            "decode alone": lambda: pq.read_table(paths, columns=["tokens"]),
        }
        calls: dict[str, Call] = {
            name: lambda peer=peer: total_of(peer(paths)) for name, peer in peers.items()
        }
        yield Row(
            "shuffled epoch, padded", lambda: total_of(pairs(loader(paths, **exact))), calls, floors=floors,
            rounds=3, agree=same_total,
        )  # fmt: skip
        yield Row(
            "shuffled in windows of 1/8", lambda: total_of(pairs(loader(paths, shuffle=True, window=window))),
            {}, floors=floors, rounds=3,
        )  # fmt: skip
        yield Row("in order, padded", lambda: total_of(pairs(loader(paths))), {}, floors=floors, rounds=3)
        kept = loader(paths, **exact)
        total_of(pairs(kept))
        yield Row("next epoch of a kept window", lambda: total_of(pairs(kept)), {}, floors=floors, rounds=3)


def loader(paths: list[str], **settings: Any) -> sf.Loader:
    kernels.set_num_threads(os.cpu_count() or 1)
    return sf.Loader(
        paths,
        columns=["tokens"],
        batch=BATCH,
        pad={"tokens": sf.Pad(0, dtype="int64")},
        reuse=True,
        **settings,
    )


def pairs(loader: sf.Loader) -> Iterator[Any]:
    for batch in loader:
        yield batch["tokens"], batch["tokens.mask"]


def total_of(batches: Iterator[Any]) -> int:
    """The sum of the first ids of all rows: the same in any order, and little work."""
    return sum(int(ids[:, 0].sum()) for ids, _ in batches)


def same_total(ours: int, theirs: int) -> None:
    assert ours == theirs


def decode_and_write(paths: list[str], nbytes: int) -> None:
    """Decode all columns, and write so many bytes, as many at a time as a batch has, into memory that is there."""
    pq.read_table(paths, columns=["tokens"])
    count = -(-ROWS // BATCH)
    source, target = np.ones((2, nbytes // count), np.uint8)
    for _ in range(count):
        np.copyto(target, source)


def is_there(peer: Callable[[list[str]], Iterator[Any]], paths: list[str]) -> bool:
    """Whether what a peer needs is installed."""
    try:
        next(peer(paths))
    except ImportError:
        return False
    return True


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
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False, ignore_reinit_error=True)
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
    "datasets, DataLoader": datasets_batches,
    "grain": grain_batches,
    "Ray Data": ray_batches,
}
"""Other loaders: pairs of ids and mask, from a shuffled data set."""

FAMILIES = [epochs]

if __name__ == "__main__":
    main(FAMILIES)
