"""The derivative of every op: like central differences, and known to inference to be like its input."""

import numpy as np
import pytest
from differences import cotangents, differences, each, gradients, is_smooth_at, results, taken
from every_op import EXAMPLES, OPS
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from marks import one_in
from strategies.calls import calls

from seqflow import op as declare
from seqflow import registry
from seqflow.errors import GradientError, SeqflowError
from seqflow.net import Net
from seqflow.net.gradient import derivative
from seqflow.net.gradient.derivative import has_floats, is_differentiable
from seqflow.net.gradient.proof import prove
from seqflow.registry import NoDerivative
from seqflow.shape import Dimension
from seqflow.signature import Described, Repeated
from seqflow.signature.language import AtLeast, Name, Rest, Sum
from seqflow.tensor import TensorSpec

FLOATS = [
    op
    for op in OPS
    if any(has_floats(one) for one in op.signature.input_arguments)
    and any(has_floats(one) for one in op.signature.output_arguments)
]
"""The ops that have floats as inputs and as outputs."""
SMOOTH = [
    op
    for op in FLOATS
    if op.name != "expression"
    and not isinstance(op.grad, NoDerivative)
    and any(is_differentiable(op, one.name) for one in op.signature.input_arguments)
]
OPTIONS = {
    "batch_sparse_to_dense": [{"fill": 3}],
    "context_windows": [{"fill": 2}],
    "cumsum_within": [{"reverse": True}, {"exclusive": True}, {"reverse": True, "exclusive": True}],
    "discounted_sum_within": [{"gamma": 0.5, "reverse": False}],
    "gather": [{"ignore_index": 0}, {"wrap": True}],
    "gather_axis": [{"wrap": True}],
    "gru": [{"reverse": True}, {"linear_before_reset": False}],
    "lengths_var": [{"ddof": 1}],
    "lengths_std": [{"ddof": 1}],
    "lengths_sum": [{"empty": 2}],
    "lengths_max": [{"empty": -2}],
    "lengths_logsumexp": [{"empty": 1}],
    "lstm": [{"reverse": True}, {"forget_bias": 1.0}, {"gate_order": "ifog"}],
    "pack_by_time": [{"max_length": 5}],
    "pack_rows": [{"fill": 7}],
    "pad": [
        {"max_length": 2, "truncate": True},
        {"max_length": 2, "truncate": True, "side": "left"},
        {"side": "left"},
        {"multiple_of": 4, "fill": 1},
    ],
    "reduce_max": [{"axes": 0}, {"axes": -1, "keepdims": True}],
    "reduce_mean": [{"axes": 0}, {"axes": -1, "keepdims": True}],
    "reduce_sum": [{"axes": 0}, {"axes": -1, "keepdims": True}],
    "rnn": [{"reverse": True}, {"nonlinearity": "relu"}],
    "slice_axes": [{"starts": [-1], "stops": [-(2**63)], "steps": [-1], "axes": None}],
    "slice_sequences": [{"clip": True}],
    "sparse_lengths_max": [{"ignore_index": 0}],
    "sparse_lengths_mean": [{"ignore_index": 0}],
    "sparse_lengths_positional_weighted_sum": [{"ignore_index": 0}],
    "sparse_lengths_sum": [{"ignore_index": 0, "empty": 1}],
    "sparse_lengths_weighted_sum": [{"ignore_index": 0}],
    "split_sequences": [{"stride": 1}],
    "truncate": [{"keep": "tail"}],
    "unpad": [{"side": "left"}],
    "unsorted_segment_sum": [{"num_segments": 3, "empty": 1}],
}
"""Attributes that the strategies leave at their defaults."""
NOT_PROVED = {
    "partition": "sizes of shards depend on keys",
    "sorted_segment_prod": "counts add up to the rows",
}
"""Ops whose derivative has a size that inference does not know and that is checked when it runs."""


def named(ops):
    return pytest.mark.parametrize("op", ops, ids=[op.name for op in ops])


