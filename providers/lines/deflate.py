"""Places in gzip files where decompressing may begin: starts of members, and of the blocks in them.

A block begins at any bit and refers to the 32 KiB before it. The library zlib can stop at the end of a block and
begin at a bit, but Python's module does not offer it. Changed data have the same effect: decompressing ends after a
block that is marked as the last one, and empty blocks of the right number of bits move a block to its bit.
"""

import zlib
from collections.abc import Generator, Iterator
from typing import Any

from seqflow.providers.lines.stored import Place, Stored

_WINDOW = 32 << 10
_PIECE, _MOST = 2 << 10, 16 << 10
"""Stored bytes that are decompressed at once; they give at most 1,032 times as many."""
_MAGIC, _HEADER, _TRAILER = b"\x1f\x8b\x08", 10, 8
_EXTRA, _NAME, _COMMENT, _CHECKSUM = 4, 8, 16, 2
"""Flags of what follows the header of a member."""


def _empty_blocks(bit: int) -> tuple[int, int]:
    """Return blocks without content that end at this bit of a byte, and their number of bits."""
    # 95 bits with dynamic codes (RFC 1951): the lengths of 257 codes of letters and 2 of distances are 1, 138 and 117
    # zeros, 1, 1, 1. So all codes are complete, as strict decoders want them.
    blocks, size = (0x46AFF810000000000081E104, 95) if bit % 2 else (0, 0)
    while size % 8 != bit:
        blocks, size = blocks | 0b010 << size, size + 10  # with fixed codes: 10 bits
    return blocks, size


_EMPTY = [_empty_blocks(bit) for bit in range(8)]


def scan_gzip(file: Stored) -> Iterator[Place | bytes]:
    """Yield all places of a gzip file, each before the decompressed bytes from there on.

    Raise zlib.error or EOFError for a damaged file. Each block is decompressed from its place, so the checksums of
    the members also confirm the places.
    """
    has_more = True
    while has_more:
        yield Place(file.offset)
        _skip_header(file)
        member, is_last = _Member(file), False
        while not is_last:
            yield Place(file.offset, member.bit, member.window)
            is_last = yield from member.block()
        if file.take(_TRAILER) != b"".join(
            n.to_bytes(4, "little") for n in (member.crc, member.size % 2**32)
        ):
            raise zlib.error("the checksum of a member is wrong")
        has_more = _skip_zeros(file)


def inflate(file: Stored, place: Place) -> Iterator[bytes]:
    """Yield the decompressed bytes from the start of a block to the end of its member; skip to the next member."""
    decoder = zlib.decompressobj(-zlib.MAX_WBITS, zdict=place.window)
    decoder.decompress(_moved(_some(file, 1), place.bit))
    while not decoder.eof:
        yield decoder.decompress(_some(file, _MOST))
    file.put_back(len(decoder.unused_data))
    file.take(_TRAILER)
    _skip_zeros(file)


class _Member:
    """A member of a gzip file, decompressed block by block."""

    def __init__(self, file: Stored) -> None:
        self._file, self.bit, self.window = file, 0, b""
        self.crc = self.size = self._usual = 0  # `_usual`: stored bytes of the last block

    def block(self) -> Generator[bytes, None, bool]:
        """Yield the decompressed bytes of a block, and go to the next one; return whether this is the last."""
        start = self._file.offset
        first = _some(self._file, 1)
        decoder = zlib.decompressobj(-zlib.MAX_WBITS, zdict=self.window)
        decoder.decompress(_moved(first, self.bit, 1))
        while not decoder.eof:
            # small pieces only near the end, where one is decompressed again: each costs a copy of the window
            left = (start + self._usual - self._file.offset) * 7 // 8
            before, piece = decoder.copy(), _some(self._file, max(_PIECE, min(left, _MOST)))
            content = decoder.decompress(piece)
            self.crc, self.size = zlib.crc32(content, self.crc), self.size + len(content)
            self.window = (self.window + content)[-_WINDOW:]
            yield content
        unused = len(decoder.unused_data)
        self._file.put_back(unused)
        self._usual = self._file.offset - start
        if first[0] >> self.bit & 1:
            return True
        bits = _used_bits(before, piece[: len(piece) - unused], content)
        self.bit = bits % 8
        self._file.put_back(bits < 8)
        return False


def _used_bits(before: Any, piece: bytes, content: bytes) -> int:
    """Return how many bits of the last byte of `piece` belong to the block that ends there.

    `before` is the decoder before this piece, which gives `content`. The bits after the end of the block may have any
    value; another value of its last bit makes another code, and so other content.
    """
    content = content[len(before.decompress(piece[:-1])) :]
    changed = ((bits, piece[-1] ^ (0xFF << (bits - 1)) & 0xFF) for bits in range(8, 0, -1))
    return next(bits for bits, byte in changed if not _ends(before.copy(), byte, content))


def _ends(decoder: Any, byte: int, content: bytes) -> bool:
    """Return whether the data end with this byte, and it gives this content."""
    try:
        return decoder.decompress(bytes([byte])) == content and bool(decoder.eof)
    except zlib.error:
        return False


def _moved(first: bytes, bit: int, last: int = 0) -> bytes:
    """Return what to decompress in place of the first byte of a block that begins at `bit`.

    A block is marked as the last one if `last` is 1.
    """
    empty, size = _EMPTY[bit]
    return (empty | (first[0] >> bit | last) << size).to_bytes(size // 8 + 1, "little")


def _skip_header(file: Stored) -> None:
    header = file.take(_HEADER)
    if len(header) < _HEADER or not header.startswith(_MAGIC):
        raise zlib.error("a member does not begin with the header of gzip")
    if header[3] & _EXTRA:
        file.take(int.from_bytes(file.take(2), "little"))
    for _ in range(bool(header[3] & _NAME) + bool(header[3] & _COMMENT)):
        while file.take(1) not in (b"\0", b""):
            pass
    if header[3] & _CHECKSUM:
        file.take(2)


def _skip_zeros(file: Stored) -> bool:
    """Skip the padding after a member; return whether another one follows."""
    while piece := file.take(_PIECE):
        if rest := piece.lstrip(b"\0"):
            file.put_back(len(rest))
            return True
    return False


def _some(file: Stored, size: int) -> bytes:
    if not (piece := file.take(size)):
        raise EOFError("the file ends inside of a block")
    return piece
