"""Every row exactly once, with windows one byte below, at, and above every size that decides how they are cut."""

from functools import partial

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.job import Job, run
from seqflow.loader.order.windows import cut_windows, slices_of
from seqflow.providers import Block

ROWS = 24
ALL = list(range(ROWS))
TABLE = pa.table(
    {"id": ALL, "s": [f"row {i} " + "x" * (i % 7) for i in ALL], "list": [[i] * (i % 4) for i in ALL]}
)
FILTERED = sf.Rows(7, lengths="list.lengths", max_length=3)
BUDGET = sf.TokenBudget(10, lengths="list.lengths")


def chunks(size):
    return pa.Table.from_batches(TABLE.to_batches(max_chunksize=size))


def parquet(folder, *group_sizes):
    rows = ROWS // len(group_sizes)
    for number, size in enumerate(group_sizes):
        pq.write_table(TABLE.slice(number * rows, rows), folder / f"{number}.parquet", row_group_size=size)
    return str(folder / "*.parquet")


def arrow(folder):
    with pa.OSFile(str(folder / "x.arrow"), "wb") as file, pa.ipc.new_file(file, TABLE.schema) as writer:
        for batch in TABLE.to_batches(max_chunksize=10):
            writer.write(batch)
    return str(folder / "x.arrow")


def lines(folder):
    (folder / "x.jsonl").write_text("".join(f'{{"id": {i}}}\n' for i in ALL))
    return str(folder / "x.jsonl")


def texts(folder):
    for i in ALL:
        (folder / f"{i:02}.txt").write_text(str(i))
    return str(folder / "*.txt")


SOURCES = {
    "table of one chunk": lambda folder: TABLE,
    "table of chunks": lambda folder: chunks(9),
    "table of rows": lambda folder: chunks(1),
    "one row group": lambda folder: parquet(folder, ROWS),
    "row groups": lambda folder: parquet(folder, 5),
    "files": lambda folder: parquet(folder, 2, 12, 3),
    "arrow file": arrow,
    "lines": lines,
    "texts": texts,
}


