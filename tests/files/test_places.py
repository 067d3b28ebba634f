"""Web servers, the Hugging Face Hub, and stores and file systems that a user passes."""

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.fs
import pyarrow.parquet as pq
import pytest
from store_server import Faults

import seqflow as sf
from seqflow.errors import (
    DamagedFileError,
    MissingSourceError,
    ProviderError,
    ProviderOptionError,
    StoreError,
)
from seqflow.files.store import StoreFiles
from stores import SECRET

TABLE = pa.table({"row": range(1000)})


@pytest.fixture
def parquet(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=100)
    return tmp_path / "a.parquet"


def rows_of(source, **options):
    return [int(row) for batch in sf.Loader(source, **options) for row in batch["row"]]


def test_a_web_server_gives_files_that_are_named(own, bucket, parquet):
    bucket.put("a b.parquet", parquet)
    url = f"{own.url}/bucket/a%20b.parquet"
    assert rows_of(url) == list(range(1000))
    assert StoreFiles().entry(f"{own.url}/bucket/missing.parquet") is None


def test_a_web_server_has_no_list(own, bucket, parquet):
    bucket.put("a.parquet", parquet)
    with pytest.raises(
        ProviderError, match=r"/bucket.*: a web server has no list of files; name them one by one"
    ):
        sf.open(f"{own.url}/bucket/*.parquet")
    assert own.counts["LIST"] == 0


def test_a_file_of_a_web_server_that_is_replaced_is_told(own, bucket, parquet):
    bucket.put("a.parquet", parquet)
    source = sf.open(f"{own.url}/bucket/a.parquet")
    bucket.put("a.parquet", parquet)
    with pytest.raises(DamagedFileError, match="is another object than when it was opened"):
        rows_of(source)


def test_a_presigned_url_that_allows_only_get_is_read(own, bucket, parquet):
    bucket.put("a.parquet", parquet)
    own.choose = lambda request, number: "denied" if request.method == "HEAD" else ""
    assert rows_of(f"{own.url}/bucket/a.parquet?X-Amz-Signature=abc") == list(range(1000))


@pytest.fixture
def hub(own, monkeypatch, parquet):
    """The folder of a data set, and its address."""
    monkeypatch.setenv("HF_ENDPOINT", own.url)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    folder = own.store.folder / "datasets" / "user" / "name"
    (folder / "data" / "lang=de").mkdir(parents=True)
    (folder / "README.md").write_text("---\n")
    for number in range(3):
        table = TABLE.slice(number * 300, 300)
        pq.write_table(table, folder / "data" / "lang=de" / f"{number}.parquet", row_group_size=50)
    return folder, "hf://datasets/user/name"


@pytest.mark.parametrize("pattern", ["data/*/*.parquet", "data", "@main/data/lang=de/*.parquet"])
def test_the_hub_is_listed_and_read(own, hub, pattern):
    _, uri = hub
    uri = uri + pattern if pattern.startswith("@") else f"{uri}/{pattern}"
    assert rows_of(uri) == list(range(900))
    assert own.counts["HUB LIST"] <= 4  # its commit, and its files
    assert own.counts["HEAD"] == 0


def test_a_token_of_the_hub_is_sent_to_the_hub_alone(own, hub, monkeypatch):
    _, uri = hub
    own.token = "hf_of-tests"
    with pytest.raises(StoreError, match="access denied") as found:
        rows_of(f"{uri}/data")
    assert "HF_TOKEN" in str(found.value)
    assert rows_of(f"{uri}/data", storage_options={"token": "hf_of-tests"}) == list(range(900))
    monkeypatch.setenv("HF_TOKEN", "hf_of-tests")
    assert rows_of(f"{uri}/data") == list(range(900))
    assert own.met["token sent to the data host"] == 0


def test_a_hub_that_fails_now_and_then_loses_no_row(own, hub):
    _, uri = hub
    own.faults = Faults(seed=1, unavailable=0.1, reset=0.1, cut=0.1, short=0.1)
    assert rows_of(f"{uri}/data") == list(range(900))


