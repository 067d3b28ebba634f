"""The lengths index: batches are counted before anything is read."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.loader.order.index import CHECKSUM, checksum

PLANS = {
    "tokens": sf.TokenBudget(40),
    "padded": sf.TokenBudget(60, padded=True),
    "packed": sf.Packed(16, rows=3),
}
SPLIT = """
t.values, t.lengths, _ = split_sequences(tokens.values, tokens.lengths, chunk=5)
return t.values, t.lengths
"""


@pytest.fixture
def folder(tmp_path):
    for i in range(3):
        lists = pa.array([[i] * (n * 7 % 11) for n in range(60)], pa.list_(pa.int32()))
        pq.write_table(pa.table({"tokens": lists}), tmp_path / f"{i}.parquet", row_group_size=10)
    return tmp_path


@pytest.mark.each_choice
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("prepare", [None, SPLIT])
@pytest.mark.parametrize("shuffle", [False, True])
def test_len_and_streams_come_from_the_index(folder, tmp_path, plan, prepare, shuffle):
    options = {
        "prepare": prepare,
        "batch": PLANS[plan],
        "window": 800,
        "shuffle": shuffle,
        "index": tmp_path / "lengths.arrow",
    }
    paths = [folder / f"{i}.parquet" for i in range(3)]
    loader = sf.Loader(paths, **options)
    assert len(loader) == len(list(loader))
    assert len(loader) == len(list(loader))  # of the second epoch
    assert (tmp_path / "lengths.arrow").exists()
    streamed = sf.Loader(paths, **options, streams=2)
    alone = list(streamed)
    ranks = [list(sf.Loader(paths, **options, streams=2, rank=rank, world_size=2)) for rank in range(2)]
    joined = [batch for step in zip(*ranks, strict=True) for batch in step]
    assert len(joined) == len(alone) // 2 * 2
    for one, other in zip(joined, alone, strict=False):
        assert all(np.array_equal(one[name], other[name]) for name in one)


def test_an_index_of_other_data_or_settings_is_stale(folder, tmp_path):
    paths, index = [folder / f"{i}.parquet" for i in range(3)], tmp_path / "lengths.arrow"
    assert len(sf.Loader(paths, batch=sf.TokenBudget(40), index=index)) > 1
    assert len(sf.Loader(paths, batch=sf.Packed(8), index=index)) > 0
    with pytest.raises(
        sf.OpError,
        match=r"lengths\.arrow is stale: prepare was None and is `t\.values, t\.lengths, _ = split_sequences",
    ):
        len(sf.Loader(paths, prepare=SPLIT, batch=sf.TokenBudget(40), index=index))
    with pytest.raises(
        sf.OpError,
        match=r"lengths.arrow is stale: the data have changed: 2.parquet is gone\n  remove the file",
    ):
        len(sf.Loader(paths[:2], batch=sf.TokenBudget(40), index=index))


def test_what_is_no_index_is_refused(folder, tmp_path):
    paths, index = [folder / f"{i}.parquet" for i in range(3)], tmp_path / "lengths.arrow"
    index.write_bytes(b"no Arrow file")
    with pytest.raises(sf.ProviderError, match="is not a lengths index, or damaged"):
        len(sf.Loader(paths, batch=sf.TokenBudget(40), index=index))


def with_column(name, values):
    """A change of one column of an index."""

    def change(table):
        at = table.column_names.index(name)
        return table.set_column(
            at, table.schema.field(name), pa.array(values(table[name].to_pylist()), table[name].type)
        )

    return change


def rewritten(path, change=None, settings=None):
    """Write an index again with its table or its settings changed, and the checksum that belongs to them."""
    with pa.OSFile(str(path)) as file:
        table = pa.ipc.open_file(file).read_all()
    metadata = dict(table.schema.metadata)
    if change is not None:
        table = change(table)
        if "start" in table.column_names:
            metadata[CHECKSUM] = checksum(table)
    if settings is not None:
        metadata[b"seqflow lengths index"] = settings
    with pa.ipc.new_file(path, table.schema.with_metadata(metadata)) as writer:
        writer.write_table(table.replace_schema_metadata(metadata))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": b"{"}, "its settings are not JSON: "),
        ({"settings": b"\xff"}, "its settings are not JSON: "),
        ({"settings": b"3"}, "its settings are not a JSON object"),
        (
            {"change": lambda table: table.rename_columns(["file", "block", "begin", "rows", "lengths"])},
            "it has other columns",
        ),
        ({"change": with_column("block", lambda blocks: [None, *blocks[1:]])}, "it has nulls"),
        ({"change": with_column("rows", lambda rows: [rows[0] + 1, *rows[1:]])}, "rows are not the numbers"),
        (
            {"change": with_column("lengths", lambda of: [[-n for n in one] for one in of])},
            "negative lengths",
        ),
        ({"change": with_column("lengths", lambda of: [[2**61] * len(one) for one in of])}, "too large ones"),
        ({"change": lambda table: table.slice(1)}, "it lacks lengths of block 0"),
    ],
)
def test_a_damaged_index_is_refused(folder, tmp_path, change, message):
    paths, index = [folder / f"{i}.parquet" for i in range(3)], tmp_path / "lengths.arrow"
    len(sf.Loader(paths, batch=sf.TokenBudget(40), index=index))
    rewritten(index, **change)
    with pytest.raises(sf.ProviderError, match=rf"lengths\.arrow is damaged: .*{message}(.|\n)*made again"):
        len(sf.Loader(paths, batch=sf.TokenBudget(40), index=index))


def test_a_changed_length_is_seen_by_the_checksum(folder, tmp_path):
    paths, index = [folder / f"{i}.parquet" for i in range(3)], tmp_path / "lengths.arrow"
    len(sf.Loader(paths, batch=sf.TokenBudget(40), index=index))
    content = index.read_bytes()
    length = np.array([10, 6, 2, 9], np.int64).tobytes()
    assert content.count(length) > 1
    index.write_bytes(content.replace(length, np.array([10, 6, 3, 9], np.int64).tobytes(), 1))
    with pytest.raises(sf.ProviderError, match="its checksum is another"):
        len(sf.Loader(paths, batch=sf.TokenBudget(40), index=index))


@pytest.mark.parametrize("streams", [1, 2])
def test_an_index_with_other_numbers_of_batches_loses_none(folder, tmp_path, streams):
    """Where the lengths of the data are not those of the index."""
    paths, index = [folder / f"{i}.parquet" for i in range(3)], tmp_path / "lengths.arrow"
    options = {"batch": sf.TokenBudget(40), "window": 800, "index": index, "streams": streams}
    len(sf.Loader(paths, **options))
    rewritten(index, with_column("lengths", lambda of: [[1] * len(one) for one in of]))
    message = r"window \d of stream 0 has \d+ batches, and \d+ by the lengths index or the state"
    with pytest.raises(sf.OpError, match=message):
        list(sf.Loader(paths, **options))


def test_random_lengths_cannot_be_indexed(folder, tmp_path):
    prepare = (
        "t.values, t.lengths = dropout_sequences(tokens.values, tokens.lengths, ratio=0.5, seed=1)\n"
        "return t.values, t.lengths"
    )
    options = {"index": tmp_path / "lengths.arrow", "exclude": "lengths.arrow"}
    loader = sf.Loader(folder, prepare=prepare, batch=sf.TokenBudget(40), **options)
    with pytest.raises(sf.OpError, match="prepare draws random numbers"):
        len(loader)


@pytest.mark.each_choice
@pytest.mark.parametrize("window", [800, 150])  # whole row groups, and slices of them
@pytest.mark.parametrize("prepare", [None, SPLIT])
@pytest.mark.parametrize("threads", [0, 2])
def test_the_first_epoch_makes_the_index(folder, prepare, window, threads):
    options = {"batch": sf.TokenBudget(40), "prepare": prepare, "window": window, "index": True}
    loader = sf.Loader(folder, **options, threads=threads)
    index = folder / ".lengths.arrow"
    assert loader.index == index
    first = [batch["t.lengths" if prepare else "tokens.lengths"].tolist() for batch in loader]
    written = index.stat().st_mtime_ns
    assert len(loader) == len(first) == len(list(loader))
    again = sf.Loader(folder, **options)
    assert len(again) == len(first)
    assert again.source.files == loader.source.files
    assert index.stat().st_mtime_ns == written
    index.unlink()
    assert len(sf.Loader(folder, **options)) == len(first)  # by a pass of its own


def test_an_epoch_that_was_not_read_whole_makes_no_index(folder):
    loader = sf.Loader(folder, batch=sf.TokenBudget(40), window=800, index=True, threads=0)
    list(loader.take(3))
    assert not loader.index.exists()
    state = loader.state_dict()
    list(loader)
    assert loader.index.exists()
    resumed = sf.Loader(folder, batch=sf.TokenBudget(40), window=800, index=True)
    resumed.load_state_dict(state)
    assert len(list(resumed)) == len(resumed)


def test_an_index_of_the_data_serves_windows_of_any_size(folder):
    index = folder / "lengths.arrow"
    paths = [folder / f"{i}.parquet" for i in range(3)]
    for window in (100, 800, "1 MiB"):
        for shuffle in (False, True) if window != 100 else (False,):
            loader = sf.Loader(paths, batch=sf.Packed(16), window=window, shuffle=shuffle, index=index)
            assert len(loader) == len(list(loader))


def test_a_source_in_memory_has_no_place_for_an_index():
    with pytest.raises(sf.OpError, match="the source has no files to keep it next to"):
        sf.Loader(pa.table({"x": [[1]]}), batch=sf.TokenBudget(4), index=True)


def test_a_cut_index_is_to_be_removed(folder, tmp_path):
    path = tmp_path / "cut.arrow"
    len(sf.Loader(str(folder / "*.parquet"), batch=sf.Packed(32), index=path))
    path.write_bytes(path.read_bytes()[:300])
    with pytest.raises(sf.ProviderError, match=r"cut\.arrow is not a lengths index, or damaged") as raised:
        len(sf.Loader(str(folder / "*.parquet"), batch=sf.Packed(32), index=path))
    assert str(raised.value).endswith("\n  remove the file, or name another: it is made again")
