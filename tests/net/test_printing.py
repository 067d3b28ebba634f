"""A net prints as text that reads back as the same net."""

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

import seqflow as sf
from seqflow import Net, SeqflowError, TensorSpec, registry

VALUES, LENGTHS = registry.get("truncate").output_names
TENSORS = {
    "doc.values": np.array([3.0, 1.0, 2.0, 5.0, 4.0, 0.5]),
    "doc.lengths": np.array([2, 0, 3, 1]),
    "tag.values": np.arange(6.0),
    "tag.lengths": np.array([2, 0, 3, 1]),
    "outer": np.array([1, 3]),
    "score": np.array([0.5, 1.0, 2.0, 4.0]),
    "table": np.arange(12.0).reshape(6, 2),
}
SPECS = {name: TensorSpec.of(array) for name, array in TENSORS.items()}


class Writer:
    """Writes the text of a net, statement by statement."""

    def __init__(self, draw, style):
        self.draw = draw
        self.carried = style != "explicit"
        self.lines = {
            "explicit": [],
            "one level": ["words = sequence(doc)", "tags = sequence(tag.values, tag.lengths)"],
            "two levels": [
                "words = sequence(doc.values, outer, doc.lengths)",
                "tags = sequence(tag.values, outer, tag.lengths)",
            ],
        }[style].copy()
        self.rows = ["words", "words.values"] if self.carried else ["doc.values"]
        self.per_sequence = ["score"]
        self.made = []

    def one_of(self, *choices):
        return self.draw(st.sampled_from(choices))

    def reduced(self, op, rows, lengths="doc.lengths"):
        """A call whose lengths are written out, by position or by name, or left out."""
        ways = [
            f"{op}({rows}, {lengths})",
            f"{op}({rows}, lengths={lengths})",
            f"{op}(lengths={lengths}, data={rows})",
        ]
        return self.one_of(*ways, *([f"{op}({rows})"] * 4 if self.carried else []))

    def row(self, depth=2):
        kind = self.one_of("name", "arithmetic", "function", "call", "expand", "cast") if depth else "name"
        a = self.one_of(*self.rows) if kind in ("name", "expand") else self.row(depth - 1)
        match kind:
            case "arithmetic":
                operator = self.one_of("+", "-", "*", "/", "**", "<")
                b = self.one_of(self.row(depth - 1), "2", "-1.5", "inf", "1e-3")
                return self.one_of(f"({a} {operator} {b})", f"-({a}{operator}{b})", f"({b} {operator} ({a}))")
            case "function":
                return self.one_of(
                    f"sqrt(abs({a}))", f"where({a} > 0, {a}, -1)", f"add({a}, {a}, 3)", f"~({a} > 1)*1"
                )
            case "call":
                return self.reduced("softmax_within", f"({a}) * 1.0")
            case "expand":
                return f"expand({self.sequence(0)}, {'words' if self.carried else 'doc.lengths'})"
            case "cast":
                return f"cast({a}, dtype={self.one_of(repr('float32'), repr('float64'))})"
        return a

    def sequence(self, depth=2):
        kind = self.one_of("name", "arithmetic", "call") if depth else "name"
        if kind == "name":
            return self.one_of(*self.per_sequence)
        if kind == "arithmetic":
            return f"({self.sequence(depth - 1)} {self.one_of('+', '*', '>=')} {self.sequence(depth - 1)})"
        return self.reduced(self.one_of("lengths_sum", "lengths_mean"), f"({self.row(depth - 1)}) * 1.0")

    def statement(self):
        name = f"x{len(self.lines)}"
        kind = self.one_of("row", "sequence", "group", "pair", "list", "pieces", "check", "literal")
        self.made.append(name)
        match kind:
            case "row":
                self.lines.append(f"{name} = 0 + {self.row()}")
                self.rows.append(name)
            case "sequence":
                self.lines.append(f"{name} = 1 * {self.sequence()}")
                self.per_sequence.append(name)
            case "group":
                self.lines.append(f"{name} = {self.truncated()}")
                group = name if self.carried and self.draw(st.booleans()) else f"{name}.{VALUES}"
                total = self.reduced("lengths_sum", group, f"{name}.{LENGTHS}")
                self.lines.append(f"{name}s = {total}")
                self.per_sequence.append(f"{name}s")
                if not self.carried:
                    self.made[-1] = f"{name}.{VALUES}"
            case "pair":
                second = self.one_of("_", f"{name}n")
                self.lines.append(f"{name}, {second} = {self.truncated()}")
            case "list":
                two = f"[{self.one_of(*self.rows)}, {self.row()}]"
                lengths = "" if self.carried else ", [doc.lengths, doc.lengths]"
                self.lines.append(f"{name}, _ = concat_sequences({two}{lengths})")
            case "pieces":
                self.lines.append(f"{name} = split(table, parts=2, axis=-1)")
                self.lines.append(f"{name}y = {name}.0 - {name}.1*2")
                self.made[-1] = f"{name}y"
            case "check":
                self.made.pop()
                pair = self.one_of("doc.lengths, tag.lengths", *(["words, tags"] if self.carried else []))
                self.lines.append(f"same_lengths({pair})")
            case "literal":
                self.lines.append(f"{name} = reshape(table, [-1, 3])")

    def truncated(self):
        return self.reduced("truncate", self.row(1))[:-1] + f", max_length={self.one_of(1, 2)})"