@named(FLOATS)
def test_each_op_of_floats_has_a_derivative_or_a_reason(op):
    if op.name == "expression":
        return
    assert op.grad is not None, "say grad=, or NoDerivative with the reason"
    if isinstance(op.grad, NoDerivative):
        assert op.grad.reason
        floats = next(one for one in op.signature.input_arguments if has_floats(one))
        given = {one.name: None for one in op.signature.input_arguments}
        attributes = {one.name: 1 for one in op.required}
        with pytest.raises(GradientError, match=f"{op.name}: it has no derivative: {op.grad.reason}"):
            derivative(op, attributes, given, [floats.name])


def wanted_of(op, inputs):
    """The inputs through which gradients may flow."""
    return [
        one.name
        for one in op.signature.input_arguments
        if one.name in inputs
        and is_differentiable(op, one.name)
        and not has_reason(op, one.name)
        and all(array.dtype.kind in "biuf" for array in each(inputs[one.name]))
    ]


def has_reason(op, name):
    return isinstance(op.grad, dict) and isinstance(op.grad.get(name), NoDerivative)


@named(SMOOTH)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_derivatives_are_like_differences(op, data):
    inputs, attributes = data.draw(calls(op))
    attributes |= data.draw(st.sampled_from([{}, *OPTIONS.get(op.name, [])]))
    inputs = taken(op, inputs)
    try:
        outputs = results(op, inputs, attributes)
    except SeqflowError:  # an attribute that does not fit the drawn inputs
        assume(False)
    assume(is_smooth_at(op, inputs))
    arriving = cotangents(outputs)
    wanted = wanted_of(op, inputs)
    if not wanted or not any(weight is not None for one in arriving.values() for weight in each(one)):
        return
    found = gradients(op, inputs, attributes, outputs, arriving, wanted)
    for name in wanted:
        slopes = differences(op, inputs, attributes, arriving, name)
        for gradient, slope, array in zip(each(found[name]), slopes, each(inputs[name]), strict=True):
            assert gradient.shape == array.shape
            assert gradient.dtype == array.dtype
            exact = all(
                one is None or one.dtype == np.float64 for part in arriving.values() for one in each(part)
            )
            tolerance = {"rtol": 1e-5, "atol": 1e-6} if exact else {"rtol": 1e-2, "atol": 1e-2}
            np.testing.assert_allclose(gradient, slope, **tolerance, err_msg=f"{op.name} by {name}")


def specs_of(op, inputs):
    """The inputs with sizes as the signature has them: symbols, and sums of lengths."""
    lists = {a.name for item in op.signature.inputs if isinstance(item, Repeated) for a in item.arguments}

    def spec(argument, array, suffix):
        inner = array.ndim - sum(not isinstance(dim, Rest) for dim in argument.dims)
        sizes = []
        for dim in argument.dims:
            place = len(sizes)
            match dim:
                case Rest():
                    sizes += array.shape[place : place + inner]
                case Sum(of=of):
                    sizes.append(Dimension.sum_of(of + (suffix if of in lists else "")))
                case Name(name=name) | AtLeast(name=name) if name not in {one.name for one in op.attributes}:
                    sizes.append(Dimension.symbol(name))
                case _:
                    sizes.append(array.shape[place])
        first = argument.dims[0] if argument.dims else None
        rows = Described(first.of + (suffix if first.of in lists else "")) if isinstance(first, Sum) else None
        floats = is_differentiable(op, argument.name) and array.dtype.kind in "biuf"
        return TensorSpec("float32" if floats else array.dtype, sizes, rows)

    return {
        one.name: [spec(one, array, f".{i}") for i, array in enumerate(inputs[one.name])]
        if one.name in lists
        else spec(one, inputs[one.name], "")
        for one in op.signature.input_arguments
        if one.name in inputs
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "op",
    one_in(3, (op for op in SMOOTH if op.family != "elementwise" and op.name not in NOT_PROVED)),
    ids=lambda op: op.name,
)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_gradients_are_known_to_have_the_dtype_shape_and_rows_of_their_input(op, data):
    inputs, attributes = data.draw(calls(op))
    inputs = {name: value for name, value in inputs.items() if value is not None}
    assume(wanted_of(op, inputs))
    prove(op, specs_of(op, inputs), op.complete(attributes), wanted_of(op, inputs))


