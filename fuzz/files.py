"""Damage files of every kind that is read, and Arrow arrays whose buffers lie, and read them."""

from __future__ import annotations

import bz2
import gzip
import random
from collections import Counter
from collections.abc import Callable
from functools import cache, partial
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seqflow as sf
from fuzz.hunting import hunt
from seqflow.errors import MissingSourceError
from seqflow.providers.block_bounds import block_bounds
from seqflow.record import convert, to_arrow
from seqflow.tensor import from_message, to_message


def run(seed: int, seconds: float) -> Counter[str]:
    """Damage one file after another; the counts, which are printed, too."""
    _parquet_files(), _arrow_files()  # made once, not by each child
    return hunt("files", case, seed, seconds)


def case(rng: random.Random, folder: Path) -> None:
    """One case: a damaged file, or an array with lying buffers."""
    rng.choice(_KINDS)(rng, folder)


def damaged(rng: random.Random, content: bytes) -> bytes:
    """The content with one to four faults; half of them near its end, where footers are."""
    changed = bytearray(content)
    for _ in range(rng.choice((1, 1, 2, 4))):
        size = len(changed)
        if not size:
            break
        at = rng.randrange(max(0, size - 2048), size) if rng.random() < 0.5 else rng.randrange(size)
        match rng.randrange(8):
            case 0 | 1 | 2:
                changed[at] ^= 1 << rng.randrange(8)
            case 3:
                changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            case 4:
                number = rng.choice((-1, 0, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), rng.getrandbits(31)))
                at = at // 4 * 4
                width = 8 if not -(2**31) <= number < 2**31 else rng.choice((4, 8))
                changed[at : at + width] = number.to_bytes(width, "little", signed=True)[: size - at]
            case 5:
                del changed[at : at + rng.choice((1, 4, 64, size))]
            case 6:
                changed[at:at] = rng.randbytes(rng.choice((1, 4, 64)))
            case 7:
                start = rng.randrange(size)
                changed[at : at + 32] = changed[start : start + 32]
    return bytes(changed)


@cache
def tables() -> list[pa.Table]:
    """Small tables with all kinds of columns."""
    rows = 40
    numbers = {
        "i": pa.array(range(rows), pa.int32()),
        "f": pa.array([None if k % 7 == 0 else k / 2 for k in range(rows)]),
        "b": pa.array([k % 3 == 0 for k in range(rows)]),
        "t": pa.array(range(rows), pa.timestamp("us")),
        "d": pa.array(range(rows), pa.date32()),
    }
    lists = {
        "tokens": pa.array([list(range(k % 5)) for k in range(rows)], pa.list_(pa.int32())),
        "deep": pa.array([[[j] * j for j in range(k % 3)] if k % 5 else None for k in range(rows)]),
        "large": pa.array([[k] * (k % 4) for k in range(rows)], pa.large_list(pa.int64())),
        "fixed": pa.array([[k, k] for k in range(rows)], pa.list_(pa.int16(), 2)),
    }
    texts = {
        "text": pa.array(["añb" * (k % 3) if k % 6 else None for k in range(rows)]),
        "bytes": pa.array([b"xyz" * (k % 4) for k in range(rows)]),
        "texts": pa.array([["p", "qq"][: k % 3] for k in range(rows)]),
        "code": pa.array([f"w{k % 5}" for k in range(rows)]).dictionary_encode(),
    }
    nested = {
        "struct": pa.array([{"x": k, "y": [k] * (k % 3)} if k % 4 else None for k in range(rows)]),
        "structs": pa.array([[{"p": k, "q": "s"}] * (k % 3) for k in range(rows)]),
        "map": pa.array([[(f"k{j}", [j] * j) for j in range(k % 3)] for k in range(rows)], pa.map_(pa.string(), pa.list_(pa.int32()))),  # noqa: E501
    }  # fmt: skip
    return [pa.table(columns) for columns in (numbers, lists, texts, nested)]


@cache
def views() -> pa.Table:
    """Columns of the view types, which Parquet does not have."""
    rows = 30
    return pa.table(
        {
            "sv": pa.array(["short", "longer than twelve bytes", None][k % 3] for k in range(rows)).cast(pa.string_view()),  # noqa: E501
            "bv": pa.array([b"longer than twelve bytes" * (k % 2) for k in range(rows)], pa.binary_view()),
            "lv": pa.array([[k] * (k % 3) for k in range(rows)], pa.list_view(pa.int32())),
            "llv": pa.array([[k] * (k % 3) for k in range(rows)], pa.large_list_view(pa.int8())),
        }
    )  # fmt: skip


