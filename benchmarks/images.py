"""Text with images beside datasets: packed rows with their patches, copies of patches, positions, patches of pixels.

    python benchmarks/images.py [NAME …] [--rounds 5]

1,000 documents, 316,128 tokens, 1,189 images, 353,404 patches of 588 bytes; rows of 2,048 tokens, two a batch, as
tensors of torch. The documents have their placeholders and positions already. Times are CPU time, one thread each: a
busy machine changes the ratios little.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import seqflow as sf
from comparison import Row, main, torch
from seqflow import kernels, ops

DOCUMENTS, IMAGES, CAPACITY, ROWS, BYTES = 1000, 1189, 2048, 2, 588
PLACEHOLDER = 90


class Data:
    """The documents as flat arrays."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.images = np.bincount(rng.integers(0, DOCUMENTS, IMAGES), minlength=DOCUMENTS)
        sides = 2 * rng.integers(4, 14, (IMAGES, 2))
        self.grids = np.insert(sides, 0, 1, axis=1)
        self.patches = sides.prod(1)
        texts = [
            [*rng.integers(1, 80, rng.integers(20, 440)), *[PLACEHOLDER, 5] * count] for count in self.images
        ]
        lengths = np.array([len(text) for text in texts])
        merged = self.patches // 4
        self.tokens, self.lengths, _ = ops.expand_placeholders(
            np.concatenate(texts), merged, self.images, lengths, placeholder=PLACEHOLDER
        )
        spans = self.tokens, merged, self.images, self.lengths
        self.starts, self.extents = ops.image_spans(*spans, placeholder=PLACEHOLDER)
        self.mrope = self.positions()
        self.bytes = rng.integers(0, 256, (int(self.patches.sum()), BYTES), np.uint8)

    def positions(self) -> Any:
        return ops.mrope_positions(self.starts, self.grids, self.images, self.lengths, after="side")

    def table(self) -> pa.Table:
        """The documents with their images as list columns."""
        patches = lists(pa.FixedSizeListArray.from_arrays(pa.array(self.bytes.ravel()), BYTES), self.patches)
        grids = pa.FixedSizeListArray.from_arrays(pa.array(self.grids.ravel()), 3)
        fields = {
            "start": pa.array(self.starts),
            "extent": pa.array(self.extents),
            "grid": grids,
            "patches": patches,
        }
        images = pa.StructArray.from_arrays([*fields.values()], [*fields])
        places = pa.FixedSizeListArray.from_arrays(pa.array(self.mrope.ravel()), 3)
        return pa.table(
            {
                "tokens": lists(pa.array(self.tokens), self.lengths),
                "mrope": lists(places, self.lengths),
                "images": lists(images, self.images),
            }
        )


def lists(values: Any, lengths: Any) -> Any:
    return pa.LargeListArray.from_arrays(kernels.lengths_to_offsets(lengths), values)


def loader(table: pa.Table, **options: Any) -> sf.Loader:
    plan = sf.Packed(CAPACITY, ["tokens", "mrope"], rows=ROWS, along={"images": sf.Along("start", "extent")})
    memory = {"window": "1 GiB", "memory": "4 GiB"}
    return sf.Loader(table, batch=plan, shuffle=True, threads=0, rank=0, world_size=1, **memory, **options)


def total_of(batches: Iterator[Any]) -> tuple[int, int, int]:
    """Sums of the tokens, of the positions, and of the first bytes of all patches."""
    found = np.zeros(3, np.int64)
    for tokens, mrope, patches in batches:
        found += int(tokens.sum()), int(mrope.sum()), int(patches[:, 0].sum())
    return int(found[0]), int(found[1]), int(found[2])


def ours(batches: Any) -> Iterator[Any]:
    for batch in batches:
        yield batch["tokens"], batch["mrope"], batch["images.values.patches.values"]


def dataset_of(data: Data) -> Any:
    """The same as a dataset with 2-D arrays in its columns."""
    import datasets

    features = datasets.Features(
        {
            "tokens": datasets.List(datasets.Value("int64")),
            "mrope": datasets.Array2D((None, 3), "int64"),
            "grids": datasets.Array2D((None, 3), "int64"),
            "patches": datasets.Array2D((None, BYTES), "uint8"),
        }
    )
    ends, of_images = np.cumsum(data.lengths)[:-1], np.cumsum(data.images)[:-1]
    patches = np.split(data.bytes, kernels.lengths_to_offsets(data.patches)[of_images])
    columns = {
        "tokens": np.split(data.tokens, ends), "mrope": np.split(data.mrope, ends),
        "grids": np.split(data.grids, of_images), "patches": patches,
    }  # fmt: skip
    return datasets.Dataset.from_dict(columns, features=features).with_format("numpy")


def by_datasets(dataset: Any, lengths: Any) -> Iterator[Any]:
    """Batches of rows that a sampler packs by best fit, joined by a collator."""
    for rows in sampled(lengths):
        yield collated([[dataset[i] for i in row] for row in rows])


