"""Datasets of pyarrow, Delta Lake, Lance and Iceberg."""

import json
import pickle
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import ProviderError

ROWS = 1000
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int32()),
        "tokens": [[i] * (i % 5) for i in range(ROWS)],
        "s": [{"x": i, "y": str(i)} for i in range(ROWS)],
    }
)


@pytest.fixture
def path(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=300)
    return tmp_path / "a.parquet"


@pytest.fixture
def hive(tmp_path):
    for key in (0, 1):
        (tmp_path / "hive" / f"key={key}").mkdir(parents=True)
        pq.write_table(TABLE.slice(500 * key, 500), tmp_path / "hive" / f"key={key}" / "a.parquet")
    return tmp_path / "hive"


def epochs(loader, count=2):
    """The ids of the rows of some epochs."""
    return [[i for batch in loader for i in batch["id"].tolist()] for _ in range(count)]


def resumed(make, **options):
    """The ids of a loader that stops after some batches, and of another that goes on."""
    loader = sf.Loader(make(), batch=64, **options)
    batches = iter(loader)
    before = [i for _ in range(4) for i in next(batches)["id"].tolist()]
    state = loader.state_dict()
    batches.close()
    other = sf.Loader(make(), batch=64, **options)
    other.load_state_dict(state)
    return before + epochs(other, 1)[0]


def test_row_groups_are_blocks_whose_rows_are_known(path):
    provider = sf.open(ds.dataset(path))
    assert [block.num_rows for block in provider.blocks()] == [300, 300, 300, 100]
    assert (provider.num_rows, provider.kind, provider.files) == (ROWS, "dataset", (str(path),))
    assert provider["tokens"].values.tolist() == TABLE["tokens"].combine_chunks().flatten().to_pylist()


def test_two_epochs_a_pickle_and_resume(path):
    loader = sf.Loader(ds.dataset(path), batch=64, window="4 KiB")
    assert epochs(loader) == [list(range(ROWS))] * 2
    assert epochs(pickle.loads(pickle.dumps(loader)), 1) == [list(range(ROWS))]
    assert resumed(lambda: ds.dataset(path), window="4 KiB") == list(range(ROWS))


def test_a_state_is_of_the_files(path):
    state = sf.Loader(ds.dataset(path)).state_dict()
    pq.write_table(TABLE.slice(1), path)
    with pytest.raises(ValueError, match="data"):
        sf.Loader(ds.dataset(path)).load_state_dict(state)


def test_columns_fields_and_names_are_chosen_and_only_they_are_counted(path):
    provider = sf.open(ds.dataset(path), columns=["s.z", "id"], rename={"s.y": "z"})
    assert provider.read(next(provider.blocks())).slice(0, 1).to_pylist() == [{"s": {"z": "0"}, "id": 0}]
    narrow = sf.open(ds.dataset(path), columns=["id"])
    assert [block.nbytes for block in narrow.blocks()] == [1200, 1200, 1200, 400]


def test_consecutive_slices_of_a_block_are_read(path):
    provider = sf.open(ds.dataset(path), columns=["id"])
    block = next(provider.blocks())
    found = [provider.read(block, rows=range(at, at + 100))["id"].to_pylist() for at in (0, 100, 200)]
    assert found == [list(range(at, at + 100)) for at in (0, 100, 200)]


def test_keys_of_folders_are_columns(hive):
    provider = sf.open(ds.dataset(hive, partitioning="hive"))
    assert provider["key"].tolist() == [0] * 500 + [1] * 500
    assert provider.schema.names == ["id", "tokens", "s", "key"]


@pytest.mark.parametrize("form", ["csv", "feather"])
def test_other_formats_have_a_block_for_each_file(tmp_path, form):
    for name in ("a", "b"):
        ds.write_dataset(TABLE.select(["id"]), tmp_path / name, format=form)
    dataset = ds.dataset(tmp_path, format=form)
    provider = sf.open(dataset)
    assert provider.num_rows == (None if form == "csv" else 2 * ROWS)
    assert epochs(sf.Loader(dataset)) == [[*range(ROWS)] * 2] * 2


def test_a_fragment_is_a_dataset_of_one_file(hive):
    fragment = list(ds.dataset(hive, partitioning="hive").get_fragments())[1]
    assert sf.open(fragment)["id"].tolist() == list(range(500, ROWS))


def test_a_dataset_in_memory_is_a_table():
    assert epochs(sf.Loader(ds.dataset(TABLE))) == [list(range(ROWS))] * 2


def test_two_columns_of_one_name_in_memory_are_an_error():
    table = pa.table([[1], [2], [3]], names=["v", "v", "w"])
    for options in ({}, {"columns": ["v"]}, {"columns": ["w"]}, {"rename": ["a", "b", "w"]}):
        with pytest.raises(ProviderError, match=r"two columns are called 'v'|in memory can't be opened"):
            sf.open(ds.dataset(table), **options)


