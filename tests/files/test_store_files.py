"""Objects of stores, on each server: listed, pinned, and read byte for byte."""

import os
import pickle
import random
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqflow.errors import DamagedFileError, StoreError
from seqflow.files.cache import Cache
from seqflow.files.interface import LOCAL
from seqflow.files.store import StoreFiles
from seqflow.providers.store_options import files_of_source

CONTENT = random.Random(0).randbytes(3_000_000)


@pytest.fixture
def files(store):
    return StoreFiles(store.options)


def test_an_entry_has_size_and_version(store, files):
    uri = store.put("a/b.bin", CONTENT)
    entry = files.entry(uri)
    assert (entry.path, entry.size) == (uri, len(CONTENT))
    assert entry.version
    assert files.entry(f"{store.uri}/a/missing") is None
    assert files.entry(f"{store.uri}/a") is None


def test_all_objects_below_a_folder_are_listed_in_order(store, files):
    names = ["a/2.csv", "a/10.csv", "a/b/c.csv", "a/b/ü é.csv", "ab.csv", "a.csv"]
    for name in names:
        store.put(name, name.encode())
    below = sorted(name for name in names if name.startswith("a/"))
    for folder in (f"{store.uri}/a", f"{store.uri}/a/"):
        found = list(files.list(folder))
        assert [one.path for one in found] == [f"{store.uri}/{name}" for name in below]
        assert [one.size for one in found] == [len(name.encode()) for name in below]
        assert [one.version for one in found] == [files.entry(one.path).version for one in found]
    assert [one.path for one in files.list(store.uri)] == [f"{store.uri}/{name}" for name in sorted(names)]
    assert list(files.list(f"{store.uri}/nothing")) == []


@pytest.mark.parametrize(
    ("start", "stop"), [(0, 10), (0, 3_000_000), (2_999_990, 3_000_000), (2_999_990, 9_999_999), (5, 5), (9_999_999, 10**8)]
)  # fmt: skip
def test_a_read_gives_exactly_these_bytes(store, files, start, stop):
    uri = store.put("a.bin", CONTENT)
    assert files.read(uri, start, stop).to_pybytes() == CONTENT[start:stop]


def test_empty_objects_are_read(store, files):
    uri = store.put("empty", b"")
    assert files.read(uri, 0, 10).to_pybytes() == b""
    assert files.stream(uri).read() == b""
    with open(files.local_copy(uri), "rb") as file:
        assert file.read() == b""


@pytest.mark.each_choice
@pytest.mark.parametrize(
    "name",
    [
        "a b.bin",
        "ü/é.bin",
        "a+b.bin",
        "a%20b.bin",
        "a#b.bin",
        "a&b=c.bin",
        "'a'.bin",
        "x=1/y=%2F.bin",
        "a?b.bin",
        "a*[b].bin",
        "~a^{b}|`.bin",
    ],
)
def test_keys_may_hold_any_character(store, files, name):
    if store.server == "gcs" and name == "ü/é.bin":
        pytest.skip("the emulator answers 404")
    uri = f"{store.uri}/{name}"
    store.put_raw(name, b"12345")
    assert [one.path for one in files.list(store.uri)] == [uri]
    assert files.read(uri, 1, 4).to_pybytes() == b"234"
    assert StoreFiles(store.options).entry(uri).size == 5


def test_large_reads_streams_and_copies_are_made_of_ranges(store, files):
    content = CONTENT * 7
    uri = store.put("large.bin", content)
    assert files.read(uri, 100, len(content) - 100).to_pybytes() == content[100:-100]
    with files.stream(uri) as stream:
        assert stream.read() == content
    with files.stream(uri) as stream:
        assert stream.read(12_000_000) == content[:12_000_000]
        assert stream.read(10) == content[12_000_000:12_000_010]
    with open(files.local_copy(uri), "rb") as file:
        assert file.read() == content
    assert files.ahead.bytes_held == 0


def test_lines_of_a_stream(store, files):
    uri = store.put("a.csv", b"a,b\n1,2\n\n3,4")
    with files.stream(uri) as stream:
        assert list(stream) == [b"a,b\n", b"1,2\n", b"\n", b"3,4"]


