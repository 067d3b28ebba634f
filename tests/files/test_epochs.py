"""Epochs of a Loader over objects of a store: every row once, byte for byte, whatever the store does meanwhile."""

import threading
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from marks import thorough
from store_server import Faults

import seqflow as sf
from stores import Bucket

FILES, ROWS = 4, 3000
FAULTS = {"unavailable": 0.05, "cut": 0.05, "reset": 0.05, "short": 0.05, "html": 0.05}


def write_files(folder, kind):
    """Write numbered rows with lists (and, where a format has no lists, numbers) of all lengths."""
    draw = np.random.default_rng(0)
    for file in range(FILES):
        lengths = draw.integers(0, 30, ROWS)
        lists = [f"{number:x}" * 9 for number in draw.integers(0, 1 << 30, ROWS)]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)
        ids = draw.integers(0, 50_000, offsets[-1], np.int32)
        table = pa.table(
            {"row": np.arange(ROWS) + ROWS * file, "ids": pa.ListArray.from_arrays(offsets, ids)}
        )
        path = folder / f"part-{file}.{kind}"
        if kind == "parquet":
            pq.write_table(table, path, row_group_size=250)
        elif kind == "arrow":
            with pa.ipc.new_file(path, table.schema) as writer:
                writer.write_table(table, max_chunksize=250)
        elif kind == "jsonl":
            path.write_text("".join(f"{line}\n".replace("'", '"') for line in map(str, table.to_pylist())))
        else:
            pa.csv.write_csv(
                pa.table({"row": table["row"], "ids": lengths, "text": list(map(str, lists))}), path
            )


KINDS = ["parquet", "arrow", "jsonl", "csv"]


@pytest.fixture(params=KINDS)
def local(request, tmp_path):
    """The glob of local files."""
    (tmp_path / "local").mkdir()
    write_files(tmp_path / "local", request.param)
    return str(tmp_path / "local" / f"*.{request.param}")


def kinds(*some):
    """These kinds of files in the slow tests, the others in the thorough ones."""
    others = [kind for kind in KINDS if kind not in some]
    return pytest.mark.parametrize("local", [*some, *thorough(*others)], indirect=True)


def loader(paths, **options):
    """Return a loader of blocks of few KiB: an epoch takes many requests."""
    of_lines = {"jsonl": sf.JsonLines, "csv": sf.Csv}.get(paths.rpartition(".")[2])
    if of_lines is not None:
        options["format"] = of_lines(batch_bytes="16 KiB")
    return sf.Loader(paths, batch=64, shuffle=sf.Shuffle(3), window="64 KiB", **options)


def rows_of(batches):
    return sorted(int(row) for batch in batches for row in batch["row"])


def assert_same(found, expected):
    """The batches are equal, byte for byte."""
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert one.keys() == other.keys()
        for name in one:
            assert one[name].dtype == other[name].dtype
            assert one[name].tobytes() == other[name].tobytes()


def put(bucket, local):
    """Write the files of a glob and return the glob of the objects."""
    folder, _, pattern = local.rpartition("/")
    return f"{bucket.put_folder(Path(folder))}/{pattern}"


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("threads", [0, 2])
def test_a_store_gives_the_batches_of_a_disk(store, local, threads):
    expected = list(loader(local))
    assert rows_of(expected) == list(range(FILES * ROWS))
    assert_same(list(loader(put(store, local), storage_options=store.options, threads=threads)), expected)


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("threads", [0, 2])
def test_five_in_a_hundred_of_each_fault_lose_no_row(own, bucket, local, threads):
    expected = list(loader(local))
    uri = put(bucket, local)
    own.faults = Faults(seed=1, latency=0.002, **FAULTS)
    epochs = loader(uri, storage_options=bucket.options, threads=threads)
    assert_same(list(epochs), expected)
    own.faults = Faults(seed=2, latency=0.002, **FAULTS)
    assert rows_of(epochs) == list(range(FILES * ROWS))
    assert len(own.met) >= 4


