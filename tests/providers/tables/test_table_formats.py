"""Folders of tables whose files alone are not their rows."""

import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import ProviderError, ProviderOptionError

TABLE = pa.table({"x": [1, 2]})
MARKS = {
    "_delta_log/0.json": "Delta Lake",
    ".hoodie/hoodie.properties": "Hudi",
    "metadata/v1.metadata.json": "Iceberg",
    "_versions/1.manifest": "Lance",
    "_spark_metadata/0": "Spark",
    "index.json": "MDS",
}


OPENERS = {
    "_delta_log/0.json": "deltalake",
    ".hoodie/hoodie.properties": "hudi",
    "metadata/v1.metadata.json": "pyiceberg",
    "_versions/1.manifest": "pylance",
    "_spark_metadata/0": "Spark",
    "index.json": r"streaming\.StreamingDataset",
}


@pytest.mark.parametrize("mark", MARKS)
def test_a_folder_of_another_table_format_is_refused_however_it_is_reached(tmp_path, monkeypatch, mark):
    for package in ("deltalake", "lance"):
        monkeypatch.setitem(sys.modules, package, None)
    top = tmp_path / "table"
    (top / mark).parent.mkdir(parents=True)
    (top / mark).write_text('{"shards": []}')
    pq.write_table(TABLE, top / "a.parquet")
    (tmp_path / "link.parquet").symlink_to(top / "a.parquet")
    for source in (
        top,
        top / "*.parquet",
        top / "a.parquet",
        top / "**" / "*.parquet",
        tmp_path / "link.parquet",
    ):
        for kind in (None, "parquet"):
            with pytest.raises(ProviderOptionError, match=rf"{MARKS[mark]}.*\n.*{OPENERS[mark]}"):
                sf.open(source, kind=kind)


@pytest.mark.parametrize("mark", [mark for mark in MARKS if mark != "index.json"])
def test_so_is_a_file_in_a_folder_of_its_partitions(tmp_path, mark):
    (tmp_path / mark).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / mark).touch()
    (tmp_path / "p=1" / "q=2").mkdir(parents=True)
    pq.write_table(TABLE, tmp_path / "p=1" / "q=2" / "a.parquet")
    with pytest.raises(ProviderOptionError, match=MARKS[mark]):
        sf.open(tmp_path / "p=1")


def test_names_that_only_look_alike_are_no_table_format(tmp_path):
    for name in ("metadata", "_versions"):
        (tmp_path / name).mkdir()
    (tmp_path / "index.json").write_text('{"title": "notes"}')
    pq.write_table(TABLE, tmp_path / "a.parquet")
    assert sf.open(tmp_path / "a.parquet").num_rows == 2


def test_the_splits_of_a_saved_dataset_are_read_one_at_a_time(tmp_path):
    (tmp_path / "dataset_dict.json").write_text('{"splits": ["train", "test"]}')
    for split in ("train", "test"):
        (tmp_path / split).mkdir()
        with pa.ipc.new_stream(str(tmp_path / split / "data.arrow"), TABLE.schema) as writer:
            writer.write_table(TABLE)
    with pytest.raises(ProviderOptionError, match="DatasetDict"):
        sf.open(tmp_path)
    with pytest.raises(ProviderOptionError, match="DatasetDict"):
        sf.open([tmp_path / "train", tmp_path / "test"])
    assert sf.open(tmp_path / "train").num_rows == 2


class Dataset:
    """As datasets.Dataset: rows, and the names of its columns."""

    column_names = ("x",)

    def __len__(self):
        return 1

    def __getitem__(self, at):
        return {"x": at}


@pytest.mark.parametrize(
    "split",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_reader(),
        TABLE.to_pandas(),
        {"x": [1]},
        Dataset(),
        sf.open(TABLE),
    ],
    ids=lambda split: type(split).__name__,
)
def test_tables_by_name_are_no_columns(split):
    with pytest.raises(ProviderError, match=r"'train' of the dict is a table \(\w+\), expected a column"):
        sf.open({"train": split, "test": split})


def test_a_text_is_no_column_of_characters():
    with pytest.raises(ProviderError, match=r"column 'train' is 'a\.parquet', expected an array"):
        sf.open({"train": "a.parquet"})
