"""Files of each format in a store: the rows of the same files on this machine, of one version, without more requests."""

import io
import os
import pickle
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_server import Faults

import seqflow as sf
from seqflow.errors import DamagedFileError, ProviderError, StoreError


def write_tar(folder: Path, rows: int = 5) -> None:
    with tarfile.open(folder / "a.tar", "w") as archive:
        for row in range(rows):
            for suffix in ("txt", "cls"):
                info = tarfile.TarInfo(f"{row:04}.{suffix}")
                info.size = 100 + row
                archive.addfile(info, io.BytesIO(bytes([row]) * info.size))


def write_npy(folder: Path, rows: int = 5) -> None:
    np.save(folder / "a.npy", np.arange(3 * rows).reshape(rows, 3))


def write_npz(folder: Path, rows: int = 5) -> None:
    np.savez(folder / "a.npz", x=np.arange(rows), y=np.ones(rows))


def write_npz_compressed(folder: Path, rows: int = 5) -> None:
    np.savez_compressed(folder / "a.npz", x=np.arange(rows), y=np.ones(rows))


def write_megatron(folder: Path, rows: int = 5) -> None:
    lengths = np.arange(rows, dtype="<i4")
    pointers = np.append(0, np.cumsum(lengths, dtype="<i8"))
    np.arange(pointers[-1], dtype="<u2").tofile(folder / "a.bin")
    header = b"MMIDIDX\0\0" + (1).to_bytes(8, "little") + bytes([8])
    counts = rows.to_bytes(8, "little") + (rows + 1).to_bytes(8, "little")
    documents = np.arange(rows + 1, dtype="<i8")
    parts = (lengths, 2 * pointers[:-1], documents)
    (folder / "a.idx").write_bytes(header + counts + b"".join(part.tobytes() for part in parts))


def write_text(folder: Path, rows: int = 5) -> None:
    for row in range(rows):
        (folder / f"{row}.txt").write_text(f"ä{row}" * row)


WRITERS = (
    write_tar, write_npy, write_npz, write_npz_compressed, write_megatron, write_text,
)  # fmt: skip
formats = pytest.mark.parametrize(
    "write", WRITERS, ids=[one.__name__.removeprefix("write_") for one in WRITERS]
)


def rows_of(provider: Any) -> list[dict[str, Any]]:
    blocks = provider.ahead(provider.blocks())
    rows = [row for block in blocks for row in provider.read(block).to_pylist()]
    return [
        {name: os.path.basename(value) if name == "path" else value for name, value in row.items()}
        for row in rows
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "files").mkdir()
    return tmp_path / "files"


@formats
def test_rows_are_those_of_local_files(write: Any, folder: Path, store: Any) -> None:
    write(folder)
    uri = store.put_folder(folder, "x/")
    found = sf.open(uri, storage_options=store.options)
    expected = sf.open(folder)
    assert found.schema == expected.schema
    assert rows_of(found) == rows_of(expected)
    assert found.num_rows == 5
    assert all(path.startswith(uri) for path in found.files)


@formats
def test_each_object_is_fetched_once(write: Any, folder: Path, own: Any, bucket: Any) -> None:
    write(folder)
    uri = bucket.put_folder(folder, "x/")
    own.clear()
    provider = sf.open(f"{uri}/*", storage_options=bucket.options)
    rows_of(provider)
    if write is not write_text:
        rows_of(provider)
    sizes = [file.stat().st_size for file in folder.iterdir()]
    assert own.counts["LIST"] == 1
    assert own.counts["GET"] == len([*filter(None, sizes)])
    assert own.counts["HEAD"] == sizes.count(0)  # it may stand for a folder
    assert own.sent < 1000 + sum(sizes) + 1000 * len(sizes)


@formats
def test_faults_do_not_change_rows(write: Any, folder: Path, own: Any, bucket: Any) -> None:
    write(folder, 40)
    uri = bucket.put_folder(folder, "x/")
    own.faults = Faults(unavailable=0.2, cut=0.1, reset=0.1, short=0.1, seed=3)
    assert rows_of(sf.open(uri, storage_options=bucket.options)) == rows_of(sf.open(folder))


@formats
def test_rows_of_two_versions_are_not_mixed(write: Any, folder: Path, own: Any, bucket: Any) -> None:
    """Files that were copied stay readable; others are refused."""
    write(folder)
    uri = bucket.put_folder(folder, "x/")
    provider = sf.open(uri, storage_options=bucket.options)
    before = rows_of(sf.open(folder))
    copy = pickle.loads(pickle.dumps(provider))
    write(folder, 6)
    bucket.put_folder(folder, "x/")
    if write is write_text:
        with pytest.raises(
            ProviderError, match=r"s3://bucket/x/.\.txt: .*is another object than when it was"
        ):
            rows_of(provider)
    elif write is not write_megatron:  # its tokens are fetched when they are read
        assert rows_of(provider) == rows_of(copy) == before
    else:
        with pytest.raises(DamagedFileError, match=r"a\.bin is another object than when it was opened"):
            rows_of(provider)
    assert rows_of(sf.open(uri, storage_options=bucket.options)) == rows_of(sf.open(folder))