def test_a_dataset_with_a_filter_is_scanned_in_each_pass(path):
    loader = sf.Loader(ds.dataset(path).filter(ds.field("id") >= 900), batch=64)
    assert epochs(loader) == [list(range(900, ROWS))] * 2
    assert loader.num_rows is None


def test_a_scanner_is_read_once(path):
    loader = sf.Loader(ds.dataset(path).scanner(columns=["id"]), batch=64)
    assert epochs(loader, 1) == [list(range(ROWS))]
    with pytest.raises(ProviderError, match="can be read once"):
        next(iter(loader))


def test_a_file_that_became_shorter_is_an_error(path):
    provider = sf.open(ds.dataset(path))
    *_, last = provider.blocks()
    pq.write_table(TABLE.slice(0, 10), path)
    with pytest.raises(ProviderError, match=r"a\.parquet, block 3"):
        provider.read(last)


def test_delta_lake_without_what_was_deleted(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    table = TABLE.append_column("key", pa.array([i % 2 for i in range(ROWS)]))
    deltalake.write_deltalake(tmp_path, table, partition_by=["key"])
    deltalake.DeltaTable(tmp_path).delete("id < 100")
    for source in (deltalake.DeltaTable(tmp_path), tmp_path, str(tmp_path)):
        provider = sf.open(source)
        assert (provider.kind, provider.num_rows) == ("delta", 900)
        first, second = epochs(sf.Loader(provider, batch=64))
        assert sorted(first) == list(range(100, ROWS))
        assert first == second
        assert set(provider["key"].tolist()) == {0, 1}
    assert pickle.loads(pickle.dumps(provider))["id"].tolist() == first
    assert resumed(lambda: tmp_path) == first
    with pytest.raises(ProviderError, match=r"a Delta Lake table.*\n.*folder itself"):
        sf.open(f"{tmp_path}/**/*.parquet")


def test_a_state_is_of_a_version_of_a_delta_table(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(tmp_path, TABLE)
    state = sf.Loader(tmp_path).state_dict()
    deltalake.DeltaTable(tmp_path).delete("id = 5")
    with pytest.raises(ValueError, match="data"):
        sf.Loader(tmp_path).load_state_dict(state)
    old = deltalake.DeltaTable(tmp_path, version=0)
    sf.Loader(old).load_state_dict(state)


@pytest.mark.parametrize("mode", ["name", "id"])
@pytest.mark.parametrize("version", [2, 3])
def test_delta_lake_with_a_column_mapping_is_refused_and_as_advised_it_is_read(tmp_path, mode, version):
    deltalake = pytest.importorskip("deltalake")
    features = (
        {"readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"]} if version == 3 else {}
    )
    protocol = {"minReaderVersion": version, "minWriterVersion": 7 if version == 3 else 5, **features}
    stored = pa.table({"col-1": [1, 2], "col-2": [30, 40]})
    for form in (mode, "none"):
        path = tmp_path / form
        names = stored.schema.names if form == "none" else ["b", "a"]
        delta_table(path, stored, names, {"delta.columnMapping.mode": form}, protocol)
        table = deltalake.DeltaTable(path)
        if form == "none" and version == 2:
            assert sf.open(table)["col-1"].tolist() == [1, 2]
        elif form != "none":
            with pytest.raises(ProviderError, match=f"mapping by {mode}|columnMapping"):
                sf.open(table)
            found = deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t")
            assert sf.open(pa.table(found))["b"].tolist() == [1, 2]


def delta_table(path, stored, names, configuration, protocol):
    """A table of one file, whose columns have other names in the table."""
    (path / "_delta_log").mkdir(parents=True)
    pq.write_table(stored, path / "0.parquet")
    fields = [
        {"name": name, "type": "long", "nullable": True, "metadata": {
            "delta.columnMapping.id": at + 1, "delta.columnMapping.physicalName": stored.schema.names[at],
        }}
        for at, name in enumerate(names)
    ]  # fmt: skip
    metadata = {
        "id": "0", "format": {"provider": "parquet", "options": {}}, "partitionColumns": [], "createdTime": 0,
        "configuration": configuration, "schemaString": json.dumps({"type": "struct", "fields": fields}),
    }  # fmt: skip
    size = (path / "0.parquet").stat().st_size
    add = {
        "path": "0.parquet",
        "partitionValues": {},
        "size": size,
        "modificationTime": 0,
        "dataChange": True,
    }
    log = [{"protocol": protocol}, {"metaData": metadata}, {"add": add}]
    (path / "_delta_log" / f"{0:020}.json").write_text("\n".join(map(json.dumps, log)))


@pytest.mark.parametrize("feature", ["deletionVectors", "typeWidening", "anythingNew"])
def test_delta_lake_with_features_that_are_not_read_is_refused(tmp_path, feature):
    pytest.importorskip("deltalake")
    features = {"readerFeatures": [feature], "writerFeatures": [feature]}
    stored = pa.table({"a": [1]})
    delta_table(tmp_path / "t", stored, ["a"], {}, {"minReaderVersion": 3, "minWriterVersion": 7} | features)
    with pytest.raises(ProviderError, match=feature):
        sf.open(tmp_path / "t")


def test_the_folder_of_a_table_has_no_options_of_files(tmp_path):
    deltalake = pytest.importorskip("deltalake")
    deltalake.write_deltalake(tmp_path, TABLE)
    with pytest.raises(ProviderError, match="no option 'memory_map'"):
        sf.open(tmp_path, memory_map=False)
    with pytest.raises(ProviderError, match="Delta Lake"):
        sf.open(tmp_path, kind="parquet")


LANCE = """
import pickle, sys
import lance, pyarrow as pa, seqflow as sf
table = pa.table({"id": pa.array(range(1000), pa.int32()), "tokens": [[i] * (i % 5) for i in range(1000)]})
path = sys.argv[1]
dataset = lance.write_dataset(table, path, max_rows_per_file=400)
dataset.delete("id < 100")
for source in (lance.dataset(path), path):
    loader = sf.Loader(source, batch=64)
    ids = [[i for batch in loader for i in batch["id"].tolist()] for _ in range(2)]
    assert ids == [list(range(100, 1000))] * 2, ids
    assert (loader.source.kind, loader.num_rows) == ("lance", 900)
batches = iter(loader)
seen = [i for _ in range(4) for i in next(batches)["id"].tolist()]
state = loader.state_dict()
other = pickle.loads(pickle.dumps(sf.Loader(path, batch=64)))
other.load_state_dict(state)
assert seen + [i for batch in other for i in batch["id"].tolist()] == list(range(100, 1000))
block = next(loader.source.blocks())
assert loader.source.read(block, ["id"], rows=range(10, 20)).column("id").to_pylist() == list(range(110, 120))
blob = pa.field("v", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
lance.write_dataset(pa.table([[b"abc"], [1]], schema=pa.schema([blob, ("id", pa.int64())])), path + "2")
assert sf.open(path + "2")["id"].tolist() == [1]
try:
    list(sf.Loader(path + "2", valid=True))
except sf.SeqflowError as error:
    assert "column 'v' is struct<" in str(error), error
else:
    raise AssertionError("the places of blobs are read as blobs")
"""


@pytest.mark.slow
def test_lance_in_a_process_of_its_own_since_it_forbids_forks(tmp_path):
    if find_spec("lance") is None:
        pytest.skip("pylance is not installed")
    subprocess.run([sys.executable, "-c", LANCE, tmp_path / "a.lance"], check=True)


@pytest.fixture
def iceberg(tmp_path):
    sql = pytest.importorskip("pyiceberg.catalog.sql")
    pytest.importorskip("sqlalchemy")
    catalog = sql.SqlCatalog("test", uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=tmp_path.as_uri())
    catalog.create_namespace("space")
    table = catalog.create_table("space.table", schema=TABLE.schema)
    table.append(TABLE.slice(0, 600))
    table.append(TABLE.slice(600))
    yield table
    catalog.close()


def test_iceberg_by_its_files(iceberg):
    loader = sf.Loader(iceberg, batch=64)
    first, second = epochs(loader)
    assert first == second
    assert sorted(first) == list(range(ROWS))
    assert (loader.source.kind, loader.num_rows, len(list(loader.source.blocks()))) == ("iceberg", ROWS, 2)
    assert resumed(iceberg.scan) == first
    narrow = sf.open(iceberg, columns=["s.y"])
    assert sorted(np.unique(narrow["s.y"]["y.lengths"]).tolist()) == [1, 2, 3]


def test_an_iceberg_scan_with_a_filter_or_a_limit(iceberg):
    filtered = sf.Loader(iceberg.scan(row_filter="id >= 900"), batch=64)
    assert filtered.num_rows is None
    assert [sorted(ids) for ids in epochs(filtered)] == [list(range(900, ROWS))] * 2
    assert [len(ids) for ids in epochs(sf.Loader(iceberg.scan(limit=700), batch=64))] == [700] * 2


def test_a_state_knows_names_of_iceberg_that_belong_to_other_columns_now(iceberg):
    columns = {"columns": ["id", "tokens"]}
    state = sf.Loader(iceberg, **columns).state_dict()
    with iceberg.update_schema() as update:
        update.rename_column("s", "t")
    sf.Loader(iceberg, **columns).load_state_dict(state)
    for old, new in (("id", "i"), ("tokens", "id"), ("i", "tokens")):
        with iceberg.update_schema() as update:
            update.rename_column(old, new)
    with pytest.raises(ValueError, match="data"):
        sf.Loader(iceberg, **columns).load_state_dict(state)


def test_a_state_is_of_a_snapshot(iceberg):
    state = sf.Loader(iceberg).state_dict()
    iceberg.append(TABLE.slice(0, 1))
    with pytest.raises(ValueError, match="data"):
        sf.Loader(iceberg).load_state_dict(state)
