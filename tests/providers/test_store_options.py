"""Options of stores, and each thing that can be wrong with them or with a URI, in words of its own."""

import copy
import http.server
import pickle
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from store_server import Faults, free_port

import seqflow as sf
from seqflow.errors import MissingSourceError, ProviderError, ProviderOptionError, StoreError
from stores import SECRET


def content(rows: int = 3) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.table({"id": range(rows)}), sink)
    return sink.getvalue().to_pybytes()


def message(uri: Any, kind: type[Exception] = ProviderError, **options: Any) -> str:
    with pytest.raises(kind) as error:
        sf.open(uri, **options)
    assert SECRET not in str(error.value)
    return str(error.value)


def test_the_wrong_region_is_told(own: Any, bucket: Any) -> None:
    uri = bucket.put("a.parquet", content())
    own.faults = Faults(region=1)
    text = message(f"{uri[:-1]}*", StoreError, storage_options={**bucket.options, "aws_region": "eu-x-1"})
    assert text.startswith("s3://bucket does not exist, or lies in another region than eu-x-1")


def test_a_bucket_that_is_not_there_is_told(own: Any, bucket: Any) -> None:
    text = message("s3://no-such-bucket/a/", StoreError, storage_options=bucket.options)
    assert text.startswith("s3://no-such-bucket does not exist, or lies in another region than us-east-1")


def test_an_object_that_is_not_there_is_told(own: Any, bucket: Any) -> None:
    text = message("s3://bucket/a.parquet", MissingSourceError, storage_options=bucket.options)
    assert text == "s3://bucket/a.parquet does not exist: there is neither such an object nor any below it"
    text = message("s3://bucket/*.parquet", MissingSourceError, storage_options=bucket.options)
    assert text == "no files in 's3://bucket/*.parquet'"


