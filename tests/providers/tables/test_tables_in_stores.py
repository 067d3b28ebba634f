"""Tables and saved datasets in stores, and folders of them that are refused, with one list of a folder."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import MissingSourceError, ProviderError, ProviderOptionError, StoreError

TABLE = pa.table({"id": range(6), "text": ["a", "b", "c", "d", "e", "f"]})


def parquet(bucket: Any, key: str, table: pa.Table = TABLE) -> str:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    uri: str = bucket.put(key, sink.getvalue().to_pybytes())
    return uri


def ids(provider: Any) -> list[int]:
    return [
        one for block in provider.blocks() for one in provider.read(block, ["id"]).column("id").to_pylist()
    ]


def delta(folder: Path) -> Path:
    deltalake = pytest.importorskip("deltalake")
    for part in (TABLE[:4], TABLE[4:]):
        deltalake.write_deltalake(str(folder), part, mode="append")
    deltalake.DeltaTable(str(folder)).delete("id = 1")
    return folder


WRITE_LANCE = """
import sys, lance, pyarrow as pa
lance.write_dataset(pa.table({"id": range(6), "text": [*"abcdef"]}), sys.argv[1])
lance.dataset(sys.argv[1]).delete("id = 1")
"""
READ_LANCE = """
import json, sys
sys.path[:0] = json.loads(sys.argv[1])
from test_tables_in_stores import check_table
check_table(sys.argv[2], "lance", json.loads(sys.argv[3]), sys.argv[4])
"""


def check_table(uri: str, kind: str, options: dict[str, Any], secret: str) -> None:
    for place in (uri, f"{uri}/"):
        provider = sf.open(place, storage_options=options)
        assert provider.kind == kind
        assert sorted(ids(provider)) == [0, 2, 3, 4, 5]
    assert secret not in f"{provider!r}{provider.content}"


def python(code: str, *arguments: Any) -> None:
    """Run code in a process of its own: Lance forbids forks in the one that has imported it."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["delta", "lance"])
@pytest.mark.parametrize("spelling", ["delta", "fsspec"])
def test_tables_are_read_by_their_packages(
    kind: str, spelling: str, own: Any, bucket: Any, tmp_path: Path
) -> None:
    if kind == "delta":
        delta(tmp_path / "t")
    elif find_spec("lance") is None:
        pytest.skip("pylance is not installed")
    else:
        python(WRITE_LANCE, tmp_path / "t")
    uri = bucket.put_folder(tmp_path / "t", "t/")
    options = bucket.options
    if spelling == "fsspec":
        options = {
            "key": options["aws_access_key_id"], "secret": options["aws_secret_access_key"],
            "client_kwargs": {"endpoint_url": own.url, "region_name": "us-east-1"},
        }  # fmt: skip
        options["region"] = options["client_kwargs"].pop("region_name")
    secret = bucket.options["aws_secret_access_key"]
    if kind == "delta":
        check_table(uri, kind, options, secret)
    else:
        python(READ_LANCE, json.dumps([str(Path(__file__).parent)]), uri, json.dumps(options), secret)


@pytest.mark.parametrize("option", [{"cache": "c"}, {"filesystem": True}])
def test_tables_take_storage_options_only(option: dict[str, Any], own: Any, bucket: Any) -> None:
    pytest.importorskip("deltalake")
    bucket.put("t/_delta_log/00000000000000000000.json", b"{}")
    parquet(bucket, "t/a.parquet")
    if "filesystem" in option:
        given: dict[str, Any] = {"filesystem": bucket.client}
        place = "t"
    else:
        given, place = {"storage_options": bucket.options, **option}, f"{bucket.uri}/t"
    name = next(iter(option))
    with pytest.raises(
        ProviderOptionError,
        match=f"^{name} is given, but s3://bucket/t is a Delta Lake table, which its package",
    ):
        sf.open(place, **given)


