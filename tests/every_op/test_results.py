"""Results of users' ops are held against their signatures: a lie is an OpError that names what is wrong."""

import numpy as np
import pytest

import seqflow as sf
from seqflow import registry

DATA, LENGTHS = np.arange(6.0, dtype=np.float32).reshape(3, 2), np.array([2, 0, 1])


@pytest.fixture
def declare():
    """Declares an op `mine` that returns what it is told, and forgets it after the test."""

    def of(signature, result, **facts):
        def mine(data, lengths):
            return result

        mine.__module__ = __name__
        return sf.op(signature, **facts)(mine)

    yield of
    registry.unregister("mine")


def rows(count, width=2, dtype=np.float32):
    return np.zeros((count, width), dtype)


SUMS = "data[sum(lengths), *d], lengths[B] -> sums[B, *d]"
KEPT = "data[sum(lengths), *d], lengths[B] -> values[sum(lengths'), *d], int64 lengths'[K], int64 picked[K]"
SPREAD = "data[sum(lengths), *d], lengths[B] -> "
PARTS = "data[sum(lengths), *d], lengths[B] -> {values[sum(lengths'), *d], int64 lengths'[B]}*parts"


@pytest.mark.parametrize(
    ("signature", "result"),
    [
        (SUMS, rows(3)),
        (KEPT, (rows(5), np.array([2, 3]), np.array([0, 1]))),
        ("data[sum(lengths), *d], lengths[B] -> sorted[P=sum(lengths), *d]", rows(3)),
        (
            "data[sum(lengths), *d], lengths[B] -> padded[B, T>=max(lengths), *d]",
            np.zeros((3, 5, 2), np.float32),
        ),
        ("data[sum(lengths), *d], lengths[B] -> int64 offsets[B+1]", np.zeros(4, np.int64)),
        ("data[sum(lengths), *d], lengths[B] -> float64 total[]", np.float64(2.5)),
        ("data[sum(lengths), *d], lengths[B] ->", None),
    ],
)
def test_a_result_that_is_as_declared_comes_back(declare, signature, result):
    found = declare(signature, result)(DATA, LENGTHS)
    if isinstance(result, tuple):
        assert all(one is other for one, other in zip(found, result, strict=True))
    else:
        assert found is result or (isinstance(found, np.ndarray) and found == result)


@pytest.mark.parametrize(
    ("signature", "result", "message"),
    [
        (SUMS, rows(4), "sums.shape[0] is 4, expected 3 (B is 3)"),
        (SUMS, rows(3, 5), "sums.shape[1] is 5, expected 2"),
        (SUMS, rows(3, 2, np.float64), "sums is float64, declared float32 (sums[B, *d])"),
        (SUMS, np.zeros(3, np.float32), "sums has 1 dimensions (3,), expected 2 (sums[B, 2])"),
        (SUMS, [0, 0, 0], "sums is a list, declared an array (sums[B, *d])"),
        (SUMS, (rows(3), rows(3)), "sums is a tuple, declared an array"),
        (SUMS, None, "sums is a NoneType, declared an array"),
        (KEPT, (rows(5), np.array([2, 3])), "found 2 results, declared 3 (values, lengths', picked)"),
        (KEPT, rows(5), "found one ndarray, declared 3 (values, lengths', picked)"),
        (KEPT, (rows(4), np.array([2, 3]), np.array([0, 1])), "sum(lengths') is 5 but values has 4 rows"),
        (KEPT, (rows(1), np.array([2, -1]), np.array([0, 1])), "lengths'[1] = -1 is negative"),
        (KEPT, (rows(5), np.array([2, 3]), np.array([0])), "picked.shape[0] is 1, expected 2 as in lengths'.shape[0]"),
        (KEPT, (rows(5), np.array([2, 3], np.int32), np.array([0, 1])), "lengths' is int32, declared int64"),
        ("data[sum(lengths), *d], lengths[B] -> sorted[P=sum(lengths), *d]", rows(2), "sum(lengths) is 3 but sorted has 2 rows"),
        ("data[sum(lengths), *d], lengths[B] -> padded[B, T>=max(lengths)]", rows(3, 1), "padded.shape[1] is 1, expected 2 or more"),
        ("data[sum(lengths), *d], lengths[B] -> int64 offsets[B+1]", np.zeros(3, np.int64), "offsets.shape[0] is 3, expected 4 (B+1 is 4"),
        ("data[sum(lengths), *d], lengths[B] ->", rows(1), "found 1 results, declared 0 (none)"),
        (SPREAD + "int64 more[B] := lengths + 1", np.array([3, 1, 3]), "more is [3 1 3], defined as lengths+1, which is [3 1 2]"),
        (SPREAD + "int64 less[B] <= lengths", np.array([2, 1, 1]), "less is [2 1 1], expected at most lengths, which is [2 0 1]"),
        (SPREAD + "int64 kept[K], K <= B", np.zeros(4, np.int64), "K is 4, expected at most B, which is 3"),
        (SPREAD + "int64 kept[B], sum(kept) <= sum(lengths)", np.array([2, 2, 0]), "sum(kept) is 4, expected at most sum(lengths), which is 3"),
        (SPREAD + "index(B) ids[sum(lengths)]", np.array([0, 1, 3]), "ids[2] = 3 is outside [0, 3)"),
        (SPREAD + "index(sum(lengths)) first[B]", np.array([0, -2, 0]), "first[1] = -2 is outside [0, 3)"),
        (SPREAD + "index(U) inverse[sum(lengths)], kept[U]", (np.array([0, 1, 2]), rows(2)[:, 0]), "inverse[2] = 2 is outside [0, 2)"),
        (SPREAD + "position(lengths) best[B]", np.array([1, 0, 0]), "best[1] = 0 is outside [0, 0)"),
        (SPREAD + "position(lengths) order[sum(lengths)]", np.array([0, 2, 0]), "order[1] = 2 is outside [0, 2)"),
        (SPREAD + "index(B) ids[sum(lengths)]", np.array([0, 1, 1], np.int32), "ids is int32, declared int64"),
    ],
)  # fmt: skip
def test_a_result_that_is_not_as_declared_is_an_error(declare, signature, result, message):
    with pytest.raises(sf.OpError) as error:
        declare(signature, result)(DATA, LENGTHS)
    text = str(error.value)
    assert text.startswith("mine: the result is not what the signature declares: ")
    assert message in text
    assert text.endswith(signature)


