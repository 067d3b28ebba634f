"""A walk over the registry: what every op promises by being registered."""

import doctest
import re

import numpy as np
import pytest
from every_op import EXAMPLES, OPS, each, each_fourth_op, every_op, flat, results, returned
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies.calls import STRATEGIES, calls

import seqflow as sf
from seqflow import PartialShape, TensorSpec, kernels, registry
from seqflow.expression.functions import by_name
from seqflow.registry.description import describe
from seqflow.registry.results import DeclaredResults
from seqflow.signature.language import LIKE, Rest, Sum

IMPLEMENTATIONS = ["reference", "native"] if kernels.info()["kernels"] == "native" else ["reference"]
NAN = float("nan")
BAD_LENGTHS = [
    [-1], [2, -1], [[1]], [1.0], [NAN], [True], ["a"], [None], 1, [2**62, 2**62, 2**62],
    np.array([2**64 - 1], np.uint64), np.array([1], object),
]  # fmt: skip
BAD_ATTRIBUTES = {
    "int": [0.5, NAN, "1", True, [1], 1 + 0j],
    "ints": [0.5, NAN, "1", [0.5], [True], [[1]], [None]],
    "parts": [0, -1, 0.5, NAN, "1", [], [-1], [0.5], [[1]]],
    "float": ["0.5", True, [0.5], 1j],
    "bool": [2, 1, 0.0, "yes", [True]],
    "str": [1, b"x", ["x"]],
    "texts": [1, b"x", [b"x"], [None], {"x": 1}],
    "choice": ["", "no such choice", 1, b"right", ["right"], np.array(["right", "left"])],
    "scalar": ["x", [1], {}, np.array([1, 2])],
    "fill": [[1], {}, np.array([1, 2])],
    "dtype": ["no such dtype", "U3", object, 5, ["int8"]],
}
"""Values that no attribute of this kind takes."""


def test_every_strategy_is_one_for_an_op():
    assert STRATEGIES.keys() <= set(registry.names())


@every_op
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_results_have_the_shapes_and_dtypes_the_signature_says(op, data):
    inputs, attributes = data.draw(calls(op))
    every = [inputs.get(argument.name) for argument in op.signature.input_arguments]
    declared = DeclaredResults(op, every, op.complete(attributes))
    declared.check(returned(op, inputs, attributes))


@every_op
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_inference_on_known_shapes_gives_the_real_shapes_and_dtypes(op, data):
    inputs, attributes = data.draw(calls(op))
    found = results(op, inputs, attributes)
    inferred = op.infer(each(inputs, TensorSpec.of), attributes, values=inputs)
    values = {}
    own = dict(zip((f"{op.name}.{name}" for name in op.result_names(attributes)), found, strict=True))
    for name, array in {**dict(flat(inputs)), **own}.items():
        if array.ndim == 1 and array.dtype.kind in "iu":
            values |= {
                f"sum({name})": int(array.sum()),
                f"max({name})": int(array.max()) if array.size else 0,
            }
        values |= {f"{name}.shape[{axis}]": size for axis, size in enumerate(array.shape)}
    for spec, array in zip(inferred.outputs, found, strict=True):
        assert spec.dtype == array.dtype or (spec.dtype == "U" and array.dtype.kind == "U")
        assert tuple(dim.evaluate(values) for dim in spec.shape) == array.shape
    assert all(guard.left.evaluate(values) == guard.right.evaluate(values) for guard in inferred.guards)


@pytest.mark.slow
@each_fourth_op(1)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_inference_on_unknown_shapes_relaxes_the_real_ones(op, data):
    inputs, attributes = data.draw(calls(op))
    unknown = each(inputs, lambda array: TensorSpec(array.dtype, PartialShape.dynamic()))
    inferred = op.infer(unknown, attributes)
    for spec, array in zip(inferred.outputs, results(op, inputs, attributes), strict=True):
        assert spec.dtype == array.dtype or (spec.dtype == "U" and array.dtype.kind == "U")
        assert spec.shape.relaxes(PartialShape(array.shape))


