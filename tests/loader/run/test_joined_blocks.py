"""Small blocks of a file that are read together are the same rows, in the same accounts, as read one by one."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.record.row_source import RowSource

ROWS = 60
TABLE = pa.table(
    {
        "id": pa.array(range(ROWS), pa.int32()),
        "tokens": pa.array([list(range(n % 5)) for n in range(ROWS)], pa.list_(pa.int64())),
        "text": pa.array([f"{n}" * (n % 3) for n in range(ROWS)]),
        "kind": pa.array([["a", "b", "c"][n // 25] for n in range(ROWS)]).dictionary_encode(),
    }
)
WITH_NULLS = TABLE.set_column(
    0, "id", pa.array([None if n in (7, 41) else n for n in range(ROWS)], pa.int32())
)


def written(folder, table, **options):
    folder.mkdir()
    pq.write_table(table, folder / "a.parquet", row_group_size=4, **options)
    pq.write_table(table[:10], folder / "b.parquet", row_group_size=3, **options)
    return folder


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    top = tmp_path_factory.mktemp("blocks")
    made = {
        "plain": written(top / "plain", TABLE),
        "nulls": written(top / "nulls", WITH_NULLS),
        "k=1": written(top / "k=1", TABLE),
        "damaged": written(top / "damaged", TABLE, write_page_checksum=True),
    }
    path = made["damaged"] / "a.parquet"
    content = bytearray(path.read_bytes())
    column = pq.ParquetFile(path).metadata.row_group(3).column(1)
    stop = column.data_page_offset + column.total_compressed_size
    content[stop - 4 : stop] = b"\xff" * 4
    path.write_bytes(content)
    return made


def account(opened):
    """Rows and accounts of a window, without the times."""
    source = RowSource(opened.rows.records)
    ledger = opened.ledger
    counts = [getattr(ledger, name) for name in ("rows_read", "rows_left", "skipped", "filtered", "dropped")]
    rejected = [(one.block, one.numbers, one.bad) for one in ledger.rejected]
    ranges = [(one.block, one.rows, None if one.numbers is None else list(one.numbers), one.key) for one in ledger.ranges]  # fmt: skip
    return (
        {name: source.tensor(name).tolist() for name in source.parents},
        counts,
        rejected,
        ledger.damaged,
        ranges,
    )


CASES = {
    "plain": ("plain", {}),
    "a column": ("plain", {"columns": ["tokens"]}),
    "of folders": ("k=1", {}),
    "conditions": ("plain", {"keep": "id % 3 > 0", "require": "id < 50", "bad_rows": "skip"}),
    "filtered": ("plain", {"where": "id > 30"}),
    "a prepared row": ("plain", {"prepare": "ids, n = truncate(tokens.values, tokens.lengths, max_length=2)\nreturn ids, n, id"}),
    "bad rows": ("nulls", {"bad_rows": "skip"}),
    "filled": ("nulls", {"fill": -1}),
    "damaged": ("damaged", {"bad_files": "skip"}),
}  # fmt: skip


@pytest.mark.parametrize(("case", "shuffle"), [("plain", False), *((case, True) for case in CASES)])
def test_a_window_is_that_of_blocks_read_one_by_one(folders, case, shuffle):
    folder, options = CASES[case]
    loader = sf.Loader(folders[folder], shuffle=shuffle, **options)
    (window,) = loader.recipe.windows(loader.recipe.planned_slices(), 0)
    maker = loader.pipeline.window_maker()
    joined, alone = (
        maker.make(window, 0),
        maker.open(window, [maker.read(one, 0) for one in window.slices], 0),
    )
    assert account(joined) == account(alone)
    if case in ("plain", "a column", "of folders", "filled"):
        assert len(joined.rows.records) == 2 < len(alone.rows.records)


def test_an_error_names_the_block_that_is_its_cause(folders):
    with pytest.raises(sf.ProviderError, match=r"a\.parquet, row group 3 can't be read: "):
        list(sf.Loader(folders["damaged"]))
    with pytest.raises(sf.ProviderError, match=r"a\.parquet, block 1, row 3, column 'id': null value"):
        list(sf.Loader(folders["nulls"]))


def test_an_epoch_and_the_next_one_have_each_row_once(folders):
    loader = sf.Loader(folders["plain"], shuffle=True, batch=7)
    for _ in range(2):
        found = np.concatenate([batch["id"] for batch in loader])
        assert sorted(found.tolist()) == sorted([*range(ROWS), *range(10)])


def test_lengths_are_measured_for_each_block(folders, tmp_path):
    options = {"batch": sf.TokenBudget(40, lengths="tokens.lengths"), "index": tmp_path / "lengths.arrow"}
    assert len(list(sf.Loader(folders["plain"], **options))) == len(sf.Loader(folders["plain"], **options))
