"""Systems whose objects have one path, size and time: none gives the rows of another."""

import gzip
import io
import os
import pickle
import random
import subprocess
import sys
import tarfile
import zipfile

import fsspec
import numpy as np
import obstore
import pyarrow as pa
import pyarrow.fs as pf
import pyarrow.parquet as pq
import pytest
from obstore.store import LocalStore, MemoryStore

import seqflow as sf
from seqflow.errors import DamagedFileError, OpError
from seqflow.files.cache import Cache
from seqflow.files.clients import client_of_uri
from seqflow.files.interface import Entry
from seqflow.files.options import store_options
from seqflow.files.store import StoreFiles
from seqflow.files.systems import uri_in
from seqflow.providers.lines.copies import copy_of, measure

TIME = (1_700_000_000, 1_700_000_000)


def written(kind, value):
    """Bytes of a file whose rows are `value`; as many for each digit."""
    file = io.BytesIO()
    if kind == ".npy":
        np.save(file, np.full(3, value))
    elif kind == ".parquet":
        pq.write_table(pa.table({"x": [value] * 3}), file)
    elif kind == ".tar":
        with tarfile.open(fileobj=file, mode="w") as tar:
            one = tarfile.TarInfo("a.x")
            one.size = 1
            tar.addfile(one, io.BytesIO(b"%d" % value))
    else:
        file.write(b'{"x": %d}\n' % value * 3)
    return file.getvalue()


def in_zip(folder, name, content):
    with zipfile.ZipFile(f"{folder}.zip", "w") as archive:
        archive.writestr(zipfile.ZipInfo(name), content)
    return fsspec.filesystem("zip", fo=f"{folder}.zip")


def in_memory(folder, name, content):
    store = MemoryStore()
    obstore.put(store, name, content)
    return store


def on_disk(make):
    def put(folder, name, content):
        folder.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        os.utime(folder / name, TIME)
        return make(str(folder))

    return put


SYSTEMS = {
    "zip": in_zip,
    "memory": in_memory,
    "pyarrow": on_disk(lambda folder: pf.SubTreeFileSystem(folder, pf.LocalFileSystem())),
    "fsspec": on_disk(lambda folder: fsspec.filesystem("dir", path=folder, fs=fsspec.filesystem("file"))),
    "obstore": on_disk(LocalStore),
}
systems = pytest.mark.parametrize("put", SYSTEMS.values(), ids=SYSTEMS)
timed = pytest.mark.parametrize("put", [SYSTEMS["pyarrow"], SYSTEMS["fsspec"]], ids=["pyarrow", "fsspec"])


def values_of(path, **options):
    """Different values of the first column; of a tar file, the digit in its text."""
    batches = list(sf.Loader(path, batch=1 << 20, threads=0, **options))
    return sorted(
        {int(one) for batch in batches for one in next(iter(sf.to_arrow(batch).columns)).to_pylist()}
    )


@pytest.mark.each_choice
@systems
@pytest.mark.parametrize("kind", [".npy", ".parquet", ".tar", ".jsonl"])
@pytest.mark.parametrize("cache", [None, "cache"])
def test_no_system_gives_the_rows_of_another(tmp_path, put, kind, cache):
    contents = [written(kind, value) for value in (1, 2)]
    assert len(set(map(len, contents))) == 1
    made = [put(tmp_path / str(number), f"a{kind}", content) for number, content in enumerate(contents)]
    more = {} if kind == ".npy" else {"columns": ["x"]}
    if cache:
        more["cache"] = str(tmp_path / cache)
    for _ in range(2):
        assert [values_of(f"a{kind}", filesystem=system, **more) for system in made] == [[1], [2]]


@systems
def test_a_copy_of_a_compressed_file_belongs_to_a_system(tmp_path, monkeypatch, put):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    noise = random.Random(0).randbytes(300_000)
    systems = [put(tmp_path / str(value), "a.csv.gz", gzip.compress(noise, mtime=value)) for value in (1, 2)]
    stores = [StoreFiles(system=system) for system in systems]
    (entry,) = stores[0].list(uri_in(systems[0], ""))
    assert measure(entry.path, stores[0])[0] == len(noise)
    assert (copy_of(entry.path, stores[0], make=True) is not None) == bool(entry.version)
    assert (copy_of(entry.path, stores[0], make=False) is not None) == bool(entry.version)
    assert copy_of(entry.path, stores[1], make=False) is None


