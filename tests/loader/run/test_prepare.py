"""Users' functions and nets: what they return is checked, and errors name the rows they come from."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import LodError, OpTypeError, SeqflowError
from seqflow.loader.plans.plan import BatchPlan
from seqflow.record import Record

TABLE = pa.table({"x": pa.array([[1, 2], [3], [4, 5, 6]])})
VALUES = np.arange(6)


def column(lengths: object, values: object = VALUES) -> dict[str, object]:
    return {"x.lengths": np.asarray(lengths), "x.values": np.asarray(values)}


def record(parents: dict[str, str | None], num_rows: int = 3) -> Record:
    return Record(column([2, 1, 3]), parents, num_rows)  # type: ignore[arg-type]


WRONG: list[tuple[object, str]] = [
    (column([2, 1, 2]), "x.values.6.*, but the sum of x.lengths is 5"),
    (column([2, 1, 4]), "x.values.6.*, but the sum of x.lengths is 7"),
    (column([-2, 5, 3]), "not lengths: .*-2 is negative"),
    (column([2.0, 1.0, 3.0]), "x.lengths as float64.*, expected lengths"),
    (column([[2], [1], [3]]), "expected lengths: 1-D integers"),
    (column([2, 1, 3], 5), r"x.values\[\], but the sum"),
    (column(np.array([2**63, 2, 3], np.uint64)), "not lengths"),
    (record({"x.lengths": None, "x.values": "y"}), "a parent for x.values"),
    (record({"x.lengths": None}), "without a parent, or None, for x.values"),
    (record({"x.lengths": "x.lengths", "x.values": "x.lengths"}), "x.lengths"),
]


@pytest.mark.parametrize("stage", ["prepare", "net"])
@pytest.mark.parametrize(("result", "message"), WRONG)
@pytest.mark.parametrize("batch", [sf.Rows(2), sf.TokenBudget(8), sf.Packed(4)])
def test_inconsistent_records_are_refused(result: object, message: str, batch: BatchPlan, stage: str) -> None:
    def wrong(record: Record) -> object:
        return result

    with pytest.raises(LodError, match=f"wrong returned .*{message}"):
        list(sf.Loader(TABLE, batch=batch, **{stage: wrong}))  # type: ignore[arg-type]


@pytest.mark.parametrize("result", [None, 3, {1: np.zeros(3)}, [("x", np.zeros(3))]])
def test_what_is_no_mapping_of_names_to_arrays_is_refused(result: object) -> None:
    with pytest.raises(OpTypeError, match="expected a mapping of names to arrays"):
        list(sf.Loader(TABLE, prepare=lambda record: result))  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(
    "result",
    [{"x": np.zeros(3), "y": np.zeros(2)}, {"x": np.array(3)}, Record({"x": VALUES}, {"x": None}, 3)],
)
def test_prepare_has_to_return_rows(result: object) -> None:
    with pytest.raises(LodError, match="expected the same number everywhere"):
        list(sf.Loader(TABLE, prepare=lambda record: result))  # type: ignore[arg-type,return-value]


def test_lengths_that_prepare_leaves_out_are_named() -> None:
    with pytest.raises(LodError, match=r"the lengths that describe each tensor \(x.lengths\)"):
        list(sf.Loader(TABLE, prepare=lambda record: {"row": np.zeros(3), "x.values": VALUES}))


def test_a_net_may_return_numbers() -> None:
    (batch,) = sf.Loader(TABLE, batch=3, net=lambda record: {"loss": np.array(2.5)})
    assert batch["loss"] == 2.5


def test_the_errors_of_a_function_are_its_own() -> None:
    class MineError(Exception):
        pass

    def fail(record: Record) -> dict[str, np.ndarray]:
        raise MineError

    with pytest.raises(MineError) as caught:
        list(sf.Loader(TABLE, net=fail))
    assert not isinstance(caught.value, SeqflowError)


SAME = "same_lengths(tokens.lengths, labels.lengths)\nreturn tokens.values, tokens.lengths"


def pairs(count, wrong=None):
    """`count` rows of tokens and labels of the same lengths, but in row `wrong`."""
    tokens = [list(range(i % 4 + 1)) for i in range(count)]
    labels = [row if i != wrong else [*row, 9] for i, row in enumerate(tokens)]
    kind = pa.list_(pa.int32())
    return pa.table({"tokens": pa.array(tokens, kind), "labels": pa.array(labels, kind)})


@pytest.fixture
def folder(tmp_path):
    """Two files in row groups of 10; row 17 of the second, row 7 of its row group 1, has one label too many."""
    pq.write_table(pairs(25), tmp_path / "a.parquet", row_group_size=10)
    pq.write_table(pairs(25, wrong=17), tmp_path / "b.parquet", row_group_size=10)
    return tmp_path


def notes(loader):
    with pytest.raises(sf.SeqflowError) as caught:
        for _ in loader:
            pass
    return caught.value.__notes__[-1]


@pytest.mark.parametrize(
    "batch", [sf.Rows(7), sf.Rows(1), sf.Rows(1000), sf.TokenBudget(11, lengths="tokens")]
)
def test_a_net_that_fails_for_one_row_names_its_file_block_and_row(folder, batch):
    assert notes(sf.Loader(folder, net=SAME, batch=batch)) == f"at {folder / 'b.parquet'}, block 1, row 7"


def test_a_prepare_that_fails_for_one_row_names_it_too(folder):
    assert notes(sf.Loader(folder, prepare=SAME)) == f"preparing {folder / 'b.parquet'}, block 1, row 7"


@pytest.mark.parametrize(
    ("error", "where", "first"), [(ZeroDivisionError, None, 0), (sf.LodError, "labels.lengths > 1", 1)]
)
def test_a_function_that_fails_names_the_rows_it_was_called_for(folder, error, where, first):
    def fails(record):
        if 3 in record["tokens.values"]:
            raise error("no")
        return record

    loader = sf.Loader(folder, prepare=fails, where=where)
    with pytest.raises(error, match="no") as caught:
        list(loader)
    assert caught.value.__notes__ == [f"preparing {folder / 'a.parquet'}, block 0, rows {first} to 9"]


def test_rows_are_found_behind_a_prepare_that_keeps_them(folder):
    keeping = "ids, n = truncate(tokens.values, tokens.lengths, max_length=99)\nreturn ids, n, labels.lengths"
    loader = sf.Loader(folder, prepare=keeping, net="same_lengths(n, labels.lengths)", batch=sf.Rows(8))
    assert notes(loader) == f"at {folder / 'b.parquet'}, block 1, row 7"


def test_the_block_is_named_behind_a_prepare_that_makes_other_rows(folder):
    splitting = (
        "x.values, x.lengths, _ = split_sequences(tokens.values, tokens.lengths, chunk=2)\n"
        "return x.values, x.lengths"
    )
    net, constants = "y = gather(table, x.values)", {"table": np.zeros(3)}
    loader = sf.Loader(folder, prepare=splitting, net=net, constants=constants, batch=sf.Rows(4))
    assert notes(loader) == f"at {folder / 'a.parquet'}, block 0"


def test_rows_that_were_left_out_are_counted(folder):
    kind = pa.list_(pa.int32())
    tokens = pa.array([[None], [1], [2, None], [1, 2]], kind)
    labels = pa.array([[1], [1], [2, 2], [1]], kind)
    pq.write_table(pa.table({"tokens": tokens, "labels": labels}), folder / "c.parquet")
    bad = folder / "bad.parquet"
    list(sf.Loader(folder / "c.parquet", net=SAME, bad_rows=sf.BadRows("quarantine", bad)))
    assert pq.read_table(bad)["bad"].combine_chunks().field("row").to_pylist() == [0, 2, 3]


def test_a_python_function_is_not_run_again_and_the_batch_is_named(folder):
    calls = []

    def net(batch):
        calls.append(batch)
        if len(calls) == 2:
            raise KeyError("broken")
        return batch

    with pytest.raises(KeyError) as caught:
        list(sf.Loader(folder, net=net, batch=sf.Rows(18)))
    a, b = folder / "a.parquet", folder / "b.parquet"
    assert len(calls) == 2
    assert caught.value.__notes__ == [
        f"in a batch of {a}, block 1, rows 8 to 9; {a}, block 2, rows 0 to 4; "
        f"{b}, block 0, rows 0 to 9; {b}, block 1, row 0"
    ]


def test_a_packed_batch_names_the_rows_its_pieces_come_from(folder):
    loader = sf.Loader(
        folder / "b.parquet",
        columns=["tokens"],
        batch=sf.Packed(4, strategy="concat"),
        net="y = gather(table, position_ids)",
        constants={"table": np.zeros(3)},
    )
    assert notes(loader) == f"at {folder / 'b.parquet'}, block 0, row 7"


def test_what_no_row_is_to_blame_for_names_the_batch(folder):
    found = notes(sf.Loader(folder, net="y = gather(tokens.lengths, [99])", batch=sf.Rows(10)))
    assert (
        found
        == f"in a batch of {folder / 'a.parquet'}, block 0, rows 0 to 9: no row of it is the cause alone"
    )


@pytest.mark.parametrize(
    "options",
    [
        {"batch": sf.Packed(16, columns=["items", "times"], rows=4)},
        {"batch": 8, "pad": {"items": 0, "times": 0}},
        {"batch": sf.TokenBudget(64, lengths="times")},
        {"batch": sf.TokenBudget(64, lengths="items", columns=["items", "times"], oversize="split")},
    ],
    ids=["packed", "padded", "budget", "cut"],
)
def test_lists_declared_alike_keep_their_own_lengths(tmp_path, options):
    items = [[*range(row % 9)] for row in range(200)]
    table = pa.table({"items": items, "times": [[100 + item for item in one] for one in items]})
    net = "same_lengths(items.lengths, times.lengths)\nreturn items.values, items.lengths, times.values, times.lengths"
    plain, declared = (sf.Loader(table, prepare=one, shuffle=True, **options) for one in (None, net))
    for before, batch in zip(plain, declared, strict=True):
        assert batch.parents == before.parents
        for name, tensor in before.tensors.items():
            np.testing.assert_array_equal(batch[name], tensor)


def test_lists_declared_alike_are_columns_that_can_be_read_again():
    table = pa.table({"items": [[1, 2], [3]], "times": [[10, 20], [30]]})
    net = "same_lengths(items.lengths, times.lengths)\nreturn items.values, items.lengths, times.values, times.lengths"
    (batch,) = sf.Loader(table, prepare=net, batch=2)
    assert sf.to_arrow(batch).to_pydict() == table.to_pydict()