@st.composite
def nets(draw):
    writer = Writer(draw, draw(st.sampled_from(["explicit", "one level", "two levels"])))
    for _ in range(draw(st.integers(1, 6))):
        writer.statement()
    lines = draw(st.permutations(writer.lines))
    names = [*writer.made, *(["words"] if writer.carried else [])]
    returned = draw(st.lists(st.sampled_from(names), unique=True, max_size=3)) if names else []
    return "\n".join([*lines, *([f"return {', '.join(returned)}"] if returned else [])])


def inferred(net):
    """What inference says, without the lines of the text; or the error it ends with."""
    try:
        found = net.infer(SPECS)
    except SeqflowError as error:
        return type(error), str(error)
    specs = {name: (found.described(name), str(spec.rows)) for name, spec in found.specs.items()}
    return specs, [(str(guard.left), str(guard.right)) for guard in found.guards], found.byte_bound


def computed(net):
    try:
        with np.errstate(all="ignore"):
            return {name: (array.dtype, array.tolist()) for name, array in sf.run(net, TENSORS).items()}
    except SeqflowError as error:
        return type(error), str(error)


@given(nets())
def test_a_printed_net_prints_infers_and_computes_as_the_net_does(text):
    net = Net(text)
    note(f"{text}\n---\n{net}")
    again = Net(str(net))
    assert str(again) == str(net)
    assert (again.inputs, again.assigned, again.returned) == (net.inputs, net.assigned, net.returned)
    assert [(step.op.name, step.results) for step in again.steps] == [
        (step.op.name, step.results) for step in net.steps
    ]
    assert inferred(again) == inferred(net)
    assert repr(computed(again)) == repr(computed(net))


def test_a_call_in_a_formula_prints_with_its_lengths():
    words = "words = sequence(doc.values, doc.lengths)\n"
    net = Net(words + "y = words * 2 + expand(lengths_sum(words), words)")
    assert str(net) == "y = doc.values * 2 + expand(lengths_sum(doc.values, doc.lengths), doc.lengths)"
    np.testing.assert_array_equal(sf.run(str(net), TENSORS)["y"], sf.run(net, TENSORS)["y"])


@pytest.mark.parametrize(
    "literal", ["'it\\'s'", '"a\\n\\"b"', "[1, [2.5, -3]]", "[]", "None", "inf", "-inf", "-0.0", "2**62"]
)
def test_literals_print_as_they_are_read(literal):
    @registry.op("x[N] -> y[N]")
    def takes_anything(x, *, what=None):
        """Nothing."""
        return x

    try:
        net = Net(f"y = takes_anything(x, what={literal})")
        again = Net(str(net))
        assert str(again) == str(net)
        assert again.steps[0].attributes == net.steps[0].attributes
    finally:
        registry.unregister("takes_anything")