@pytest.mark.slow
def test_a_later_process_has_nothing_of_a_store_in_memory(tmp_path):
    program = """
import sys, obstore, seqflow as sf
from obstore.store import MemoryStore
store = MemoryStore()
obstore.put(store, "a.jsonl", b'{"x": %s}' % sys.argv[1].encode())
print([batch["x"].tolist() for batch in sf.Loader("a.jsonl", filesystem=store, cache=sys.argv[2], batch=1)])
"""
    for value in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", program, value, str(tmp_path)], capture_output=True, text=True, check=True
        )
        assert run.stdout.strip() == f"[[{value}]]"
    assert not [*(tmp_path / "copies").glob("*")]


def test_an_unpickled_system_without_identity_has_caches_of_its_own(tmp_path):
    files = StoreFiles(system=SYSTEMS["pyarrow"](tmp_path / "1", "a", b"1"), cache=Cache(str(tmp_path / "c")))
    names = [one.cached_as("fs:///a") for one in (files, files, pickle.loads(pickle.dumps(files)))]
    assert names[0] == names[1] != names[2]


def identity(uri, **options):
    return client_of_uri(uri, store_options(options, uri.partition(":")[0])).identity


def test_a_store_is_told_by_endpoint_and_account_and_not_by_secrets(monkeypatch):
    def of(url, **options):
        return identity("s3://b", aws_endpoint_url=url, aws_region="us-east-1", **options)

    keys = {"aws_access_key_id": "a-key", "aws_secret_access_key": "s3cr3t", "aws_session_token": "t0ken"}
    assert of("http://one", **keys) == of("http://one") != of("http://two", **keys)
    assert not [value for value in keys.values() if value in of("http://one", **keys)]
    assert identity("az://c", azure_storage_account_name="one") != identity(
        "az://c", azure_storage_account_name="two"
    )
    before = identity("s3://b", aws_region="us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://one")
    assert identity("s3://b", aws_region="us-east-1") != before
    assert identity("memory:///a") == ""


def test_queries_and_names_with_a_question_mark_are_other_objects(tmp_path):
    put = SYSTEMS["pyarrow"]
    for value in (1, 2):
        system = put(tmp_path / "d", f"a?{value}.npy", written(".npy", value))
    cache = str(tmp_path / "cache")
    assert [values_of(f"a?{value}.npy", filesystem=system, cache=cache) for value in (1, 2)] == [[1], [2]]
    names = StoreFiles()
    uris = [
        names.masked(f"https://host/get?{query}")
        for query in (
            "id=1",
            "id=2",
            "id=1&X-Amz-Date=1&X-Amz-Signature=a",
            "id=1&X-Amz-Date=2&X-Amz-Signature=b",
        )
    ]
    for one in uris:
        names.pin(Entry(one, 9, "v"))
    first, second, *signed = map(names.cached_as, uris)
    assert first != second
    assert signed[0] == signed[1]


@timed
@pytest.mark.parametrize("cache", [None, "cache"])
@pytest.mark.parametrize("kind", [".jsonl", ".npy"])
def test_a_file_that_is_replaced_is_noticed_by_its_size(tmp_path, put, cache, kind):
    system = put(tmp_path / "d", f"a{kind}", written(kind, 1))
    files = StoreFiles(system=system, cache=Cache(str(tmp_path / "c")) if cache else None)
    (entry,) = files.list("fs://")
    files.pin(entry)
    put(tmp_path / "d", f"a{kind}", b"0" * (entry.size + 1))
    with pytest.raises(DamagedFileError, match="is another object than when it was opened"):
        files.read(entry.path, 0, 5)
    with pytest.raises(DamagedFileError, match="is another object than when it was opened"):
        files.local_copy(entry.path)


def test_what_has_no_version_is_not_cached(tmp_path):
    for value in (1, 2):
        system = in_zip(tmp_path / str(value), "a.jsonl", written(".jsonl", value))
        files = StoreFiles(system=system, cache=Cache(str(tmp_path / "cache")))
        assert files.entry("fs:///a.jsonl").version == ""
        assert files.cached_as("fs:///a.jsonl") is None
        assert files.read("fs:///a.jsonl", 0, 7).to_pybytes() == b'{"x": %d' % value
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("put", [in_zip, in_memory], ids=["zip", "memory"])
def test_a_state_is_not_taken_by_the_data_of_another_system(tmp_path, put):
    made = [put(tmp_path / str(value), "a.jsonl", written(".jsonl", value)) for value in (1, 2, 1)]
    first, other, same = (sf.Loader("a.jsonl", filesystem=one, batch=1, threads=0) for one in made)
    next(iter(first))
    same.load_state_dict(first.state_dict())
    assert len(list(same)) == 2
    with pytest.raises(OpError, match=r"a\.jsonl has other content, of the same size"):
        other.load_state_dict(first.state_dict())
