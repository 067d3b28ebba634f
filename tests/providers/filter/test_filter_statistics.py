"""Blocks that no row of a filter lies in are not read: statistics of row groups, and the names of folders."""

import io
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import FilterError, ProviderError, SeqflowError, UnknownColumnError
from seqflow.providers import Provider
from seqflow.providers.filter.value_ranges import ValueRange
from seqflow.providers.formats.parquet_footers import Statistics
from seqflow.providers.formats.parquet_ranges import stored_limits, value_range

ROWS, GROUP = 100, 10
TABLE = pa.table(
    {
        "id": np.arange(ROWS),
        "lang": sorted(["c", "go", "py", "rs"] * (ROWS // 4)),
        "score": np.arange(ROWS) / 10,
        "doc": [{"size": n} for n in range(ROWS)],
        "half": pa.array([n if n < 50 else None for n in range(ROWS)], pa.int16()),
        "tokens": [[n] for n in range(ROWS)],
    }
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "a.parquet", row_group_size=GROUP)
    return tmp_path / "a.parquet"


def known(provider: Provider) -> tuple[list[int], list[int]]:
    """The blocks that are known to be empty, and to be whole, before anything is read."""
    blocks = list(provider.blocks())
    return (
        [block.index for block in blocks if block.num_rows == 0],
        [block.index for block in blocks if block.num_rows == GROUP],
    )


KNOWN: dict[str, tuple[list[int], list[int]]] = {
    "id >= 85": ([*range(8)], [9]),
    "id == 33": ([n for n in range(10) if n != 3], []),
    "id != 33": ([], [n for n in range(10) if n != 3]),
    "id in [5, 95, 1000]": ([*range(1, 9)], []),
    "not id < 50": ([*range(5)], [*range(5, 10)]),
    "lang == 'go'": ([0, 1, 5, 6, 7, 8, 9], [3, 4]),
    "lang == 'py' or id < 10": ([1, 2, 3, 4, 8, 9], [0, 5, 6]),
    "lang == 'py' and id < 60": ([0, 1, 2, 3, 4, 6, 7, 8, 9], [5]),
    "score >= 9": ([*range(9)], []),
    "doc.size > 79": ([*range(8)], [8, 9]),
    "half == None": ([*range(5)], [*range(5, 10)]),
    "half != None and id >= 0": ([*range(5, 10)], [*range(5)]),
    "half < 1000": ([*range(5, 10)], [*range(5)]),
    "tokens.lengths > 0": ([], []),
    "tokens.lengths > 0 and id < 10": ([*range(1, 10)], []),
}


@pytest.mark.parametrize("text", KNOWN)
def test_statistics_tell_which_row_groups_are_empty_or_whole(text: str, path: Path) -> None:
    empty, whole = KNOWN[text]
    found = sf.open(path, where=text)
    assert known(found) == (empty, whole)
    ids = found["id"].tolist()  # type: ignore[union-attr]
    assert ids == sf.open(TABLE, where=text)["id"].tolist()  # type: ignore[union-attr]
    assert len(found) == len(ids)
    if "score" not in text:  # of which a dataset says the same
        assert known(sf.open(ds.dataset(path), where=text)) == (empty, whole)


@pytest.mark.slow
def test_long_chains_of_conditions_are_compared_with_statistics(path: Path) -> None:
    chain = " or ".join(["id == 0", *(f"id == {1000 + number}" for number in range(1, 1500))])
    assert known(sf.open(path, where=chain)) == ([*range(1, 10)], [])
    texts = " or ".join(f"id == {1000 + number}" for number in range(1500))
    assert known(sf.open(path, where=f"{texts} or id in {list(range(20, 30))}")) == (
        [0, 1, *range(3, 10)],
        [],
    )
    assert known(sf.open(path, where=f"id in {[*range(500, 5000), *range(-5000, 5)]}")) == (
        [*range(1, 10)],
        [],
    )


def test_row_groups_without_hits_are_never_read(path: Path) -> None:
    content = bytearray(path.read_bytes())
    first = min(
        pq.read_metadata(path).row_group(5).column(at).dictionary_page_offset or 1 << 40 for at in range(6)
    )
    last = pq.read_metadata(path).row_group(6).column(0).dictionary_page_offset or len(content)
    content[first:last] = bytes(last - first)
    path.write_bytes(content)
    loader = sf.Loader(path, where="id < 50", fill=-1, threads=0)
    assert [n for batch in loader for n in batch["id"].tolist()] == list(range(50))
    stats = loader.stats()
    assert (stats.filtered, stats.rows) == (50, 50)
    with pytest.raises(ProviderError):
        list(sf.Loader(path, where="id < 51", fill=-1, threads=0))


def test_what_only_the_filter_needs_is_not_read_of_whole_groups(path: Path) -> None:
    content = bytearray(path.read_bytes())
    for group in range(10):
        column = pq.read_metadata(path).row_group(group).column(2)
        offset = column.dictionary_page_offset or column.data_page_offset
        content[offset : offset + 8] = bytes(8)
    path.write_bytes(content)
    assert sf.open(path, columns=["id"], where="id >= 0")["id"].tolist() == list(range(ROWS))  # type: ignore[union-attr]
    with pytest.raises(ProviderError):
        sf.open(path, columns=["id"], where="score >= 0")["id"]


def test_statistics_that_are_missing_or_of_unknown_order_decide_nothing(tmp_path: Path) -> None:
    for options in ({"write_statistics": False}, {"write_statistics": ["lang"]}):
        pq.write_table(TABLE, tmp_path / "b.parquet", row_group_size=GROUP, **options)
        found = sf.open(tmp_path / "b.parquet", where="id >= 85")
        assert known(found) == ([], [])
        assert found["id"].tolist() == list(range(85, 100))  # type: ignore[union-attr]
    table = pa.table(
        {"at": pa.array(range(10), pa.timestamp("s")), "i96": pa.array(range(10), pa.timestamp("ns"))}
    )
    pq.write_table(table, tmp_path / "c.parquet", use_deprecated_int96_timestamps=False)
    assert len(sf.open(tmp_path / "c.parquet", where="at == '1970-01-01T00:00:05'")) == 1
    pq.write_table(table, tmp_path / "c.parquet", use_deprecated_int96_timestamps=True)
    assert len(sf.open(tmp_path / "c.parquet", where="i96 == '1970-01-01T00:00:00.000000005'")) == 1


def test_nan_hides_outside_of_statistics(tmp_path: Path) -> None:
    table = pa.table({"x": [5.0, float("nan"), 5.0, 5.0], "row": range(4)})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    for where, rows in {
        "x != 5": [1],
        "not (x == 5)": [1],
        "not (x <= 5)": [1],
        "x == 5": [0, 2, 3],
        "x in [nan]": [1],
        "x not in [5]": [1],
    }.items():
        assert sf.open(tmp_path / "a.parquet", columns=["row"], where=where)["row"].tolist() == rows  # type: ignore[union-attr]


def test_statistics_that_fit_no_value_are_not_known() -> None:
    file = io.BytesIO()
    kinds = {
        "u8": pa.uint8(),
        "i64": pa.int64(),
        "f64": pa.float64(),
        "at": pa.timestamp("ms"),
        "text": pa.string(),
    }
    pq.write_table(
        pa.table({name: pa.array([1], pa.int64()).cast(kind) for name, kind in kinds.items()}), file
    )
    schema = pq.ParquetFile(file).metadata.schema
    one, ten = (np.int64(n).tobytes() for n in (1, 10))
    for name, low, high, expected in (
        ("i64", one, ten, (1, 10)),
        ("i64", one[:3], ten, (None, 10)),
        ("i64", ten, one, (None, None)),
        ("i64", None, ten, (None, 10)),
        ("u8", np.int32(3).tobytes(), np.int32(200).tobytes(), (3, 200)),
        ("u8", np.int32(3).tobytes(), np.int32(256).tobytes(), (3, None)),
        ("u8", np.int32(-1).tobytes(), np.int32(5).tobytes(), (None, 5)),
        ("u8", one, ten, (None, None)),
        ("f64", np.float64(1).tobytes(), np.float64("nan").tobytes(), (None, None)),
        ("at", one, ten, (1, 10)),
        ("text", b"", b"\xff", (b"", b"\xff")),
    ):
        at = list(kinds).index(name)
        found = value_range(Statistics(low, high, 1), stored_limits(kinds[name], schema.column(at)), 5)
        assert found == ValueRange(*expected, has_nulls=True, has_values=True), name
    in_other_unit = value_range(
        Statistics(one, ten, 5), stored_limits(pa.timestamp("us"), schema.column(3)), 5
    )
    assert in_other_unit == ValueRange(None, None, has_nulls=True, has_values=False)


@pytest.mark.slow
def test_a_damaged_footer_is_our_error_with_a_filter_too(tmp_path: Path) -> None:
    columns = {name: TABLE[name] for name in ("id", "lang", "score")} | {"u8": TABLE["id"].cast(pa.uint8())}
    pq.write_table(pa.table(columns), tmp_path / "good.parquet", row_group_size=GROUP)
    good = (tmp_path / "good.parquet").read_bytes()
    start = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    draw = np.random.default_rng(0)
    for _ in range(300):
        content = bytearray(good)
        for at in draw.integers(start, len(good) - 8, draw.integers(1, 4)):
            content[at] = draw.integers(0, 256)
        (tmp_path / "bad.parquet").write_bytes(content)
        try:
            found = sf.open(
                tmp_path / "bad.parquet", where="id > 20 and lang == 'py' and score < 5 and u8 < 90"
            )
            for block in found.blocks(counted=True):
                found.read(block)
        except SeqflowError:
            continue


@pytest.fixture
def folders(tmp_path: Path) -> Path:
    for lang in ("c", "py"):
        for year in (2023, 2024, None):
            name = "__HIVE_DEFAULT_PARTITION__" if year is None else str(year)
            folder = tmp_path / f"lang={lang}" / f"year={name}"
            folder.mkdir(parents=True)
            start = (lang == "py") * 100 + (0 if year is None else year - 2000)
            table = pa.table({"id": [start, start + 50]})
            pq.write_table(table, folder / "a.parquet")
    return tmp_path


def test_files_are_not_opened_that_the_names_of_folders_exclude(folders: Path) -> None:
    for where, files, ids in (
        ("lang == 'py'", 3, [123, 173, 124, 174, 100, 150]),
        ("lang == 'py' and year >= 2024", 1, [124, 174]),
        ("year == None or id == 23", 6, [23, 0, 50, 100, 150]),
        ("year != 2024 and id > 100", 2, [123, 173]),
        ("lang in ['py', 'go'] and year in [2023]", 1, [123, 173]),
        ("lang == 'go'", 1, []),
    ):
        found = sf.open(folders, columns=["id"], where=where)
        assert found["id"].tolist() == ids, where  # type: ignore[union-attr]
        assert len(found.files) == files, where
    for path in folders.glob("lang=c/*/a.parquet"):
        if "year=2023" not in str(path):  # the first file tells which columns there are
            path.write_bytes(b"no Parquet")
    loader = sf.Loader(
        folders, columns=["id"], rename={"lang": "l", "id": "id"}, where="lang == 'py'", threads=0
    )
    assert loader.num_rows == 6
    assert sorted(n for batch in loader for n in batch["id"].tolist()) == [100, 123, 124, 150, 173, 174]
    assert loader.stats().filtered == 0
    with pytest.raises(FilterError, match="lang is string and does not compare with the literal 5"):
        sf.open(folders, where="lang == 5")


def test_an_unknown_column_is_named_with_folders_too(folders: Path) -> None:
    for columns in (None, ["id"]):
        with pytest.raises(
            UnknownColumnError, match=r"^.?where: (/.* and 5 more: )?there is no column 'langg'"
        ):
            sf.open(folders, columns=columns, where="langg == 'py'")


def test_folders_of_other_formats_are_pruned_too(tmp_path: Path) -> None:
    for lang in ("c", "py"):
        (tmp_path / f"lang={lang}").mkdir()
        (tmp_path / f"lang={lang}" / "a.jsonl").write_text('{"id": 1}\n{"id": 2}\n')
    found = sf.open(tmp_path, where="lang == 'py' and id > 1")
    assert len(found.files) == 1
    assert [found.read(block).to_pylist() for block in found.blocks()] == [[{"id": 2, "lang": "py"}]]


def test_fragments_of_partitioned_datasets_are_left_out(folders: Path) -> None:
    dataset = ds.dataset(folders, partitioning="hive")
    found = sf.open(dataset, columns=["id"], where="lang == 'py' and year == 2024")
    assert sum(block.num_rows == 0 for block in found.blocks()) == 5
    assert found["id"].tolist() == [124, 174]  # type: ignore[union-attr]
