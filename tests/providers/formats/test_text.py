"""Text files and source trees: one row a file."""

import glob
import os
import sysconfig
from pathlib import Path

import numpy as np
import pytest

import seqflow as sf
from seqflow.errors import ProviderError
from seqflow.record import from_arrow

CONTENTS = {"a.txt": b"hello", "b.txt": b"", "c.txt": "wörld\r\n".encode(), "d.py": b"x = 1\n" * 1000}


@pytest.fixture
def folder(tmp_path):
    for name, data in CONTENTS.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def rows(provider):
    return [row for block in provider.blocks() for row in provider.read(block).to_pylist()]


def test_a_row_is_a_file_with_its_path_and_bytes(folder):
    assert rows(sf.open(folder)) == [
        {"path": str(folder / name), "bytes": data} for name, data in CONTENTS.items()
    ]
    assert len(sf.open(folder)) == 4


def test_an_encoding_gives_text(folder):
    provider = sf.open(folder, format=sf.Text(encoding="utf-8"))
    assert provider.columns == ("path", "text")
    assert [row["text"].encode() for row in rows(provider)] == list(CONTENTS.values())


def test_files_are_read_in_blocks_of_bytes(folder):
    provider = sf.open(folder, format=sf.Text(batch_bytes=8))
    blocks = list(provider.blocks())
    assert [(block.index, block.num_rows, block.nbytes) for block in blocks] == [
        (0, 2, 5),
        (1, 1, 8),
        (2, 1, 6000),
    ]
    assert blocks[0].origin == f"{folder / 'a.txt'} and 1 more"
    assert [len(row["bytes"]) for row in rows(provider)] == [5, 0, 8, 6000]


def test_a_block_is_one_buffer(folder):
    provider = sf.open(folder)
    array = provider.read(next(provider.blocks())).column("bytes")
    assert array.buffers()[2].size == sum(map(len, CONTENTS.values()))
    values = from_arrow(provider.read(next(provider.blocks())))["bytes.values"]
    assert bytes(values) == b"".join(CONTENTS.values())


def test_columns_and_names_are_chosen(folder):
    provider = sf.open(folder, columns=["file"], rename={"path": "file"})
    assert rows(provider)[0] == {"file": str(folder / "a.txt")}
    provider = sf.open(folder, columns=["bytes", "path"])
    assert list(rows(provider)[0]) == ["bytes", "path"]


def test_paths_alone_need_no_reading(folder):
    provider = sf.open(folder, columns=["path"])
    for name in CONTENTS:
        (folder / name).unlink()
    assert len(rows(provider)) == 4


def test_bytes_that_are_not_text_are_an_error_naming_file_and_byte(folder):
    (folder / "b.txt").write_bytes(b"ok\xff\n")
    provider = sf.open(folder, format=sf.Text(encoding="utf-8"))
    with pytest.raises(ProviderError, match=r"b\.txt: not utf-8 at byte 2 \(0xff\): invalid start byte"):
        rows(provider)


def test_bytes_that_are_not_text_may_be_bad_rows(folder):
    (folder / "b.txt").write_bytes(b"ok\xff\n")
    provider = sf.open(folder, format=sf.Text(encoding="utf-8"))
    bad = []
    batch = provider.read(next(provider.blocks()), bad_rows=bad)
    assert [(row, column) for row, column, *_ in bad] == [(1, "text")]
    assert "byte 2" in bad[0].reason
    assert batch["text"].to_pylist()[:3] == ["hello", None, "wörld\r\n"]


@pytest.mark.parametrize(
    ("errors", "text"), [("replace", "ok\N{REPLACEMENT CHARACTER}\n"), ("ignore", "ok\n")]
)
def test_bytes_that_are_not_text_may_be_replaced_or_left_out(folder, errors, text):
    (folder / "b.txt").write_bytes(b"ok\xff\n")
    found = rows(sf.open(folder, format=sf.Text(encoding="utf-8", errors=errors)))
    assert [row["text"] for row in found[:3]] == ["hello", text, "wörld\r\n"]


def test_a_character_cut_at_the_end_of_a_file_is_not_made_whole_by_the_next(tmp_path):
    (tmp_path / "a.txt").write_bytes("ö".encode()[:1])
    (tmp_path / "b.txt").write_bytes("ö".encode()[1:])
    with pytest.raises(ProviderError, match=r"a\.txt: not utf-8 at byte 0"):
        rows(sf.open(tmp_path, format=sf.Text(encoding="utf-8")))


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16", "utf-8-sig", "cp1252"])
def test_other_encodings_become_utf8(tmp_path, encoding):
    (tmp_path / "a.txt").write_bytes("häß".encode(encoding))
    (tmp_path / "b.txt").write_bytes("é".encode(encoding))
    assert [row["text"] for row in rows(sf.open(tmp_path, format=sf.Text(encoding=encoding)))] == ["häß", "é"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"encoding": "klingon"}, "unknown encoding: klingon"),
        (
            {"encoding": "utf-8", "errors": "explode"},
            "errors is 'explode', expected 'strict' or 'replace' or 'ignore'",
        ),
    ],
)
def test_unknown_ways_of_decoding_are_errors(folder, options, message):
    with pytest.raises(ProviderError, match=message):
        sf.open(folder, format=sf.Text(**options))


def test_a_file_that_is_gone_is_an_error_naming_it(folder):
    provider = sf.open(folder)
    (folder / "c.txt").unlink()
    with pytest.raises(ProviderError, match=r"c\.txt: can't be read: No such file"):
        rows(provider)
    bad = []
    batch = provider.read(next(provider.blocks()), bad_rows=bad)
    assert [row for row, *_ in bad] == [2]
    assert batch["bytes"].to_pylist()[3] == CONTENTS["d.py"]


@pytest.mark.parametrize("size", [2, 20])
def test_a_file_that_changed_its_size_is_read_as_it_is_now(folder, size):
    provider = sf.open(folder)
    (folder / "a.txt").write_bytes(b"y" * size)
    assert [row["bytes"] for row in rows(provider)][:3] == [b"y" * size, b"", CONTENTS["c.txt"]]


def test_a_source_tree_is_read_as_it_lies_on_disk():
    provider = sf.open("{stdlib}/json/*.py", format=sf.Text(encoding="utf-8"))
    paths = sorted(glob.glob(os.path.join(sysconfig.get_path("stdlib"), "json", "*.py")))
    assert [row["path"] for row in rows(provider)] == paths
    values, lengths = provider["text"].unpack()
    assert lengths.tolist() == [os.path.getsize(path) for path in paths]
    assert values.dtype == np.uint8


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux has files whose size says nothing")
def test_a_file_that_has_bytes_though_its_size_is_0_is_an_error():
    with pytest.raises(ProviderError, match="status: has bytes, but its size is 0"):
        sf.open("/proc/self/status", format=sf.Text(encoding="utf-8"))["text"]
