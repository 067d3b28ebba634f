"""Net: matching ops, order, inputs and outputs, rows."""

import gc

import numpy as np
import pytest

import seqflow as sf
from seqflow import Net, NetError, TensorSpec, registry
from seqflow.expression.functions import table

TEXT = """
ids, n = truncate(doc.values, doc.lengths, max_length=512)
x, mask = pad(ids, n, fill=0)
return x, mask
"""


def test_free_names_are_the_inputs_and_return_names_the_outputs():
    net = Net(TEXT)
    assert net.inputs == ("doc.values", "doc.lengths")
    assert net.outputs() == ("x", "mask")


def test_without_return_the_outputs_are_what_is_assigned_and_what_nothing_consumed():
    net = Net("x, mask = pad(ids.values, ids.lengths)")
    assert net.outputs(("ids.values", "ids.lengths", "label")) == ("label", "x", "mask")


def test_statements_run_in_topological_order_and_as_written_otherwise():
    net = Net("c = lengths_sum(b, n)\na = gather(x, i)\nb, n = truncate(a, m, max_length=2)\nreturn c")
    assert [step.op.name for step in net.steps] == ["gather", "truncate", "lengths_sum"]
    assert net.inputs == ("x", "i", "m")


def test_one_name_for_several_outputs_binds_a_group():
    net = Net("t = truncate(x, n, max_length=2)\ny = lengths_sum(t.values, t.lengths)")
    assert net.steps[0].results == ("t.values", "t.lengths")
    assert net.inputs == ("x", "n")


def test_underscore_throws_a_result_away():
    net = Net("x, _ = pad(a, n)\ny, _ = pad(b, n)")
    assert net.outputs() == ("x", "y")


def test_inputs_may_be_given_by_keyword():
    net = Net("y = lengths_sum(lengths=n, data=x)")
    assert net.inputs == ("n", "x") or net.inputs == ("x", "n")


def test_a_net_prints_as_text_that_reads_back():
    net = Net(TEXT)
    assert str(Net(str(net))) == str(net)
    assert "max_length=512" in str(net)
    title, *lines = repr(net).split("\n  ")
    assert title == f"Net of {len(net.steps)} steps"
    assert lines == str(net).split("\n")


def test_of_a_long_net_the_first_lines_are_shown():
    shown = repr(Net("\n".join(f"x{n + 1} = x{n} * 2" for n in range(100)))).split("\n")
    assert len(shown) == 42
    assert shown[-1] == "  … 60 more lines"


def test_constants_are_not_inputs():
    net = Net("y = gather(table, ids)").bind(table=[1, 2, 3])
    assert net.inputs == ("ids",)
    with pytest.raises(NetError, match=r"nothing uses the constant 'tabel' .did you mean 'table'"):
        Net("y = gather(table, ids)").bind(tabel=[1])


def test_calls_and_expressions_may_be_operands():
    net = Net("y = pad(ids % 1000, n)\nz = y.padded * lengths_sum(x, n) + 1")
    assert [step.op.name for step in net.steps] == ["expression", "pad", "lengths_sum", "expression"]
    assert net.inputs == ("ids", "n", "x")
    assert net.outputs() == ("y.padded", "y.mask", "z")
    assert str(Net(str(net))) == str(net) == "y = pad(ids % 1000, n)\nz = y.padded * lengths_sum(x, n) + 1"


def test_every_function_of_an_expression_is_an_op():
    assert Net("y = maximum(a, b)").steps[0].op.name == "expression"
    assert {row.name for row in table} <= set(registry.names())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = trunkate(a, n)", "column 5: no op is named 'trunkate' (did you mean 'truncate'?)\n  x = trunkate(a, n)\n      ^"),
        ("x = lengths_sum(a, n, 3)", "column 23: lengths_sum takes 2 inputs, found 3"),
        ("x = lengths_sum(a)", "lengths_sum needs 'lengths'"),
        ("x, n = truncate(a, m)", "truncate needs 'max_length'"),
        ("x = lengths_sum(a, n, emty=1)", "lengths_sum takes no 'emty' (did you mean 'empty'?)"),
        ("x = lengths_sum(a, n, data=b)", "lengths_sum: data is given twice"),
        ("x, n = truncate(a, m, max_length=-1)", "max_length is -1, expected an integer, 0 or more"),
        ("x, n = truncate(a, m, max_length=k)", "max_length is k, expected a literal"),
        ("x, y, z = pad(a, n)", "pad has 2 outputs (padded, mask), found 3 names"),
        ("lengths_sum(a, n)", "lengths_sum has 1 output (sums), found 0 names"),
        ("x = same_lengths(n, m)", "same_lengths has no outputs, expected a line without ="),
        ("x = lengths_sum([a, b], n)", "lengths_sum: data is [a, b], expected one tensor"),
        ("x = 2 * truncate(a, n, max_length=2)", "truncate has 2 outputs (values, lengths), expected an operand with one"),
        ("x = a + nonsense(b)", "line 1, column 9: no op is named 'nonsense'"),
        ("x = lengths_sum(a, n)\nx = lengths_sum(b, n)", "line 2, column 1: x is assigned already, in line 1"),
        ("x = lengths_sum(y, n)\ny = lengths_sum(x, n)", "needs its own result (x, y)"),
        ("x = lengths_sum(x, n)", "needs its own result (x)"),
        ("x = lengths_sum(a, n)\nreturn x, x", "x is returned twice"),
    ],
)  # fmt: skip
def test_a_net_that_cannot_run_says_why_and_where(text, message):
    with pytest.raises(NetError) as error:
        Net(text)
    assert message in str(error.value)


def test_a_group_used_as_one_tensor_names_its_members():
    with pytest.raises(NetError, match=r"line 2, column 8: x is a group, expected one of x.padded, x.mask"):
        Net("x = pad(a, n)\nreturn x")


@pytest.mark.parametrize(
    ("text", "place", "line"),
    [
        ("y = x * 2\nreturn nope", "line 2, column 8: nothing assigns 'nope'", "  return nope\n         ^"),
        ("y = x * 2\nz = y + w", "line 2, column 9: nothing assigns 'w'", "  z = y + w\n          ^"),
        (
            "total = x * 2\nreturn totl",
            "'totl', and it is not given (did you mean 'total'?)",
            "  return totl",
        ),
    ],
)
def test_a_name_that_nobody_gives_is_an_error_at_its_place(text, place, line):
    """When it is inferred and when it runs: a name that is only returned may be a tensor of the record."""
    x = np.ones(3)
    for use in (lambda net: net.infer({"x": TensorSpec.of(x)}), lambda net: sf.run(net, {"x": x})):
        with pytest.raises(NetError) as error:
            use(Net(text))
        assert place in str(error.value)
        assert line in str(error.value)
        assert str(error.value).endswith("given are x")


def test_a_name_that_is_only_returned_passes_through():
    found = sf.run("y = x * 2\nreturn y, labels", {"x": np.ones(1), "labels": np.zeros(1)})
    assert list(found) == ["y", "labels"]


@pytest.mark.parametrize("enabled", [True, False])
def test_the_garbage_collector_is_as_before_when_a_net_is_made_inferred_or_refused(enabled):
    before = gc.isenabled()
    try:
        gc.enable() if enabled else gc.disable()
        net = Net("y = gather(x, i)")
        assert gc.isenabled() is enabled
        with pytest.raises(NetError):
            Net("y = gather(x")
        with pytest.raises(NetError):
            net.infer({})
        assert gc.isenabled() is enabled
    finally:
        gc.enable() if before else gc.disable()