def _use(provider: sf.Provider, rng: random.Random) -> None:
    """Read everything there is, as a loader does, and write it as Arrow data again."""
    for block in provider.blocks():
        record, _ = convert(provider.read(block), valid=rng.random() < 0.5)
        to_arrow(record)
    list(block_bounds(provider) or ())


def _open_and_use(rng: random.Random, path: Path, content: bytes, **options: Any) -> None:
    path.write_bytes(content)
    provider = sf.open(path, **options)
    if provider.columns and rng.random() < 0.3:
        provider = sf.open(path, columns=[rng.choice(provider.columns)], **options)
    _use(provider, rng)


@cache
def _parquet_files() -> list[bytes]:
    options: list[dict[str, Any]] = [
        {},
        {"compression": "none", "use_dictionary": False},
        {"compression": "zstd", "data_page_version": "2.0"},
        {"compression": "none", "write_page_checksum": True},
    ]
    return [
        _bytes_of(partial(pq.write_table, table, row_group_size=16, **chosen))
        for table in tables()
        for chosen in options
    ]


@cache
def _arrow_files() -> list[bytes]:
    contents = []
    for table in (*tables(), views()):
        for opener in (pa.ipc.new_file, pa.ipc.new_stream):
            for codec in (None, "lz4"):
                options = pa.ipc.IpcWriteOptions(compression=codec)

                def write(
                    sink: Any, table: pa.Table = table, opener: Any = opener, options: Any = options
                ) -> None:
                    with opener(sink, table.schema, options=options) as writer:
                        writer.write_table(table, max_chunksize=16)

                contents.append(_bytes_of(write))
    return contents


def _bytes_of(write: Callable[[Any], None]) -> bytes:
    sink = BytesIO()
    write(sink)
    return sink.getvalue()


def _parquet(rng: random.Random, folder: Path) -> None:
    _open_and_use(rng, folder / "x.parquet", damaged(rng, rng.choice(_parquet_files())))


def _arrow(rng: random.Random, folder: Path) -> None:
    _open_and_use(rng, folder / "x.arrow", damaged(rng, rng.choice(_arrow_files())))


def _text(rng: random.Random, folder: Path) -> None:
    encoding = rng.choice(
        (None, "utf-8", "utf-16", "utf-7", "ascii", "cp1252", "shift_jis", "idna", "unicode_escape")
    )
    content = damaged(rng, "häuser\n日本語 x\r\n".encode("utf-16" if encoding == "utf-16" else "utf-8") * 3)
    errors = rng.choice(("strict", "replace", "ignore"))
    _open_and_use(
        rng,
        folder / "x.txt",
        content,
        format=sf.Text(encoding=encoding, errors=errors),
    )


_LINES: dict[str, bytes] = {
    "jsonl": '{"id": 7, "ids": [1, 2], "text": "h\u00e4\\n", "deep": {"x": [[1.5e3], null]}}\n{"id": null}\n'.encode()
    * 3,
    "csv": 'id,ids,text\n7,1 2,"a ""b"", c"\n-3,,h\u00e4\n'.encode() + b"1,2,3\n" * 3,
}
_FORMATS = {"jsonl": sf.JsonLines, "csv": sf.Csv}
_SCHEMA = {"id": "int64", "ids": "list<int32>", "text": "string"}
_COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda content: bytes(pa.compress(content, codec="zstd", asbytes=True)),
}


def _lines(rng: random.Random, folder: Path) -> None:
    """Lines of any kind, plain or compressed, damaged before or behind it; some nested deep, or long."""
    kind = rng.choice(tuple(_LINES))
    content = _LINES[kind]
    if rng.random() < 0.1:
        at, letter = rng.randrange(len(content)), rng.choice((b"[", b'{"a":', b"9", b'"', b"\x00", b"\t"))
        content = content[:at] + letter * rng.choice((30, 70, 40_000)) + content[at:]
    suffix = rng.choice(("", "", *_COMPRESSED))
    if suffix and rng.random() < 0.5:
        content = damaged(rng, _COMPRESSED[suffix](content))
    else:
        content = damaged(rng, content)
        content = _COMPRESSED[suffix](content) if suffix else content
    options: dict[str, Any] = {}
    if rng.random() < 0.7:
        options = {"schema": _SCHEMA, "extra_fields": rng.choice(("error", "ignore"))}
        options |= {"list_delimiter": " "} if kind == "csv" else {}
    batch_bytes = 4096 if len(content) > 10_000 else rng.choice((7, 50, 4096))
    format = _FORMATS[kind](batch_bytes=batch_bytes, **options)
    _open_and_use(rng, folder / f"x{suffix}", content, format=format)


