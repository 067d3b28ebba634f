"""What users' functions return is checked like any record: nothing is lost, and no kernel is asked to."""

import numpy as np
import pyarrow as pa
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
    (column([-2, 5, 3]), "no lengths: .*-2 is negative"),
    (column([2.0, 1.0, 3.0]), "x.lengths as float64.*, expected lengths"),
    (column([[2], [1], [3]]), "expected lengths: 1-D integers"),
    (column([2, 1, 3], 5), r"x.values\[\], but the sum"),
    (column(np.array([2**63, 2, 3], np.uint64)), "no lengths"),
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
