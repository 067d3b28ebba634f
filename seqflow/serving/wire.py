"""Batches and errors as they travel: the raw memory of tensors in Arrow record batches, facts about them as JSON.

A message is a record batch with a row for each batch, and a large_binary column for each tensor. What follows from
lengths is not sent. A client wraps the memory of a message without a copy, and alone: its tensors are writable.
"""

import base64
import ctypes
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl

from seqflow import errors
from seqflow.errors import OpError, SeqflowError
from seqflow.kernels.arrays import Array
from seqflow.loader.run.derived import Derived, lengths_of_mask, lengths_of_segments
from seqflow.loader.run.making import LoadedBatch
from seqflow.record import Record

VERSION = 1
"""Version of this form, and of tickets."""
_ALIGNED = 64
"""Batches of one message begin at multiples of this, as all dtypes need at most."""
_IDS = np.dtype(np.int32)


@dataclass(frozen=True, slots=True)
class EncodedBatch:
    """A batch as it is sent."""

    head: bytes
    """Facts about it, as JSON."""
    tensors: Sequence[Array]
    """uint8: the memory of each tensor that is sent."""
    schema: pa.Schema | None
    dictionaries: Mapping[str, pa.Array]

    @property
    def nbytes(self) -> int:
        return len(self.head) + sum(one.nbytes for one in self.tensors)

    def goes_with(self, other: "EncodedBatch") -> bool:
        """Return whether both can be in one stream: they have as many tensors, and the same types."""
        return (
            len(self.tensors) == len(other.tensors)
            and (self.schema is other.schema or self.schema == other.schema)
            and self.dictionaries.keys() == other.dictionaries.keys()
            and all(values.equals(other.dictionaries[name]) for name, values in self.dictionaries.items())
        )


def encode(batch: Record, derived: Mapping[str, Derived], facts: Mapping[str, Any]) -> EncodedBatch:
    """Return a batch as it is sent, without the tensors that follow from lengths, and with further `facts`."""
    entries: list[list[Any]] = []
    sent: dict[str, Array] = {}
    hidden: dict[str, Array] = {}
    for name, tensor in batch.tensors.items():
        rule = _rule(batch, name, derived, hidden)
        entries.append([name, tensor.dtype.str, list(tensor.shape), batch.parents[name], rule])
        if rule is None:
            sent[name] = tensor
    entries += [[name, one.dtype.str, list(one.shape), None, None] for name, one in hidden.items()]
    head = {
        "number": batch.number, "rows": batch.num_rows, "tensors": entries, "hidden": len(hidden),
        "shares": dict(batch.shares), **facts,
    }  # fmt: skip
    if isinstance(batch, LoadedBatch):
        head |= {"sources": list(batch.sources), "step": batch.step, "totals": dict(batch.totals)}
    tensors = [_memory(name, tensor) for name, tensor in (sent | hidden).items()]
    return EncodedBatch(json.dumps(head).encode(), tensors, batch.schema, batch.dictionaries)


def _rule(
    batch: Record, name: str, derived: Mapping[str, Derived], hidden: dict[str, Array]
) -> list[Any] | None:
    """Return how a tensor is made of lengths: its kind, and their names; None if it is sent itself.

    Lengths that a net has not returned are found in the tensor, and sent with the batch: `hidden`.
    """
    how, tensor = derived.get(name), batch.tensors[name]
    is_mask = how is not None and how.kind.startswith("mask")
    if how is None or tensor.ndim != 2 or tensor.dtype != (bool if is_mask else _IDS):
        return None
    lengths = how.lengths
    if not lengths or any(one not in batch.tensors for one in lengths):
        origin = name if is_mask else "segment_ids"
        if origin not in batch.tensors or origin not in derived:
            return None
        found = lengths_of_mask(tensor) if is_mask else lengths_of_segments(batch.tensors[origin])
        lengths = tuple(f"{origin} {number}" for number in range(len(found)))
        hidden |= dict(zip(lengths, found, strict=True))
    return [how.kind, how.multiple_of, *lengths]


def _memory(name: str, tensor: Array) -> Array:
    if tensor.dtype.kind in "OV":
        raise OpError(
            f"serve: {name} has dtype {tensor.dtype}, which cannot be sent, expected numbers, bools or times\n"
            "  cast it in net"
        )
    return np.ascontiguousarray(tensor).reshape(-1).view(np.uint8)


def message(batches: Sequence[EncodedBatch]) -> tuple[pa.RecordBatch, pa.Buffer]:
    """Return the message of some batches that go together: a record batch, and their facts. One is not copied."""
    columns = [_column(parts) for parts in zip(*(one.tensors for one in batches), strict=True)]
    heads = b"[" + b",".join(one.head for one in batches) + b"]"
    return pa.RecordBatch.from_arrays(columns, [str(number) for number in range(len(columns))]), pa.py_buffer(
        heads
    )


