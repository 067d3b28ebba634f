"""Nets over all ops: statements on tensors whose kinds fit, as far as inference accepts them."""

from ast import literal_eval
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from seqflow import SeqflowError, TensorSpec, registry
from seqflow.expression.functions import by_name
from seqflow.net import Net
from seqflow.net.step import compute
from seqflow.record import Record
from seqflow.registry import OpDef
from seqflow.signature import Described, OwnRows, Repeated
from seqflow.signature.language import DTYPE_WORDS, POINTING, Sum

ROWS = OwnRows("the record")
COLUMNS = {
    "x": ("float32", None, ()),
    "k": ("int64", None, ()),
    "flag": ("bool", None, ()),
    "doc.lengths": ("int64", None, ()),
    "doc.values": ("int64", "doc.lengths", ()),
    "ann.lengths": ("int32", None, ()),
    "ann.values": ("float32", "ann.lengths", (3,)),
    "text.lengths": ("int64", None, ()),
    "text.values": ("uint8", "text.lengths", ()),
    "par.lengths": ("int64", None, ()),
    "par.values.lengths": ("int64", "par.lengths", ()),
    "par.values.values": ("float32", "par.values.lengths", ()),
}
"""The tensors of the records: dtype, the lengths that describe the rows, and the axes behind them."""
MOST_ROWS, LONGEST = 4, 3
WEIGHTS = {
    f"w{rows}{columns}": np.linspace(-1, 1, rows * columns, dtype=np.float32).reshape(rows, columns)
    for rows in (1, 3, 4)
    for columns in (1, 3)
} | {f"b{rows}": np.linspace(-1, 1, rows, dtype=np.float32) for rows in (1, 3, 4)}
INPUTS = {
    name: TensorSpec(
        dtype,
        "{" + ",".join([f"sum({by})" if by else f"B:0..{MOST_ROWS}", *map(str, rest)]) + "}",
        Described(by) if by else ROWS,
    )
    for name, (dtype, by, rest) in COLUMNS.items()
}
LIMITS = {f"max({name})": LONGEST for name in COLUMNS if name.endswith("lengths")}
FORMULAS = (
    "sqrt(abs({a})) + {b}",
    "{a} > {b}",
    "{a} * 2 - 1",
    "where({a} > 0, {a}, {b})",
    "{a} / ({b} + 1)",
    "-{a}",
)


def make_record(random: Any, rows: int) -> Record:
    """A record of that many rows."""
    tensors: dict[str, Any] = {}
    for name, (dtype, by, rest) in COLUMNS.items():
        count = rows if by is None else int(tensors[by].sum())
        size = count * int(np.prod(rest, dtype=int))
        low, high = (0, LONGEST) if name.endswith("lengths") else (97, 122) if dtype == "uint8" else (0, 2)
        values = [random.randint(low, high) for _ in range(size)]
        tensors[name] = np.array(values, dtype).reshape(count, *rest)
    return Record(tensors, {name: by for name, (_, by, _) in COLUMNS.items()}, rows)


