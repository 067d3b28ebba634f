"""The registry: declaring ops, looking them up, and how their errors read."""

import builtins
import inspect
import pickle
import traceback

import numpy as np
import pytest

import seqflow as sf
from seqflow import registry
from seqflow.errors import OpIndexError, OpTypeError, UnknownOpError


@pytest.fixture
def twice():
    """An op of the user's own, registered for one test."""

    @sf.op("number x[N, *d] -> y[N, *d], int64 n[N]")
    def twice_of_a_test(x, *, factor: int = 2):
        """Twice."""
        return x * factor, np.arange(len(x))

    yield twice_of_a_test
    registry.unregister("twice_of_a_test")


def test_a_users_op_is_checked_named_and_found(twice):
    result = twice([1, 2], factor=3)
    assert result.y.tolist() == [3, 6]
    assert type(result).__name__ == "TwiceOfATestResult"
    assert "twice_of_a_test" in registry.names()
    assert sf.ops.twice_of_a_test is twice
    with pytest.raises(OpTypeError, match="twice_of_a_test: x is <U1, expected numbers"):
        twice(["a"])


def test_an_op_is_registered_once_and_a_cell_that_runs_twice_is_told_how(twice):
    with pytest.raises(sf.OpError, match=r"registered already\n.*unregister\('twice_of_a_test'\)"):

        @sf.op("x[N] -> y[N]")
        def twice_of_a_test(x): ...


@pytest.mark.parametrize(
    "function", [lambda x: x, 3, type("Callable", (), {"__call__": lambda self, x: x})()]
)
def test_what_has_no_name_is_no_op(function):
    with pytest.raises(OpTypeError, match="expected one with a name, which is the name of the op"):
        sf.op("x[N] -> y[N]")(function)


def test_attributes_are_annotated():
    with pytest.raises(OpTypeError, match="bare: the attribute k has no annotation"):

        @sf.op("x[N] -> y[N]")
        def bare(x, *, k): ...


def test_the_parameters_are_those_of_the_signature():
    with pytest.raises(sf.OpError, match=r"takes \['y'\], its signature says \['x'\]"):

        @sf.op("x[N] -> z[N]")
        def mismatched(y): ...


def test_an_unknown_op_names_the_nearest():
    with pytest.raises(UnknownOpError, match=r"no op is named 'truncat' .did you mean 'truncate'"):
        registry.get("truncat")
    with pytest.raises(AttributeError, match=r"no op is named"):
        sf.ops.truncat  # noqa: B018


def test_an_unknown_op_says_how_to_find_those_of_other_names():
    with pytest.raises(UnknownOpError, match=r"ops of seqflow\.ops: sparse_lengths_sum, "):
        registry.get("embedding_bag")
    with pytest.raises(UnknownOpError, match="`seqflow ops --search qwertz`"):
        registry.get("qwertz")


def test_an_op_definition_knows_its_parts():
    definition = registry.get("pad")
    assert definition.caffe2 == "PackSegments"
    assert definition.output_names == ("padded", "mask")
    assert "PackSegments" not in definition.doc
    assert repr(definition).startswith("<op pad: data[sum(lengths), *d]")


ERRORS = [
    (lambda: sf.ops.lengths_sum([1, 2], [3]), sf.LodError,
     "lengths_sum: sum(lengths) is 3 but data has 2 rows (number data[sum(lengths), *d], lengths[B])"),
    (lambda: sf.ops.lengths_sum([1, 2], [3, -1]), sf.LodError, "lengths_sum: lengths[1] = -1 is negative"),
    (lambda: sf.ops.lengths_sum([1], [1], empty="x"), sf.OpError, "lengths_sum: empty is 'x'"),
    (lambda: sf.ops.lengths_max(np.array([1], np.int8), [1], empty=300), sf.OpError, "lengths_max: empty is 300, which int8"),
    (lambda: sf.ops.gather([1, 2], [0, 2]), OpIndexError, "gather: indices[1] = 2 is outside [0, 2)"),
    (lambda: sf.ops.gather([1, 2], [-1]), OpIndexError, "gather: indices[0] = -1 is outside [0, 2)"),
    (lambda: sf.ops.gather([1, 2], [0.5]), OpTypeError, "gather: indices is float64, expected integers"),
    (lambda: sf.ops.sparse_lengths_sum([1.0], [0, 1], [2]), IndexError, "sparse_lengths_sum: indices[1] = 1 is outside [0, 1)"),
    (lambda: sf.ops.gather_sequences([1], [1], [1]), IndexError, "gather_sequences: indices[0] = 1 is outside [0, 1)"),
    (lambda: sf.ops.truncate([1], [1], max_length=-1), sf.OpError, "truncate: max_length is -1, expected an integer, 0 or more"),
    (lambda: sf.ops.truncate([1], [1], max_length=1, keep="middle"), sf.OpError, "truncate: keep is 'middle', expected 'head' or 'tail'"),
    (lambda: sf.ops.split_sequences([1], [1], chunk=2, stride=3), sf.OpError, "split_sequences: stride is 3, expected at most chunk = 2"),
    (lambda: sf.ops.append_token([1], [1], token=0.5), sf.OpError, "append_token: token is 0.5, which int64 cannot hold"),
    (lambda: sf.ops.bytes_to_tokens([1], [1]), OpTypeError, "bytes_to_tokens: data is int64, expected uint8"),
    (lambda: sf.ops.pad([1, 2, 3], [3], max_length=2), sf.SeqflowError, "pad: lengths[0] = 3"),
    (lambda: sf.ops.unpad([[1]], [2]), sf.ShapeError, "unpad: padded.shape[1] is 1, expected 2 or more"),
    (lambda: sf.ops.pack_rows([1], [1], capacity=0), sf.OpError, "pack_rows: capacity is 0, expected an integer, 1 or more"),
    (lambda: sf.ops.unpack_rows([[1]], [1], [1], [1], num_sequences=1), sf.OpError, "unpack_rows: sources[0] = 1 is outside [0, 1)"),
    (lambda: sf.ops.unpack_rows([[1]], [0], [2], [1]), sf.LodError, "unpack_rows: the pieces of row 0 have 2 elements, expected at most 1"),
    (lambda: sf.ops.unpack_rows([[1]], [0], [1], [2]), sf.LodError, "unpack_rows: sum(pieces) is 2 but sources has 1 rows"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "message"), ERRORS, ids=[row[2][:40] for row in ERRORS])