@pytest.mark.slow
@kinds("arrow", "csv")
def test_stalls_lose_no_row(own, bucket, local):
    expected = list(loader(local))
    uri = put(bucket, local)
    own.faults = Faults(seed=4, stall=0.2, stall_seconds=2)
    assert_same(list(loader(uri, storage_options={**bucket.options, "read_timeout": "300ms"})), expected)
    assert own.met["stall"]


@pytest.mark.slow
@kinds("parquet", "csv")
def test_a_store_that_is_away_for_a_while_loses_no_row(own, bucket, local):
    expected = list(loader(local))
    batches = iter(loader(put(bucket, local), storage_options=bucket.options))
    found = [next(batches)]
    own.go_down(3)
    found += batches
    assert_same(found, expected)


@pytest.mark.slow
@kinds("parquet", "jsonl")
def test_a_server_killed_and_started_again_in_mid_epoch_loses_no_row(start_store, local, tmp_path):
    expected = list(loader(local))
    server = start_store(latency=0.01)
    bucket = Bucket("own", "bucket", server.url, server.options)
    batches = iter(loader(put(bucket, local), storage_options=bucket.options))
    found = [next(batches)]
    for _ in range(2):
        server.kill()
        started = threading.Timer(0.7, server.start)
        started.start()
        found += islice(batches, 40)
        started.join()
    found += batches
    assert_same(found, expected)


@pytest.fixture
def little_ahead(monkeypatch):
    """Only what is needed next is fetched: the files of these tests would fit into what is fetched ahead."""
    monkeypatch.setattr("seqflow.files.ahead.BUDGET", 16 << 10)


@pytest.mark.usefixtures("little_ahead")
def test_an_object_replaced_in_mid_epoch_is_an_error_that_names_it(own, bucket, local):
    uri = put(bucket, local)
    batches = iter(loader(uri, storage_options=bucket.options, threads=0))
    next(batches)
    for file in sorted((own.store.folder / "bucket").iterdir()):
        bucket.put(file.name, file.read_bytes())
    with pytest.raises(
        sf.SeqflowError, match=r"s3://bucket/part-\d\.\w+ is another object than when it was opened"
    ):
        list(batches)


@pytest.mark.usefixtures("little_ahead")
def test_an_object_replaced_by_other_rows_gives_none_of_them(own, bucket, local):
    """The bytes of two versions are not mixed, not even where sizes agree."""
    expected = list(loader(local))
    uri = put(bucket, local)
    batches = iter(loader(uri, storage_options=bucket.options, threads=0))
    found = [next(batches)]
    names = sorted(file.name for file in (own.store.folder / "bucket").iterdir())
    contents = [bucket.get(name) for name in names]
    for name, content in zip(names, contents[1:] + contents[:1], strict=True):
        bucket.put(name, content)
    with pytest.raises(sf.SeqflowError, match="is another object"):  # noqa: PT012
        for batch in batches:
            found.append(batch)
    assert_same(found, expected[: len(found)])


def test_a_run_that_is_resumed_in_mid_epoch_reads_only_the_rest(own, bucket, local):
    expected = list(loader(local))
    uri = put(bucket, local)
    first = loader(uri, storage_options=bucket.options)
    batches = iter(first)
    found = [next(batches) for _ in range(100)]
    state = first.state_dict()
    second = loader(uri, storage_options=bucket.options)
    second.load_state_dict(state)
    assert_same(found + list(second), expected)


@pytest.mark.slow
@kinds("arrow", "jsonl")
def test_ranks_read_the_rows_they_read_from_a_disk(own, bucket, local):
    uri = put(bucket, local)
    own.faults = Faults(seed=3, **FAULTS)
    for rank in range(3):
        ranks = {"rank": rank, "world_size": 3, "tail": "pad"}
        assert_same(list(loader(uri, storage_options=bucket.options, **ranks)), list(loader(local, **ranks)))


def test_reading_ahead_needs_no_threads_of_the_loader(own, bucket, local):
    uri = put(bucket, local)
    own.faults = Faults(latency=0.01)
    assert rows_of(loader(uri, storage_options=bucket.options, threads=0)) == list(range(FILES * ROWS))
    assert own.most_in_flight > 1