@pytest.mark.parametrize(
    ("mark", "format"),
    [
        ("_delta_log/0.json", "a Delta Lake table"),
        ("metadata/v1.metadata.json", "an Iceberg table"),
        (".hoodie/hoodie.properties", "a Hudi table"),
        ("_spark_metadata/0", "the output of a Spark stream"),
        ("_versions/1.manifest", "a Lance table"),
    ],
)
def test_files_of_tables_are_refused(mark: str, format: str, own: Any, bucket: Any) -> None:
    parquet(bucket, "all/t/x/a.parquet")
    bucket.put(f"all/t/{mark}", b"{}")
    for pattern in ("all", "all/t/*/*.parquet", "all/**/*.parquet"):
        own.clear()
        with pytest.raises(ProviderOptionError, match=f"s3://bucket/all/t is {format}: the rows of all"):
            sf.open(f"s3://bucket/{pattern}", storage_options=bucket.options)
        assert own.counts["LIST"] == 1
        assert own.counts["GET"] == 0
    parquet(bucket, "all/u/a.parquet")
    assert ids(sf.open("s3://bucket/all/u", storage_options=bucket.options)) == [*range(6)]


def test_splits_and_shards_are_refused(own: Any, bucket: Any) -> None:
    for split in ("train", "test"):
        parquet(bucket, f"d/{split}/a.parquet")
    bucket.put("d/dataset_dict.json", b"{}")
    with pytest.raises(ProviderOptionError, match="s3://bucket/d is a DatasetDict with several splits"):
        sf.open("s3://bucket/d", storage_options=bucket.options)
    assert ids(sf.open("s3://bucket/d/train", storage_options=bucket.options)) == [*range(6)]
    parquet(bucket, "m/a.parquet")
    bucket.put("m/index.json", b'{"shards": []}')
    with pytest.raises(ProviderOptionError, match="s3://bucket/m is a dataset in shards with an index"):
        sf.open("s3://bucket/m", storage_options=bucket.options)
    bucket.put("m/index.json", b'{"other": []}')
    assert ids(sf.open("s3://bucket/m", storage_options=bucket.options)) == [*range(6)]


def saved(bucket: Any, **state: Any) -> str:
    datasets = ["data-00001.arrow", "data-00000.arrow"]
    for number, name in enumerate([*datasets, "cache-1.arrow"]):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, TABLE.schema) as writer:
            writer.write_table(TABLE[2 * number : 2 * number + 2])
        bucket.put(f"s/{name}", sink.getvalue().to_pybytes())
    described = {"_data_files": [{"filename": name} for name in datasets], **state}
    bucket.put("s/state.json", json.dumps(described).encode())
    return f"{bucket.uri}/s"


def test_saved_datasets_keep_their_order(own: Any, bucket: Any) -> None:
    uri = saved(bucket)
    own.clear()
    provider = sf.open(uri, storage_options=bucket.options)
    assert provider.files == (f"{uri}/data-00001.arrow", f"{uri}/data-00000.arrow")
    assert own.counts["LIST"] == 1
    assert ids(provider) == [0, 1, 2, 3]
    assert ids(sf.open(f"{uri}/cache-1.arrow", storage_options=bucket.options)) == [4, 5]


def test_saved_datasets_that_lack_something_are_refused(own: Any, bucket: Any) -> None:
    uri = saved(bucket)
    bucket.delete("s/data-00000.arrow")
    with pytest.raises(
        MissingSourceError, match=f"^{uri} is a saved dataset without its file data-00000.arrow"
    ):
        sf.open(uri, storage_options=bucket.options)
    saved(bucket, _indices_data_files=[{"filename": "i.arrow"}])
    with pytest.raises(ProviderError, match="with an indices mapping"):
        sf.open(uri, storage_options=bucket.options)


