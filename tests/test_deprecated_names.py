"""Arguments under an old name: calls, nets, jobs and records mean the same as under the new one."""

import json
import pickle
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow import auto, ops, registry
from seqflow.deprecated_names import renamed_fields, with_new_names
from seqflow.errors import NetError, OpError, OpTypeError
from seqflow.identity.differences import differences
from seqflow.signature import Scalar

DATA, LENGTHS = np.array([1, 2, 3]), np.array([2, 0, 1])


@renamed_fields(value="fill", values="fills")
@dataclass(frozen=True)
class OwnPlan:
    """A dataclass of a user, whose fields had other names."""

    capacity: int
    fill: int = 0
    fills: dict[str, int] | None = None


@pytest.fixture(autouse=True)
def own_op():
    """An op of a user, whose attribute `fill` was called `value`."""

    @registry.op("data[sum(lengths)], lengths[B] -> filled[sum(lengths)]", renamed={"value": "fill"})
    def own_filled(data, lengths, *, fill: Scalar = 0):
        return np.full_like(data, fill)

    yield own_filled
    registry.unregister("own_filled")


def test_an_op_takes_the_old_name_and_warns_at_the_caller(own_op):
    values = sf.Sequence(DATA, LENGTHS)
    for call in (partial(own_op, DATA, LENGTHS), lambda **fill: auto.own_filled(values, **fill).values):
        with pytest.warns(DeprecationWarning, match="'value' is called 'fill' now") as caught:
            found = call(value=7)
        assert caught[0].filename == __file__
        np.testing.assert_array_equal(found, call(fill=7))
        assert found.tolist() == [7, 7, 7]


def test_an_op_does_not_take_both_names(own_op):
    with pytest.raises(TypeError, match="own_filled: fill is given twice, also by its old name 'value'"):
        own_op(DATA, LENGTHS, fill=1, value=2)


@pytest.mark.parametrize(
    ("plan", "given", "meant"),
    [
        (sf.Packed, {"stratgy": "concat"}, "strategy"),
        (sf.TokenBudget, {"paded": True}, "padded"),
        (sf.Rows, {"drop_lst": True}, "drop_last"),
        (sf.Buckets, {"boundarys": 4}, "boundaries"),
        (sf.Balance, {"groups": 4}, "group"),
    ],
)
def test_a_plan_suggests_the_option_that_was_meant(plan, given, meant):
    with pytest.raises(
        OpTypeError, match=rf"{plan.__name__} has no option .* \(did you mean '{meant}'\?\); it has"
    ):
        plan(1, **given)


def test_an_unknown_name_is_refused():
    with pytest.raises(TypeError, match="pad: there is no argument 'values'"):
        ops.pad(DATA, LENGTHS, values=2)


def test_a_renamed_attribute_is_one_that_the_op_has():
    with pytest.raises(
        OpError, match="renamed says that old is new now, expected an attribute with a default"
    ):

        @registry.op("x[N] -> y[N]", renamed={"old": "new"})
        def renamed_to_nothing(x, *, size=1):
            return x


def test_inference_takes_the_old_name():
    specs = {"data": sf.TensorSpec("int64", "{3}"), "lengths": sf.TensorSpec("int64", "{3}")}
    with pytest.warns(DeprecationWarning, match="'value'"):
        assert registry.get("own_filled").infer(specs, {"value": 2}).outputs[0].dtype == "int64"


def test_a_net_with_the_old_name_is_the_net_with_the_new_one():
    with pytest.warns(DeprecationWarning, match="own_filled: 'value' is called 'fill' now"):
        old = sf.Net("x = own_filled(doc.values, doc.lengths, value=7)")
    new = sf.Net("x = own_filled(doc.values, doc.lengths, fill=7)")
    assert [str(step.statement) for step in old.steps] == [str(step.statement) for step in new.steps]
    assert [step.attributes for step in old.steps] == [step.attributes for step in new.steps]


def test_a_net_does_not_take_both_names():
    with pytest.raises(NetError, match="line 1, column 5: own_filled: fill is given twice"):
        sf.Net("x = own_filled(doc.values, doc.lengths, fill=7, value=7)")


def test_a_dataclass_takes_the_old_names_of_its_fields():
    new = OwnPlan(8, fill=3, fills={"x": 4})
    with pytest.warns(DeprecationWarning, match="'values?' is called 'fills?' now"):
        assert OwnPlan(8, value=3, values={"x": 4}) == new
    assert new.value == new.fill == 3
    assert pickle.loads(pickle.dumps(new)) == new


def test_a_state_written_with_old_names_is_that_of_the_same_loader():
    prepare = sf.Net("x = own_filled(x.values, x.lengths, fill=4)\nreturn x, x.lengths")
    settings = sf.Loader(pa.table({"x": [[1], [2, 3]]}), prepare=prepare).state_dict()["settings"]
    now = settings | {"batch": repr(OwnPlan(4, fills={"x": -1}))}
    text = json.dumps(now)
    then = json.loads(text.replace("fills=", "values=").replace("fill=", "value="))
    assert then != now
    assert list(differences(then, json.loads(text))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x = own_filled(a, n, value=1)", "x = own_filled(a, n, fill=1)"),
        ("y = é + lengths_sum(own_filled(a, n, value='value=1'), n)", "y = é + lengths_sum(own_filled(a, n, fill='value=1'), n)"),
        ("y = pad(a, value=1)", "y = pad(a, value=1)"),
        ("value=", "value="),
    ],
)  # fmt: skip
def test_only_old_names_of_arguments_change_in_a_text(old, new):
    assert with_new_names(old) == new