@pytest.fixture(params=SOURCES)
def source(request, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return SOURCES[request.param](folder)


def sizes_of(source):
    """Bytes of slices, of blocks, of some together and of all; one less and one more."""
    opened = list(sf.open(source).blocks())
    parts = [part.nbytes for block in opened for part in slices_of(0, block, 1, sliced=True)]
    blocks = [block.nbytes or 0 for block in opened]
    found = {1, *parts[:2], min(blocks), max(blocks), sum(blocks[:2]), sum(blocks) // 2, sum(blocks)}
    return sorted({size + more for size in found for more in (-1, 0, 1) if size + more > 0})


def ids(batches):
    """The numbers of the rows, whatever the kind of the source calls them."""
    return [number for batch in batches for number in numbers_of(sf.to_arrow(batch))]


def numbers_of(table):
    for name in ("id", "bytes"):
        if name in table.column_names:
            return [int(value) for value in table[name].to_pylist()]
    raise AssertionError(table.column_names)


def as_it_is(record):
    return record


OPTIONS = {
    "as it is": {},
    "with threads": {"threads": 2},
    "with as much memory as a window": {"memory": "window"},
    "batches end with windows": {"bad_rows": "skip"},
    "shuffled": {"shuffle": True},
    "prepared by a function": {"prepare": as_it_is},
    "shuffled and prepared by a function": {"prepare": as_it_is, "shuffle": True},
}


@pytest.mark.each_choice
@pytest.mark.parametrize("name", OPTIONS)
def test_every_row_comes_once_an_epoch(source, name):
    largest = max(block.nbytes for block in sf.open(source).blocks())
    for window in sizes_of(source):
        options = {key: window if value == "window" else value for key, value in OPTIONS[name].items()}
        loader = sf.Loader(source, **{"batch": 7, "window": window, "threads": 0, **options})
        if "shuffle" in options and window < largest:
            continue  # a block is shuffled as a whole
        epochs = [ids(loader) for _ in range(2 if "shuffle" in options or window == largest else 1)]
        for epoch in epochs:
            assert (sorted(epoch) if "shuffle" in options else epoch) == ALL, window


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("kind", ["table of chunks", "one row group", "row groups", "arrow file"])
@pytest.mark.parametrize("batch", [FILTERED, BUDGET], ids=["filtered", "budget"])
def test_every_row_comes_once_in_batches_planned_on_lengths(kind, batch, tmp_path):
    source = SOURCES[kind](tmp_path)
    for window in sizes_of(source):
        loader = sf.Loader(source, batch=batch, window=window, threads=window % 2)
        assert [ids(loader) for _ in range(2)] == [ALL, ALL], window


def can_be_dealt(source, window, streams):
    """Whether each stream gets a window: all slices of a block go to one."""
    loader = sf.Loader(source, batch=5, window=window, streams=streams)
    try:
        len(loader)
    except (sf.OpError, TypeError):
        return False
    return True


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("streams", [1, 2])
def test_every_row_comes_once_on_several_ranks(source, streams):
    def of(rank):
        return ids(
            sf.Loader(
                source,
                batch=5,
                rank=rank,
                world_size=3,
                tail="pad",
                window=window,
                streams=streams,
                threads=0,
            )
        )

    for window in sizes_of(source)[::3]:
        if streams > 1 and not can_be_dealt(source, window, streams):
            continue
        found = [row for rank in range(3) for row in of(rank)]
        assert sorted(found) == ALL, window


@pytest.mark.each_choice
@pytest.mark.parametrize("steps", [1, 3])
def test_every_row_comes_once_when_resumed(source, steps):
    for window in sizes_of(source)[::3]:
        loader = sf.Loader(source, batch=3, window=window, threads=0)
        batches = iter(loader)
        first = ids(next(batches) for _ in range(steps))
        resumed = sf.Loader(source, batch=3, window=window, threads=0)
        resumed.load_state_dict(loader.state_dict())
        assert first + ids(resumed) == ALL, window


@pytest.mark.slow
def test_a_run_goes_on_at_every_batch_of_slices(tmp_path):
    source = parquet(tmp_path, ROWS)
    size = next(iter(sf.open(source).blocks())).nbytes
    for window in (1, size // 2, size - 1):
        make = partial(sf.Loader, source, batch=BUDGET, window=window, threads=0)
        whole = [batch["id"].tolist() for batch in make()]
        for done in range(len(whole)):
            loader = make()
            batches = iter(loader)
            for _ in range(done):
                next(batches)
            again = make()
            again.load_state_dict(loader.state_dict())
            assert [batch["id"].tolist() for batch in again] == whole[done:], (window, done)


@pytest.mark.parametrize("rows", [1, 2, 3, 7, 8, 9, 24, 39])
def test_slices_are_the_block_and_no_window_of_slices_holds_it(rows):
    for nbytes in {1, rows - 1, rows, rows + 1, 8 * rows - 1, 8 * rows + 1, 14_887} - {0}:
        block = Block("rows", 0, rows, nbytes)
        sizes = {1, nbytes // 8, nbytes // 8 + 1, nbytes // 2, nbytes - 9, nbytes - 1, nbytes, nbytes + 1}
        for window in (size for size in sizes if size > 0):
            parts = slices_of(0, block, window, sliced=True)
            numbers = [row for part in parts for row in range(part.start, part.stop or rows)]
            assert numbers == [*range(rows)]
            assert sum(part.nbytes for part in parts) >= nbytes
            assert len([*cut_windows(parts, window)]) > 1 or window >= nbytes or rows == 1


@pytest.mark.slow
def test_every_row_is_written_once(source, tmp_path):
    if isinstance(source, pa.Table):
        pytest.skip("jobs read files")
    for number, window in enumerate(sizes_of(source)[::2]):
        output = tmp_path / f"out{number}.parquet"
        sections = {
            "source": {"paths": source},
            "order": {"window": window},
            "batch": {"kind": "rows", "n": 7},
            "output": {"path": str(output)},
        }
        assert run(Job.from_dict(sections, str(tmp_path))).rows == ROWS
        assert numbers_of(pq.read_table(output)) == ALL, window


def test_every_row_of_a_stream_comes_once():
    batches = TABLE.to_batches(max_chunksize=5)
    sizes = {1, batches[0].nbytes, sum(batch.nbytes for batch in batches[:2]), TABLE.nbytes}
    for window in sorted({size + more for size in sizes for more in (-1, 0, 1) if size + more > 0}):
        reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches)
        assert ids(sf.Loader(reader, batch=7, window=window)) == ALL, window


@pytest.mark.parametrize(
    ("name", "content", "format"),
    [("a.jsonl", '{"n": 1}\n', "JsonLines"), ("a.csv", "n\n1\n", "Csv"), ("a.txt", "text", "Text")],
)
def test_a_block_above_the_window_names_the_option_of_its_format(tmp_path, name, content, format):
    (tmp_path / name).write_text(content)
    with pytest.raises(sf.OpError, match="rows are shuffled in windows of 1 B") as refused:
        list(sf.Loader(tmp_path / name, shuffle=True, window=1))
    assert str(refused.value).endswith(f" bytes or more, or lower format=sf.{format}(batch_bytes=…)")
    kind = format.replace("JsonL", "jsonL").lower().removesuffix("ines")
    assert refused.value.told("job").endswith(f" bytes or more, or lower [source.{kind}] batch_bytes")


def test_a_block_above_the_window_of_another_source_has_advice_of_its_own(tmp_path):
    pq.write_table(TABLE, tmp_path / "a.parquet")
    for source, advice in (
        (tmp_path / "a.parquet", "write files with smaller row groups"),
        (TABLE, "lower batch_bytes="),
    ):
        with pytest.raises(sf.OpError, match=f" bytes or more, or {advice}$"):
            list(sf.Loader(source, shuffle=True, window=1))