def test_folders_of_partitions_are_columns(store: Any) -> None:
    for year in (2023, 2024):
        for lang in ("c", "p%20y"):
            parquet(store, f"p/year={year}/lang={lang}/a.parquet", TABLE.slice(year - 2023, 1))
    provider = sf.open(f"{store.uri}/p", storage_options=store.options)
    assert provider.schema.names == ["id", "text", "year", "lang"]
    rows = [
        row for block in provider.blocks() for row in provider.read(block, ["id", "year", "lang"]).to_pylist()
    ]
    assert rows == [
        {"id": year - 2023, "year": year, "lang": lang} for year in (2023, 2024) for lang in ("c", "p y")
    ]
    own = sf.open(f"{store.uri}/p", storage_options=store.options, where="year == 2024 and lang == 'c'")
    assert ids(own) == [1]
    named = sf.open(f"{store.uri}/p/year=2024/**", storage_options=store.options, partitioning=["language"])
    assert "language" in named.schema.names


def test_partitions_cost_one_list(own: Any, bucket: Any) -> None:
    for number in range(20):
        parquet(bucket, f"p/n={number}/a.parquet")
    own.clear()
    provider = sf.open("s3://bucket/p", storage_options=bucket.options, where="n == 3")
    assert own.counts["LIST"] == 1
    assert own.counts["HEAD"] <= 2
    assert own.counts["GET"] <= 4  # of two files, the first one and that of n=3
    assert ids(provider) == [*range(6)]


@pytest.fixture
def hub(own: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("HF_ENDPOINT", own.url)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    folder = tmp_path / "store" / "datasets" / "user" / "name"
    for split in ("train", "test"):
        (folder / "data" / split).mkdir(parents=True)
        for number in range(3):
            pq.write_table(TABLE[2 * number : 2 * number + 2], folder / "data" / split / f"{number}.parquet")
    (folder / ".gitattributes").write_text("* text")
    (folder / "README.md").write_text("about it")
    own.clear()
    return own


@pytest.mark.parametrize("path", ["data/train", "data/train/*.parquet", "data/train/**", "data/train/"])
def test_datasets_of_the_hub_are_read(path: str, hub: Any) -> None:
    provider = sf.open(f"hf://datasets/user/name/{path}")
    assert ids(provider) == [*range(6)]
    assert provider.files[0] == "hf://datasets/user/name/data/train/0.parquet"
    assert hub.counts["HUB LIST"] <= 6


def test_a_whole_repository_and_a_single_file_of_the_hub(hub: Any) -> None:
    assert len(sf.open("hf://datasets/user/name").files) == 6
    assert len(sf.open("hf://datasets/user/name@main/data").files) == 6
    assert ids(sf.open("hf://datasets/user/name/data/test/1.parquet")) == [2, 3]
    assert sf.open("hf://datasets/user/name/README.md")["bytes"].values.tobytes() == b"about it"
    with pytest.raises(MissingSourceError, match="hf://datasets/user/name/data/none"):
        sf.open("hf://datasets/user/name/data/none")


def test_private_datasets_of_the_hub_need_a_token(hub: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.token = "hf-secret"
    with pytest.raises(StoreError) as error:
        sf.open("hf://datasets/user/name", storage_options={"retry_seconds": 0.2})
    assert "HF_TOKEN" in str(error.value)
    assert ids(sf.open("hf://datasets/user/name/data/train", storage_options={"token": "hf-secret"})) == [
        *range(6)
    ]
    monkeypatch.setenv("HF_TOKEN", "hf-secret")
    assert ids(sf.open("hf://datasets/user/name/data/train")) == [*range(6)]


def test_a_repository_that_is_not_there(hub: Any) -> None:
    with pytest.raises(ProviderError, match=r"^hf://datasets/user/none"):
        sf.open("hf://datasets/user/none")


def test_a_loader_of_the_hub(hub: Any) -> None:
    loader = sf.Loader("hf://datasets/user/name/data/train", columns=["id"], batch=4)
    assert [batch["id"].tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5]]