@pytest.mark.parametrize("name", sorted(NOT_PROVED))
def test_sizes_that_are_not_known_are_checked(name):
    op = registry.get(name)
    inputs = {"data": np.ones((3, 2), np.float32)}
    inputs |= {"keys": np.array([0, 1, 0])} if name == "partition" else {"ids": np.array([0, 0, 1])}
    attributes = {"parts": 2} if name == "partition" else {}
    with pytest.raises(GradientError, match=r"not known to be like data"):
        prove(op, specs_of(op, inputs), op.complete(attributes), ["data"])


def test_ties_go_to_the_first_and_are_shared_where_torch_shares_them():
    lengths = np.array([3])
    same = np.array([2.0, 2.0, 1.0])
    for name, expected in {"lengths_max": [1, 0, 0], "sorted_segment_max": [0.5, 0.5, 0]}.items():
        op = registry.get(name)
        inputs = {"data": same} | (
            {"lengths": lengths} if name == "lengths_max" else {"ids": np.zeros(3, int)}
        )
        outputs = results(op, inputs, {})
        found = gradients(op, inputs, {}, outputs, {"largest": np.ones(1)}, ["data"])
        np.testing.assert_array_equal(found["data"], expected)
    for name in ("maximum", "minimum"):
        net = Net(f"loss = reduce_sum({name}(x, y))").gradient("loss", ["x", "y"])
        assert "0.5" in str(net)


def test_a_derivative_is_a_net_that_can_be_read():
    op = registry.get("lengths_sum")
    net = derivative(op, {}, {"data": None, "lengths": None}, ["data"])
    assert str(net) == "grad.data = cast_like(expand(d.sums, lengths), data)\nreturn grad.data"
    op = registry.get("truncate")
    net = derivative(op, {"max_length": 3}, {"data": None, "lengths": None}, ["data"])
    assert str(net) == (
        "origin, _ = truncate(row_numbers(data), lengths, max_length=3)\n"
        "grad.data = scatter_rows(d.values, origin, data, ignore_index=-1)\n"
        "return grad.data"
    )


def test_inputs_that_are_left_out_are_left_out():
    op = registry.get("layer_norm")
    with_weight = derivative(op, {}, {"x": None, "weight": None}, ["x"])
    without = derivative(op, {}, {"x": None}, ["x"])
    assert "weight" in with_weight.inputs
    assert "weight" not in without.inputs


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("expand(d.sums, sizes)", r"speaks of 'sizes', expected one of data, lengths, out.sums, d.sums"),
        ("expand(d.sums, lengths", "the formula cannot be read: .* has brackets that do not match"),
        ("", "the formula is empty"),
        ("d.sums * 2\nexpand(d.sums, lengths)", "has no effect, only the last line may be an operand"),
        ("x = expand(d.sums, lengths)", "is the last line, expected an operand, or grad ="),
        ("expand(d.sums, lengths)[0]", "the derivative by data"),
        ("len(data)", "counts data, which is not a list"),
        ("d.sums * 1.0", "the derivative by data"),
        ("float64(expand(d.sums, lengths))", "the derivative by data is float64, expected float32"),
        ("nonsense(d.sums)", "no op is named 'nonsense'"),
    ],
)
def test_a_formula_that_is_wrong_is_refused_when_the_op_is_declared(formula, message):
    def doubled_sum(data, lengths):
        """The sum, twice."""
        return 2 * registry.get("lengths_sum").call(data, lengths)

    with pytest.raises(GradientError, match=message) as raised:
        declare("float data[sum(lengths), *d], lengths[B] -> sums[B, *d]", grad={"data": formula})(
            doubled_sum
        )
    assert "doubled_sum" in str(raised.value)
    assert "doubled_sum" not in registry.names()


