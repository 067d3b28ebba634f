"""Nets of many like steps: what inference knows stays small, however often a step is repeated."""

import pytest

from seqflow import Net, TensorSpec
from seqflow.signature import Described, OwnRows

RECORD = OwnRows("the record")
SPECS = {
    "x": TensorSpec("int64", "{K}", RECORD),
    "doc.values": TensorSpec("int64", "{?}", Described("doc.lengths")),
    "doc.lengths": TensorSpec("int64", "{K}", RECORD),
}
START = "x0 = x * 1\nv0, l0 = truncate(doc.values, doc.lengths, max_length=50)\n"
EVERY = "slice_axes(x{i}, starts=[0], stops=[1000000000], steps=[{step}])"


@pytest.mark.parametrize(
    ("step", "result"),
    [
        ("x{j} = reshape(expand_dims(x{i}, axis=0) * expand_dims(x{i}, axis=1), shape=[-1])", "x"),
        ("x{j} = concat([x{i}, x{i}])", "x"),
        (f"x{{j}} = {EVERY.replace('{step}', '2')}", "x"),
        (f"a{{i}} = {EVERY.replace('{step}', '2')}\nx{{j}} = concat([a{{i}}, {EVERY.replace('{step}', '3')}])", "x"),
        ("m{i} = x{i} > 0\nx{j}, p{i} = boolean_mask(x{i}, m{i})", "x"),
        ("v{j}, l{j} = concat_sequences([v{i}, v{i}], [l{i}, l{i}])", "v"),
    ],
)  # fmt: skip
def test_a_step_may_be_repeated(step, result):
    count = 60
    steps = "\n".join(step.format(i=i, j=i + 1) for i in range(count))
    net = Net(START + steps).infer(SPECS)
    last = f"{result}{count}"
    assert len(str(net.specs[last].shape)) < 2000
    assert len(net.explain(last).splitlines()[0]) < 1000


def test_a_square_of_a_square_keeps_the_name_of_the_axis():
    text = "".join(
        f"x{i + 1} = reshape(expand_dims(x{i}, axis=0) * expand_dims(x{i}, axis=1), shape=[-1])\n"
        for i in range(7)
    )
    net = Net(START + text).infer(SPECS)
    assert str(net.specs["x6"].shape[0]) == "*".join(["K"] * 64)
    assert str(net.specs["x7"].shape[0]) == "x7.shape[0]"
