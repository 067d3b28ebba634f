"""Files in folders whose names are columns."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow.dataset import dataset

import seqflow as sf
from seqflow.errors import ProviderError, UnknownColumnError
from seqflow.job import Job, run
from seqflow.providers.block_bounds import block_bounds

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


def written(folder: Path, kind: str, files: dict[str, list[dict[str, Any]]]) -> str:
    """Files of a kind with these rows, by their names without a suffix."""
    for name, rows in files.items():
        path = folder / f"{name}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if kind == "jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        elif kind == "csv":
            lines = [list(rows[0]), *(row.values() for row in rows)]
            path.write_text("".join(",".join(map(str, line)) + "\n" for line in lines))
        elif kind == "arrow":
            table = pa.Table.from_pylist(rows)
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table)
        else:
            pq.write_table(pa.Table.from_pylist(rows), path)
    return str(folder)


def rows_of(source: Any, **options: Any) -> list[dict[str, Any]]:
    provider = sf.open(source, **options)
    return [row for block in provider.blocks() for row in provider.read(block).to_pylist()]


KINDS = ["parquet", "arrow", "jsonl", "csv"]


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_of_later_files_is_a_column_below_folders_too(tmp_path: Path, kind: str) -> None:
    """Files below folders become one source by the rule of lists of files, with the columns of folders after theirs."""
    source = written(tmp_path, kind, {"k=1/a": [{"id": 1}], "k=2/a": [{"id": 2, "x": 0.5}]})
    both = [{"id": 1, "x": None, "k": 1}, {"id": 2, "x": 0.5, "k": 2}]
    assert rows_of(source) == both
    assert rows_of(source, columns=["k", "x"]) == [{"k": 1, "x": None}, {"k": 2, "x": 0.5}]
    assert rows_of(source, columns=["id"], where="x > 0") == [{"id": 2}]
    assert rows_of(source, where="x is None") == both[:1]
    assert rows_of(source, where="k == 2 and x > 0") == both[1:]
    assert rows_of(source, rename={"x": "y", "k": "z"}, columns=["y", "z"]) == [
        {"y": None, "z": 1},
        {"y": 0.5, "z": 2},
    ]
    assert rows_of(source, schema={"x": "float32", "k": "string"}) == [
        {"id": 1, "x": None, "k": "1"},
        {"id": 2, "x": 0.5, "k": "2"},
    ]
    of_list = sf.open([str(tmp_path / f"k={n}" / f"a.{kind}") for n in (1, 2)])
    assert of_list.schema == pa.schema(list(sf.open(source).schema)[:-1])
    with pytest.raises(UnknownColumnError, match="there is no column 'z'"):
        rows_of(source, columns=["z"])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("having", [0, 1, 2])
def test_a_key_of_folders_may_be_a_column_of_some_files(tmp_path: Path, kind: str, having: int) -> None:
    """A file's own column is read; files, and rows of JSON, without it have the value of their folder."""
    files = {f"year={2020 + at}/a": [{"id": at}] for at in range(3)}
    files[f"year={2020 + having}/a"] = [{"id": having, "year": 2020 + having}]
    source = written(tmp_path, kind, files)
    assert [(row["id"], row["year"]) for row in rows_of(source)] == [(0, 2020), (1, 2021), (2, 2022)]
    for at in range(3):
        loader = sf.Loader(source, where=f"year == {2020 + at}", columns=["id"])
        assert [batch["id"].tolist() for batch in loader] == [[at]]
    assert rows_of(source, rename={"year": "y"}, columns=["y"], where="year > 2020") == [
        {"y": 2021},
        {"y": 2022},
    ]
    assert rows_of(source, columns=["year"]) == [{"year": 2020}, {"year": 2021}, {"year": 2022}]