WRONG_SHAPES = [
    ("float x[N] -> y[N]", "reduce_sum(d.y)", {}),
    ("float x[N, K] -> y[N, K]", "reduce_sum(d.y, axes=0, keepdims=True)", {}),
    ("float x[*_] -> y[*_]", "reduce_sum(d.y)", {}),
    ("float x[N, _] -> y[N, _]", "reduce_sum(d.y, axes=1)", {}),
    ("float x[sum(lengths)], lengths[B] -> y[sum(lengths)]", "lengths_sum(d.y, lengths)", {}),
    ("float x[N] -> y[N]", "reduce_sum(d.y) * k", {"k": int}),
    ("{float x[N]}+ -> y[N]", "reduce_sum(d.y), reduce_sum(d.y)", {}),
]


@pytest.mark.parametrize(("signature", "formula", "attributes"), WRONG_SHAPES)
def test_a_gradient_of_another_shape_is_refused_when_the_op_is_declared(signature, formula, attributes):
    given = [name for name in ("x", "lengths") if name in signature]
    keywords = f", *, {', '.join(attributes)}: int" if attributes else ""
    scope = {}
    exec(
        f"def of_a_test({', '.join(given)}{keywords}): return sum(x) if isinstance(x, list) else x * 2", scope
    )
    with pytest.raises(GradientError, match="of_a_test: the derivative by x"):
        declare(signature, grad={"x": formula})(scope["of_a_test"])
    assert "of_a_test" not in registry.names()


@pytest.mark.parametrize(
    "signature", ["float x[*_] -> y[*_]", "float x[N, _] -> y[N, _]", "float x[T>=max(n)], lens n[B] -> y[T]"]
)
def test_right_gradients_of_open_sizes_are_taken(signature):
    scope = {}
    exec(f"def of_a_test({'x, n' if 'n[B]' in signature else 'x'}): return x * 2", scope)
    declare(signature, grad={"x": "2 * d.y"})(scope["of_a_test"])
    registry.unregister("of_a_test")


CONSTANTS = [
    "2 * 3",
    "sqrt(2.0)",
    "2 ** 3",
    "-(1 + 1)",
    "exp(-1)",
    "where(1 > 2, 3.0, 4.0)",
    "maximum(1, 2) / 7",
]


@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize(
    "text", ["x / ({})", "x * ({})", "({}) - x", "atan2(x, {})", "maximum(x, {})", "x ** ({})"]
)
def test_gradients_next_to_constants_are_like_differences(text, constant):
    from seqflow import run

    written = text.format(constant)
    x = np.array([0.7, 1.9])

    def loss(x):
        return run(f"loss = reduce_sum({written})\nreturn loss", {"x": x})["loss"]

    found = run(Net(f"loss = reduce_sum({written})").gradient("loss", ["x"]), {"x": x})["grad.x"]
    steps = np.eye(2) * 1e-6
    expected = [(loss(x + step) - loss(x - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_a_users_op_with_a_derivative_trains():
    def doubled_sum(data, lengths):
        """The sum, twice."""
        return 2 * registry.get("lengths_sum").call(data, lengths)

    declare(
        "float data[sum(lengths), *d], lengths[B] -> sums[B, *d]",
        grad={"data": "expand(2 * d.sums, lengths)"},
    )(doubled_sum)
    try:
        net = Net("loss = reduce_sum(doubled_sum(x, n))").gradient("loss", "x")
        from seqflow import run

        found = run(net, {"x": np.ones(3), "n": np.array([2, 1])})
        np.testing.assert_array_equal(found["grad.x"], [2, 2, 2])
    finally:
        registry.unregister("doubled_sum")


def test_names_that_a_derivative_does_not_have_are_refused():
    with pytest.raises(GradientError, match="grad speaks of 'rows', expected inputs"):

        @declare("float data[N] -> sums[N]", grad={"rows": "d.sums"})
        def no_such_input(data):
            """Nothing."""
            return data
