"""Calls with Sequences, nets that leave lengths out, nets that write them out: what one accepts, all accept."""

import numpy as np
import pytest
from every_op import OPS, results
from hypothesis import given, settings
from hypothesis import strategies as st
from marks import one_in
from row_spaces import Space, call, with_lods
from strategies.calls import calls

import seqflow as sf
from seqflow import LodError, Sequence, TensorSpec, auto
from seqflow.expression.functions import by_name
from seqflow.lod_propagation.rule import brought_lengths
from seqflow.net import Net
from seqflow.signature import Described
from seqflow.signature.language import Sum

EXAMPLES = max(settings.default.max_examples // 8, 2)
WRITABLE = (bool, int, float, str, tuple, list, np.dtype)


class Call:
    """One call of an op as nets write it; each label stands for a tensor: `data`, `data_0` in a list."""

    def __init__(self, op, inputs, attributes):
        self.op, self.inputs, self.attributes = op, inputs, attributes
        self.space = Space(op, inputs)
        self.tensors = {name_of(label): array for label, array in self.space.tensors.items()}
        for name, value in inputs.items():
            for i, array in enumerate(value if isinstance(value, list) else [value]):
                if array is not None and np.ndim(array) == 0:
                    self.tensors[f"{name}_{i}" if isinstance(value, list) else name] = np.asarray(array)
        self.rows = {name_of(label): rows for label, rows in self.space.rows.items()}
        self.described = {
            name: name_of(rows.by) for name, rows in self.rows.items() if isinstance(rows, Described)
        }

    def specs(self):
        return {
            name: TensorSpec.of(
                array, Described(self.described[name]) if name in self.described else self.rows.get(name)
            )
            for name, array in self.tensors.items()
        }

    def levels(self, name):
        by = self.described.get(name)
        return () if by is None else (*self.levels(by), by)

    def net(self, carried):
        """A net of this call with the lengths left out, where they come with others, or written out."""
        brought = brought_lengths(self.op) if carried else {}
        lengths = {argument.name for argument in self.op.signature.input_arguments if argument.is_lengths}

        def comes(name):
            """Whether lengths come with a Sequence of values, directly or as one of its outer levels."""
            return name in brought and (brought[name] not in lengths or comes(brought[name]))

        lines, operands = [], []
        for name, value in self.inputs.items():
            if value is None or comes(name):
                continue
            listed = isinstance(value, list)
            labels = [f"{name}_{i}" for i in range(len(value))] if listed else [name]
            if carried and name not in lengths:
                for i, label in enumerate(labels):
                    if self.levels(label):
                        lines.append(f"{label}_s = sequence({', '.join([label, *self.levels(label)])})")
                        labels[i] = f"{label}_s"
            operands.append(f"{name}=[{', '.join(labels)}]" if listed else f"{name}={labels[0]}")
        if self.op.variadic:
            operands = [one.partition("[")[2][:-1] for one in operands]
        if self.op.name in by_name:  # formulas take operands by position
            operands = [one.partition("=")[2] for one in operands]
        operands += [f"{name}={written(value)}" for name, value in self.attributes.items()]
        outputs = [f"r{i}" for i in range(len(self.op.tensor_names(self.attributes)))]
        line = f"{self.op.name}({', '.join(operands)})"
        left = ", ".join(outputs)
        lines.append(f"{left} = {line}\nreturn {left}" if outputs else line)
        return Net("\n".join(lines))


def name_of(label):
    return label.replace("[", "_").replace("]", "")


def written(value):
    if isinstance(value, np.dtype):
        return repr(str(value))
    return repr(list(value) if isinstance(value, tuple) else value)


every_op = pytest.mark.parametrize(
    "op", one_in(4, (op for op in OPS if op.name != "expression"), first=2), ids=lambda op: op.name
)


@pytest.mark.slow
@every_op
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_all_styles_accept_a_call_and_agree(op, data):
    inputs, attributes = data.draw(calls(op))
    if not all(isinstance(value, WRITABLE) for value in attributes.values()):
        return  # tokenizers are files in nets
    one = Call(op, inputs, attributes)
    if not one.described and op.name in by_name and len({array.ndim for array in one.tensors.values()}) > 1:
        return  # arrays alone broadcast as NumPy says; in a net an input's axis 0 is rows
    expected = results(op, inputs, attributes)
    carried = call(op, with_lods(op, one.space, inputs, {}), attributes)
    found = [[value.values if isinstance(value, Sequence) else value for value in carried]]
    for is_carried in (True, False):
        net = one.net(is_carried)
        net.infer({name: spec for name, spec in one.specs().items() if name in net.inputs})
        tensors = sf.run(net, {name: one.tensors[name] for name in net.inputs})
        found.append([tensors[f"r{i}"] for i in range(len(expected))])
    for style in found:
        for ours, plain in zip(style, expected, strict=True):
            assert ours.dtype == plain.dtype
            np.testing.assert_array_equal(ours, plain)


def meeting(op):
    """Two inputs whose rows the same lengths describe."""
    plain = [a for a in op.signature.inputs if hasattr(a, "dims") and not a.optional]
    found = [a.name for a in plain if isinstance((a.dims or (None,))[0], Sum) and not a.is_lengths]
    sums = {a.dims[0] for a in plain if a.name in found}
    return tuple(found[:2]) if len(found) > 1 and len(sums) == 1 else None


@pytest.mark.parametrize("op", [op for op in OPS if meeting(op)], ids=lambda op: op.name)
@given(data=st.data())
@settings(max_examples=EXAMPLES)
def test_all_styles_refuse_rows_of_other_lengths(op, data):
    """As many rows, differently divided: a LodError, in nets before there is data."""
    inputs, attributes = data.draw(calls(op).filter(lambda drawn: drawn[0]["lengths"].sum() > 0))
    one = Call(op, inputs, attributes)
    _, second = meeting(op)
    others = np.append(inputs["lengths"].astype(np.int64), 0)
    sequences = with_lods(op, one.space, inputs, {})
    with pytest.raises(LodError):
        getattr(auto, op.name)(**{**sequences, second: Sequence(inputs[second], others)}, **attributes)
    one.tensors["others"], one.described[second] = others, "others"
    for is_carried in (True, False):
        net = one.net(is_carried)
        specs = {name: spec for name, spec in one.specs().items() if name in net.inputs or name == "others"}
        with pytest.raises(LodError):
            net.infer(specs)
