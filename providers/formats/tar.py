"""Tar shards, such as those of WebDataset: members of one name are a row, their suffixes are columns."""

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from seqflow.arguments import ByteSize
from seqflow.errors import ProviderError
from seqflow.providers.file_set import FileSet
from seqflow.providers.formats.options import Format, byte_count, file_format
from seqflow.providers.formats.row_files import open_copies, provider_of_row_files
from seqflow.providers.provider import Provider
from seqflow.record.buffers import INT32_MAX
from seqflow.record.record import Tensor
from seqflow.record.selection import Table

KEY = "__key__"
_BLOCK = 512


class Member(NamedTuple):
    """A file of an archive: its name and its place."""

    name: str
    start: int
    size: int


@dataclass(frozen=True, slots=True)
class TarFile:
    """Members of an archive, as rows."""

    keys: pa.Array
    places: dict[str, tuple[Tensor, Tensor]] = field(repr=False)
    """Start and size of each row's member, by column; the size is -1 if the row has none."""
    limits: tuple[int, ...]
    schema: pa.Schema

    @property
    def sizes(self) -> list[tuple[int, int]]:
        totals = np.zeros(len(self.keys) + 1, np.int64)
        for _, sizes in self.places.values():
            totals[1:] += np.maximum(sizes, 0)
        ends = np.cumsum(totals)
        return [(stop - start, int(ends[stop] - ends[start])) for start, stop in self._ranges()]

    def _ranges(self) -> list[tuple[int, int]]:
        return list(zip(self.limits[:-1], self.limits[1:], strict=True))

    def read(self, path: str, index: int, columns: Sequence[str]) -> Table:
        start, stop = self._ranges()[index]
        found: dict[str, pa.Array] = {}
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for name in columns:
                if name == KEY:
                    found[name] = self.keys[start:stop]
                elif name not in self.places:
                    found[name] = pa.nulls(stop - start, pa.binary())
                else:
                    starts, sizes = (of[start:stop] for of in self.places[name])
                    found[name] = _members(content, starts, sizes)
        return pa.table(found) if found else pa.table({KEY: self.keys[start:stop]})


def _members(content: mmap.mmap, starts: Tensor, sizes: Tensor) -> pa.Array:
    """Return the bytes of members, null where the size is -1."""
    offsets = np.append(0, np.cumsum(np.maximum(sizes, 0)))
    if offsets[-1] > INT32_MAX:
        raise ProviderError(
            "its members in one block have more than 2 GiB\npass format=sf.Tar(batch_bytes=…)"
        )
    data = np.empty(int(offsets[-1]), np.uint8)
    with memoryview(content) as memory:
        for at, start, size in zip(offsets.tolist(), starts.tolist(), sizes.tolist(), strict=False):
            if size > 0:
                data[at : at + size] = memory[start : start + size]
    is_null = sizes < 0
    mask = pa.array(~is_null).buffers()[1] if is_null.any() else None
    buffers = [mask, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), len(sizes), buffers)


@file_format("tar")
class Tar(Format):
    """Options of tar archives."""

    batch_bytes: ByteSize = "8 MiB"
    """Bytes of the members of a block, which are read, and prepared, together."""

    def open(self, files: FileSet) -> Provider:
        """Return a provider of tar archives: `a/1.jpg` and `a/1.cls` are a row of columns `__key__`, `jpg` and `cls`.

        A row is consecutive members whose names are equal up to the first dot. Columns are those of all archives,
        binary, and null where a row has no such member. Only headers are read here.
        """
        batch_bytes = byte_count(self.batch_bytes)
        opened = open_copies(files, lambda _, copy: _open_file(copy, batch_bytes), "tar file")
        suffixes = dict.fromkeys(suffix for file in opened.values() for suffix in file.places)
        schema = pa.schema([(KEY, pa.string()), *((suffix, pa.binary()) for suffix in suffixes)])
        return provider_of_row_files(
            "tar", files, {path: replace(one, schema=schema) for path, one in opened.items()}
        )