def test_missing_credentials_are_told(
    own: Any, bucket: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    # the address at which a cloud tells its machines their credentials: nothing listens at this one
    options = {
        "aws_endpoint_url": own.url, "aws_region": "us-east-1", "retry_seconds": 0.2,
        "aws_metadata_endpoint": f"http://127.0.0.1:{free_port()}",
    }  # fmt: skip
    uri = bucket.put("a.parquet", content())
    text = message(uri, StoreError, storage_options=options)
    assert text.startswith(
        "no credentials for s3://bucket: neither options, environment nor this machine have any"
    )
    assert "skip_signature" in text
    assert sf.open(uri, storage_options={**options, "skip_signature": True}).num_rows == 3


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"storage_options": {"no_such_option": 1}}, r"storage_options of s3://bucket: .*no_such_option"),
        (
            {"storage_options": "aws_region=x"},
            r"storage_options is a str, expected a dict of options",
        ),
        (
            {"storage_options": {"retry_seconds": 0}},
            "retry_seconds is 0, expected a number of seconds above 0",
        ),
        (
            {"storage_options": {"aws_region": "x"}, "filesystem": True},
            "storage_options is given in addition to file",
        ),
        (
            {"filesystem": 3},
            "filesystem is a int, expected a store of obstore, or a file system of pyarrow or fsspec",
        ),
        ({"cache_bytes": 100}, "cache_bytes is given, but no cache, whose size it is"),
        ({"cache": "c", "cache_bytes": "much"}, "cache_bytes is 'much', expected bytes"),
    ],
)
def test_wrong_options_are_told(
    given: dict[str, Any],
    expected: str,
    own: Any,
    bucket: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    bucket.put("a.parquet", content())
    if given.get("filesystem") is True:
        given = {**given, "filesystem": bucket.client}
    with pytest.raises(ProviderOptionError, match=expected):
        sf.open("s3://bucket/a.parquet", **given)


@pytest.mark.parametrize("scheme", ["ftp", "sftp", "hdfs", "dbfs"])
def test_other_schemes_are_told(scheme: str) -> None:
    text = message(f"{scheme}://user:{SECRET}@host/a.parquet", ProviderOptionError)
    assert text.startswith(
        f"{scheme}://…@host/a.parquet is a URI of {scheme}, which can't be read, expected a path"
    )
    assert "filesystem=" in text


@pytest.mark.parametrize("pattern", ["*.parquet", "bucket/**", "bucket/[ab].parquet", "bucket/"])
def test_a_web_server_has_no_list(pattern: str, own: Any, bucket: Any) -> None:
    bucket.put("a.parquet", content())
    assert "a web server has no list of files; name them one by one" in message(f"{own.url}/{pattern}")


def test_files_of_a_web_server_are_read_one_by_one(own: Any, bucket: Any) -> None:
    for name in ("a", "b"):
        bucket.put(f"{name}.parquet", content())
    provider = sf.open([f"{own.url}/bucket/{name}.parquet" for name in ("a", "b")])
    assert provider["id"].tolist() == [0, 1, 2, 0, 1, 2]


@pytest.fixture
def signed(tmp_path: Path) -> Iterator[str]:
    """A URL of a server that refuses requests without its signature."""
    folder = tmp_path / "web"
    folder.mkdir()
    (folder / "a.parquet").write_bytes(content())

    class Handler(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args, directory=str(folder))

        def do_HEAD(self) -> None:
            self.send_error(403)  # signed for GET alone

        def do_GET(self) -> None:
            name, _, query = self.path.partition("?")
            place = folder / name.strip("/")
            if f"X-Sig={SECRET}" not in query or not place.is_file():
                self.send_error(404 if SECRET in query else 403)
                return
            data = place.read_bytes()
            first, _, last = self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")
            part = data[int(first) : int(last or len(data)) + 1]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(data)}")
            self.send_header("Content-Length", str(len(part)))
            self.send_header("ETag", '"1"')
            self.end_headers()
            self.wfile.write(part)

        def log_message(self, *args: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/a.parquet?X-Id=1&X-Sig={SECRET}"
        server.shutdown()


def test_the_query_of_a_presigned_url_is_shown_nowhere(signed: str, tmp_path: Path) -> None:
    provider = sf.open(signed)
    masked = signed.partition("?")[0] + "?X-Id=…&X-Sig=…"
    assert provider.files == (masked,)
    assert provider["id"].tolist() == [0, 1, 2]
    loader = sf.Loader(signed, batch=2)
    batches = iter(loader)
    next(batches)
    shown = [
        provider,
        provider.origin,
        provider.search,
        loader,
        loader.state_dict(),
        loader.pipeline.settings(),
        [*provider.blocks()],
    ]
    assert SECRET not in "".join(map(repr, shown))
    again = pickle.loads(pickle.dumps(copy.deepcopy(provider)))  # the user gave it as a value
    assert again["id"].tolist() == [0, 1, 2]
    wrong = signed.replace("a.parquet", "b.parquet")
    assert "b.parquet?X-Id=…&X-Sig=… does not exist" in message(wrong)
    (tmp_path / "web" / "c.parquet").write_bytes(b"nothing")
    assert "c.parquet?X-Id=…&X-Sig=…" in message(signed.replace("a.parquet", "c.parquet"))
    assert "X-Other=…" in message(signed.replace("X-Sig", "X-Other"), storage_options={"retry_seconds": 0.1})


def test_two_urls_that_differ_in_their_queries_are_two_files(signed: str) -> None:
    other = signed.replace("X-Id=1", "X-Id=2")
    provider = sf.open([signed, other])
    assert len(set(provider.files)) == 2
    assert provider["id"].tolist() == [0, 1, 2, 0, 1, 2]


def test_a_source_of_ones_own_may_list_uris(own: Any, bucket: Any) -> None:
    class Mine:
        schema = pa.schema({"id": pa.int64()})
        paths = ("s3://bucket/a.bin", "s3://bucket/b.bin")

        def blocks(self) -> list[Any]:
            return [sf.providers.Block("mine", 0, 3, 24)]

        def read(self, block: Any, columns: Any) -> dict[str, list[int]]:
            return {"id": [1, 2, 3]}

    provider = sf.open(Mine())
    assert provider.files == Mine.paths
    assert "s3:" in str(sf.Loader(provider, batch=2).state_dict()) or provider["id"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("with_cache", [False, True])
def test_a_loader_takes_options_of_stores(with_cache: bool, own: Any, bucket: Any, tmp_path: Path) -> None:
    bucket.put("a.parquet", content(10))
    options: dict[str, Any] = {"storage_options": bucket.options}
    if with_cache:
        options |= {"cache": tmp_path / "c", "cache_bytes": "1 MiB"}
    loader = sf.Loader("s3://bucket/*.parquet", batch=4, **options)
    assert [batch["id"].tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert (tmp_path / "c").exists() == with_cache


def test_options_of_stores_are_no_part_of_a_state(own: Any, bucket: Any, tmp_path: Path) -> None:
    bucket.put("a.parquet", content(10))
    loader = sf.Loader("s3://bucket/a.parquet", batch=4, storage_options=bucket.options)
    batches = iter(loader)
    next(batches)
    state = loader.state_dict()
    assert SECRET not in repr(state)
    other = sf.Loader(
        "s3://bucket/a.parquet", batch=4, cache=tmp_path / "c",
        storage_options={**bucket.options, "aws_region": "eu-west-1", "retry_seconds": 3},
    )  # fmt: skip
    other.load_state_dict(state)
    assert [batch["id"].tolist() for batch in other] == [[4, 5, 6, 7], [8, 9]]
    bucket.put("a.parquet", content(10))
    changed = sf.Loader("s3://bucket/a.parquet", batch=4, storage_options=bucket.options)
    with pytest.raises(sf.errors.OpError, match="the data have changed"):
        changed.load_state_dict(state)


def test_an_index_of_objects_lies_in_the_cache_of_the_user(
    own: Any, bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))

    def put(rows: int) -> None:
        sink = pa.BufferOutputStream()
        pq.write_table(pa.table({"t": [[1] * n for n in range(rows)]}), sink)
        bucket.put("a.parquet", sink.getvalue().to_pybytes())

    def loader(**options: Any) -> Any:
        return sf.Loader(
            "s3://bucket/a.parquet", batch=sf.TokenBudget(10), storage_options=bucket.options, **options
        )

    put(8)
    first = loader(index=True)
    assert len(first) == len(list(first))
    assert first.index.parent == tmp_path / "xdg" / "seqflow" / "lengths"
    assert first.index.exists()
    own.clear()
    assert len(loader(index=True)) == len(first)
    put(9)
    later = loader(index=True)
    assert later.index != first.index
    assert len(later) == len(list(later))
    own_place = loader(index=tmp_path / "my.arrow")
    assert len(own_place) == len(later)
    assert (tmp_path / "my.arrow").exists()
