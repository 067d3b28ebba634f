"""Files in folders whose names are columns."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import UnknownColumnError
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
