"""Blocks in columns are the blocks that come one by one."""

import pickle
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import ProviderError
from seqflow.loader.order.windows import Slices, Windows, cut_windows, slices_of
from seqflow.loader.plans.plan import permutation
from seqflow.providers.block_columns import BlockColumns
from seqflow.providers.formats import parquet_footers
from seqflow.providers.provider import Block


@pytest.fixture(scope="module")
def table() -> pa.Table:
    draw = np.random.default_rng(0)
    lists = pa.array([[*range(n)] for n in draw.integers(0, 20, 300)], pa.list_(pa.int32()))
    texts = pa.array(["x" * n for n in draw.integers(0, 20, 300)])
    return pa.table({"a": lists, "t": texts, "lang": draw.choice(["py", "c"], 300), "x": np.arange(300)})


def written(table: pa.Table, folder: Path, kind: str) -> str:
    if kind == "hive":
        ds.write_dataset(table, folder / "o", format="parquet", partitioning=ds.partitioning(flavor="hive", schema=pa.schema([("lang", pa.string())])), max_rows_per_group=20)  # fmt: skip
    elif kind == "parquet":
        (folder / "o").mkdir()
        for part in range(3):
            pq.write_table(table.slice(part * 100, 100), folder / "o" / f"{part}.parquet", row_group_size=7)
    elif kind == "arrow":
        (folder / "o").mkdir()
        with pa.ipc.new_file(folder / "o" / "0.arrow", table.schema) as file:
            file.write_table(table, 30)
    else:
        (folder / "o").mkdir()
        (folder / "o" / "0.jsonl").write_text("".join(f'{{"x": {n}}}\n' for n in range(1000)))
    return str(folder / "o")


@pytest.mark.parametrize("kind", ["parquet", "hive", "arrow", "jsonl"])
@pytest.mark.parametrize("where", [None, "x > 100"])
def test_columns_have_the_blocks_of_a_source(
    table: pa.Table, tmp_path: Path, kind: str, where: str | None
) -> None:
    source = sf.open(written(table, tmp_path, kind), where=where)
    columns = source.block_columns(counted=True)
    assert list(columns) == list(source.blocks(counted=True))
    assert len(columns) == len(list(columns))
    assert columns[1:3] == list(columns)[1:3]


@pytest.mark.parametrize("window", [1, 50, 400, 3000, 10**20])
@pytest.mark.parametrize("sliced", [False, True])
def test_windows_in_columns_are_those_of_slices_one_by_one(window: int, sliced: bool) -> None:
    draw = np.random.default_rng(window % 97)
    blocks = [
        Block("f", n, None if n % 11 == 3 else int(draw.integers(0, 40)), None if n % 13 == 5 else int(draw.integers(0, 900)))
        for n in range(200)
    ]  # fmt: skip
    one_by_one = [
        part for n, block in enumerate(blocks) for part in slices_of(n, block, window, sliced=sliced)
    ]
    slices = Slices.of(BlockColumns.of(blocks), window, sliced=sliced)
    assert list(slices) == one_by_one
    assert slices.nbytes.tolist() == [one.nbytes for one in one_by_one]
    windows = Windows.cut(slices, None, window)
    expected = list(cut_windows(one_by_one, window))
    assert list(windows) == expected
    assert windows.nbytes.tolist() == [one.nbytes for one in expected]
    assert windows.rows is None
    if not sliced:
        order = permutation(len(slices), 5)
        shuffled = list(cut_windows([one_by_one[at] for at in order], window))
        found = list(Windows.cut(slices, order, window))
        assert [sorted(one.slices, key=lambda s: s.key) for one in shuffled] == [
            list(one.slices) for one in found
        ]


def test_sizes_that_damaged_footers_invent_do_not_overflow() -> None:
    blocks = [Block("f", n, 5, 2**63 - 1 if n % 2 else 10) for n in range(6)]
    windows = Windows.cut(Slices.of(BlockColumns.of(blocks), 100, sliced=False), None, 100)
    assert [len(one.slices) for one in windows] == [1] * 6
    assert [one.slices[0].block for one in windows] == blocks


def test_no_blocks_are_no_windows() -> None:
    windows = Windows.cut(Slices.of(BlockColumns.of([]), 10, sliced=True), None, 10)
    assert (len(windows), list(windows), windows.nbytes.tolist()) == (0, [], [])
    assert windows.rows is not None


def test_footers_that_are_not_kept_are_read_again(
    table: pa.Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_footers, "MOST_BYTES", 1)
    place = written(table, tmp_path, "parquet")
    source = sf.open(place, columns=["a", "x"])
    assert source["x"].tolist() == list(range(300))
    blocks = [block for block in source.blocks() if block.origin.endswith("1.parquet")]
    pq.write_table(table.slice(0, 100), Path(place) / "1.parquet", row_group_size=9)
    with pytest.raises(ProviderError, match=r"1\.parquet has other row groups than when it was opened"):
        source.read(blocks[0])


def test_column_chunks_of_100_000_small_files_are_kept() -> None:
    footer = SimpleNamespace(serialized_size=12 * 8 * 2 + 32)  # two leaf columns, with limits
    kept = parquet_footers.FooterCache(parquet_footers.CHUNKS_GROWTH)
    for number in range(100_000):
        kept.keep(str(number), footer)
    assert kept.find("0") is footer
    kept = pickle.loads(pickle.dumps(kept))
    kept.keep("large", SimpleNamespace(serialized_size=parquet_footers.MOST_BYTES // 2))
    kept.keep("another", footer)
    assert kept.find("large") is None