@every_op
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_native_and_reference_kernels_agree(op, data):
    inputs, attributes = data.draw(calls(op))
    found = []
    for implementation in IMPLEMENTATIONS:
        with kernels.use(implementation):
            found.append(results(op, inputs, attributes))
    for ours, reference in zip(found[-1], found[0], strict=True):
        assert ours.dtype == reference.dtype
        if ours.dtype.kind == "f":
            np.testing.assert_allclose(ours, reference, rtol=1e-6, atol=1e-6)
        else:
            np.testing.assert_array_equal(ours, reference)


@pytest.mark.slow
@each_fourth_op(2)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_strided_and_read_only_inputs_give_the_same(op, data):
    inputs, attributes = data.draw(calls(op))
    strided = each(inputs, lambda array: np.repeat(array, 2, axis=-1)[..., ::2] if array.ndim else array)
    for _, array in flat(strided):
        array.flags.writeable = False
    for ours, plain in zip(results(op, strided, attributes), results(op, inputs, attributes), strict=True):
        np.testing.assert_array_equal(ours, plain)


@every_op
@given(data=st.data())
@settings(max_examples=2)
def test_bad_lengths_are_our_error_and_name_the_op(op, data):
    inputs, attributes = data.draw(calls(op))
    for argument in op.signature.input_arguments:
        if argument.is_lengths:
            for bad in [*BAD_LENGTHS, *wrong_sums(op, argument, inputs)]:
                refuses(op, replaced(inputs, argument.name, bad), attributes)


@every_op
@given(data=st.data())
@settings(max_examples=2)
def test_inputs_of_a_wrong_kind_are_our_error_and_name_the_op(op, data):
    inputs, attributes = data.draw(calls(op))
    for argument in op.signature.input_arguments:
        for bad in wrong_kinds(op, argument, first(inputs[argument.name])) if argument.name in inputs else ():
            refuses(op, replaced(inputs, argument.name, bad), attributes)


@pytest.mark.slow
@each_fourth_op(3)
@given(data=st.data())
@settings(max_examples=3)
def test_attributes_out_of_range_are_our_error_and_name_the_op(op, data):
    inputs, attributes = data.draw(calls(op))
    for attribute in op.attributes:
        bad = list(BAD_ATTRIBUTES.get(attribute.kind, ()))
        if attribute.kind != "object" and not attribute.optional:
            bad.append(None)
        if attribute.kind in ("int", "ints") and attribute.minimum is not None:
            bad.append(attribute.minimum - 1)
        for value in bad:
            refuses(op, inputs, {**attributes, attribute.name: value})


@pytest.mark.slow
@each_fourth_op(0)
@given(
    data=st.data(),
    value=st.sampled_from([2**63, -(2**63) - 1, NAN, np.inf, "x", np.zeros((7, 7), "f2"), object()]),
)
@settings(max_examples=EXAMPLES)
def test_extreme_attributes_give_a_result_or_our_error(op, data, value):
    inputs, attributes = data.draw(calls(op))
    for attribute in op.attributes:
        try:
            results(op, inputs, {**attributes, attribute.name: value})
        except sf.SeqflowError as error:
            message = str(error)
        else:
            continue
        assert message.startswith((f"{op.name}: ", f"{op.name}, "))


def refuses(op, inputs, attributes):
    with pytest.raises(sf.SeqflowError, match=f"^{op.name}[:,] "):
        results(op, inputs, attributes)


def first(value):
    return value[0] if isinstance(value, list) else value


def replaced(inputs, name, value):
    """The inputs with another one in its place: the first of a list of them."""
    return {**inputs, name: [value, *inputs[name][1:]] if isinstance(inputs[name], list) else value}


