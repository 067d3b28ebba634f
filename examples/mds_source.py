"""A source of shards of MosaicML's streaming, as its `MDSWriter` writes them without compression.

sf.Loader("shards", kind="mds_source:open_mds", batch=256, shuffle=True)
"""

import json
import os

import numpy as np
import pyarrow as pa

from seqflow.providers import Block

BINARY = {"str": pa.string(), "bytes": pa.binary()}
NUMBERS = {"int": "int64"} | {
    kind: kind
    for kind in (
        "int8",
        "int16",
        "int32",
        "int64",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "float16",
        "float32",
        "float64",
    )
}


class Shards:
    def __init__(self, folder):
        with open(os.path.join(folder, "index.json"), encoding="utf-8") as file:
            self.shards = json.load(file)["shards"]
        encodings = dict(zip(self.shards[0]["column_names"], self.shards[0]["column_encodings"], strict=True))
        for name, encoding in encodings.items():
            if encoding not in BINARY and encoding not in NUMBERS:
                raise ValueError(f"column {name!r} is encoded as {encoding}, expected text, bytes or numbers")
        self.encodings = encodings
        self.paths = [os.path.join(folder, shard["raw_data"]["basename"]) for shard in self.shards]
        self.schema = pa.schema(
            [
                (name, BINARY.get(encoding) or pa.from_numpy_dtype(NUMBERS[encoding]))
                for name, encoding in encodings.items()
            ]
        )

    def blocks(self):
        for index, (path, shard) in enumerate(zip(self.paths, self.shards, strict=True)):
            yield Block(path, index, shard["samples"], shard["raw_data"]["bytes"])

    def read(self, block, columns):
        data = np.fromfile(block.origin, np.uint8)
        count = int(data[:4].view(np.uint32)[0])
        starts = data[4 : 4 * count + 4].view(np.uint32).astype(np.int64)
        is_sized = [encoding in BINARY for encoding in self.encodings.values()]
        heads = data[starts[:, None] + np.arange(4 * sum(is_sized))].view(np.uint32).astype(np.int64)
        at, sized, found = starts + 4 * sum(is_sized), 0, {}
        for name, encoding in self.encodings.items():
            if encoding in BINARY:
                sizes, sized = heads[:, sized], sized + 1
            else:
                sizes = np.dtype(NUMBERS[encoding]).itemsize
            if name in columns and encoding in BINARY:
                found[name] = texts(data, at, sizes, BINARY[encoding])
            elif name in columns:
                found[name] = data[at[:, None] + np.arange(sizes)].view(NUMBERS[encoding])[:, 0]
            at = at + sizes
        return found


def texts(data, starts, sizes, kind):
    offsets = np.append(0, np.cumsum(sizes))
    values = data[np.repeat(starts - offsets[:-1], sizes) + np.arange(offsets[-1])]
    buffers = [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(values)]
    return pa.Array.from_buffers(kind, len(starts), buffers)


def open_mds(folder):
    return Shards(folder)