def test_rows_of_json_without_a_key_have_that_of_their_folder(tmp_path: Path) -> None:
    rows = [{"id": 1, "k": "own"}, {"id": 2}, {"id": 3, "k": None}]
    source = written(tmp_path, "jsonl", {"k=a/x": rows, "k=b/x": [{"id": 4}]})
    assert [row["k"] for row in rows_of(source)] == ["own", "a", "a", "b"]
    assert [row["id"] for row in rows_of(source, where="k == 'a'")] == [2, 3]
    assert [row["id"] for row in rows_of(source, where="k == 'own'")] == [1]


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_a_key_has_the_type_of_the_files_that_have_it(tmp_path: Path, kind: str) -> None:
    source = written(tmp_path, kind, {"day=007/a": [{"id": 1}], "day=8/a": [{"id": 2, "day": "8"}]})
    assert [row["day"] for row in rows_of(source)] == ["007", "8"]
    other = written(tmp_path / "o", kind, {"day=a/a": [{"id": 1}], "day=8/a": [{"id": 2, "day": 8}]})
    with pytest.raises(ProviderError, match=r"column 'day' is int64 in .*day=8.*, but string in .*day=a"):
        rows_of(other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("where", "ids"),
    [
        ("k >= 2 and x > 5", [3]),
        ("(k == 2 and x > 4) or (k == 3 and x > 9)", [2]),
        ("not (k == 1 or x == 6)", [2]),
        ("k != 1", [2, 3]),
    ],
)
def test_files_that_a_folder_leaves_out_take_no_part_in_types(
    tmp_path: Path, kind: str, where: str, ids: list[int]
) -> None:
    """Also if the condition reads columns that the first file does not have."""
    first = {"id": 1, "x": "text"} if kind != "arrow" else {"id": 1}
    source = written(
        tmp_path, kind, {"k=1/a": [first], "k=2/a": [{"id": 2, "x": 5}], "k=3/a": [{"id": 3, "x": 6}]}
    )
    assert [row["id"] for row in rows_of(source, where=where)] == ids
    assert sf.open(source, where=where).schema.field("x").type == pa.int64()


def test_a_text_file_below_folders_is_traced_to_itself(tmp_path: Path) -> None:
    for place in ("k=1/a", "k=1/b", "k=2/a"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / f"{place}.txt").write_text(place)
    loader = sf.Loader(tmp_path, format=sf.Text(encoding="utf-8"), batch=3)
    (batch,) = loader
    assert [trace.file for trace in loader.trace(0)] == sf.to_arrow(batch)["path"].to_pylist()


def test_row_groups_below_folders_have_the_bounds_of_their_footers(tmp_path: Path) -> None:
    source = written(tmp_path, "parquet", {f"k={at}/a": [{"x": [1] * at}, {"x": [2]}] for at in range(1, 3)})
    bounds = block_bounds(sf.open(source))
    assert bounds is not None
    assert [(one.rows, one.sums["x.lengths"]) for one in bounds] == [(2, 2), (2, 3)]


def test_a_provider_of_files_below_folders_has_the_notes_of_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compressed file that is read from its start each time, since nothing can be kept of it, is noted."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    (tmp_path / "of" / "k=1").mkdir(parents=True)
    lines = b"".join(b'{"x": %d}\n' % (at * 7919) for at in range(300_000))
    (tmp_path / "of" / "k=1" / "a.jsonl.gz").write_bytes(gzip.compress(lines, 1))
    below = sf.open(tmp_path / "of", format=sf.JsonLines(batch_bytes=1 << 20))
    for block in below.blocks():
        below.read(block)
    (note,) = below.source.notes
    assert note in repr(below)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_are_counted_without_their_columns(tmp_path: Path, kind: str) -> None:
    provider = sf.open(written(tmp_path, kind, {"k=1/a": [{"id": 1}, {"id": 2}], "k=2/a": [{"id": 3}]}))
    assert [provider.read(block, []).num_rows for block in provider.blocks()] == [2, 1]
    assert [provider.read(block, ["k"]).to_pylist() for block in provider.blocks()] == [
        [{"k": 1}, {"k": 1}],
        [{"k": 2}],
    ]