def wrong_sums(op, argument, inputs):
    """Lengths that do not add up to the rows of an input."""
    if any(Sum(argument.name) in other.dims for other in op.signature.input_arguments):
        lengths = first(inputs[argument.name]).astype(np.int64)
        yield from (lengths + 1, lengths + 2**31, lengths + 2**62) if len(lengths) else ([2**31], [1, 2])


def wrong_kinds(op, argument, array):
    """Objects, NaN for integers, no axes where there should be some, and other trailing axes than the others'."""
    if array is None:
        return
    yield array.astype(object)
    yield object()
    if argument.rank:
        yield np.zeros((), array.dtype)
    if argument.dtype.word in ("int", "index"):
        yield np.full(array.shape, NAN)
    others = [other for other in op.signature.input_arguments if other is not argument and not other.optional]
    rest = None if argument.rest is None else argument.dims[argument.rest]
    if rest not in (None, Rest("_")) and any(rest in other.dims for other in others):
        yield np.zeros((*array.shape, 2), array.dtype)


@pytest.fixture(scope="module")
def calls_by_name():
    return {name: registry.get(name).call for name in registry.names()}


@every_op
def test_the_example_in_the_docs_runs(op, calls_by_name):
    example = doctest.DocTestParser().get_doctest(op.doc, {**calls_by_name, "np": np}, op.name, None, 0)
    assert example.examples, "an op shows an example"
    assert doctest.DocTestRunner(verbose=False).run(example).failed == 0


@every_op
def test_the_docs_say_what_becomes_of_empty_sequences(op):
    prose = " ".join(describe(op).prose.split())
    if any(argument.is_lengths for argument in op.signature.input_arguments):
        assert re.search(r"\b[Ee]mpty\b|ength of 0|No seq", prose), (
            "the docs say what an empty sequence gives"
        )
    if any(attribute.name == "empty" for attribute in op.attributes):
        assert re.search(
            r"empty segment\b.* gives .*`empty`|without elements .*is `empty`|empty segment gives", prose
        )


SEVERAL_COLUMNS = {"isin_within", "labels_of_tokens", "ngram_overlap", "truncate_together"}
"""Ops of columns of which each comes with its own lengths: data, lengths, then the next column."""
OWN_NAMES = {"group_order", "product_within", "route_topk", "run_lengths", "starts_to_lengths"} | {
    "prefix_tree",
    "token_offsets",
    "tree_paths",
    "word_offsets",
}
"""Ops whose sequences are of places, or of runs, under their own names."""


@pytest.mark.parametrize("op", [op for op in OPS if op.name not in SEVERAL_COLUMNS], ids=lambda op: op.name)
def test_arguments_come_in_one_order(op):
    """Data, what selects, the lengths of the data, outer lengths; then learned parameters and what is optional."""
    arguments = op.signature.input_arguments
    names = [argument.name for argument in arguments]
    required = (i for i, argument in enumerate(arguments) if argument.is_lengths and not argument.optional)
    stop = 1 + max(required, default=-1)
    first, last = arguments[:stop], arguments[stop:]
    selecting = ("int", "index", "bool")
    kinds = [2 if a.is_lengths else 1 if a.dtype.word in selecting else 0 for a in first]
    assert kinds == sorted(kinds)
    if first:
        learned = ("float", "like", "uint8")  # a vocabulary is bytes
        assert all(argument.optional or argument.dtype.word in learned for argument in last)
    for i, argument in enumerate(arguments):
        described_by = [dim.of for dim in argument.dims[:1] if isinstance(dim, Sum)]
        assert argument.optional or all(names.index(lengths) > i for lengths in described_by)


@every_op
def test_sequences_that_come_out_are_values_and_lengths(op):
    """Whatever the op is called; extra outputs come after them."""
    outputs = op.signature.output_arguments
    if op.name in OWN_NAMES:
        return
    if outputs and {Sum(argument.name) for argument in outputs}.intersection(outputs[0].dims[:1]):
        assert op.output_names[:2] == ("values", "lengths")
        assert outputs[0].dims[0] == Sum(outputs[1].name)