def test_every_error_names_op_argument_found_and_expected(call, kind, message):
    with pytest.raises(kind) as error:
        call()
    assert message in str(error.value)


def test_a_declaration_without_a_signature_is_refused():
    with pytest.raises(OpTypeError, match="op: signature is double, expected text"):

        @sf.op
        def double(x):
            return 2 * x


@pytest.mark.parametrize("times", ["first", "second"])
def test_an_argument_that_is_missing_is_one_of_the_op(times):
    with pytest.raises(TypeError, match=r"^sort_within: lengths is missing\n"):
        sf.ops.sort_within([1])


def test_the_stub_of_the_ops_is_current():
    from pathlib import Path

    from tools.stubs import auto_stub, families, public_stub, stub, torch_stub

    root = Path(sf.__file__).parents[1]
    assert (root / "seqflow" / "__init__.pyi").read_text() == public_stub(), "run `python -m tools.stubs`"
    assert (root / "ops" / "families.txt").read_text() == families(), "run `python -m tools.stubs`"
    assert (root / "ops" / "__init__.pyi").read_text() == stub(), "run `python -m tools.stubs`"
    assert (root / "seqflow" / "auto.pyi").read_text() == auto_stub(), "run `python -m tools.stubs`"
    assert (root / "seqflow/torch/ops/__init__.pyi").read_text() == torch_stub(), (
        "run `python -m tools.stubs`"
    )


def test_results_can_be_pickled():
    result = sf.ops.pad([1, 2], [2])
    again = pickle.loads(pickle.dumps(result))
    assert type(again) is type(result)
    assert again.padded.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    "call",
    [
        lambda: sf.ops.bytes_to_tokens(np.zeros(1, np.uint8), [1], offset=2**31 - 1),
        lambda: sf.ops.bytes_to_tokens(np.zeros(1, np.uint8), [1], end=2**31),
        lambda: sf.ops.pad([1], [1], max_length=2**62),
        lambda: sf.ops.lengths_to_segment_ids([2**62]),
        lambda: sf.ops.pack_rows([1], [1], capacity=2**62),
    ],
)
def test_sizes_no_array_can_have_are_errors_of_the_op(call):
    with pytest.raises(sf.SeqflowError):
        call()


def test_the_python_signature_says_what_is_optional_and_what_the_defaults_are():
    assert str(inspect.signature(sf.ops.gru)) == (
        "(x: ArrayLike, lengths: ArrayLike, w_ih: ArrayLike, w_hh: ArrayLike, bias_ih: ArrayLike | None = None,"
        " bias_hh: ArrayLike | None = None, h0: ArrayLike | None = None, *, linear_before_reset: bool = True, reverse: bool = False) -> GruResult"
    )
    assert str(inspect.signature(sf.ops.concat)).startswith(
        "(tensors: Sequence[ArrayLike], *, axis: int = 0)"
    )
    assert str(inspect.signature(sf.ops.expression)).startswith("(*operands: ArrayLike, expr: Any")
    assert str(inspect.signature(sf.ops.add)).startswith("(x: ArrayLike, y: ArrayLike, *, alpha: Scalar = 1")


@pytest.mark.parametrize("name", registry.names())
def test_the_python_signature_has_the_inputs_and_attributes_of_the_op(name):
    op = registry.get(name)
    parameters = inspect.signature(op.call).parameters.values()
    assert [p.name for p in parameters] == [
        *(argument.name for argument in op.signature.input_arguments),
        *(attribute.name for attribute in op.attributes),
    ]
    optional = {argument.name for argument in op.signature.input_arguments if argument.optional}
    defaults = dict.fromkeys(optional, None) | {a.name: a.default for a in op.attributes if not a.required}
    assert {p.name: p.default for p in parameters if p.default is not p.empty} == defaults