def test_what_the_hub_has_not_is_missing(own, hub):
    _, uri = hub
    with pytest.raises(sf.SeqflowError, match=r"missing\.parquet"):
        sf.open(f"{uri}/data/missing.parquet")
    with pytest.raises(sf.SeqflowError, match="hf://datasets/user/other"):
        sf.open("hf://datasets/user/other/data")


def systems(own):
    """Stores and file systems, with the path of the bucket in them."""
    from obstore.store import S3Store

    s3fs = pytest.importorskip("s3fs")
    client = {"endpoint_url": own.url, "region_name": "us-east-1"}
    config = {"access_key_id": "ak", "secret_access_key": SECRET, "region": "us-east-1", "endpoint": own.url}
    return {
        "obstore": (S3Store("bucket", config=config, client_options={"allow_http": True}), ""),
        "fsspec": (s3fs.S3FileSystem(key="ak", secret=SECRET, client_kwargs=client), "bucket/"),
    }


@pytest.mark.parametrize("name", ["obstore", "fsspec"])
def test_stores_and_file_systems_of_a_user_are_read(own, bucket, parquet, name):
    bucket.put("x/a.parquet", parquet)
    bucket.put("x/b.csv", b"row\n1\n2\n")
    system, root = systems(own)[name]
    assert rows_of(f"{root}x/a.parquet", filesystem=system) == list(range(1000))
    assert rows_of(f"{root}x/*.parquet", filesystem=system, shuffle=False) == list(range(1000))
    assert rows_of(f"{root}x/b.csv", filesystem=system) == [1, 2]
    source = sf.open(f"{root}x/a.parquet", filesystem=system)
    bucket.put("x/a.parquet", b"another" * 100_000)
    with pytest.raises(DamagedFileError, match="is another object than when it was opened"):
        rows_of(source)


@pytest.mark.parametrize("root", ["", "bucket/"])
def test_pyarrow_is_not_asked_for_the_bytes_of_s3(own, root):
    """It fills the rest of a short body with old memory."""
    system = pa.fs.S3FileSystem(
        endpoint_override=own.url, access_key="ak", secret_key=SECRET, region="us-east-1"
    )
    if root:
        system = pa.fs.SubTreeFileSystem(root, system)
    with pytest.raises(
        ProviderOptionError, match="an S3FileSystem of pyarrow, whose reads may return wrong bytes"
    ):
        sf.open("bucket/a.parquet", filesystem=system)


def test_file_systems_of_this_machine_and_memory_are_read(parquet, tmp_path):
    from fsspec.implementations.local import LocalFileSystem
    from fsspec.implementations.memory import MemoryFileSystem
    from obstore.store import LocalStore, MemoryStore

    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "a.parquet").write_bytes(parquet.read_bytes())
    memory, memory_fs = MemoryStore(), MemoryFileSystem()
    memory.put("x/a.parquet", parquet.read_bytes())
    memory_fs.pipe("/x/a.parquet", parquet.read_bytes())
    for system, path in (
        (LocalStore(tmp_path), "x/*.parquet"),
        (memory, "x/*.parquet"),
        (memory_fs, "x/*.parquet"),
        (LocalFileSystem(), f"{tmp_path}/x/*.parquet"),
        (pa.fs.LocalFileSystem(), f"{tmp_path}/x/*.parquet"),
        (pa.fs.SubTreeFileSystem(str(tmp_path), pa.fs.LocalFileSystem()), "x/*.parquet"),
    ):
        assert rows_of(path, filesystem=system) == list(range(1000)), system


def systems_at(folder):
    """Stores and file systems whose root this folder is, or has its files."""
    from fsspec.implementations.memory import MemoryFileSystem
    from obstore.store import LocalStore, MemoryStore

    memory, memory_fs = MemoryStore(), MemoryFileSystem()
    memory_fs.store.clear()  # one for the process
    for path in filter(Path.is_file, folder.rglob("*")):
        memory.put(str(path.relative_to(folder)), path.read_bytes())
        memory_fs.pipe(f"/{path.relative_to(folder)}", path.read_bytes())
    yield from (
        LocalStore(folder),
        pa.fs.SubTreeFileSystem(str(folder), pa.fs.LocalFileSystem()),
        memory,
        memory_fs,
    )