def sampled(lengths: Any) -> Iterator[list[list[int]]]:
    """Documents of packed rows, two rows at a time, in a random order: best fit, the longest first."""
    rows: list[list[int]] = []
    room: list[int] = []
    for document in np.argsort(-lengths, kind="stable").tolist():
        size = int(lengths[document])
        fitting = [(left, row) for row, left in enumerate(room) if left >= size]
        if fitting:
            row = min(fitting)[1]
            rows[row].append(document)
            room[row] -= size
        else:
            rows.append([document])
            room.append(CAPACITY - size)
    order = np.random.default_rng(0).permutation(len(rows)).tolist()
    for start in range(0, len(rows), ROWS):
        yield [rows[row] for row in order[start : start + ROWS]]


def collated(rows: list[list[dict[str, Any]]]) -> Any:
    tokens = np.zeros((len(rows), CAPACITY), np.int64)
    mrope = np.zeros((len(rows), CAPACITY, 3), np.int64)
    segments, positions = np.zeros((2, len(rows), CAPACITY), np.int32)
    for row, documents in enumerate(rows):
        at = 0
        for number, one in enumerate(documents):
            size = len(one["tokens"])
            tokens[row, at : at + size], mrope[row, at : at + size] = one["tokens"], one["mrope"]
            segments[row, at : at + size], positions[row, at : at + size] = number + 1, np.arange(size)
            at += size
    parts = [one["patches"] for documents in rows for one in documents]
    grids = [one["grids"] for documents in rows for one in documents]
    arrays = tokens, mrope, np.concatenate(parts), np.concatenate(grids), segments, positions
    return [torch.from_numpy(array) for array in arrays][:3]


def epochs() -> Iterator[Row]:
    data = Data()
    table, limits = data.table(), {"datasets, Array2D": 0.1}
    print(f"{len(data.tokens):,} tokens, {len(data.patches):,} images, {len(data.bytes):,} patches")
    peers: dict[str, Any] = {}
    try:
        dataset = dataset_of(data)
        peers = {"datasets, Array2D": lambda: total_of(by_datasets(dataset, data.lengths))}
    except ImportError:
        pass
    yield Row(
        "first epoch, packed with images", lambda: total_of(ours(loader(table).to("torch"))), peers, limits,
        clock=time.process_time, rounds=3,
    )  # fmt: skip
    kept = loader(table, reuse=True)
    sizes = [batch["images.values.patches.values"].nbytes for batch in kept]
    flat, target = data.bytes.reshape(-1), np.empty(max(sizes), np.uint8)

    def copied() -> None:
        """Copies all patches, as many at a time as a batch has, into memory that is there."""
        start = 0
        for size in sizes:
            np.copyto(target[:size], flat[start : start + size])
            start += size

    def made() -> None:
        for _ in kept:
            pass

    yield Row(
        "next epoch of a kept window", made, {}, {"copy of the patches": 4.0}, {"copy of the patches": copied},
        clock=time.process_time,
    )  # fmt: skip


def positions_of(data: Data) -> Any:
    """Positions of one document after another, in NumPy."""
    parts, image = [], 0
    begins = kernels.lengths_to_offsets(data.lengths)
    for count, begin, end in zip(data.images.tolist(), begins[:-1], begins[1:], strict=True):
        done, reached = 0, 0
        for number in range(image, image + count):
            start, (_, high, wide) = int(data.starts[number]), (data.grids[number] // (1, 2, 2)).tolist()
            parts.append(np.repeat(np.arange(reached, reached + start - done)[:, None], 3, axis=1))
            reached += start - done
            places = np.indices((1, high, wide)).reshape(3, -1).T + reached
            parts.append(places)
            reached, done = reached + max(high, wide), start + len(places)
        left = int(end - begin) - done
        parts.append(np.repeat(np.arange(reached, reached + left)[:, None], 3, axis=1))
        image += count
    return np.concatenate(parts)


def patches_of(pixels: list[Any]) -> Any:
    """Patches of one image after another, in NumPy: blocks of 2 × 2 neighbours."""
    parts = []
    for image in pixels:
        high, wide, _ = image.shape
        blocks = image.reshape(high // 28, 2, 14, wide // 28, 2, 14, 3).transpose(0, 3, 1, 4, 6, 2, 5)
        parts.append(blocks.reshape(-1, BYTES))
    return np.concatenate(parts)


def calls() -> Iterator[Row]:
    data = Data()
    yield Row(
        f"mrope_positions, {len(data.tokens) // 1000}k tokens", data.positions,
        {"NumPy, by document": lambda: positions_of(data)}, clock=time.process_time,
    )  # fmt: skip
    rng = np.random.default_rng(0)
    sizes = data.grids[:200, 1:] * 14
    pixels = [rng.integers(0, 256, (*size, 3), np.uint8) for size in sizes.tolist()]
    flat, counts = np.concatenate([image.reshape(-1, 3) for image in pixels]), sizes.prod(1)
    number = int(data.patches[:200].sum())
    yield Row(
        f"patchify, {number // 1000}k patches", lambda: ops.patchify(flat, sizes, counts, repeat=1).values,
        {"NumPy, by image": lambda: patches_of(pixels)}, clock=time.process_time,
    )  # fmt: skip


FAMILIES = [epochs, calls]

if __name__ == "__main__":
    main(FAMILIES)