@formats
def test_loaders_of_stores_give_the_batches_of_local_files(
    write: Any, folder: Path, own: Any, bucket: Any
) -> None:
    write(folder, 40)
    uri = bucket.put_folder(folder, "x/")
    options: dict[str, Any] = {"batch": 7, "shuffle": True}
    if write is write_tar:
        options["columns"] = ["cls"]
    found = list(sf.Loader(uri, storage_options=bucket.options, **options))
    expected = list(sf.Loader(folder, **options))
    for one, other in zip(found, expected, strict=True):
        for name in one:
            if not name.startswith("path"):
                assert np.array_equal(one[name], other[name]), name


@formats
def test_a_network_that_fails_is_no_damage(write: Any, folder: Path, own: Any, bucket: Any) -> None:
    """A file that cannot be fetched is not left out, as a damaged one is."""
    write(folder)
    uri = bucket.put_folder(folder, "x/")
    options = {"storage_options": {**bucket.options, "retry_seconds": 0.2}, "bad_files": "skip"}
    own.choose = lambda request, number: "unavailable" if request.kind == "GET" else ""
    with pytest.raises(StoreError, match=r"no answer in 0 s, after . attempts; the last: SlowDown"):
        rows_of(sf.open(uri, **options))


@pytest.mark.parametrize("name", ["a.tar", "a.npy", "a.npz", "a.idx"])
def test_damage_is_told_with_the_uri(name: str, own: Any, bucket: Any) -> None:
    uri = bucket.put(name, b"nothing of this kind")
    bucket.put("a.bin", b"")
    with pytest.raises(DamagedFileError) as error:
        sf.open(uri, storage_options=bucket.options)
    assert str(error.value).startswith(f"{uri} is not a ")
    assert "/tmp/" not in str(error.value).partition("\n")[0]


def test_megatron_names_the_object_that_is_missing(folder: Path, own: Any, bucket: Any) -> None:
    write_megatron(folder)
    uri = bucket.put("a.idx", folder / "a.idx")
    with pytest.raises(ProviderError, match=r"there is no s3://bucket/a\.bin"):
        sf.open(uri, storage_options=bucket.options)


def test_an_object_of_many_ranges_is_copied_in_parallel(folder: Path, own: Any, bucket: Any) -> None:
    values = np.arange(5_000_000)
    np.save(folder / "a.npy", values)
    own.faults = Faults(latency=0.05)
    uri = bucket.put("a.npy", folder / "a.npy")
    own.clear()
    assert np.array_equal(sf.open(uri, storage_options=bucket.options)["array"], values)
    assert own.counts["GET"] == 5
    assert own.most_in_flight > 2


def test_a_cache_keeps_copies_for_other_processes(
    folder: Path, own: Any, bucket: Any, tmp_path: Path
) -> None:
    write_npy(folder)
    uri = bucket.put("a.npy", folder / "a.npy")
    options = {"storage_options": bucket.options, "cache": str(tmp_path / "cache")}
    first = sf.open(uri, **options)["array"]
    own.clear()
    again = sf.open(uri, **options)["array"]
    assert np.array_equal(first, again)
    assert own.counts == {"HEAD": 1}
    provider = sf.open(uri, **options)
    for file in (tmp_path / "cache").rglob("*"):
        if file.is_file():
            file.unlink()
    assert np.array_equal(provider["array"], first)


@pytest.mark.slow
def test_copies_are_removed_with_their_process(folder: Path, own: Any, bucket: Any, tmp_path: Path) -> None:
    write_npy(folder)
    uri = bucket.put("a.npy", folder / "a.npy")
    program = (
        f"import seqflow as sf; p = sf.open({uri!r}, storage_options={bucket.options!r});"
        "print(p['array'].sum(), p.store.local_copy(p.files[0]))"
    )
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )  # fmt: skip
    total, copy = done.stdout.split()
    assert (int(total), copy.startswith(str(temporary))) == (105, True)
    assert list(temporary.iterdir()) == []


def test_small_texts_are_fetched_at_the_same_time(folder: Path, own: Any, bucket: Any) -> None:
    for number in range(200):
        (folder / f"{number:03}.txt").write_text(f"text {number}")
    uri = bucket.put_folder(folder, "x/")
    own.faults = Faults(latency=0.05)
    provider = sf.open(uri, storage_options=bucket.options, format=sf.Text(encoding="utf-8"))
    own.clear()
    assert [row["text"] for row in rows_of(provider)] == [f"text {number}" for number in range(200)]
    assert own.counts == {"GET": 200}
    assert own.most_in_flight > 20


def test_names_of_texts_are_read_without_a_request(folder: Path, own: Any, bucket: Any) -> None:
    write_text(folder)
    uri = bucket.put_folder(folder, "x/")
    provider = sf.open(uri, storage_options=bucket.options, columns=["path"])
    own.clear()
    assert [row["path"] for row in rows_of(provider)] == [f"{row}.txt" for row in range(5)]
    assert own.counts == {}


def test_a_text_that_was_deleted_is_a_bad_row(folder: Path, own: Any, bucket: Any) -> None:
    write_text(folder)
    uri = bucket.put_folder(folder, "x/")
    provider = sf.open(uri, storage_options=bucket.options)
    bucket.delete("x/3.txt")
    (block,) = provider.blocks()
    bad: list[Any] = []
    table = provider.read(block, bad_rows=bad)
    assert [one.row for one in bad] == [3]
    assert "does not exist" in bad[0].reason
    assert table.column("bytes").null_count == 1
