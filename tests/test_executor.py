"""Running a net on a record."""

import numpy as np
import pytest

from seqflow import LodError, Net, NetError
from seqflow.executor import run
from seqflow.record import Record

RECORD = Record(
    {"x.lengths": np.array([2, 0, 1]), "x.values": np.array([5, 6, 7]), "label": np.array([1, 2, 3])},
    {"x.lengths": None, "x.values": "x.lengths", "label": None},
    3,
    None,
)


def test_outputs_are_named_by_return_and_keep_their_lengths():
    result = run(Net("y, n = append_token(x.values, x.lengths, token=9)\nreturn y, n, label"), RECORD)
    assert list(result) == ["y", "n", "label"]
    assert result["y"].tolist() == [5, 6, 9, 9, 7, 9]
    assert result.parents == {"y": "n", "n": None, "label": None}
    assert result.num_rows == 3


def test_without_return_everything_assigned_and_everything_unused_comes_out():
    result = run(Net("total = lengths_sum(x.values, x.lengths)"), RECORD)
    assert list(result) == ["label", "total"]
    assert result["total"].tolist() == [11, 0, 7]


def test_values_whose_lengths_are_not_returned_are_rows_of_their_own():
    result = run(Net("y, n = append_token(x.values, x.lengths, token=9)\nreturn y"), RECORD)
    assert result.parents == {"y": None}


def test_levels_nest_as_the_signatures_say():
    net = Net("y, m, k = split_sequences(x.values, x.lengths, chunk=1)\nreturn y, m, k")
    assert run(net, RECORD).parents == {"y": "m", "m": "k", "k": None}


def test_groups_constants_and_literals_reach_the_ops():
    net = Net("t = truncate(x.values, x.lengths, max_length=1)\ny = gather(table, t.rows)\nreturn y, t.kept")
    result = run(net.bind(table=np.arange(10) * 10), RECORD)
    assert result["y"].tolist() == [50, 70]
    assert result.parents == {"y": "t.kept", "t.kept": None}
    assert run(Net("y = gather(x.values, [0, 2])\nreturn y"), RECORD)["y"].tolist() == [5, 7]


def test_an_op_may_be_used_for_its_check_alone():
    net = Net("_ = lengths_sum(x.values, x.lengths)\nreturn label")
    assert list(run(net, RECORD)) == ["label"]


def test_an_exception_keeps_its_type_and_notes_the_statement():
    with pytest.raises(LodError, match="sum\\(lengths\\) is 3 but data has 9 rows") as error:
        run(Net("y = lengths_sum(big, x.lengths)\nreturn y").bind(big=np.ones((9, 2))), RECORD)
    assert error.value.__notes__ == [
        "in the net, line 1: y = lengths_sum(big, x.lengths)\n  given data float64[9, 2], lengths int64[3]"
    ]


def test_a_tensor_the_record_has_not_is_an_error_that_lists_what_it_has():
    with pytest.raises(
        NetError,
        match=r"nothing assigns 'x.value'.*did you mean 'x.values'.*\n  it has x.lengths, x.values, label",
    ):
        run(Net("y = lengths_sum(x.value, x.lengths)"), RECORD)
