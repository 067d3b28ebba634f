"""Loader: from files to batches, in order, with nothing lost."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import OpTypeError


@pytest.fixture
def docs(tmp_path):
    """Two Parquet files of three row groups of token lists; returned are the folder and the lists."""
    rng = np.random.default_rng(1)
    lists = [rng.integers(0, 100, n).tolist() for n in rng.integers(0, 9, 50)]
    labels = list(range(50))
    for i, part in enumerate((slice(0, 30), slice(30, 50))):
        table = pa.table({"tokens": pa.array(lists[part], pa.list_(pa.int32())), "label": labels[part]})
        pq.write_table(table, tmp_path / f"{i}.parquet", row_group_size=12)
    return tmp_path, lists


def rows(batches, column="tokens"):
    for batch in batches:
        offsets = np.concatenate([[0], np.cumsum(batch[f"{column}.lengths"])]).astype(int)
        for start, stop in pairwise(offsets):
            yield batch[f"{column}.values"][start:stop].tolist()


def test_batches_hold_the_rows_of_all_files_in_order(docs):
    folder, lists = docs
    loader = sf.Loader(folder, batch=sf.Rows(7))
    batches = list(loader)
    assert list(rows(batches)) == lists
    assert [batch.num_rows for batch in batches] == [7] * 7 + [1]
    assert np.concatenate([batch["label"] for batch in batches]).tolist() == list(range(50))
    assert loader.num_rows == 50


def test_each_iteration_starts_anew(docs):
    loader = sf.Loader(docs[0], columns=["tokens"])
    assert list(rows(loader)) == list(rows(loader))


def test_columns_are_read_only_where_asked_for(docs):
    (batch, *_) = sf.Loader(docs[0], columns=["label"])
    assert set(batch) == {"label"}
    with pytest.raises(sf.ProviderError, match="did you mean 'label'"):
        sf.Loader(docs[0], columns=["labl"])


def test_prepare_runs_on_blocks_and_net_on_batches(docs):
    folder, lists = docs
    loader = sf.Loader(
        folder,
        prepare="ids, n = truncate(tokens.values, tokens.lengths, max_length=3)\nreturn ids, n, label",
        net="x, mask = pad(ids, n, max_length=3)\nreturn x, mask, label",
        batch=sf.Rows(20),
    )
    batches = list(loader)
    assert [batch["x"].shape for batch in batches] == [(20, 3), (20, 3), (10, 3)]
    found = [
        row[mask].tolist() for batch in batches for row, mask in zip(batch["x"], batch["mask"], strict=True)
    ]
    assert found == [tokens[:3] for tokens in lists]


def test_prepare_may_change_the_number_of_rows(docs):
    folder, lists = docs
    prepare = """
    x.values, x.lengths, counts = split_sequences(tokens.values, tokens.lengths, chunk=4)
    return x.values, x.lengths
    """
    batches = list(sf.Loader(folder, prepare=prepare, batch=sf.Rows(10)))
    expected = [tokens[i : i + 4] for tokens in lists for i in range(0, len(tokens), 4)]
    assert list(rows(batches, "x")) == expected
    assert all(batch.num_rows == 10 for batch in batches[:-1])


def test_plain_functions_may_stand_for_nets(docs):
    folder, lists = docs
    loader = sf.Loader(
        folder,
        prepare=lambda record: {
            "x.values": record["tokens.values"] + 1,
            "x.lengths": record["tokens.lengths"],
        },
        net=lambda batch: {"total": np.array([batch["x.values"].sum()])},
        batch=sf.Rows(50),
    )
    (batch,) = loader
    assert batch["total"] == sum(map(sum, lists)) + sum(map(len, lists))


def test_constants_reach_the_nets(docs):
    folder, lists = docs
    table = np.arange(200.0).reshape(100, 2)
    (batch,) = sf.Loader(
        folder,
        net="y = sparse_lengths_sum(table, tokens.values, tokens.lengths)",
        constants={"table": table},
        batch=sf.Rows(50),
    )
    np.testing.assert_allclose(batch["y"], [table[tokens].sum(axis=0) for tokens in lists])
    with pytest.raises(sf.NetError, match="nothing uses the constant 'tabel'"):
        sf.Loader(folder, constants={"tabel": table})


def test_packed_batches_count_sources_over_their_window(docs):
    folder, lists = docs
    loader = sf.Loader(folder, columns=["tokens"], batch=sf.Packed(16, rows=2), window=200)
    seen = {}
    for batch in loader:
        assert len(set(batch["window"].tolist())) == 1
        unpacked = sf.ops.unpack_rows(
            batch["tokens"], batch["sources"], batch["piece_lengths"], batch["pieces"], num_sequences=50
        )
        offsets = np.concatenate([[0], np.cumsum(unpacked.lengths)])
        for i in np.flatnonzero(unpacked.lengths):
            place = int(batch["window"][0]), int(i)
            seen[place] = unpacked.values[offsets[i] : offsets[i + 1]].tolist()
    assert [seen[place] for place in sorted(seen)] == [tokens for tokens in lists if tokens]
    assert len({window for window, _ in seen}) > 1
    assert loader.stats().tokens == sum(map(len, lists))


def test_stats_tell_rows_tokens_and_fill(docs):
    folder, lists = docs
    loader = sf.Loader(folder, batch=sf.Rows(25))
    for _ in loader:
        pass
    stats = loader.stats()
    widest = [max(map(len, lists[:25])), max(map(len, lists[25:]))]
    assert (stats.rows, stats.tokens, stats.batches) == (50, sum(map(len, lists)), 2)
    assert stats.fill == pytest.approx(sum(map(len, lists)) / (25 * sum(widest)))


def test_memory_in_flight_stays_within_the_bound(tmp_path):
    block = pa.table({"x": pa.array([[1] * 1000] * 10, pa.list_(pa.int64()))})
    with pq.ParquetWriter(tmp_path / "x.parquet", block.schema) as writer:
        for _ in range(30):
            writer.write_table(block)
    loader = sf.Loader(tmp_path / "x.parquet", batch=sf.Rows(10), window=80_000, memory=200_000)
    assert all(loader.stats().bytes_in_flight <= 200_000 for _ in loader)


def test_an_error_in_prepare_names_file_block_and_statement(docs):
    loader = sf.Loader(
        docs[0],
        prepare="y = gather(table, tokens.values)\nreturn y, tokens.lengths",
        constants={"table": np.zeros(10)},
    )
    with pytest.raises(sf.OpError, match=r"gather: indices\[\d+\] = \d+ is outside \[0, 10\)") as error:
        list(loader)
    notes = "\n".join(error.value.__notes__)
    assert "0.parquet, block 0" in notes
    assert "line 1: y = gather(table, tokens.values)" in notes


def test_prepare_must_return_what_describes_its_tensors(docs):
    loader = sf.Loader(
        docs[0], prepare="ids, n = truncate(tokens.values, tokens.lengths, max_length=2)\nreturn ids, label"
    )
    with pytest.raises(sf.LodError, match="return the lengths that describe each tensor"):
        list(loader)


def test_a_missing_input_names_the_nearest_tensor(docs):
    loader = sf.Loader(docs[0], net="x, mask = pad(tokens.value, tokens.lengths)")
    with pytest.raises(sf.NetError, match=r"nothing assigns 'tokens.value'.*did you mean 'tokens.values'"):
        list(loader)


def test_zero_rows_make_no_batches(tmp_path):
    pq.write_table(pa.table({"x": pa.array([], pa.list_(pa.int32()))}), tmp_path / "x.parquet")
    assert list(sf.Loader(tmp_path / "x.parquet", batch=sf.Rows(4))) == []
    assert list(sf.Loader(tmp_path / "x.parquet", batch=sf.Packed(4))) == []


def test_an_integer_is_a_number_of_rows(docs):
    folder, _ = docs
    assert sf.Loader(folder, batch=32).batch == sf.Rows(32)
    with pytest.raises(sf.OpError, match="Rows: n is 0, expected an integer, 1 or more"):
        sf.Loader(folder, batch=0)


@pytest.mark.parametrize("batch", [2.0, True, "32", None, sf.Rows])
def test_a_batch_that_is_no_plan_is_refused_at_once(docs, batch):
    with pytest.raises(
        sf.OpError,
        match=r"expected a number of rows, Rows\(n\), TokenBudget\(max_tokens\), Buckets\(boundaries, plan\), Packed",
    ):
        sf.Loader(docs[0], batch=batch)


def test_a_function_that_returns_no_arrays_is_named(docs):
    with pytest.raises(sf.OpError, match=r"returned 'a' as builtins.list, expected a NumPy array"):
        list(sf.Loader(docs[0], net=lambda batch: {"a": [1]}))


def test_lengths_may_be_named_by_their_column(docs):
    assert [b.num_rows for b in sf.Loader(docs[0], batch=sf.TokenBudget(20, lengths="tokens"))]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        ([1, 2], "double returned list, expected a mapping of names to arrays"),
        (
            {"x": [1, 2]},
            "double returned 'x' as builtins.list, expected a NumPy array\n  numpy.asarray makes one",
        ),
    ],
)
def test_a_python_net_that_returns_something_else_says_which_tensor(result, message):
    def double(record):
        return result

    loader = sf.Loader({"x": np.arange(3)}, net=double, batch=sf.Rows(2))
    with pytest.raises(OpTypeError) as error:
        next(iter(loader))
    assert message in str(error.value)


def test_a_python_net_that_returns_torch_tensors_says_how_to_make_arrays():
    torch = pytest.importorskip("torch")
    loader = sf.Loader({"x": np.arange(3)}, net=lambda record: {"y": torch.ones(2)}, batch=sf.Rows(2))
    with pytest.raises(OpTypeError, match=r"'y' as torch.Tensor, expected a NumPy array\n  .numpy\(\) makes"):
        next(iter(loader))


@pytest.mark.slow
@pytest.mark.parametrize("allowed", [0, 2])
def test_a_loader_goes_on_without_the_threads_that_the_system_refuses(allowed):
    code = """
import threading
import pyarrow as pa
import seqflow as sf
loader = sf.Loader(pa.table({"x": list(range(20))}), batch=3, window=1, threads=4)
[*sf.Loader(pa.table({"x": [1]}), batch=3, threads=0)]  # what is imported at first use
start = threading.Thread.start
started = []
def refuse(thread):
    if len(started) >= ALLOWED:
        raise RuntimeError("can't start new thread")
    started.append(thread)
    start(thread)
threading.Thread.start = refuse
print([row for batch in loader for row in batch["x"].tolist()] == list(range(20)), len(started))
"""
    found = subprocess.run(
        [sys.executable, "-c", code.replace("ALLOWED", str(allowed))],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == ["True", str(allowed)]