def _column(parts: Sequence[Array]) -> pa.Array:
    sizes = [one.nbytes for one in parts]
    if len(parts) == 1:
        offsets, values = np.array([0, sizes[0]], np.int64), parts[0]
    else:
        padded = [-(-size // _ALIGNED) * _ALIGNED for size in sizes]
        offsets = np.concatenate([[0], np.cumsum(padded)]).astype(np.int64)
        values = np.zeros(int(offsets[-1]), np.uint8)
        for one, start in zip(parts, offsets.tolist(), strict=False):
            values[start : start + len(one)] = one
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(values)]
    return pa.Array.from_buffers(pa.large_binary(), len(parts), buffers)


def stream_schema(batch: EncodedBatch | None) -> pa.Schema:
    """Return the schema of a stream: columns, and in its metadata what all its batches share."""
    if batch is None:
        return pa.schema([])
    shared: dict[str, Any] = {"dictionaries": {}}
    if batch.schema is not None:
        shared["schema"] = _text(batch.schema.serialize())
    for name, values in batch.dictionaries.items():
        sink = pa.BufferOutputStream()
        table = pa.record_batch([values], ["values"])
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_batch(table)
        shared["dictionaries"][name] = _text(sink.getvalue())
    fields = [pa.field(str(number), pa.large_binary()) for number in range(len(batch.tensors))]
    return pa.schema(fields, {"shared": json.dumps(shared)})


def _text(buffer: pa.Buffer) -> str:
    return base64.b64encode(buffer.to_pybytes()).decode()


class Decoder:
    """Makes batches of the messages of one stream."""

    def __init__(self, schema: pa.Schema) -> None:
        shared = json.loads((schema.metadata or {}).get(b"shared", b"{}"))
        self._schema = None
        if "schema" in shared:
            self._schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(shared["schema"])))
        self._dictionaries = {
            name: pa.ipc.open_stream(base64.b64decode(text)).read_next_batch().column(0)
            for name, text in shared.get("dictionaries", {}).items()
        }

    def batches(self, chunk: Any) -> list[tuple[dict[str, Any], Record]]:
        """Return the facts and the batches of a message."""
        heads = json.loads(chunk.app_metadata.to_pybytes())
        columns = [column.buffers()[1:] for column in chunk.data.columns]
        offsets = [np.frombuffer(one, np.int64) for one, _ in columns]
        found: list[tuple[dict[str, Any], Record]] = []
        for row, head in enumerate(heads):
            parts = [
                values.slice(int(of[row])) if values is not None else pa.py_buffer(b"")
                for (_, values), of in zip(columns, offsets, strict=True)
            ]
            found.append((head, self._batch(head, parts)))
        return found

    def _batch(self, head: Mapping[str, Any], parts: Sequence[pa.Buffer]) -> Record:
        memory, entries = iter(parts), head["tensors"]
        sent = {
            name: _tensor(next(memory), np.dtype(dtype), shape)
            for name, dtype, shape, _, rule in entries
            if rule is None
        }
        tensors: dict[str, Any] = {}
        parents = {}
        for name, _, shape, parent, rule in entries[: len(entries) - head["hidden"]]:
            tensors[name] = sent.get(name)
            if rule is not None:
                kind, multiple_of, *names = rule
                of = (sent[one] for one in names)
                tensors[name] = Derived(kind, tuple(names), multiple_of).make(tuple(shape), *of)
            parents[name] = parent
        fields = tensors, parents, head["rows"], self._schema, self._dictionaries, head["number"]
        shares = head["shares"]
        if "sources" not in head:
            return Record(*fields, shares=shares)
        sources = tuple(head["sources"])
        return LoadedBatch(*fields, sources, head["step"] or 0, head["totals"], shares=shares)


def _tensor(buffer: pa.Buffer, dtype: np.dtype[Any], shape: Sequence[int]) -> Array:
    """Return the tensor that lies at the beginning of a buffer, without a copy if it is aligned."""
    count = math.prod(shape)
    if not count:
        return np.zeros(shape, dtype)
    if buffer.address % dtype.alignment:
        return np.frombuffer(buffer, dtype, count).reshape(shape).copy()
    memory = (ctypes.c_char * (count * dtype.itemsize)).from_address(buffer.address)
    memory._buffer = buffer  # type: ignore[attr-defined]  # keeps the message, whose memory no other holds
    found: Array = np.frombuffer(memory, dtype, count)  # type: ignore[call-overload]
    return found.reshape(shape)


def bearer(token: str) -> bytes:
    """Return the header of requests with a token; raise OpError when a header cannot hold it."""
    if not token or not token.isascii() or not token.isprintable():
        raise OpError("serve: the token is empty, or has characters that are not printable ASCII")
    return b"Bearer " + token.encode()


# Errors

ELSEWHERE, FOREIGN = "elsewhere", "foreign"
"""Kinds of errors that another server may not have: it stops, or has another job or other data."""


def refusal(text: str, kind: str = ELSEWHERE) -> fl.FlightServerError:
    """Return an error of the service itself."""
    return wire_error(OpError(f"seqflow serve: {text}"), kind)


def wire_error(error: BaseException, kind: str | None = None) -> fl.FlightServerError:
    """Return an error as Flight sends it: without a traceback, and with class, text and notes apart."""
    if isinstance(error, fl.FlightError):
        return error
    text = str(error) if isinstance(error, SeqflowError) else f"{type(error).__name__}: {error}"
    found = {
        "kind": kind or type(error).__name__,
        "text": text,
        "notes": list(getattr(error, "__notes__", ())),
    }
    # gRPC sends errors in headers of at most 8 KiB
    found = {**found, "text": text[:3000], "notes": [note[:1000] for note in found["notes"][:3]]}
    return fl.FlightServerError(text[:200], extra_info=json.dumps(found).encode())


def kind_of(error: BaseException) -> str | None:
    """Return the kind of an error that a server of ours sent; None for an error of the network or of gRPC."""
    try:
        return str(json.loads(error.extra_info)["kind"])  # type: ignore[attr-defined]
    except (AttributeError, TypeError, ValueError, KeyError):
        return None


def local_error(error: BaseException) -> BaseException:
    """Return an error that a server sent as it is raised locally: its class if it is one of ours, text and notes."""
    if kind_of(error) is None:
        return error
    sent = json.loads(error.extra_info)  # type: ignore[attr-defined]
    kind: Any = getattr(errors, sent["kind"], None)
    is_ours = isinstance(kind, type) and issubclass(kind, SeqflowError)
    found: BaseException = kind(sent["text"]) if is_ours else OpError(sent["text"])
    for note in sent["notes"]:
        found.add_note(note)
    return found
