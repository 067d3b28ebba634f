"""The common schema of several files."""

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest
from pyarrow import fs, orc

import seqflow as sf
from seqflow.errors import ProviderError

ITEM = pa.field("item", pa.int64(), nullable=False)
KINDS = [
    (pa.int64(), pa.int64(), 1, None),
    (pa.string(), pa.string(), "a", None),
    (pa.list_(ITEM), pa.list_(pa.int64()), [1], [None, 2]),
    (pa.large_list(ITEM), pa.large_list(pa.int64()), [1], None),
    (pa.list_(ITEM, 2), pa.list_(pa.int64(), 2), [1, 2], [None, 3]),
    (pa.struct([ITEM]), pa.struct([ITEM.with_nullable(True)]), {"item": 1}, {"item": None}),
    (pa.list_(pa.struct([ITEM])), pa.list_(pa.struct([ITEM.with_nullable(True)])), [{"item": 1}], [None]),
    (
        pa.map_(pa.string(), pa.field("value", pa.int64(), nullable=False)),
        pa.map_(pa.string(), pa.int64()),
        [("a", 1)],
        [("b", None)],
    ),
]


def write(path, kind, nullable, rows):
    schema = pa.schema([pa.field("x", kind, nullable)])
    table = pa.table([pa.array(rows, kind)], schema=schema)
    pq.write_table(table, path) if path.suffix == ".parquet" else feather.write_feather(table, path)
    return path


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize(("strict", "loose", "value", "null"), KINDS, ids=lambda one: str(one))
def test_what_may_be_null_in_one_file_may_be_null_in_all(tmp_path, suffix, strict, loose, value, null):
    one = write(tmp_path / f"a.{suffix}", strict, False, [value])
    other = write(tmp_path / f"b.{suffix}", loose, True, [null, value])
    for paths, expected in (([one, other], [value, null, value]), ([other, one], [null, value, value])):
        (batch,) = sf.Loader(paths, valid=True)
        assert sf.to_arrow(batch)["x"].to_pylist() == expected
        with pytest.raises(ProviderError, match=r"b.*null value in x"):
            list(sf.Loader(paths))
        skipping = sf.Loader(paths, bad_rows="skip")
        assert sum(batch.num_rows for batch in skipping) == 2
        assert skipping.stats().bad_rows == 1


def test_a_null_that_the_schema_of_its_own_batch_forbids_is_a_bad_row():
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False)])
    batch = pa.record_batch([pa.array([1, None])], schema=schema)
    for source in (batch, pa.RecordBatchReader.from_batches(schema, [batch])):
        with pytest.raises(ProviderError, match="null value in x, which is declared not null"):
            list(sf.Loader(source, valid=True))


TWICE = pa.table([[1], [2], [3]], names=["v", "v", "w"])


def sources_of(table, folder):
    """The table as each kind of source that may have two columns of one name."""
    pq.write_table(table, folder / "a.parquet")
    orc.write_table(table, folder / "a.orc")
    (folder / "a.csv").write_text(",".join(table.schema.names) + "\n1,2,3\n")
    (folder / "hive" / "k=1").mkdir(parents=True)
    pq.write_table(table, folder / "hive" / "k=1" / "a.parquet")
    for name, form in (("a.arrow", pa.ipc.new_file), ("a.arrows", pa.ipc.new_stream)):
        with form(folder / name, table.schema) as writer:
            writer.write_table(table)
    parquet, system = str(folder / "a.parquet"), fs.LocalFileSystem()
    return {
        **{name: folder / name for name in ("a.parquet", "a.orc", "a.csv", "hive", "a.arrow", "a.arrows")},
        "table": table,
        "batch": table.to_batches()[0],
        "batches": table.to_batches(),
        "function": lambda: iter(table.to_batches()),
        "reader": lambda: table.to_reader(),
        "fragment": ds.ParquetFileFormat().make_fragment(parquet, system),
    }


@pytest.mark.parametrize("options", [
    {}, {"columns": ["v"]}, {"columns": ["w", "v"]}, {"where": "v == 1"}, {"where": "w == 3", "columns": ["v"]}, {"rename": {"v": "x"}},
])  # fmt: skip
def test_a_name_of_two_columns_that_is_chosen_is_an_error_in_every_kind_of_source(tmp_path, options):
    for name, source in sources_of(TWICE, tmp_path).items():
        with pytest.raises(ProviderError, match=r"two columns are called|'v' twice|is a column twice"):
            pytest.fail(f"{name}: {sf.open(source, **options)}")


def test_a_name_of_two_columns_that_is_not_chosen_is_no_error_and_all_may_be_renamed(tmp_path):
    for name, source in sources_of(TWICE, tmp_path).items():
        if name not in ("a.csv", "hive"):  # all columns of the first file are looked at
            assert sf.open(source, columns=["w"])["w"].tolist() == [3], name
            assert sf.open(source, columns=["w"], where="w == 3")["w"].tolist() == [3], name
        if name in ("a.csv", "a.orc", "hive", "fragment"):  # which are read by names
            continue
        found = sf.open(source, rename=["a", "b", "w"])
        assert [found[one].tolist() for one in "abw"] == [[1], [2], [3]], name
    with pytest.raises(ProviderError, match="two columns are called 'v'"):
        sf.open(tmp_path / "a.orc", rename=["a", "b", "w"])


def test_a_later_file_with_a_name_twice_is_an_error(tmp_path):
    pq.write_table(pa.table({"v": [1], "w": [2]}), tmp_path / "a.parquet")
    pq.write_table(TWICE, tmp_path / "b.parquet")
    for options in ({}, {"columns": ["v"]}):
        with pytest.raises(ProviderError, match="two columns are called 'v'"):
            sf.open([tmp_path / "a.parquet", tmp_path / "b.parquet"], **options)
    assert sf.open([tmp_path / "a.parquet", tmp_path / "b.parquet"], columns=["w"])["w"].tolist() == [2, 3]
