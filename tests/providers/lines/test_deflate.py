"""Places in gzip files: decompressing from each of them gives the bytes that follow it."""

import gzip
import io
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seqflow.providers.lines.deflate import inflate, scan_gzip
from seqflow.providers.lines.stored import Place, Stored

FLUSHES = [zlib.Z_NO_FLUSH, zlib.Z_PARTIAL_FLUSH, zlib.Z_SYNC_FLUSH, zlib.Z_FULL_FLUSH, zlib.Z_BLOCK]
STRATEGIES = [zlib.Z_DEFAULT_STRATEGY, zlib.Z_FILTERED, zlib.Z_HUFFMAN_ONLY, zlib.Z_RLE, zlib.Z_FIXED]


@st.composite
def texts(draw):
    """Bytes that are partly repeated, partly random."""
    pieces = draw(
        st.lists(st.binary(max_size=300) | st.sampled_from([b"a" * 5000, b"abc\n" * 100]), max_size=6)
    )
    return b"".join(piece * draw(st.integers(1, 40)) for piece in pieces)


@st.composite
def members(draw):
    """A member of gzip, and its decompressed bytes."""
    level, memory = draw(st.integers(0, 9)), draw(st.integers(1, 9))
    made = zlib.compressobj(level, zlib.DEFLATED, 31, memory, draw(st.sampled_from(STRATEGIES)))
    pieces = draw(st.lists(texts(), max_size=4))
    stored = b"".join(made.compress(one) + made.flush(draw(st.sampled_from(FLUSHES))) for one in pieces)
    return stored + made.flush(), b"".join(pieces)


def scanned(stored):
    """Return the decompressed bytes, and the places with their positions."""
    content, places = b"", []
    for found in scan_gzip(Stored(io.BytesIO(stored))):
        if isinstance(found, Place):
            places.append((len(content), found))
        else:
            content += found
    return content, places


@pytest.mark.slow
@settings(max_examples=150)
@given(st.lists(members(), min_size=1, max_size=4), st.integers(0, 9000))
def test_each_place_gives_the_bytes_that_follow_it(parts, padding):
    stored, expected = b"".join(one for one, _ in parts), b"".join(content for _, content in parts)
    content, places = scanned(stored + bytes(padding))
    assert content == expected
    assert [place.offset for _, place in places if place.bit < 0] == [
        sum(len(one) for one, _ in parts[:at]) for at in range(len(parts))
    ]
    for position, place in places:
        if place.bit < 0:
            assert gzip.decompress((stored + bytes(padding))[place.offset :]) == expected[position:]
            continue
        file = Stored(io.BytesIO(stored[place.offset :]), place.offset)
        found = b"".join(inflate(file, place))
        assert found == expected[position : position + len(found)]
        ends = [0, *(sum(len(one) for one, _ in parts[: at + 1]) for at in range(len(parts)))]
        assert file.offset in ends
        assert len(found) == sum(len(content) for _, content in parts[: ends.index(file.offset)]) - position


def test_blocks_begin_at_all_bits():
    made = zlib.compressobj(6, zlib.DEFLATED, 31, 1)
    stored = made.compress(b"".join(b"%d,%d\n" % (at, at * at) for at in range(20_000))) + made.flush()
    assert {place.bit for _, place in scanned(stored)[1]} == {-1, *range(8)}


HEADER = b"\x1f\x8b\x08"
PLAIN = gzip.compress(b"")[10:]


@pytest.mark.parametrize(
    "header",
    [
        HEADER + b"\0" + bytes(6),
        HEADER + b"\x04" + bytes(6) + b"\x03\0abc",
        HEADER + b"\x08" + bytes(6) + b"name\0",
        HEADER + b"\x10" + bytes(6) + b"comment\0",
        HEADER + b"\x02" + bytes(6) + b"\1\2",
        HEADER + b"\x1f" + bytes(6) + b"\0\0name\0comment\0\1\2",
    ],
)
def test_headers_may_have_all_parts(header):
    content, places = scanned(header + PLAIN)
    assert (content, places[1][1].offset) == (b"", len(header))


@given(st.data())
def test_a_file_that_ends_early_is_an_error(data):
    stored, _ = data.draw(members())
    with pytest.raises((zlib.error, EOFError)):
        scanned(stored[: data.draw(st.integers(0, len(stored) - 1))])


@pytest.mark.parametrize("after", [b"x", b"\0\0x", HEADER, gzip.compress(b"abc", mtime=0)[:-1]])
def test_other_bytes_after_a_member_are_an_error(after):
    with pytest.raises((zlib.error, EOFError)):
        scanned(gzip.compress(b"abc", mtime=0) + after)


@pytest.mark.parametrize("at", [-1, -5])
def test_a_wrong_checksum_or_size_is_an_error(at):
    stored = bytearray(gzip.compress(b"abc", mtime=0))
    stored[at] ^= 1
    with pytest.raises(zlib.error, match="checksum"):
        scanned(stored)
