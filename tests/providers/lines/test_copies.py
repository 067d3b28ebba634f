"""Compressed files are read in any order from copies: the same blocks, without decompressing what comes before."""

import bz2
import gzip
import io
import logging
import multiprocessing
import os
import random
import struct
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest
from marks import thorough

import seqflow as sf
from seqflow.errors import ProviderError
from seqflow.files.cache import Cache
from seqflow.providers.lines.inflated_files import InflatedFile, InflatedFiles

BLOCK = 300_000


def lines(size):
    """Numbered lines of about `size` bytes, which are compressed to about half."""
    rng = random.Random(size)
    texts = [b"%x" % rng.getrandbits(400) for _ in range(5000)]
    return b"".join(b"%d,%s\n" % (at, texts[at * 7919 % 5000]) for at in range(size // 107))


LINES = lines(4_000_000)


def in_pieces(compress, size):
    return lambda content: b"".join(compress(content[at : at + size]) for at in range(0, len(content), size))


def zstd(content):
    return bytes(pa.compress(content, codec="zstd", asbytes=True))


def bgzip_member(content):
    deflate = zlib.compressobj(6, zlib.DEFLATED, -15)
    stored = deflate.compress(content) + deflate.flush()
    header = b"\x1f\x8b\x08\4" + bytes(6) + b"\6\0BC\2\0" + struct.pack("<H", len(stored) + 25)
    return header + stored + struct.pack("<II", zlib.crc32(content), len(content))


def flushed(content):
    """Gzip that is flushed after each few lines."""
    deflate = zlib.compressobj(1, zlib.DEFLATED, 31)
    pieces = (content[at : at + 2000] for at in range(0, len(content), 2000))
    return (
        b"".join(deflate.compress(one) + deflate.flush(zlib.Z_SYNC_FLUSH) for one in pieces) + deflate.flush()
    )


KINDS = {
    "gzip": ("gz", gzip.compress),
    "members of gzip": ("gz", in_pieces(gzip.compress, 700_000)),
    "bgzip": ("gz", in_pieces(bgzip_member, 65_280)),
    "padding": ("gz", lambda content: gzip.compress(content) + bytes(100_000)),
    "frames of zstd": ("zst", in_pieces(zstd, 700_000)),
    "small frames of zstd": ("zst", in_pieces(zstd, 5_000)),
    "frames that are skipped": ("zst", in_pieces(lambda one: b"\x5f\x2a\x4d\x18\2\0\0\0ab" + zstd(one), 700_000)),
    "one frame of zstd": ("zst", zstd),
    "flushed gzip": ("gz", flushed),
    "bzip2": ("bz2", lambda content: bz2.compress(content, 1)),
}  # fmt: skip
each_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def stored():
    """The compressed bytes of each kind, made once."""
    return {kind: compress(LINES) for kind, (_, compress) in KINDS.items()}


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """The folder of the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "seqflow" / "copies"


def write(path: Path, content: bytes, age: float = 10) -> Path:
    """Write a file that seems to have been changed `age` seconds ago."""
    path.write_bytes(content)
    changed = path.stat().st_mtime_ns - int(age * 1e9)
    os.utime(path, ns=(changed, changed))
    return path


def hide(path: Path, stop: int) -> None:
    """Replace the first bytes of a file, which seems to be the same then."""
    state = path.stat()
    with path.open("r+b") as file:
        file.write(bytes(stop))
    os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))


def entries(cache: Path) -> list[Path]:
    return [one for one in cache.rglob("*") if one.is_file() and one.name != ".lock"]


def copy_is_kept(path: Path) -> InflatedFiles:
    """Read a block, and one before it."""
    files = InflatedFiles()
    files.size(str(path))
    files.block(str(path), 9, BLOCK)
    files.block(str(path), 3, BLOCK)
    return files


def blocks_of(content: bytes, quoted: bool = False):
    """Return the blocks of uncompressed content: lines, position, lines before."""
    found, start, line, begin, inside = [], 0, 0, 0, False
    rows = []
    for one in io.BytesIO(content):
        inside ^= bool(one.count(b'"') % 2) and quoted
        if not inside:
            rows.append((begin, start + len(one), line))
            begin = start + len(one)
        start += len(one)
        line = line if inside else line + content.count(b"\n", rows[-1][0], begin)
    for at in range(0, len(content), BLOCK):
        chosen = [row for row in rows if at <= row[0] < at + BLOCK]
        found.append(content[chosen[0][0] : chosen[-1][1]] if chosen else b"")
    return found


@pytest.mark.slow
@each_kind
def test_blocks_in_any_order_are_those_of_the_decompressed_bytes(tmp_path, stored, kind):
    suffix = KINDS[kind][0]
    path = str(write(tmp_path / f"x.csv.{suffix}", stored[kind]))
    files, expected = InflatedFiles(), blocks_of(LINES)
    assert files.size(path) == len(LINES)
    order = list(range(len(expected))) * 2
    random.Random(1).shuffle(order)
    for at in order:
        found = files.block(path, at, BLOCK)
        assert found.content == expected[at]
        assert found.start == LINES.index(expected[at])
        assert found.lines_before == LINES.count(b"\n", 0, found.start)
    (note,) = files.notes
    assert f"x.csv.{suffix} was not read in order, so a copy in frames is kept (" in note


def test_a_copy_is_told_by_the_run_that_makes_it(tmp_path):
    path = write(tmp_path / "x.csv.gz", gzip.compress(LINES))
    assert len(copy_is_kept(path).notes) == 1
    assert copy_is_kept(path).notes == ()


@pytest.mark.parametrize("kind", ["gzip", "one frame of zstd"])
def test_no_copy_is_made_of_a_file_that_is_read_in_order(tmp_path, cache, stored, kind):
    suffix = KINDS[kind][0]
    path = str(write(tmp_path / f"x.csv.{suffix}", stored[kind]))
    files, expected = InflatedFiles(), blocks_of(LINES)
    files.size(path)
    for _ in range(2):
        assert [files.block(path, at, BLOCK).content for at in range(len(expected))] == expected
    assert files.notes == ()
    assert sum(one.stat().st_size for one in entries(cache)) < 1000


def test_threads_that_read_in_order_may_ask_for_a_later_block_first(tmp_path, cache):
    path = str(write(tmp_path / "x.csv.gz", gzip.compress(LINES)))
    files, expected = InflatedFiles(), blocks_of(LINES)
    order = [2, 0, 1, 5, 4, 3, *range(6, len(expected))]
    assert [files.block(path, at, BLOCK).content for at in order] == [expected[at] for at in order]
    assert not entries(cache)


def test_the_size_of_a_version_is_counted_once(tmp_path):
    path = write(tmp_path / "x.csv.gz", gzip.compress(LINES))
    assert InflatedFiles().size(str(path)) == len(LINES)
    hide(path, 500_000)
    assert InflatedFiles().size(str(path)) == len(LINES)


def test_a_file_of_which_blocks_are_read_here_and_there_is_copied(tmp_path, cache):
    """Also if each block is near the start, when the file was closed for others meanwhile."""
    stored = gzip.compress(LINES, 1)
    paths = [str(write(tmp_path / f"{name}.csv.gz", stored)) for name in range(6)]
    files, expected = InflatedFiles(), blocks_of(LINES)
    for at in (2, 5, 3):
        for path in paths:
            assert files.block(path, at, BLOCK).content == expected[at]
    assert len(entries(cache)) == len(files.notes) == len(paths)


@pytest.mark.slow
@each_kind
def test_a_copy_serves_later_runs_which_do_not_read_the_file(tmp_path, stored, kind):
    suffix = KINDS[kind][0]
    path = write(tmp_path / f"x.csv.{suffix}", stored[kind])
    copy_is_kept(path)
    hide(path, len(stored[kind]))
    files, expected = InflatedFiles(), blocks_of(LINES)
    for at in (len(expected) - 2, len(expected) * 2 // 3):
        assert files.block(str(path), at, BLOCK).content == expected[at]
    assert files.size(str(path)) == len(LINES)
    with pytest.raises(ProviderError, match="can't be read"):
        files.block(str(path), 0, BLOCK)


def test_newlines_in_quotes_end_no_row_of_a_copy(tmp_path):
    rng = random.Random(3)
    rows = (
        b'%d,"%s"\n' % (at, b"\n".join([b"%x" % rng.getrandbits(300)] * rng.randrange(9)))
        for at in range(12_000)
    )
    content = b"".join(rows)
    path = str(write(tmp_path / "x.csv.gz", gzip.compress(content)))
    files, expected = InflatedFiles(), blocks_of(content, quoted=True)
    files.size(path)
    for at in reversed(range(len(expected))):
        found = files.block(path, at, BLOCK, quoted=True)
        assert found.content == expected[at]
        assert found.lines_before == content.count(b"\n", 0, found.start)


@pytest.mark.slow
def test_a_row_may_be_longer_than_blocks_and_frames(tmp_path):
    content = (
        LINES[:1_000_000].rpartition(b"\n")[0]
        + b"\n"
        + LINES.replace(b"\n", b";")
        + b"\n"
        + LINES[:1_000_000]
    )
    path = str(write(tmp_path / "x.csv.gz", gzip.compress(content)))
    front, files = InflatedFile(path, BLOCK), InflatedFiles()
    expected = [front.block(at, None) for at in range(-(-files.size(path) // BLOCK))]
    for at in reversed(range(len(expected))):
        assert files.block(path, at, BLOCK) == expected[at]


def test_a_fault_names_its_line_in_a_copy(tmp_path):
    content = LINES[: LINES.index(b"\n", 3_500_000) + 1]
    path = write(tmp_path / "x.csv.gz", gzip.compress(b"id,text\n" + content + b"x,y\n" + LINES))
    provider = sf.open(path, format=sf.Csv(schema={"id": "int64", "text": "string"}, batch_bytes=BLOCK))
    blocks = list(provider.blocks())
    for block in (blocks[-1], blocks[3]):
        provider.read(block)
    line = content.count(b"\n") + 2
    with pytest.raises(ProviderError, match=rf"x\.csv\.gz, line {line}, column 1"):
        provider.read(blocks[len(content) // BLOCK])


def test_another_version_of_a_file_has_a_copy_of_its_own(tmp_path, cache):
    path = write(tmp_path / "x.csv.gz", gzip.compress(LINES))
    copy_is_kept(path)
    other = LINES[::-1] + b"\n"
    write(path, gzip.compress(other), age=20)
    files = InflatedFiles()
    assert files.block(str(path), 9, BLOCK).content == blocks_of(other)[9]
    assert files.size(str(path)) == len(other)
    assert files.block(str(path), 8, BLOCK).content == blocks_of(other)[8]
    assert len(entries(cache)) == 2  # the copy and the size


def test_a_file_that_is_rewritten_after_its_blocks_were_listed_is_an_error(tmp_path):
    path = write(tmp_path / "x.csv.gz", gzip.compress(LINES))
    files = InflatedFiles()
    last = files.size(str(path)) // BLOCK
    write(path, gzip.compress(LINES + b"1,x\n"), age=20)
    with pytest.raises(ProviderError, match="decompressed bytes, as it had when its blocks were listed"):
        files.block(str(path), last, BLOCK)


@pytest.mark.slow
@pytest.mark.parametrize("place", [0.5, None, *thorough(0.0, 1.0)])
def test_a_damaged_entry_of_the_cache_is_made_again(tmp_path, cache, place):
    path = str(write(tmp_path / "x.csv.gz", gzip.compress(LINES)))
    copy_is_kept(path)
    entry = max(entries(cache), key=lambda one: one.stat().st_size)
    content = bytearray(entry.read_bytes())
    if place is None:
        del content[1000:]
    else:
        content[int(place * (len(content) - 1))] ^= 1
    # another file, since a process checks an entry only once
    entry.unlink()
    entry.write_bytes(content)
    ran = multiprocessing.get_context("spawn").Pool(1)
    with ran:
        assert ran.apply(block_in_child, (path, 9)) == (len(LINES), blocks_of(LINES)[9])
    assert entry.read_bytes() != bytes(content)


def block_in_child(path, at):
    files = InflatedFiles()
    return files.size(path), files.block(path, at, BLOCK).content


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_other_processes_use_what_is_kept(tmp_path, method):
    path = write(tmp_path / "x.csv.gz", gzip.compress(LINES))
    expected = blocks_of(LINES)
    copy_is_kept(path)
    hide(path, 500_000)
    with multiprocessing.get_context(method).Pool(2) as pool:
        found = pool.starmap(block_in_child, [(str(path), at) for at in (12, 8, 10)])
    assert found == [(len(LINES), expected[at]) for at in (12, 8, 10)]


def test_threads_share_a_file(tmp_path):
    path = str(write(tmp_path / "x.csv.gz", gzip.compress(LINES)))
    files, expected = InflatedFiles(), blocks_of(LINES)
    files.size(path)
    order = list(range(len(expected))) * 3
    random.Random(2).shuffle(order)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda at: files.block(path, at, BLOCK).content, order))
    assert found == [expected[at] for at in order]


@pytest.mark.slow
def test_processes_make_a_copy_together(tmp_path, cache):
    path = write(tmp_path / "x.csv.gz", gzip.compress(LINES))
    expected = blocks_of(LINES)
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        found = pool.starmap(block_in_child, [(str(path), at) for at in (12, 9, 10, 11)], chunksize=1)
    assert found == [(len(LINES), expected[at]) for at in (12, 9, 10, 11)]
    assert len(entries(cache)) == 2


def test_a_copy_that_the_cache_has_no_room_for_is_said_and_costs_only_time(tmp_path, monkeypatch, caplog):
    cache = Cache(str(tmp_path / "cache"), 1_000_000)
    monkeypatch.setattr("seqflow.providers.lines.copies.cache_of_folder", lambda folder: cache)
    path, expected = write(tmp_path / "x.csv.gz", gzip.compress(LINES)), blocks_of(LINES)
    with caplog.at_level(logging.INFO, "seqflow"):
        files = copy_is_kept(path)
    assert [files.block(str(path), at, BLOCK).content for at in (9, 3)] == [expected[9], expected[3]]
    assert sum("cannot be written: a copy of" in one.message for one in caplog.records) == 1
    (note,) = files.notes
    assert (
        "x.csv.gz: no copy is kept; a block that comes before the last one read is decompressed from" in note
    )


@pytest.mark.slow
def test_a_file_that_was_changed_just_now_keeps_a_copy_for_this_process_alone(tmp_path):
    path = write(tmp_path / "x.csv.gz", gzip.compress(LINES), age=0)
    os.utime(path)
    copy_is_kept(path)
    hide(path, 500_000)
    assert InflatedFiles().block(str(path), 12, BLOCK).content == blocks_of(LINES)[12]
    with (
        multiprocessing.get_context("spawn").Pool(1) as pool,
        pytest.raises(ProviderError, match="can't be read"),
    ):
        pool.apply(block_in_child, (str(path), 12))


def test_a_cache_that_cannot_be_written_is_said_once_and_costs_only_time(tmp_path, monkeypatch, caplog):
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    files, expected = InflatedFiles(), blocks_of(LINES)
    with caplog.at_level(logging.INFO, "seqflow"):
        for name in "ab":
            path = str(write(tmp_path / f"{name}.csv.gz", gzip.compress(LINES)))
            assert files.size(path) == len(LINES)
            assert [files.block(path, at, BLOCK).content for at in (9, 3)] == [expected[9], expected[3]]
    assert sum("cannot be written" in one.message for one in caplog.records) == 1
    assert ["no copy is kept" in note for note in files.notes] == [True, True]


@pytest.mark.slow
def test_a_copy_is_said_by_the_provider_once_it_is_made(tmp_path, stored):
    path = write(tmp_path / "x.csv.zst", zstd(b"id,text\n" + LINES))
    provider = sf.open(path, format=sf.Csv(schema={"id": "int64", "text": "string"}, batch_bytes=BLOCK))
    assert "is kept" not in repr(provider)
    blocks = list(provider.blocks())
    assert sum(provider.read(block).num_rows for block in blocks) == LINES.count(b"\n")
    assert "is kept" not in repr(provider)
    provider.read(blocks[1])
    assert "x.csv.zst was not read in order, so a copy in frames is kept (" in repr(provider)


# zstd has no checksums here, so other bytes may be decompressed as well as these
@pytest.mark.parametrize(
    ("kind", "damage"),
    [
        *((kind, damage) for kind in KINDS for damage in ("cut", "garbage") if kind != "padding"),
        *((kind, "changed") for kind in ("gzip", "members of gzip", "bgzip", "flushed gzip", "bzip2")),
    ],
)
def test_a_damaged_file_is_an_error_and_nothing_is_kept(tmp_path, cache, stored, kind, damage):
    content = bytearray(stored[kind])
    if damage == "cut":
        del content[-3000:]
    elif damage == "garbage":
        content += b"garbage" * 100
    else:
        content[len(content) // 2 : len(content) // 2 + 100] = bytes(100)
    path = write(tmp_path / f"x.csv.{KINDS[kind][0]}", bytes(content))
    with pytest.raises(ProviderError, match="can't be read"):
        InflatedFiles().size(str(path))
    assert not entries(cache)


def test_a_file_that_is_gone_is_an_error_that_names_it(tmp_path):
    path = write(tmp_path / "x.csv.gz", gzip.compress(LINES))
    files = InflatedFiles()
    files.size(str(path))
    path.unlink()
    with pytest.raises(ProviderError, match=r"x\.csv\.gz can't be read: .*No such file"):
        files.block(str(path), 9, BLOCK)