@dataclass
class Grown:
    """A net that grows by statements that inference accepts."""

    random: Any
    ops: list[OpDef]
    records: list[Record]
    lines: list[str] = field(default_factory=list)
    specs: dict[str, TensorSpec] = field(
        default_factory=lambda: INPUTS | {name: TensorSpec.of(value) for name, value in WEIGHTS.items()}
    )
    used: list[str] = field(default_factory=list)
    tried: int = 0

    def __post_init__(self) -> None:
        self.tensors = [{**record.tensors, **WEIGHTS} for record in self.records]
        """What the net has computed for each record."""

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def net(self, text: str) -> Net:
        uses = {name for step in Net(text).steps for name in step.uses}
        return Net(text, {name: value for name, value in WEIGHTS.items() if name in uses})

    def grow(self) -> None:
        """Try one more statement; what inference refuses is left out, whatever is no error of ours is raised."""
        op = self.random.choice(self.ops)
        line = self.statement(op)
        if line is None:
            return
        text = "\n".join([*self.lines, line])
        try:
            net = self.net(text)
            inferred = net.infer({name: INPUTS[name] for name in INPUTS}, LIMITS)
        except SeqflowError:
            return
        if not all(self.runs(net, tensors) for tensors in self.tensors):
            return
        self.lines.append(line)
        self.used.append(op.name)
        self.specs |= inferred.specs

    def runs(self, net: Net, tensors: dict[str, Any]) -> bool:
        """Whether the new steps take the values of these tensors: ids that are sorted, say, or what a mask covers."""
        try:
            for step in net.steps:
                if not step.results or step.results[0] not in tensors:
                    tensors.update(zip(step.results, compute(step, tensors), strict=True))
        except SeqflowError:
            return False
        return True

    def statement(self, op: OpDef) -> str | None:
        """A call of an op on tensors it may take, or a formula."""
        self.tried += 1
        number = self.tried
        if op.name == "expression":
            first = self.random.choice(sorted(self.specs))
            like = [n for n in sorted(self.specs) if self.specs[n].rows == self.specs[first].rows]
            return f"t{number} = " + self.random.choice(FORMULAS).format(a=first, b=self.random.choice(like))
        attributes = {
            a.name: self.attribute(a) for a in op.attributes if a.required or self.random.random() < 0.3
        }
        attributes = {name: value for name, value in attributes.items() if value is not None}
        if any(a.required and a.name not in attributes for a in op.attributes):
            return None
        chosen: dict[str, str] = {}
        inputs: list[str] = []
        for item in op.signature.inputs:
            if isinstance(item, Repeated):
                rounds = [self.operands(item.arguments, chosen) for _ in range(self.random.randint(1, 2))]
                if not all(rounds):
                    return None
                inputs += [f"[{', '.join(one[i] for one in rounds)}]" for i in range(len(item.arguments))]
        plain = [item for item in op.signature.inputs if not isinstance(item, Repeated)]
        found = self.operands(plain, chosen)
        if found is None:
            return None
        given = [f"{a.name}={one}" for a, one in zip(plain, found, strict=True) if one]
        if op.name in by_name:  # formulas take operands by position
            given = found
        lists = [a.name for item in op.signature.inputs if isinstance(item, Repeated) for a in item.arguments]
        given += [f"{name}={one}" for name, one in zip(lists, inputs, strict=True)]
        given += [f"{name}={value}" for name, value in attributes.items()]
        group = next((item for item in op.signature.outputs if isinstance(item, Repeated)), None)
        if group is not None:
            count = group.length({name: literal_eval(value) for name, value in attributes.items()})
            results = [f"t{number}.{i}" for i in range(count * len(group.arguments))]
        else:
            results = [f"t{number}.{i}" for i in range(len(op.output_names))]
        left = ", ".join(one.replace(".", "_") for one in results)
        return f"{left} = {op.name}({', '.join(given)})" if left else f"{op.name}({', '.join(given)})"

    def operands(self, arguments: Any, chosen: dict[str, str]) -> list[str] | None:
        """A tensor for each argument: first data, then what belongs to it."""
        found = []
        for argument in arguments:
            if argument.optional and self.random.random() < 0.7:
                found.append("")
                continue
            names = [name for name in sorted(self.specs) if self.fits(argument, self.specs[name])]
            if argument.dtype.word != "float" and self.random.random() < 0.9:
                names = [name for name in names if name not in WEIGHTS]
            names = self.belonging(argument, arguments, chosen, names)
            if not names:
                return None
            chosen[argument.name] = self.random.choice(names)
            found.append(chosen[argument.name])
        return found

    def fits(self, argument: Any, spec: TensorSpec) -> bool:
        kinds = (
            "iu"
            if argument.is_lengths or argument.dtype.word in POINTING
            else DTYPE_WORDS.get(argument.dtype.word)
        )
        if kinds is not None and spec.dtype.kind not in kinds:
            return False
        if argument.dtype.word in ("uint8", "int32", "int64") and spec.dtype != argument.dtype.word:
            return False
        if spec.shape.dimensions is None:
            return True
        rank = len(spec.shape.dimensions)
        return rank >= argument.rank if argument.rest is not None else rank == argument.rank

    def belonging(self, argument: Any, arguments: Any, chosen: dict[str, str], names: list[str]) -> list[str]:
        """Of these tensors mostly those that inference may accept beside what was chosen."""
        if self.random.random() < 0.1:
            return names
        for other in arguments:
            if other.name not in chosen or not other.dims or not argument.dims:
                continue
            rows = self.specs[chosen[other.name]].rows
            if argument.is_lengths and other.dims[0] == Sum(argument.name):
                return [rows.by] if isinstance(rows, Described) and rows.by in self.specs else names
            if argument.dims[0] == other.dims[0]:
                names = [name for name in names if self.specs[name].rows == rows] or names
        return names

    def attribute(self, attribute: Any) -> str | None:
        choose, low = self.random.choice, attribute.minimum or 0
        match attribute.kind:
            case "bool":
                return choose(["True", "False"])
            case "int":
                return str(self.random.randint(low, low + 3))
            case "scalar" | "fill":
                return str(self.random.randint(0, 3))
            case "float":
                return choose(["0.0", "0.5", "1.0"])
            case "choice":
                return repr(choose(attribute.choices))
            case "dtype":
                return repr(choose(["int64", "float32", "float64", "bool"]))
            case "ints":
                return str([self.random.randint(-1, 2) for _ in range(self.random.randint(1, 2))])
            case "parts":
                return str(self.random.randint(1, 2))
        return "[1, 2]" if attribute.name == "tokens" else None


def grow(random: Any, statements: int) -> Grown:
    """A net of up to that many statements."""
    names = [name for name in registry.names() if name not in ("tokenize", "tokenize_chat", "decode")]
    records = [
        make_record(random, rows) for rows in (0, random.randint(1, MOST_ROWS), random.randint(1, MOST_ROWS))
    ]
    grown = Grown(random, [registry.get(name) for name in names], records)
    for _ in range(4 * statements):
        if len(grown.lines) < statements:
            grown.grow()
    return grown