@pytest.fixture
def in_parts():
    """An op that gives a list of `parts` tensors, as it is told."""

    def of(result):
        @sf.op(PARTS)
        def mine(data, lengths, *, parts: int = 2):
            return result

        return mine

    yield of
    registry.unregister("mine")


ONE = rows(2), np.array([1, 0, 1])
OTHER = rows(3), np.array([1, 1, 1])


def test_each_repetition_of_a_group_has_lengths_of_its_own(in_parts):
    found = in_parts(([ONE[0], OTHER[0]], [ONE[1], OTHER[1]]))(DATA, LENGTHS)
    assert [len(values) for values in found.values] == [2, 3]


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (([ONE[0]], [ONE[1]]), r"values has 1 tensors, declared 2 \({.*}\*parts\)"),
        (([ONE[0], ONE[0]], [ONE[1], OTHER[1]]), r"sum\(lengths'\) is 3 but values has 2 rows"),
        ((ONE[0], ONE[1]), "values is ndarray, declared a list of 2"),
    ],
)
def test_a_list_of_results_is_checked_one_by_one(in_parts, result, message):
    with pytest.raises(sf.OpError, match=f"^mine: the result is not .*{message}"):
        in_parts(result)(DATA, LENGTHS)


def _twice_as_many(ctx):
    ctx.set_output(0, [ctx.input("lengths")[0] * 2, 2], dtype="float64")


def test_a_shape_function_has_the_last_word(declare):
    right = rows(6, 2, np.float64)
    assert declare(SUMS, right, shape=_twice_as_many)(DATA, LENGTHS) is right


@pytest.mark.parametrize(
    ("result", "message"),
    [
        (rows(3, 2, np.float64), r"sums has shape \(3, 2\), but the shape function says \{6,2\}"),
        (rows(6), "sums is float32, declared float64"),
    ],
)
def test_a_result_that_its_shape_function_does_not_give_is_an_error(declare, result, message):
    with pytest.raises(sf.OpError, match=message):
        declare(SUMS, result, shape=_twice_as_many)(DATA, LENGTHS)


def test_a_lie_in_a_net_names_the_statement(declare):
    declare(SUMS, rows(4))
    with pytest.raises(sf.OpError, match=r"^mine: .*sums.shape\[0\] is 4") as error:
        sf.run("y = mine(x, n)", {"x": DATA, "n": LENGTHS})
    assert "in the net, line 1: y = mine(x, n)" in error.value.__notes__[0]


def test_ops_of_seqflow_are_called_without_this_check():
    shipped = [registry.get(name) for name in registry.names() if registry.get(name).family is not None]
    assert shipped
    for op in shipped:
        if hasattr(op.call, "__wrapped__"):
            assert op.call.__wrapped__ is op.function
