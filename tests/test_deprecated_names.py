"""Arguments under an old name: calls, nets, jobs and records mean the same as under the new one."""

import json
import pickle

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow import auto, ops, registry
from seqflow.deprecated_names import with_new_names
from seqflow.errors import JobError, NetError, OpError, OpTypeError
from seqflow.identity.differences import differences
from seqflow.job import Job

DATA, LENGTHS = np.array([1, 2, 3]), np.array([2, 0, 1])


@pytest.mark.parametrize(
    ("call", "old"),
    [
        (lambda **fill: ops.pad(DATA, LENGTHS, **fill).padded, "value"),
        (lambda **fill: ops.pad_lengths(DATA, LENGTHS, target_length=2, **fill), "value"),
        (lambda **fill: ops.pad_empty(DATA, LENGTHS, **fill).values, "value"),
        (lambda **fill: ops.pack_rows(DATA, LENGTHS, capacity=2, **fill).packed, "value"),
        (lambda **fill: ops.pack_by_time(DATA, LENGTHS, **fill), "value"),
        (lambda **fill: ops.batch_sparse_to_dense(DATA, [0, 2, 1], LENGTHS, width=3, **fill), "default"),
        (lambda **fill: auto.pad(sf.Sequence(DATA, LENGTHS), **fill).padded, "value"),
    ],
)
def test_an_op_takes_the_old_name_and_warns_at_the_caller(call, old):
    with pytest.warns(DeprecationWarning, match=f"'{old}' is called 'fill' now") as caught:
        found = call(**{old: 7})
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(found, call(fill=7))
    assert 7 in found


def test_an_op_does_not_take_both_names():
    with pytest.raises(TypeError, match="pad: fill is given twice, also by its old name 'value'"):
        ops.pad(DATA, LENGTHS, fill=1, value=2)


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
        assert registry.get("pad_empty").infer(specs, {"value": 2}).outputs[0].dtype == "int64"


def test_a_net_with_the_old_name_is_the_net_with_the_new_one():
    with pytest.warns(DeprecationWarning, match="pad: 'value' is called 'fill' now"):
        old = sf.Net("x, mask = pad(doc.values, doc.lengths, value=7)")
    new = sf.Net("x, mask = pad(doc.values, doc.lengths, fill=7)")
    assert [str(step.statement) for step in old.steps] == [str(step.statement) for step in new.steps]
    assert [step.attributes for step in old.steps] == [step.attributes for step in new.steps]


def test_a_net_does_not_take_both_names():
    with pytest.raises(NetError, match="line 1, column 11: pad: fill is given twice"):
        sf.Net("x, mask = pad(doc.values, doc.lengths, fill=7, value=7)")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (lambda: sf.Pad(value=3), sf.Pad(3)),
        (lambda: sf.Packed(8, value=3, values={"x": 4}), sf.Packed(8, fill=3, fills={"x": 4})),
    ],
)
def test_a_plan_takes_the_old_name(old, new):
    with pytest.warns(DeprecationWarning, match="'values?' is called 'fills?' now"):
        assert old() == new
    assert new.value == new.fill == 3
    assert pickle.loads(pickle.dumps(new)) == new


def test_a_job_takes_the_old_key(tmp_path):
    (tmp_path / "job.toml").write_text(
        '[source]\npaths = ["x.txt"]\n[batch]\nkind = "packed"\ncapacity = 8\nvalue = -1\n'
    )
    with pytest.warns(DeprecationWarning, match="'value' is called 'fill' now"):
        assert Job.read(tmp_path / "job.toml").batch == sf.Packed(8, fill=-1)
    with pytest.raises(JobError, match=r"\[batch\] fill is given twice, also by its old name 'value'"):
        Job.read(tmp_path / "job.toml", {"batch.fill": 1})


def test_a_state_written_with_old_names_is_that_of_the_same_loader():
    net = "y, mask = pad(x.values, x.lengths, fill=-1, side='left')"
    prepare = sf.Net("x, n = pad_empty(x.values, x.lengths, fill=4)")
    plan = {"batch": sf.Buckets(2, sf.Rows(2)), "pad": {"x": sf.Pad(2)}}
    table = pa.table({"x": [[1], [2, 3]]})
    for options in (
        {"net": sf.Net(net)},
        {"batch": sf.Packed(4, fills={"x": -1})},
        plan,
        {"prepare": prepare},
    ):
        loader = sf.Loader(table, **options)
        now = loader.state_dict()["settings"] | {"batch": repr(loader.batch)}
        text = json.dumps(now)
        then = json.loads(text.replace("fills=", "values=").replace("fill=", "value="))
        assert then != now
        assert list(differences(then, json.loads(text))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x, m = pad(a, n, value=1)", "x, m = pad(a, n, fill=1)"),
        ("y = é + lengths_sum(pad_empty(a, n, value='value=1'), n)", "y = é + lengths_sum(pad_empty(a, n, fill='value=1'), n)"),
        ("y = own(a, value=1)", "y = own(a, value=1)"),
        ("value=", "value="),
    ],
)  # fmt: skip
def test_only_old_names_of_arguments_change_in_a_text(old, new):
    assert with_new_names(old) == new
