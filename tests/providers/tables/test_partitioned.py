"""Files in folders whose names are columns."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset

import seqflow as sf
from seqflow.errors import ProviderError, UnknownColumnError
from seqflow.job import Job, run

ROWS = pa.table({"lang": ["c", "py", "c", "a/b"], "year": [1, 2, 2, 1], "n": [[0], [1, 1], [], [3]]})


@pytest.fixture(params=["parquet", "arrow"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The rows by language and year, as a job writes them."""
    pq.write_table(ROWS, tmp_path / "rows.parquet")
    job = {
        "source": {"paths": "rows.parquet"},
        "output": {"path": "out", "partition_by": ["lang", "year"], "kind": request.param},
    }
    run(Job.from_dict(job, tmp_path))
    return tmp_path / "out"


def test_what_a_job_has_partitioned_comes_back(folder: Path) -> None:
    (batch,) = sf.Loader(folder)
    assert sf.to_arrow(batch).to_pylist() == sorted(
        ROWS.select(["n", "lang", "year"]).to_pylist(), key=lambda row: (row["lang"], row["year"])
    )
    assert sf.open(folder).schema.field("year").type == pa.int64()


def test_columns_of_folders_are_chosen_and_renamed_like_others(folder: Path) -> None:
    assert sf.open(folder, columns=["year"])["year"].tolist() == [1, 1, 2, 2]
    provider = sf.open(folder, columns=["language", "n"], rename={"lang": "language"})
    assert provider.columns == ("language", "n")
    assert len(list(sf.Loader(folder, columns=["lang", "n"], window=20, batch=1))) == 4
    with pytest.raises(UnknownColumnError, match=r"'yer' \(did you mean 'year'\?\)"):
        sf.open(folder, columns=["yer"])


def test_folders_above_the_one_that_is_named_give_nothing(folder: Path) -> None:
    assert sf.open(folder / "lang=c").columns == ("n", "year")
    (file,) = (folder / "lang=py" / "year=2").iterdir()
    assert sf.open(file).columns == ("n",)
    assert sf.open(str(folder / "lang=*" / "year=2" / "*")).columns == ("n", "lang", "year")


def test_a_column_that_is_in_the_files_is_read_from_them(tmp_path: Path) -> None:
    (tmp_path / "n=7").mkdir()
    pq.write_table(pa.table({"n": [1.5]}), tmp_path / "n=7" / "x.parquet")
    assert sf.open(tmp_path)["n"].tolist() == [1.5]


def test_files_outside_the_folders_and_hives_null_are_null(tmp_path: Path) -> None:
    for place in ("x=007", "x=__HIVE_DEFAULT_PARTITION__", "other"):
        (tmp_path / place).mkdir()
        pq.write_table(pa.table({"n": [1]}), tmp_path / place / "a.parquet")
    (batch,) = sf.Loader(tmp_path, valid=True)
    assert sf.to_arrow(batch)["x"].to_pylist() == [None, "007", None]


def test_folders_are_columns_of_text_files_whose_blocks_are_many(tmp_path: Path) -> None:
    for lang in ("c", "py"):
        for number in (1, 2):
            folder = tmp_path / f"lang={lang}" / f"year={number}"
            folder.mkdir(parents=True)
            (folder / "a.txt").write_text(f"{lang}{number}")
    provider = sf.open(tmp_path, format=sf.Text(encoding="utf-8"), columns=["text", "lang", "year"])
    (block,) = provider.blocks()
    rows = [("c1", "c", 1), ("c2", "c", 2), ("py1", "py", 1), ("py2", "py", 2)]
    assert [tuple(row.values()) for row in provider.read(block).to_pylist()] == rows
    batches = sf.Loader(tmp_path, format=sf.Text(encoding="utf-8"), columns=["year"], batch=3)
    assert [batch["year"].tolist() for batch in batches] == [[1, 2, 1], [2]]


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz"])
def test_folders_are_columns_of_files_of_lines(tmp_path: Path, suffix: str) -> None:
    for day in (1, 2):
        (tmp_path / f"day={day}").mkdir()
        opener = gzip.open if suffix.endswith("gz") else open
        with opener(tmp_path / f"day={day}" / f"a{suffix}", "wt") as file:
            file.write(f'{{"label": {day}}}\n{{"label": 0}}\n')
    (batch,) = sf.Loader(tmp_path, columns=["label", "day"])
    assert (batch["label"].tolist(), batch["day"].tolist()) == ([1, 0, 2, 0], [1, 1, 2, 2])
    assert all(block.nbytes for block in sf.open(tmp_path).blocks())


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_folders_without_names_are_columns_that_are_named(tmp_path: Path, suffix: str) -> None:
    for year, month in ((2023, "05"), (2024, "a%2Fb")):
        folder = tmp_path / str(year) / month
        folder.mkdir(parents=True)
        if suffix == ".parquet":
            pq.write_table(pa.table({"id": [year]}), folder / "x.parquet")
        else:
            (folder / "x.jsonl").write_text(f'{{"id": {year}}}\n')
    provider = sf.open(tmp_path, partitioning=["year", "month"])
    rows = [row for block in provider.blocks() for row in provider.read(block).to_pylist()]
    assert rows == [{"id": 2023, "year": 2023, "month": "05"}, {"id": 2024, "year": 2024, "month": "a/b"}]
    assert sf.open(tmp_path).columns == ("id",)
    kept = sf.open(tmp_path, partitioning=["year", "month"], where="year == 2024")
    assert kept.num_rows in (1, None)
    assert [batch["id"].tolist() for batch in sf.Loader(kept, batch=4)] == [[2024]]


def test_folders_of_another_depth_and_what_names_no_columns_are_errors(tmp_path: Path) -> None:
    (tmp_path / "2024").mkdir()
    pq.write_table(pa.table({"id": [1]}), tmp_path / "2024" / "x.parquet")
    with pytest.raises(
        ProviderError, match=r"2024 is 1 folders deep, expected 2 for partitioning=\['year', 'month'\]"
    ):
        sf.open(tmp_path, partitioning=["year", "month"])
    with pytest.raises(ProviderError, match="partitioning is 'year', expected a list of names"):
        sf.open(tmp_path, partitioning="year")
    with pytest.raises(ProviderError, match="no option 'partitioning' for memory"):
        sf.open({"id": [1]}, partitioning=["year"])


def test_files_of_one_folder_share_their_columns_whatever_is_read_before(tmp_path):
    for number, (folder, rows) in enumerate(
        [("a=1/b=1", 3), ("a=1/b=1", 5000), ("a=2/b=1", 3), ("a=1/b=2", 0), ("a=1/b=1", 3)]
    ):
        place = tmp_path / folder
        place.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": range(rows)}), place / f"{number}.parquet")
    expected = dataset(tmp_path, partitioning="hive").to_table()
    for columns in (["x", "a", "b"], ["b", "x"], ["a"], ["b", "a"], ["x", "a", "b"]):
        provider = sf.open(str(tmp_path), columns=columns)
        for _ in range(2):
            found = pa.concat_tables([provider.read(block) for block in provider.blocks()])
            assert found.column_names == columns
            for name in columns:
                assert sorted(found[name].to_pylist()) == sorted(expected[name].to_pylist())
    together = sf.open(str(tmp_path))
    for schema in (together.schema, pa.schema([together.schema.field("b")]), together.schema):
        for block in together.blocks():
            assert together.read(block, schema.names).schema == schema