def _open_file(path: str, batch_bytes: int) -> TarFile:
    keys, last = dict[str, None](), None
    found: dict[str, dict[int, Member]] = {}
    with open(path, "rb") as file:
        if not file.seek(0, 2):
            raise ProviderError("it is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
            for member in _walk(content):
                named = _key_of(member.name)
                if named is None:
                    continue
                key, suffix = named
                if key != last:
                    if key in keys:
                        raise ProviderError(
                            f"its member {member.name!r} is apart from the others of row {key!r}\n"
                            "write the members of a row one after another, as tar --sort=name does"
                        )
                    keys[key] = None
                    last = key
                rows = found.setdefault(suffix, {})
                if rows.setdefault(len(keys) - 1, member) is not member:
                    raise ProviderError(f"it has {member.name!r} twice in one row")
    places = {suffix: _places(rows, len(keys)) for suffix, rows in found.items()}
    limits, size = [0], 0
    sizes = sum((np.maximum(of, 0) for _, of in places.values()), np.zeros(len(keys), np.int64))
    for row, more in enumerate(sizes.tolist()):
        if size and size + more > batch_bytes:
            limits.append(row)
            size = 0
        size += more
    if keys:
        limits.append(len(keys))
    return TarFile(pa.array(list(keys), pa.string()), places, tuple(limits), pa.schema([]))


def _places(rows: dict[int, Member], count: int) -> tuple[Tensor, Tensor]:
    starts, sizes = np.zeros(count, np.int64), np.full(count, -1, np.int64)
    at = list(rows)
    starts[at] = [member.start for member in rows.values()]
    sizes[at] = [member.size for member in rows.values()]
    return starts, sizes


def _key_of(name: str) -> tuple[str, str] | None:
    """Split a name at the first dot after the last folder, into key and suffix; None for hidden files."""
    folder, slash, base = name.rpartition("/")
    key, dot, suffix = base.partition(".")
    if not key or (key.startswith("__") and base.endswith("__")):
        return None
    if not dot or not suffix:
        raise ProviderError(
            f"its member {name!r} has no suffix, which would be its column\n"
            "members of a row are called alike: 0001.jpg, 0001.cls"
        )
    return f"{folder}{slash}{key}", suffix.lower()


def _walk(content: mmap.mmap) -> Iterator[Member]:
    """Yield the regular files of an archive, in order; raise ProviderError if it is damaged or cut off."""
    at, size, long_name, pax = 0, len(content), "", dict[str, str]()
    while at + _BLOCK <= size:
        header = content[at : at + _BLOCK]
        if not any(header):
            return _check_rest(content, at)
        _check_header(header, at)
        kind, length = header[156:157], _number(header[124:136], at)
        # names are read into memory, so a damaged length must not be believed
        if kind in (b"x", b"L") and length > 1 << 20:
            raise ProviderError(f"the name of its member at byte {at} is {length:,} bytes long")
        start = at + _BLOCK
        if kind in _REGULAR_KINDS and "size" in pax:
            length = int(pax["size"])
        if length < 0 or start + length > size:
            raise ProviderError(f"its member at byte {at} ends after the end of the file, which is truncated")
        at = start + -(-length // _BLOCK) * _BLOCK  # contents are padded to whole blocks
        if kind == b"L":
            long_name = _text(content[start : start + length])
        elif kind == b"x":
            pax = _pax(content[start : start + length])
        elif kind in _REGULAR_KINDS:
            if any(name.startswith("GNU.sparse") for name in pax):
                raise ProviderError("it has sparse files, which are not read")
            yield Member(pax.get("path") or long_name or _name(header), start, length)
            long_name, pax = "", {}
        elif kind in _REFUSED_KINDS:
            raise ProviderError(f"it has {_REFUSED_KINDS[kind]}, which are not read")
        elif kind not in (b"g", b"K"):
            long_name, pax = "", {}  # a long name of a folder or link belongs to that alone
    raise ProviderError("it ends without the zeros at the end of an archive: it is truncated")


_REGULAR_KINDS = (b"0", b"\0", b"7")
_REFUSED_KINDS = {
    b"1": "hard links (tar --hard-dereference packs files)", b"M": "parts of files", b"S": "sparse files",
}  # fmt: skip


def _check_rest(content: mmap.mmap, at: int) -> None:
    """Raise ProviderError for anything but zeros after the end of an archive."""
    # a piece at a time: tapes and preallocated files may end in gigabytes of zeros
    while at < len(content):
        if content[at : at + (1 << 20)].strip(b"\0"):
            raise ProviderError(
                "it has more after its end, such as a second archive that was appended to it\n"
                "join them with tar --concatenate, or keep them apart"
            )
        at += 1 << 20


def _check_header(header: bytes, at: int) -> None:
    expected = _number(header[148:156], at)
    # the checksum is computed as if its own eight bytes were blanks
    if expected != sum(header) - sum(header[148:156]) + 8 * 32:
        raise ProviderError(f"it has no header of a member at byte {at}, or a damaged one")


def _number(text: bytes, at: int) -> int:
    """Return a number in octal digits, or in base 256 if its first bit is set."""
    if text[0] & 128:
        return int.from_bytes(bytes([text[0] & 127]) + text[1:], "big")
    digits = text.strip(b" \0")
    if digits.strip(b"01234567"):
        raise ProviderError(f"the header at byte {at} has {digits!r} in place of a number")
    return int(digits or b"0", 8)


def _name(header: bytes) -> str:
    name = _text(header[:100])
    prefix = _text(header[345:500]) if header[257:263] == b"ustar\0" else ""
    return f"{prefix}/{name}" if prefix else name


def _text(content: bytes) -> str:
    return content.split(b"\0", 1)[0].decode()


def _pax(content: bytes) -> dict[str, str]:
    """Return the records `length key=value` of an extended header that are needed here."""
    found, at = {}, 0
    while at < len(content) and content[at]:
        space = content.find(b" ", at, at + 20)
        length = int(content[at:space]) if space > at else 0
        if length < 5 or at + length > len(content):
            raise ProviderError("the extended header of a member is damaged")
        key, _, value = content[space + 1 : at + length - 1].partition(b"=")
        if key in (b"path", b"size") or key.startswith(b"GNU.sparse"):
            found[key.decode()] = value.decode()
        at += length
    return found
