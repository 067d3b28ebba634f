"""InferenceContext: TensorFlow's vocabulary, three-valued equality, guards, requests for values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow.errors import LodError, OpError, ShapeError
from seqflow.shape import Comparison, Dimension, Equalities, InferenceContext, PartialShape


def context(*shapes, **options):
    return InferenceContext("add", shapes, **options)


def named(**shapes):
    return InferenceContext("add", shapes)


def shape(text):
    return PartialShape.parse(text)


def dim(text):
    return Dimension.parse(text)


def matmul(ctx):
    x, y = ctx.with_rank(ctx.input("x"), 2), ctx.with_rank(ctx.input("y"), 2)
    ctx.merge(ctx.dim(x, 1), ctx.dim(y, 0))
    ctx.set_output(0, ctx.make_shape([ctx.dim(x, 0), ctx.dim(y, 1)]))


# Inputs, outputs, attributes


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ("{2,3}", "{3,4}", "{2,4}"),
        ("{100,200}", "{200,300}", "{100,300}"),
        ("?", "{3,4}", "{?,4}"),
        ("{B,K}", "{K,N}", "{B,N}"),
    ],
)
def test_matmul(x, y, expected):
    ctx = InferenceContext("matmul", {"x": x, "y": y})
    assert str(ctx.run(matmul)[0].shape) == expected
    assert str(ctx.output(0)) == expected


def test_inputs_are_asked_for_by_position_or_name():
    ctx = named(x="{2}", y=[3, "?"])
    assert ctx.num_inputs == 2
    assert ctx.input(1) is ctx.input("y")
    assert ctx.input(1) == shape("{3,?}")
    assert context("{2}", (3,)).input(1) == shape("{3}")


def test_a_list_of_inputs_goes_by_one_name():
    ctx = InferenceContext(
        "concat", {"arrays": ["{2}", PartialShape([3])], "y": "{4}"}, rows={"arrays": ["a", None]}
    )
    assert ctx.num_inputs == 3
    assert ctx.inputs("arrays") == [shape("{2}"), shape("{3}")]
    assert ctx.inputs("y") == [shape("{4}")]
    assert ctx.input("arrays[1]") == ctx.input(1) == shape("{3}")
    assert ctx.rows(0).data == "a"
    assert ctx.rows("arrays[1]") is None
    with pytest.raises(OpError, match="input 'arrays' is a list"):
        ctx.input("arrays")


def test_an_unknown_input_output_or_attribute_is_an_error():
    ctx = InferenceContext("add", {"data": "{2}"}, attributes={"axis": 1})
    assert ctx.attr("axis") == 1
    with pytest.raises(OpError, match=r"no input 'dada' \(did you mean 'data'\?\)"):
        ctx.input("dada")
    with pytest.raises(OpError, match="no input 1, it has 1"):
        ctx.input(1)
    with pytest.raises(OpError, match=r"no attribute 'axes' \(did you mean 'axis'\?\)"):
        ctx.attr("axes")
    with pytest.raises(OpError, match="no output 1, it has 1"):
        ctx.set_output(1, "{2}")


def test_an_output_has_a_shape_rows_and_a_dtype():
    ctx = InferenceContext("cast", {"x": "{B}"}, rows={"x": "words"}, dtypes={"x": "int32"}, num_outputs=2)
    ctx.set_output(0, ctx.input("x"), rows=ctx.rows("x"), dtype=np.float32)
    ctx.set_output(1, "{}")
    assert ctx.num_outputs == 2
    assert ctx.outputs[0] == (shape("{B}"), (ctx.rows("x"),), np.dtype("float32"), None)
    assert ctx.outputs[1] == (shape("{}"), (), None, None)
    assert ctx.dtype("x") == np.int32


def test_an_output_that_was_not_set_is_an_error():
    ctx = named(x="{2}")
    with pytest.raises(ShapeError, match="add: output 0 is not set"):
        ctx.output(0)
    with pytest.raises(ShapeError, match="add: output 0 is not set"):
        ctx.run(lambda ctx: None)


# Rank


def test_with_rank():
    ctx = named(x="{2,3}", y="?")
    assert ctx.with_rank(ctx.input("x"), 2) is ctx.input("x")
    assert ctx.with_rank(ctx.input("y"), 2) == shape("{?,?}")
    assert ctx.with_rank(ctx.input("x"), Dimension.dynamic()) is ctx.input("x")
    with pytest.raises(ShapeError, match=r"add: x \{2,3\} has rank 2, expected 3"):
        ctx.with_rank(ctx.input("x"), 3)


def test_with_rank_at_least_and_at_most():
    ctx = named(x="{2,3}", y="?")
    for same in (ctx.input("x"), ctx.input("y")):
        assert ctx.with_rank_at_least(same, 2) is same
        assert ctx.with_rank_at_most(same, 2) is same
    with pytest.raises(ShapeError, match="has rank 2, expected 3 or more"):
        ctx.with_rank_at_least(ctx.input("x"), 3)
    with pytest.raises(ShapeError, match="has rank 2, expected 1 or less"):
        ctx.with_rank_at_most(ctx.input("x"), 1)


def test_dim_counts_from_either_end_and_is_unknown_where_the_rank_is():
    ctx = named(x="{2,3}", y="?")
    assert ctx.dim(ctx.input("x"), 0) is ctx.dim(ctx.input("x"), -2)
    assert ctx.dim(ctx.input("y"), 1000) == Dimension.dynamic()
    with pytest.raises(ShapeError, match=r"x \{2,3\} has no dimension -3, expected one of 2"):
        ctx.dim(ctx.input("x"), -3)


# Merge


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("{2,?}", "{?,2}", "{2,2}"),
        ("?", "{2}", "{2}"),
        ("{2,3}", "{2,3}", "{2,3}"),
        ("{1,2,?,?}", "{1,?,3,?}", "{1,2,3,?}"),
        ("{}", "?", "{}"),
    ],
)
def test_merge(left, right, expected):
    ctx = context(left, right)
    assert str(ctx.merge(ctx.input(0), ctx.input(1))) == expected
    assert str(ctx.merge(ctx.input(1), ctx.input(0))) == expected


def test_a_shape_that_is_the_answer_is_returned_itself():
    ctx = context("{2,3}", "{2,3}", "{?,3}", "?")
    a, b, partial, unknown = (ctx.input(i) for i in range(4))
    assert ctx.merge(a, b) is a
    assert ctx.merge(partial, a) is a
    assert ctx.merge(a, partial) is a
    assert ctx.merge(unknown, a) is a
    assert ctx.merge(partial, partial) is partial


def test_the_order_of_merging_three_does_not_matter():
    for left, middle, right in [("{1,?}", "{?,2}", "?"), ("?", "{1,?}", "{?,2}"), ("{?,2}", "?", "{1,?}")]:
        ctx = context(left, middle, right)
        assert str(ctx.merge(ctx.merge(ctx.input(0), ctx.input(1)), ctx.input(2))) == "{1,2}"


def test_what_is_provably_different_names_both_and_where_they_are():
    ctx = InferenceContext("fc", {"x": "{B,3}", "weight": "{5,4}"})
    with pytest.raises(ShapeError) as error:
        ctx.merge(ctx.dim(ctx.input("x"), 1), ctx.dim(ctx.input("weight"), 1))
    assert str(error.value) == "fc: x.shape[1] is 3 but weight.shape[1] is 4, expected equal sizes"
    assert ctx.guards == []


def test_ranks_that_differ_are_an_error():
    ctx = named(x="{?,?}", y="{?,?,?}")
    with pytest.raises(ShapeError, match=r"x \{\?,\?\} has rank 2 but y \{\?,\?,\?\} has rank 3"):
        ctx.merge(ctx.input(0), ctx.input(1))


def test_what_is_provably_equal_needs_no_guard():
    ctx = named(x="{B,2*H+2}", y="{B,2*(H+1)}")
    ctx.merge(ctx.input("x"), ctx.input("y"))
    assert ctx.guards == []


def test_what_is_unknown_is_accepted_and_guarded():
    ctx = named(x="{B}", y="{sum(lengths)}")
    assert str(ctx.merge(ctx.input("x"), ctx.input("y"))) == "{sum(lengths)}"
    assert [str(guard) for guard in ctx.guards] == ["B == sum(lengths) (add: x.shape[0] and y.shape[0])"]
    ctx.merge(ctx.input("x"), ctx.input("y"))
    assert len(ctx.guards) == 1


def test_what_was_taken_to_be_equal_proves_and_refutes_later_ops():
    equalities = Equalities()
    first = InferenceContext("fc", {"x": "{B}", "y": "{5}"}, equalities=equalities)
    first.merge(first.input("x"), first.input("y"))
    second = InferenceContext("tanh", {"x": "{B}", "y": "{6}"}, equalities=equalities)
    assert second.value(second.dim(second.input("x"), 0)) == 5
    with pytest.raises(ShapeError) as error:
        second.merge(second.input("x"), second.input("y"))
    assert str(error.value) == (
        "tanh: x.shape[0] is B but y.shape[0] is 6, expected equal sizes\n"
        "  B is 5 since fc: x.shape[0] and y.shape[0]"
    )


def test_what_one_net_takes_to_be_equal_is_unknown_to_another():
    first, second = named(x="{B}", y="{5}"), named(x="{B}", y="{6}")
    first.merge(first.input("x"), first.input("y"))
    assert second.merge(second.input("x"), second.input("y")) == shape("{6}")


def test_a_merge_that_fails_changes_nothing():
    ctx = named(x="{B,2}", y="{H,3}")
    with pytest.raises(ShapeError):
        ctx.merge(ctx.input("x"), ctx.input("y"))
    assert ctx.guards == []
    assert ctx.equalities.compare(dim("B"), dim("H")) is Comparison.UNKNOWN


def test_a_merge_that_contradicts_itself_fails():
    ctx = named(x="{B,B}", y="{2,3}")
    with pytest.raises(ShapeError, match=r"x.shape\[1\] is B but y.shape\[1\] is 3"):
        ctx.merge(ctx.input("x"), ctx.input("y"))
    assert ctx.value(dim("B")) is None


def test_merge_prefix():
    ctx = named(x="{?,3,4}", prefix="{2,?}", unknown="?", long="{1,2,3,4}")
    x, prefix, unknown, long = (ctx.input(i) for i in range(4))
    whole, merged = ctx.merge_prefix(x, prefix)
    assert (whole, merged) == (shape("{2,3,4}"), shape("{2,3}"))
    assert ctx.merge_prefix(x, unknown) == (x, unknown)
    assert ctx.merge_prefix(unknown, prefix) == (unknown, prefix)
    with pytest.raises(ShapeError, match="has rank 3, expected 4 or more"):
        ctx.merge_prefix(x, long)


def test_merge_input_and_relax_input_say_whether_they_changed_it():
    ctx = named(x="{2,?}")
    assert ctx.merge_input("x", "{?,3}")
    assert ctx.input("x") == shape("{2,3}")
    assert not ctx.merge_input("x", "{2,3}")
    assert not ctx.relax_input("x", "{2,3}")
    assert ctx.relax_input("x", "{3,3}")
    assert ctx.input("x") == shape("{2..3,3}")
    assert ctx.relax_input("x", "{1,2,3}")
    assert ctx.input("x") == PartialShape.dynamic()


def test_the_relaxations_of_tensorflow():
    for before, other, after in [
        ("{2,?}", "{?,2}", "{?,?}"), ("?", "{2}", "?"), ("{2}", "?", "?"), ("{2}", "{2}", "{2}"),
        ("{2,2}", "{1,2,3}", "?"), ("{2,2}", "{3,2}", "{2..3,2}"),
    ]:  # fmt: skip
        ctx = named(x=before)
        ctx.relax_input("x", other)
        assert str(ctx.input("x")) == after


# Equalities


@pytest.mark.parametrize(
    ("facts", "left", "right", "answer"),
    [
        ([("B", "H")], "B+1", "H+1", "EQUAL"),
        ([("B", "H"), ("H", "K")], "B", "K", "EQUAL"),
        ([("B", "H")], "B", "H+1", "UNEQUAL"),
        ([("sum(n)", "2*B"), ("B", "3")], "sum(n)", "6", "EQUAL"),
        ([("4*H", "12")], "H", "3", "EQUAL"),
        ([("B", "2*C"), ("B//2", "K")], "C", "K", "EQUAL"),
        ([("x.shape[0]", "B")], "B*H", "x.shape[0]*H", "EQUAL"),
        ([("B", "3..5")], "B", "6", "UNEQUAL"),
        ([("B", "3..5")], "2*B+1", "4", "UNEQUAL"),
        ([("B*B", "B")], "B", "1", "UNKNOWN"),
    ],
)
def test_equalities_carry_over(facts, left, right, answer):
    known = Equalities()
    for one, other in facts:
        known.equate(dim(one), dim(other), "a fact")
    assert known.compare(dim(left), dim(right)) is Comparison[answer]


def test_given_names_replace_made_up_ones_and_lengths_replace_names():
    known = Equalities()
    known.equate(dim("x.shape[0]"), dim("B"), "a fact")
    assert str(known.resolve(dim("x.shape[0]"))) == "B"
    known.equate(dim("B"), dim("sum(lengths)"), "a fact")
    assert str(known.resolve(dim("x.shape[0]+B"))) == "2*sum(lengths)"


def test_a_contradiction_is_refused_and_forgotten():
    known = Equalities()
    known.equate(dim("B"), dim("H+2"), "a fact")
    with pytest.raises(ShapeError):
        known.equate(dim("B"), dim("1"), "another")
    assert known.compare(dim("B"), dim("7")) is Comparison.UNKNOWN
    assert str(known.resolve(dim("H"))) == "B-2"


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"), st.integers(0, 2)), max_size=6))
def test_what_equalities_prove_holds_in_every_world_they_allow(facts):
    worlds = [
        dict(zip("abcd", (a, b, c, d), strict=True))
        for a in range(4) for b in range(4) for c in range(4) for d in range(4)
    ]  # fmt: skip
    known = Equalities()
    for left, right, more in facts:
        worlds = [world for world in worlds if world[left] == world[right] + more]
        try:
            known.equate(dim(left), dim(right) + more, "a fact")
        except ShapeError:
            assert not worlds
            return
    for left in "abcd":
        for right in "abcd":
            answer = known.compare(dim(left), dim(right))
            if answer is not Comparison.UNKNOWN:
                assert all((world[left] == world[right]) is (answer is Comparison.EQUAL) for world in worlds)


# Row spaces


def test_different_known_row_spaces_do_not_meet():
    ctx = InferenceContext("add", {"x": "{B}", "y": "{B}"}, rows={"x": "tokens", "y": "labels"})
    with pytest.raises(LodError, match="add: y holds the rows of labels, but x the rows of tokens"):
        ctx.merge_rows("x", "y")
    ctx.equalities.unite(ctx.rows("x"), ctx.rows("y"), "same_rows")
    assert ctx.merge_rows("x", "y") is ctx.rows("x")


def test_rows_do_not_meet_a_plain_size():
    ctx = InferenceContext("add", {"x": "{B}", "y": "{B}"}, rows={"y": "labels"})
    with pytest.raises(LodError, match="add: x is a plain size B, but y holds the rows of labels"):
        ctx.merge_rows("x", "y")
    assert ctx.merge_rows("y").data == "labels"
    assert ctx.merge_rows("x") is None


@pytest.mark.parametrize(
    ("x", "y", "expected"),
    [
        ("{sum(n),8}", "{8}", "{sum(n),8}"),
        ("{sum(n),8}", "{1,8}", "{sum(n),8}"),
        ("{sum(n),8}", "{}", "{sum(n),8}"),
        ("{sum(n),1}", "{1,8}", "{sum(n),8}"),
        ("{sum(n)}", "{1}", "{sum(n)}"),
        ("{sum(n)}", "?", "?"),
    ],
)
def test_inputs_broadcast(x, y, expected):
    ctx = InferenceContext("add", {"x": x, "y": y}, rows={"x": "words"})
    result, axes = ctx.broadcast_inputs("x", "y")
    assert str(result) == expected
    assert axes == (ctx.rows("x"),)


def test_rows_never_broadcast():
    ctx = InferenceContext("add", {"x": "{sum(n),4}", "y": "{B,4}"}, rows={"x": "words", "y": "words"})
    assert str(ctx.broadcast_inputs()[0]) == "{sum(n),4}"
    assert [str(guard) for guard in ctx.guards] == ["sum(n) == B (add: x.shape[0] and y.shape[0])"]
    ctx = InferenceContext("add", {"x": "{0..1}", "y": "{5}"}, rows={"x": "words", "y": "words"})
    with pytest.raises(ShapeError, match=r"x.shape\[0\] is 0..1 but y.shape\[0\] is 5"):
        ctx.broadcast_inputs()


@pytest.mark.parametrize("y", ["{sum(n),8}", "{sum(n),?}", "{7,8}", "{?,8}"])
def test_a_plain_size_is_never_taken_for_rows(y):
    ctx = InferenceContext("add", {"x": "{sum(n),8}", "y": y}, rows={"x": "words"})
    with pytest.raises(LodError, match="y is a plain size"):
        ctx.broadcast_inputs()


def test_without_rows_sizes_broadcast_as_in_numpy():
    ctx = named(x="{8,1,6}", y="{7,1}", z="{B}")
    assert str(ctx.broadcast_inputs("x", "y")[0]) == "{8,7,6}"
    assert str(named(x="{B}", y="{H}").broadcast_inputs()[0]) == "{?}"
    with pytest.raises(ShapeError, match="is 2 but"):
        named(x="{2}", y="{3}").broadcast_inputs()


# Making shapes


@pytest.mark.parametrize(
    ("start", "end", "stride", "expected"),
    [
        (0, None, 1, "{1,2,3,4,5}"),
        (1, None, 1, "{2,3,4,5}"),
        (-2, None, 1, "{4,5}"),
        (1, 3, 1, "{2,3}"),
        (0, -1, 1, "{1,2,3,4}"),
        (2, 2, 1, "{}"),
        (0, 99, 1, "{1,2,3,4,5}"),
        (99, None, 1, "{}"),
        (0, None, 2, "{1,3,5}"),
        (-1, None, -1, "{5,4,3,2,1}"),
        (4, 0, -2, "{5,3}"),
    ],
)
def test_subshape(start, end, stride, expected):
    ctx = named(x="{1,2,3,4,5}")
    assert str(ctx.subshape(ctx.input("x"), start, end, stride)) == expected


def test_the_whole_subshape_is_the_shape_itself():
    ctx = named(x="{1,2}", y="?")
    assert ctx.subshape(ctx.input("x"), 0) is ctx.input("x")
    assert ctx.subshape(ctx.input("x"), -2, 2) is ctx.input("x")
    assert ctx.subshape(ctx.input("y"), 0) is ctx.input("y")
    assert ctx.subshape(ctx.input("y"), 1) == PartialShape.dynamic()


@pytest.mark.parametrize(
    ("start", "end", "stride", "message"),
    [
        (3, 1, 1, "start 3 is after end 1"),
        (1, 3, -1, "start 1 is after end 3"),
        (-6, None, 1, "start -6 is before the first dimension"),
        (0, -6, 1, "end -6 is before the first dimension"),
        (0, None, 0, "stride is 0"),
    ],
)
def test_subshape_refuses(start, end, stride, message):
    ctx = named(x="{1,2,3,4,5}")
    with pytest.raises(ShapeError, match=message):
        ctx.subshape(ctx.input("x"), start, end, stride)


def test_concatenate():
    ctx = named(x="{1,?}", y="{3}", z="?")
    x, y, z = (ctx.input(i) for i in range(3))
    assert ctx.concatenate(x, y) == shape("{1,?,3}")
    assert ctx.concatenate(x, z) == PartialShape.dynamic()
    assert ctx.concatenate("{}", y) == y


def test_replace_dim():
    ctx = named(x="{1,2,3}", y="?")
    assert ctx.replace_dim(ctx.input("x"), -1, "B") == shape("{1,2,B}")
    assert ctx.replace_dim(ctx.input("y"), 5, 3) == PartialShape.dynamic()
    with pytest.raises(ShapeError, match="has no dimension 3"):
        ctx.replace_dim(ctx.input("x"), 3, 1)


def test_arithmetic_on_dimensions():
    ctx = named(x="{}")
    assert ctx.add("B", 1) == dim("B+1")
    assert ctx.subtract(6, "?") == dim("0..6")
    assert ctx.multiply(0, "?") == 0
    assert ctx.divide(7, 2, evenly=False) == 3
    assert ctx.divide("8*B", 8, evenly=True) == dim("B")
    assert ctx.min("?", 0) == 0
    assert ctx.max(3, 4) == 4
    with pytest.raises(ShapeError, match="leaves a remainder"):
        ctx.divide(7, 2, evenly=True)
    with pytest.raises(ShapeError, match="the divisor is zero"):
        ctx.divide(7, 0, evenly=False)


def test_value_and_number_of_elements():
    ctx = named(x="{}")
    assert ctx.value(3) == 3
    assert ctx.value("?") is None
    assert ctx.num_elements("{0,?}") == 0
    assert ctx.num_elements("{2,B}") == dim("2*B")
    assert ctx.make_shape([2, "?"]) == shape("{2,?}")


# Values


def test_a_constant_input_is_given_and_its_request_recorded():
    ctx = InferenceContext("reshape", {"x": "{6}", "shape": "{2}"}, input_values={"shape": np.array([2, 3])})
    assert ctx.input_tensor("x") is None
    assert ctx.input_tensor(1).tolist() == [2, 3]
    assert ctx.requested_tensors == {"x", "shape"}
    assert ctx.requested_shapes == set()


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([2, 3], "{2,3}"),
        ([2, -1], "{2,?}"),
        ([], "{}"),
        (np.int64(-1), "?"),
        (PartialShape.parse("{2,B}"), "{2,B}"),
        (None, "{?,?}"),
    ],
)
def test_a_value_may_be_a_shape(value, expected):
    ctx = InferenceContext("reshape", {"x": "{6}", "shape": "{2}"}, input_values={"shape": value})
    assert str(ctx.input_tensor_as_shape("shape")) == expected
    assert ctx.make_shape_from_tensor("shape") == ctx.input_tensor_as_shape("shape")
    assert ctx.requested_shapes == {"shape"}


def test_an_unknown_number_of_sizes_is_an_unknown_rank():
    for given_shape in ("?", "{?}", "{}"):
        assert named(shape=given_shape).input_tensor_as_shape("shape") == PartialShape.dynamic()


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([2, -2], r"shape\[1\] is -2, expected a size, or -1"),
        ([1.5], "shape is float64 of shape"),
        ([[1]], "shape is int64 of shape"),
        (3, "shape is 3, expected a vector of sizes, or -1 for an unknown rank"),
    ],
)
def test_a_value_that_is_no_shape_is_refused(value, message):
    ctx = InferenceContext("reshape", {"shape": "?"}, input_values={"shape": value})
    with pytest.raises(ShapeError, match=message):
        ctx.input_tensor_as_shape("shape")


def test_a_net_answers_requests_and_runs_the_function_again():
    def reshape(ctx):
        ctx.set_output(0, ctx.input_tensor_as_shape("shape"))

    constants, known = {"shape": np.array([2, -1])}, {}
    for _ in range(2):
        ctx = InferenceContext("reshape", {"x": "{B}", "shape": "{2}"}, input_values=known)
        (output,) = ctx.run(reshape)
        known = {name: constants[name] for name in ctx.requested_tensors | ctx.requested_shapes}
    assert output.shape == shape("{2,?}")


# Errors


def test_an_error_says_op_inputs_and_known_values():
    ctx = InferenceContext("matmul", {"x": "{2,3}", "y": "{4,5}", "n": "{2}"}, input_values={"n": [2, 3]})
    with pytest.raises(ShapeError) as error:
        ctx.run(matmul)
    assert str(error.value) == (
        "matmul: x.shape[1] is 3 but y.shape[0] is 4, expected equal sizes\n"
        "  given x {2,3}, y {4,5}, n {2} where n = [2 3]"
    )


def test_errors_of_dimensions_gain_the_op():
    with pytest.raises(ShapeError, match=r"add: dimension: 1 - 2 is negative[^\n]*\n  given x \{1\}"):
        named(x="{1}").run(lambda ctx: ctx.subtract(ctx.dim(ctx.input("x"), 0), 2))


def test_other_exceptions_keep_their_type_and_gain_a_note():
    with pytest.raises(ZeroDivisionError) as error:
        named(x="{1}").run(lambda ctx: 1 // 0)
    assert error.value.__notes__ == ["in the shape function of add, given x {1}"]


def test_a_run_that_fails_changes_nothing():
    def fails(ctx):
        ctx.set_output(0, "{2}")
        ctx.merge_input("x", "{5}")
        ctx.with_rank(ctx.input("x"), 2)

    ctx = named(x="{B}")
    with pytest.raises(ShapeError):
        ctx.run(fails)
    assert ctx.input("x") == shape("{B}")
    assert ctx.guards == []
    assert ctx.value(dim("B")) is None
    with pytest.raises(ShapeError, match="output 0 is not set"):
        ctx.output(0)


# Segment ids must have as many rows as the data


def test_rows_that_must_agree_are_checked_before_any_data_is_read():
    ctx = InferenceContext("segment_sum", {"data": "{7,2}", "ids": "{6}"})
    with pytest.raises(ShapeError, match=r"data.shape\[0\] is 7 but ids.shape\[0\] is 6"):
        ctx.merge_prefix(ctx.input("data"), ctx.input("ids"))


def test_with_value_says_what_a_dimension_is():
    ctx = InferenceContext("op", {"x": PartialShape.parse("{?,4}")}, num_outputs=0)
    unknown, four = ctx.input("x")
    assert ctx.with_value(unknown, 3) == 3
    assert ctx.with_value(four, 4) == 4
    with pytest.raises(ShapeError):
        ctx.with_value(four, 3)
