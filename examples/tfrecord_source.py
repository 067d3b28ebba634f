"""A source of TFRecord files with features of `tf.train.Example`: `kind="tfrecord_source:open_tfrecord"`."""

import os
import struct

import pyarrow as pa

from seqflow.providers import Block

BLOCK_BYTES = 8 << 20
KINDS = {"bytes": pa.list_(pa.binary()), "float": pa.list_(pa.float32()), "int64": pa.list_(pa.int64())}


class Records:
    def __init__(self, path, features):
        self.paths, self.features = [path], features
        self.schema = pa.schema([(name, KINDS[kind]) for name, kind in features.items()])
        self.limits, self.counts = cut(path)

    def blocks(self):
        for index, count in enumerate(self.counts):
            yield Block(self.paths[0], index, count, self.limits[index + 1] - self.limits[index])

    def read(self, block, columns):
        start, stop = self.limits[block.index : block.index + 2]
        with open(block.origin, "rb") as file:
            file.seek(start)
            data = file.read(stop - start)
        rows, at = [], 0
        while at < len(data):
            (size,) = struct.unpack_from("<Q", data, at)
            rows.append(example(data[at + 12 : at + 12 + size]))
            at += size + 16
        return {
            name: pa.array([row.get(name, []) for row in rows], self.schema.field(name).type)
            for name in columns
        }


def cut(path):
    limits, counts, at, size = [0], [0], 0, os.path.getsize(path)
    with open(path, "rb") as file:
        while at < size:
            file.seek(at)
            head = file.read(8)
            at += 16 + (struct.unpack("<Q", head)[0] if len(head) == 8 else size)
            if at > size:
                raise ValueError(f"{path} is cut: its last record ends after the end of the file")
            counts[-1] += 1
            if at - limits[-1] >= BLOCK_BYTES and at < size:
                limits.append(at)
                counts.append(0)
    return [*limits, size], counts


def fields(data):
    """The fields of a message of Protocol Buffers: their numbers and values."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            value, at = data[at : at + size], at + size
        yield key >> 3, value


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def example(data):
    """The features of a tf.train.Example, by name."""
    return {
        bytes(dict(fields(entry))[1]).decode(): feature(dict(fields(entry)).get(2, b""))
        for _, features in fields(data)
        for _, entry in fields(features)
    }


def feature(data):
    for kind, values in fields(data):
        if kind == 1:
            return [bytes(value) for _, value in fields(values)]
        found = []
        for _, packed in fields(values):
            if kind == 2:
                found += struct.unpack(f"<{len(packed) // 4}f", packed)
                continue
            at = 0
            while not isinstance(packed, int) and at < len(packed):
                value, at = varint(packed, at)
                found.append(value - (value >> 63 << 64))
            if isinstance(packed, int):
                found.append(packed - (packed >> 63 << 64))
        return found
    return []


def open_tfrecord(path, features):
    return Records(path, features)