@pytest.mark.slow
def test_pyarrow_reads_an_object_with_and_without_planned_ranges(store, files, tmp_path):
    table = pa.table({"a": range(200_000), "b": [[i, i + 1] for i in range(200_000)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=20_000)
    uri = store.put("a.parquet", tmp_path / "a.parquet")
    assert pq.ParquetFile(files.random(uri)).read().equals(table)
    metadata = pq.read_metadata(tmp_path / "a.parquet")
    chunks = [metadata.row_group(3).column(number) for number in range(metadata.num_columns)]
    spans = []
    for chunk in chunks:
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        spans.append((start, start + chunk.total_compressed_size))
    planned = files.random(uri, spans)
    found = pq.ParquetFile(planned, metadata=metadata, pre_buffer=False)
    assert found.read_row_group(3).equals(table.slice(60_000, 20_000))
    with pytest.raises(Exception, match="not among the ranges"):
        found.read_row_group(7)
    planned.close()
    assert files.ahead.bytes_held == 0


def test_a_replaced_object_is_an_error_that_names_it(store, files):
    uri = store.put("a.bin", CONTENT)
    other = store.put("b.bin", CONTENT)
    assert files.read(uri, 0, 10).size == 10
    if store.server == "gcs":
        store.delete("a.bin")
    store.put("a.bin", CONTENT[::-1])
    with pytest.raises(DamagedFileError, match=r"a\.bin is another object than when it was opened") as found:
        files.read(uri, 10, 20)
    assert uri in str(found.value)
    assert "open it again" in str(found.value)
    assert files.read(other, 10, 20).to_pybytes() == CONTENT[10:20]
    assert StoreFiles(store.options).read(uri, 0, 10).to_pybytes() == CONTENT[::-1][:10]


def test_a_truncated_object_is_an_error_that_names_it(store, files):
    uri = store.put("a.bin", CONTENT)
    files.entry(uri)
    store.put("a.bin", CONTENT[:1000])
    for start, stop in ((0, 500), (900, 2000), (2_000_000, 2_000_010)):
        with pytest.raises(DamagedFileError, match=r"a\.bin is another object"):
            files.read(uri, start, stop)
    with pytest.raises(DamagedFileError, match=r"a\.bin is another object"), files.stream(uri) as stream:
        stream.read()
    with pytest.raises(DamagedFileError, match=r"a\.bin is another object"):
        files.local_copy(uri)


def test_an_object_that_is_gone_is_an_error_that_names_it(store, files):
    uri = store.put("a.bin", CONTENT)
    files.entry(uri)
    store.delete("a.bin")
    # Azure's emulator compares the etag first
    gone = "is another object" if store.server == "azurite" else "does not exist"
    with pytest.raises(DamagedFileError, match=rf"a\.bin {gone}"):
        files.read(uri, 0, 10)
    with pytest.raises(DamagedFileError, match=r"missing\.bin does not exist"):
        files.read(f"{store.uri}/missing.bin", 0, 10)


def test_a_missing_bucket_is_named(store, files):
    with pytest.raises((StoreError, DamagedFileError), match=r"no-such-bucket"):
        files.read(store.uri.replace(store.name, "no-such-bucket") + "/a", 0, 1)


def test_a_pickle_reads_the_same_versions(store, files):
    uri = store.put("a.bin", CONTENT)
    files.entry(uri)
    copied = pickle.loads(pickle.dumps(files))
    assert copied.read(uri, 5, 10).to_pybytes() == CONTENT[5:10]
    store.put("a.bin", CONTENT[::-1])
    with pytest.raises(DamagedFileError, match="another object"):
        pickle.loads(pickle.dumps(files)).read(uri, 0, 10)


def test_paths_of_this_machine_are_read_as_ever(store, files, tmp_path):
    path = str(tmp_path / "a.bin")
    (tmp_path / "a.bin").write_bytes(b"12345")
    assert files.entry(path) == LOCAL.entry(path)
    assert files.read(path, 1, 3).to_pybytes() == b"23"
    with files.stream(path) as stream:
        assert stream.read() == b"12345"
    assert (files.local_copy(path), files.random(path)) == (path, path)
    assert list(files.list(str(tmp_path))) == [LOCAL.entry(path)]


def test_only_uris_need_a_store(tmp_path):
    assert files_of_source([str(tmp_path), 5], {})[1] is LOCAL
    assert pickle.loads(pickle.dumps(LOCAL)) is LOCAL
    assert isinstance(files_of_source([str(tmp_path), "s3://b/a"], {})[1], StoreFiles)


def test_requests_are_as_few_as_they_can_be(own, bucket):
    for number in range(2500):
        (own.store.folder / "bucket" / f"{number:04}").write_bytes(b"12345")
    files = StoreFiles(bucket.options)
    found = list(files.list(bucket.uri))  # three pages, and one that shows that the last one is the last
    assert (len(found), own.counts) == (2500, {"LIST": 4})
    for entry in found:
        files.pin(entry)
    assert files.read(found[7].path, 0, 5).size == 5
    assert own.counts == {"LIST": 4, "GET": 1}
    assert StoreFiles(bucket.options).read(found[8].path, 0, 5).size == 5
    assert own.counts == {"LIST": 4, "GET": 2, "HEAD": 1}


@pytest.mark.slow
def test_copies_of_this_process_are_removed_when_it_ends(own, bucket, tmp_path):
    uri = bucket.put("a.db", b"12345")
    program = f"""
from seqflow.files.store import StoreFiles
from seqflow.providers.store_options import files_of_source
from seqflow.providers.store_options import files_of_source
files = StoreFiles({bucket.options!r})
assert files.local_copy({uri!r}) == files.local_copy({uri!r})
print(files.local_copy({uri!r}))
"""
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip().endswith("a.db")
    assert done.stdout.startswith(str(tmp_path))
    assert [path for path in tmp_path.iterdir() if path.name != "store"] == []
    assert own.counts["GET"] == 1


def test_copies_in_a_cache_stay(own, bucket, tmp_path):
    uri = bucket.put("a.db", b"12345")
    cache = Cache(str(tmp_path / "cache"))
    first = StoreFiles(bucket.options, cache=cache).local_copy(uri)
    own.clear()
    assert StoreFiles(bucket.options, cache=cache).local_copy(uri) == first
    assert own.counts["GET"] == 0
    bucket.put("a.db", b"123456")
    second = StoreFiles(bucket.options, cache=cache).local_copy(uri)
    with open(second, "rb") as file:
        assert (second != first, file.read()) == (True, b"123456")