def test_help_has_the_sections_of_numpys():
    text = inspect.getdoc(sf.ops.pad)
    titles = ["Parameters\n----------", "Returns\n-------", "Raises\n------", "Examples\n--------"]
    places = [text.index(title) for title in titles]
    assert places == sorted(places)
    assert "data : array, [sum(lengths), *d]" in text
    assert "fill : a number or a text, default 0" in text
    assert "LodError\n    lengths that are negative" in text
    assert text.startswith(registry.get("pad").doc.splitlines()[0])


def test_a_traceback_is_short_and_shows_the_generated_source():
    sf.ops.lengths_sum([1, 2], [2])  # the first call of a process generates the source, in a frame of its own
    with pytest.raises(sf.LodError) as caught:
        sf.ops.lengths_sum([1, 2], [3])
    frames = traceback.extract_tb(caught.tb)
    assert len(frames) == 3
    assert frames[1].filename == "<op lengths_sum>"
    assert frames[1].line == "(data, lengths, empty) = check((data, lengths), (empty,), _extra, _unknown)"


def test_an_error_inside_a_users_op_keeps_its_traceback_and_names_both():
    @sf.op("x[sum(lengths)], lengths[B] -> y[B]")
    def wrong_of_a_test(x, lengths):
        """Wrong."""
        return sf.ops.lengths_sum(x, lengths + 1)

    try:
        with pytest.raises(
            sf.LodError, match=r"^wrong_of_a_test: lengths_sum: sum\(lengths\) is 2 but"
        ) as caught:
            sf.ops.wrong_of_a_test([1], [1])
    finally:
        registry.unregister("wrong_of_a_test")
    assert __file__ in [frame.filename for frame in traceback.extract_tb(caught.tb)][1:]


def test_a_star_import_leaves_pythons_own_names_alone():
    scope = {}
    exec("from seqflow.ops import *", scope)
    assert "lengths_sum" in scope
    assert not [name for name in scope if hasattr(builtins, name)]
    assert sf.ops.abs([-1]).tolist() == [1]


def test_an_op_that_is_forgotten_can_be_declared_anew(twice):
    definition = registry.unregister("twice_of_a_test")
    assert "twice_of_a_test" not in registry.names()
    registry.register(definition)
    with pytest.raises(UnknownOpError, match="no op is named 'thrice'"):
        registry.unregister("thrice")


X, LENGTHS = sf.TensorSpec("float32", "{3,8,1}"), sf.TensorSpec("int64", "{3}")
FORMS = [
    ("expand_dims", {"axis": 1}, "{3,1,8,1}"),
    ("reduce_sum", {"axes": 1}, "{3,1}"),
    ("squeeze", {"axis": [2]}, "{3,8}"),
    ("tile", {"repeats": 2}, "{3,8,2}"),
    ("slice_axes", {"starts": 1, "stops": np.int64(3)}, "{2,8,1}"),
    ("split", {"parts": [3, 5], "axis": 1}, "{3,3,1}"),
    ("cast", {"dtype": "float32"}, "{3,8,1}"),
    ("transpose", {"perm": [0, 2, 1]}, "{3,1,8}"),
]


@pytest.mark.parametrize(("name", "attributes", "shape"), FORMS)
def test_inference_takes_the_forms_of_attributes_that_a_call_takes(name, attributes, shape):
    assert str(registry.get(name).infer({"x": X}, attributes).outputs[0].shape) == shape


@pytest.mark.parametrize(
    ("name", "specs", "attributes", "message"),
    [
        ("tile", {"y": X}, {"repeats": 2}, "tile: there is no input 'y', expected x"),
        ("tile", {"x": X}, {"repeat": 2}, "tile: there is no attribute 'repeat' (did you mean 'repeats'?), expected repeats"),
        ("tile", {"x": X}, {}, "tile: repeats is missing, expected integers, each 0 or more"),
        ("truncate", {"data": X, "lengths": LENGTHS}, {"max_length": -1}, "truncate: max_length is -1, expected an integer, 0 or more"),
        ("lengths_sum", {"data": X, "lenghts": LENGTHS}, {}, "there is no input 'lenghts' (did you mean 'lengths'?)"),
        ("tile", {"x": X}, {"repeats": "x"}, "tile: repeats is 'x' (str), expected integers, each 0 or more"),
    ],
)  # fmt: skip
def test_inference_refuses_what_a_call_refuses(name, specs, attributes, message):
    with pytest.raises(sf.OpError) as error:
        registry.get(name).infer(specs, attributes)
    assert message in str(error.value)


def test_a_bound_of_what_the_op_does_not_have_is_refused():
    def mine(x, *, k=1):
        return x

    with pytest.raises(sf.OpError, match="mine: y speaks of j, expected an input, a size or an attribute"):
        sf.op("int x[N] -> int64 y[N] <= x + k*j")(mine)
