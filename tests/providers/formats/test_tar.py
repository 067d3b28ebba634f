"""Tar shards: rows of members, all forms of headers, and archives that are refused."""

import io
import tarfile
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import ProviderError


def write(path: Path, members: Sequence[tuple[str, bytes]], form: int = tarfile.GNU_FORMAT) -> Path:
    with tarfile.open(path, "w", format=form) as archive:
        for name, content in members:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def rows(*paths: Path, **options: Any) -> list[dict[str, Any]]:
    provider = sf.open(list(paths), **options)
    return [row for block in provider.blocks() for row in provider.read(block).to_pylist()]


@pytest.mark.parametrize("form", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("folder", ["", "a/b.c/", "long/" * 25, "é/"])
def test_names_of_all_forms_are_read(tmp_path: Path, form: int, folder: str) -> None:
    path = write(
        tmp_path / "a.tar",
        [(f"{folder}1.JPG", b"x"), (f"{folder}1.cls", b""), (f"{folder}2.jpg", b"y" * 600)],
        form,
    )
    assert rows(path) == [
        {"__key__": f"{folder}1", "jpg": b"x", "cls": b""},
        {"__key__": f"{folder}2", "jpg": b"y" * 600, "cls": None},
    ]


def test_columns_are_those_of_all_shards(tmp_path: Path) -> None:
    one = write(tmp_path / "a.tar", [("1.jpg", b"x")])
    other = write(tmp_path / "b.tar", [("2.cls", b"5")])
    assert rows(one, other) == [
        {"__key__": "1", "jpg": b"x", "cls": None},
        {"__key__": "2", "jpg": None, "cls": b"5"},
    ]
    assert rows(one, other, columns=["cls"]) == [{"cls": None}, {"cls": b"5"}]


def test_folders_links_and_hidden_files_are_no_rows(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        for name, kind in (
            ("d", tarfile.DIRTYPE),
            ("l.jpg", tarfile.SYMTYPE),
            (".hidden.jpg", tarfile.REGTYPE),
            ("1.jpg", tarfile.REGTYPE),
        ):
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "there"
            archive.addfile(info)
    assert rows(tmp_path / "a.tar") == [{"__key__": "1", "jpg": b""}]


def test_blocks_have_about_batch_bytes(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tar", [(f"{n}.bin", bytes(100)) for n in range(10)])
    blocks = list(sf.open(path, format=sf.Tar(batch_bytes=250)).blocks())
    assert [(block.num_rows, block.nbytes) for block in blocks] == [(2, 200)] * 5


def test_suffixes_with_a_dot_are_renamed(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tar", [("1.seg.png", b"x")])
    with pytest.raises(ProviderError, match=r"rename=\{'seg.png': 'seg_png'\}"):
        sf.open(path)
    assert rows(path, rename={"seg.png": "seg"}) == [{"__key__": "1", "seg": b"x"}]


def test_an_archive_without_members_has_no_rows(tmp_path: Path) -> None:
    assert rows(write(tmp_path / "a.tar", [])) == []


@pytest.mark.parametrize(("members", "message"), [
    ([("1.jpg", b""), ("1.jpg", b"")], "'1.jpg' twice in one row"),
    ([("README", b"")], "'README' has no suffix"),
    ([("0.a", b"1"), ("1.a", b"2"), ("0.b", b"3"), ("1.b", b"4")], "'0.b' is apart from the others of row '0'"),
    ([("d/0.a", b"1"), ("0.a", b"2"), ("d/0.a", b"3")], "'d/0.a' is apart from the others of row 'd/0'"),
])  # fmt: skip
def test_members_that_are_no_rows_are_refused(tmp_path: Path, members: Any, message: str) -> None:
    with pytest.raises(ProviderError, match=f"a.tar.*{message}"):
        sf.open(write(tmp_path / "a.tar", members))


@given(st.lists(st.tuples(st.sampled_from(["0", "1", "d/0"]), st.sampled_from("abc")), max_size=6))
def test_each_row_is_all_members_of_its_key_or_an_error(members: list[tuple[str, str]]) -> None:
    keys = [key for key, _ in groupby(members, key=lambda member: member[0])]
    by_key: dict[str, dict[str, bytes]] = {}
    for at, (key, suffix) in enumerate(members):
        by_key.setdefault(key, {})[suffix] = bytes([at])
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.tar"
        write(path, [(f"{key}.{suffix}", bytes([at])) for at, (key, suffix) in enumerate(members)])
        if len(set(members)) < len(members) or len(set(keys)) < len(keys):
            with pytest.raises(ProviderError, match=r"twice|apart"):
                sf.open(path)
            return
        suffixes = dict.fromkeys(suffix for _, suffix in members)
        expected = [{"__key__": key} | {one: by_key[key].get(one) for one in suffixes} for key in keys]
        assert rows(path) == expected


def test_hard_links_are_refused_since_they_are_files(tmp_path: Path) -> None:
    (tmp_path / "1.txt").write_text("x")
    (tmp_path / "2.txt").hardlink_to(tmp_path / "1.txt")
    with tarfile.open(tmp_path / "a.tar", "w") as archive:
        archive.add(tmp_path / "1.txt", "1.txt")
        archive.add(tmp_path / "2.txt", "2.txt")
    with pytest.raises(ProviderError, match="it has hard links"):
        sf.open(tmp_path / "a.tar")


def test_archives_that_are_cut_joined_or_damaged_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.tar", [("1.jpg", b"x"), ("2.jpg", b"y")])
    content = path.read_bytes()
    for damaged, message in (
        (content[: 2 * 1024], "without the zeros at the end"),
        (content[:1100], "is truncated"),
        (content[:1500], "is truncated|without the zeros"),
        (content + content, "more after its end"),
        (content[:130] + b"7" + content[131:], "no header of a member at byte 0"),
    ):
        path.write_bytes(damaged)
        with pytest.raises(ProviderError, match=message):
            sf.open(path)


def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz"):
        pass
    with pytest.raises(ProviderError, match=r"a.tar.gz has the suffix .tar.gz"):
        sf.open(tmp_path / "a.tar.gz")
    (tmp_path / "a.tar.gz").rename(tmp_path / "a.tar")
    with pytest.raises(ProviderError, match=r"a.tar is not a tar file, or damaged"):
        sf.open(tmp_path / "a.tar")