def _constant(rng: random.Random, folder: Path) -> None:
    from seqflow.job import Job, run

    pq.write_table(pa.table({"x": pa.array([[1, 2], [3]])}), folder / "in.parquet")
    content = _bytes_of(lambda sink: np.save(sink, np.arange(6, dtype=np.float32).reshape(3, 2)))
    (folder / "table.npy").write_bytes(damaged(rng, content))
    run(
        Job.from_dict(
            {
                "source": {"paths": ["in.parquet"]},
                "constants": {"table": "table.npy"},
                "net": {"net": "y = gather(table, x.lengths)\nreturn y"},
                "output": {"kind": "none"},
            },
            folder,
        )
    )


def _message(rng: random.Random, folder: Path) -> None:
    """A tensor as a message."""
    array = np.arange(rng.choice((0, 6, 24, 3000)), dtype=rng.choice(("i4", "f8", "u1", "i8", "f2")))
    if rng.random() < 0.5:
        array = array.reshape(-1, 3, 2)
    array = from_message(damaged(rng, to_message(array.T).to_pybytes()))
    array.copy(), array.sum(dtype=np.float64)


def _buffers(rng: random.Random, folder: Path) -> None:
    """An array with damaged buffers, as another library may hand it over."""
    table = rng.choice((*tables(), views()))
    name = rng.choice(table.column_names)
    lying = _lying(rng, table[name].chunk(0))
    match rng.randrange(4):
        case 0:
            sf.from_arrow(lying, valid=rng.random() < 0.5)
        case 1:
            sf.from_arrow(_Foreign(lying), valid=rng.random() < 0.5)
        case 2:
            sf.from_arrow(pa.record_batch([lying], [name]), valid=rng.random() < 0.5)
        case 3:
            batch = pa.record_batch([lying], [name])
            reader = pa.RecordBatchReader.from_batches(batch.schema, [batch])
            _use(sf.open(rng.choice((reader, pa.table([lying], [name])))), rng)


class _Foreign:
    """An array of another library."""

    def __init__(self, array: pa.Array) -> None:
        self._array = array

    def __arrow_c_array__(self, requested_schema: Any = None) -> Any:
        return self._array.__arrow_c_array__(requested_schema)


def _lying(rng: random.Random, array: pa.Array) -> pa.Array:
    """The array with one buffer damaged, or short, or missing, or of another length, here or in a child."""
    buffers = list(array.buffers())
    at = rng.randrange(len(buffers))
    length = len(array)
    if buffers[at] is not None and rng.random() < 0.9:
        content = damaged(rng, buffers[at].to_pybytes())
        buffers[at] = pa.py_buffer(content + bytes(-len(content) % 8))
    elif rng.random() < 0.5:
        length = rng.choice((length + 1, length * 100, 0))
    elif array.type not in (
        pa.string_view(),
        pa.binary_view(),
    ):  # pyarrow itself can't build views without a buffer
        buffers[at] = None
    try:
        return _rebuilt(array.type, length, array, iter(buffers))
    except (pa.ArrowException, ValueError, TypeError):
        raise MissingSourceError("not an array that pyarrow can build") from None


def _rebuilt(kind: pa.DataType, length: int, array: pa.Array, buffers: Any) -> pa.Array:
    if pa.types.is_dictionary(kind):
        indices = _rebuilt(kind.index_type, length, array.indices, buffers)
        return pa.DictionaryArray.from_arrays(indices, array.dictionary, safe=False)
    if pa.types.is_struct(kind):
        own = [next(buffers)]
        children = [_rebuilt(f.type, length, array.field(k), buffers) for k, f in enumerate(kind)]
    elif kind.num_fields:
        count = {"fixed_size_list": 1, "list_view": 3, "large_list_view": 3}.get(
            str(kind).partition("<")[0], 2
        )
        own = [next(buffers) for _ in range(count)]
        inner = array.values
        children = [_rebuilt(inner.type, len(inner), inner, buffers)]
    else:
        views = pa.types.is_string_view(kind) or pa.types.is_binary_view(kind)
        own, children = list(buffers) if views else [next(buffers) for _ in range(kind.num_buffers)], []
    return pa.Array.from_buffers(kind, length, own, children=children)


_KINDS = (*[_parquet] * 8, *[_arrow] * 8, *[_buffers] * 8, _text, _text, *[_lines] * 6, _constant, _message)