GIVES_SEQUENCES = {"lengths_range", "lengths_reduce_positions"}


@every_op
def test_lengths_x_gives_a_row_for_each_sequence_and_x_within_keeps_the_rows(op):
    inputs, outputs = op.signature.inputs, op.signature.outputs
    if op.name.startswith("lengths_") and not inputs[0].is_lengths and op.name not in GIVES_SEQUENCES:
        assert all(output.row_name == "B" for output in outputs)
    if op.name.endswith("_within") and len(outputs) == 1 and op.name != "gather_within":  # which picks some
        assert outputs[0].dims == inputs[0].dims


def _moves_rows(op):
    """Whether its inputs may be of any dtype: the row of an expression that computes takes numbers."""
    word = next(iter(op.signature.input_arguments)).dtype.word if op.signature.input_arguments else ""
    return word in ("any", LIKE) and (op.name not in by_name or "U" in by_name[op.name].kinds)


MOVES_ROWS = [op for op in OPS if _moves_rows(op) and op.name not in ("cast", "expression", "merge_id_lists")]
TEXTS = np.array(["", "a", "bb", "ccc", "dddd-", "e", "ffffffff", "g"])


def _numbers(array):
    return np.nan_to_num(array.astype(np.float64)).astype(np.int64) % len(TEXTS)


def _texts(array):
    texts = TEXTS[array]
    return texts.astype(f"U{max(np.strings.str_len(texts).max(initial=0), 1)}")


@pytest.mark.parametrize("op", MOVES_ROWS, ids=[op.name for op in MOVES_ROWS])
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_rows_of_text_are_moved_as_rows_of_numbers_are(op, data):
    """Whatever the widths of the texts."""
    inputs, attributes = data.draw(calls(op))
    attributes = {a.name: 0 for a in op.attributes if a.kind == "fill"} | attributes
    attributes = {name: 0 if type(v) is int and _is_fill(op, name) else v for name, v in attributes.items()}
    moved = {a.name for a in op.signature.input_arguments if a.dtype.word in ("any", LIKE)} - {"condition"}
    chosen = {name: value for name, value in inputs.items() if name in moved and value is not None}
    numbers = inputs | each(chosen, _numbers)
    texts = inputs | each(each(chosen, _numbers), _texts)
    for use in IMPLEMENTATIONS:
        with kernels.use(use):
            pairs = zip(results(op, numbers, attributes), results(op, texts, attributes), strict=True)
            for expected, found in pairs:
                held = TEXTS[expected] if found.dtype.kind == "U" else expected
                np.testing.assert_array_equal(found, held)


def _is_fill(op, name):
    return any(attribute.name == name and attribute.kind == "fill" for attribute in op.attributes)


FILLED = [op for op in MOVES_ROWS if any(attribute.kind == "fill" for attribute in op.attributes)]


@pytest.mark.parametrize("op", FILLED, ids=[op.name for op in FILLED])
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_a_text_fills_up_texts_and_is_never_cut(op, data):
    inputs, attributes = data.draw(calls(op))
    fill = next(attribute.name for attribute in op.attributes if attribute.kind == "fill")
    moved = {a.name for a in op.signature.input_arguments if a.dtype.word in ("any", LIKE)}
    chosen = {name: value for name, value in inputs.items() if name in moved and value is not None}
    numbers = inputs | each(chosen, _numbers)
    texts = inputs | each(each(chosen, _numbers), _texts)
    for use in IMPLEMENTATIONS:
        with kernels.use(use):
            ours = results(op, numbers, {**attributes, fill: -1})
            for expected, found in zip(
                ours, results(op, texts, {**attributes, fill: "much wider than the data"}), strict=True
            ):
                if found.dtype.kind != "U":
                    np.testing.assert_array_equal(found, expected)
                    continue
                held = np.where(expected == -1, "much wider than the data", TEXTS[expected])
                np.testing.assert_array_equal(found, held)