def test_files_at_the_root_of_a_store_are_found_by_names_globs_and_folders(parquet, tmp_path):
    root = tmp_path / "root"
    for name in ("a.parquet", "lang=de/b.parquet"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(parquet, root / name)
    for system in systems_at(root):
        for path in ("a.parquet", "/a.parquet", "./a.parquet", "*.parquet", "lang=de/../[a]*"):
            assert rows_of(path, filesystem=system, shuffle=False) == list(range(1000)), (system, path)
        for path in ("", "/", ".", "**/*.parquet"):
            source = sf.open(path, filesystem=system)
            assert (source.num_rows, "lang" in source.schema.names) == (2000, True), (system, path)
        assert sf.open("/", filesystem=system, partitioning=["lang"], exclude="a.parquet").num_rows == 1000
        for path in ("b.parquet", "a.parquet/x", "lang=e"):
            with pytest.raises(MissingSourceError, match=path):
                sf.open(path, filesystem=system)


def test_a_table_at_the_root_of_a_store_is_known(tmp_path):
    (tmp_path / "_delta_log").mkdir()
    (tmp_path / "_delta_log" / "0.json").write_text("{}")
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    for system in systems_at(tmp_path):
        with pytest.raises(ProviderOptionError, match="is a Delta Lake table"):
            sf.open("*.parquet", filesystem=system)


def test_other_objects_are_no_file_systems(tmp_path):
    with pytest.raises(ProviderOptionError, match="filesystem is a int, expected a store of obstore"):
        sf.open("a.parquet", filesystem=5)
    with pytest.raises(ProviderOptionError, match="storage_options is a str, expected a dict"):
        sf.open("s3://bucket/a.parquet", storage_options="x")


FORKED = """
import os, signal, sys
import seqflow as sf
from seqflow.files.store import StoreFiles
files = StoreFiles({options!r})
files.read("s3://bucket/a.parquet", 0, 10)
if os.fork() == 0:
    signal.alarm(20)
    for each in (files, StoreFiles({options!r})):
        try:
            each.read("s3://bucket/a.parquet", 0, 10)
        except sf.SeqflowError as error:
            print(error, flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]))
print(files.read("s3://bucket/a.parquet", 0, 4).to_pybytes())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_is_an_error_and_no_hang(bucket, parquet):
    bucket.put("a.parquet", parquet)
    done = subprocess.run(
        [sys.executable, "-c", FORKED.format(options=bucket.options)],
        capture_output=True,
        text=True,
    )
    error = "this process was forked after reading from s3://bucket, and the store's client cannot live through that\n"
    assert done.stdout.count(error) == 2, done.stdout + done.stderr
    assert 'multiprocessing_context="spawn"' in done.stdout
    assert done.stdout.splitlines()[-2:] == ["0", "b'PAR1'"]


def test_a_child_of_a_parent_that_asked_nothing_may_read(bucket, parquet):
    bucket.put("a.parquet", parquet)
    program = f"""
import os, signal
from seqflow.files.store import StoreFiles
files = StoreFiles({bucket.options!r})
if os.fork() == 0:
    signal.alarm(20)
    print(files.read("s3://bucket/a.parquet", 0, 4).to_pybytes(), flush=True)
    os._exit(0)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "b'PAR1'\n0\n", done.stdout + done.stderr


@pytest.mark.slow
def test_a_spawned_child_reads_what_it_gets_by_a_pickle(bucket, parquet, tmp_path):
    bucket.put("a.parquet", parquet)
    source = sf.open("s3://bucket/a.parquet", storage_options=bucket.options)
    (tmp_path / "source").write_bytes(pickle.dumps(source))
    program = f"""
import pickle, seqflow as sf
source = pickle.load(open({str(tmp_path / "source")!r}, "rb"))
print(sum(int(batch["row"].sum()) for batch in sf.Loader(source)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == f"{sum(range(1000))}\n", done.stderr
