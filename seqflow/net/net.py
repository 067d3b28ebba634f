"""Net: a straight-line program of ops on named tensors."""

import gc
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from seqflow.arguments import checked, shown
from seqflow.errors import GradientError, NetError, OpError, nearest
from seqflow.kernels.arrays import read_only
from seqflow.net.inference import NetInference, infer_net
from seqflow.net.lowering import Lowered, located, lower
from seqflow.net.parser import parse
from seqflow.net.step import Step
from seqflow.net.syntax import Location, Reference, fail
from seqflow.printable import printable
from seqflow.shape import DimensionLike
from seqflow.tensor import TensorSpec

_SHOWN = 40
"""Most lines that are shown."""


@checked(late=True)
class Net:
    """A program of ops on named tensors, made from its text.

        net = sf.Net('''
            ids, n = truncate(doc.values, doc.lengths, max_length=512)
            x, mask = pad(ids, n, fill=0)
            return x, mask
        ''')

    Args:
        text: Statements, one a line.
        constants: Tensors by the names that the text reads them under; each must be used.
        folder: Folder to which paths of files in the text are relative; None is the current folder.

    Each statement calls an op, or computes an expression: `score = sqrt(x) * lengths_sum(y, n)`. Operands are
    names, literals, expressions, calls with one output, and lists of these if an op takes a list. Names are
    assigned once; `_` drops a result; one name for several outputs binds a group (`t = truncate(…)`, then
    `t.values`, `t.lengths`; for a list, `parts.0`, `parts.1`). Statements may be in any order: they run in
    topological order. Free names are the inputs. `return` names the outputs; without it the outputs are all
    names that the net assigns and all tensors of the record that no statement used.

    Lengths may be implicit: `words = sequence(doc.values, doc.lengths)` gives a name to both (with several
    levels, the outermost lengths first), and calls on it, or on results made from it, need no lengths: `h =
    lstm(words, w_ih, w_hh, bias)`. The printed net shows the lengths that were filled in.

    Raise NetError, with line, column and a caret, for malformed text, unknown ops, arguments that an op does
    not take, names assigned twice and cycles.
    """

    def __init__(
        self,
        text: str,
        constants: Mapping[str, Any] | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        self.text = text
        self.folder = None if folder is None else Path(folder)
        self.constants: Mapping[str, Any] = {
            name: read_only(value) if isinstance(value, np.ndarray) else value
            for name, value in (constants or {}).items()
        }
        with _without_garbage_collection():
            lowered = lower(parse(text), self.folder)
        self.steps: tuple[Step, ...] = lowered.steps
        named = [name for step in self.steps if not step.is_part for name in step.results]
        self.assigned: tuple[str, ...] = tuple(name for name in named if name != "_")
        self._returned_names = lowered.returned or ()
        self.returned = self._returned(lowered.returned)
        self._refuse_groups(lowered)
        unused = next((name for name in self.constants if name not in self._free), None)
        if unused is not None:
            raise NetError(f"net: nothing uses the constant {unused!r}{nearest(unused, self._free)}")

    def __reduce__(self) -> tuple[Any, ...]:
        constants = {name: _by_file(value) for name, value in self.constants.items()}
        return _remade, (self.text, constants, self.folder)

    @cached_property
    def _free(self) -> tuple[str, ...]:
        """Names that the net reads but does not assign, by first appearance."""
        assigned = {name for step in self.steps for name in step.results}
        read = [name for step in self.steps for name in step.uses] + list(self.returned or ())
        return tuple(dict.fromkeys(name for name in read if name not in assigned))

    @cached_property
    def inputs(self) -> tuple[str, ...]:
        """Names of the tensors that the net takes from the record, by first appearance."""
        return tuple(name for name in self._free if name not in self.constants)

    @cached_property
    def is_random(self) -> bool:
        """Whether one of its ops draws random numbers."""
        return any(step.op.random is not None for step in self.steps)

    def require(self, given: Collection[str]) -> None:
        """Raise NetError, with a caret, when an input is not among the given tensors.

        A name that is only returned is an input as well: a tensor of the record that passes through.
        """
        missing = next((name for name in self.inputs if name not in given), None)
        if missing is not None:
            guess = nearest(missing, [*given, *self.assigned])
            what = f"nothing assigns {missing!r}, and it is not given{guess}"
            advice = f"given are {', '.join(given)}"
            column, text = missing.removesuffix(".values"), f"{missing}.text"
            if f"{text}.values" in given:  # parts of a message, as OpenAI has them
                advice = (
                    f"{column} is a list of parts with texts: {text}.values are the bytes of all, and of each list "
                    f"there are n = lengths_sum({text}.lengths, {column}.lengths) (docs/nlp.md)\n  {advice}"
                )
            fail(self.text, self._locations[missing], what, advice)

    @cached_property
    def _locations(self) -> dict[str, Location]:
        """Location of the first use of each tensor."""
        read = [one for step in self.steps for one in step.references]
        return {reference.name: reference.location for reference in reversed([*read, *self._returned_names])}

    def bind(self, **constants: Any) -> "Net":
        """Return the same net with some inputs fixed, such as tables or weights.

        The arrays are not copied, and tensors that the net returns from them are read-only.
        """
        return Net(self.text, {**self.constants, **constants}, self.folder)

    def outputs(self, available: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Return the names of the results, for a record that has the tensors `available`."""
        if self.returned is not None:
            return self.returned
        consumed = {name for step in self.steps for name in step.uses}
        return (*(name for name in available if name not in consumed), *self.assigned)

    @property
    def files(self) -> tuple[str, ...]:
        """Paths of the files that its text names."""
        return tuple(path for step in self.steps for _, path in _paths(step))

    def located(self, path: str) -> str:
        """Return a path of its text for use in the current folder."""
        return located(self.folder, path)

    def check_files(self, constants: Mapping[str, Any] | None = None) -> None:
        """Raise NetError, with a caret, when a file that the net names is missing, or its op cannot use it.

        `constants` will be bound later; one of them may hold the content of a file.
        """
        known = {**self.constants, **(constants or {})}
        for step in self.steps:
            for name, path in _paths(step):
                if not os.path.isfile(path):
                    fail(self.text, step.value.location, f"{step.op.name}: {name}: there is no file {path!r}")
            attributes = {
                name: known.get(value.name) if isinstance(value, Reference) else value
                for name, value in step.attributes.items()
            }
            given = [attributes[one.name] for one in step.op.attributes if one.names_file]
            if step.op.files is None or any(value is None for value in given):
                continue
            try:
                step.op.files(attributes)
            except OpError as error:
                fail(self.text, step.value.location, f"{step.op.name}: {error.message}", error.advice)

    def infer(
        self, specs: Mapping[str, TensorSpec], limits: Mapping[DimensionLike, int] | None = None
    ) -> NetInference:
        """Infer the spec of each tensor from the specs of the inputs; no data is needed.

        `limits` gives upper bounds of other sizes, such as `{"max(doc.lengths)": 512}`.

        Raises OpTypeError, ShapeError or LodError of an op that cannot take its inputs, with a note that names the
        statement. Equalities that could be neither proved nor refuted are `guards` of the result; the ops check them
        when they run.
        """
        with _without_garbage_collection():
            return infer_net(self, specs, limits)

    def gradient(self, of: str, wrt: str | Sequence[str], *, cotangent: str | None = None) -> "Net":
        """Return a net that computes one tensor of this net, and its gradients with respect to other tensors.

        It takes the inputs of this net and returns `of` and, for each tensor x of `wrt` (inputs, constants or
        results, of floats), the gradient `grad.x`, with x's shape and dtype. `of` is a scalar, such as a loss. With
        `cotangent`, the name of an input with the shape of `of`, the net computes the product of this gradient at
        `of` and the Jacobian. The result is a normal net: it can be printed, inferred and run, and it has a gradient
        itself if the formulas have one.

        Raises GradientError, a NetError, for ops on the way without a derivative, with the reason, and for tensors
        that `of` does not depend on.

        >>> print(Net("loss = reduce_sum(square(x * w))").gradient("loss", "w"))
        part.1 = square(x * w)
        loss = reduce_sum(part.1)
        grad.loss = one_like(loss)
        grad.part.1 = cast_like(spread(grad.loss, part.1), part.1)
        back.0.v0 = x * w
        back.0.d1 = 2 * grad.part.1 * back.0.v0
        back.0.d2 = back.0.d1 * x
        grad.w = sum_to(back.0.d2, w)
        return loss, grad.w
        """
        from seqflow.net.gradient.reverse import gradient_text

        names = [wrt] if isinstance(wrt, str) else list(wrt)
        if not isinstance(cotangent, str | None):
            raise GradientError(f"gradient: cotangent is {shown(cotangent)}, expected text")
        gradient = Net(gradient_text(self, of, names, cotangent), folder=self.folder)
        held = {name: value for name, value in self.constants.items() if name in gradient.inputs}
        return gradient.bind(**held)

    def _returned(self, returned: tuple[Reference, ...] | None) -> tuple[str, ...] | None:
        if returned is None:
            return None
        names: set[str] = set()
        for reference in returned:
            if reference.name in names:
                fail(self.text, reference.location, f"{reference.name} is returned twice")
            names.add(reference.name)
        return tuple(reference.name for reference in returned)

    def _refuse_groups(self, lowered: Lowered) -> None:
        """Raise NetError when a group of results is used as one tensor."""
        groups = {name.rsplit(".", i)[0] for name in self.assigned for i in range(1, name.count(".") + 1)}
        groups -= set(self.assigned)
        used = [one for step in self.steps for one in step.references]
        for reference in (*used, *(lowered.returned or ())):
            if reference.name in groups:
                members = ", ".join(name for name in self.assigned if name.startswith(f"{reference.name}."))
                fail(self.text, reference.location, f"{reference.name} is a group, expected one of {members}")

    def __str__(self) -> str:
        lines = [str(step.statement) for step in self.steps if not step.is_part]
        return "\n".join(lines + ([f"return {', '.join(self.returned)}"] if self.returned else []))

    def _repr_html_(self) -> str:
        from seqflow.net.table import html

        return html(self)

    def __repr__(self) -> str:
        """Return a title, then the text of the net; for long nets only the beginning."""
        lines = str(self).split("\n") if self.steps or self.returned else []
        more = [f"… {len(lines) - _SHOWN} more lines"] if len(lines) > _SHOWN else []
        title = f"Net of {len(self.steps)} step{'s' * (len(self.steps) != 1)}"
        return printable("\n  ".join([title, *lines[:_SHOWN], *more]))


def _paths(step: Step) -> list[tuple[str, str]]:
    """Return the attributes of a step that are paths of files, with the paths."""
    named = [attribute.name for attribute in step.op.attributes if attribute.names_file]
    return [(name, path) for name in named if isinstance(path := step.attributes[name], str)]


@contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Pause the collector of cycles while many lasting objects are made.

    It would go through all objects of the process each time their number has grown by a quarter: with 5,000
    statements each statement would take half as long again as with 200.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class _FileOfArray(NamedTuple):
    """Pickled form of an array that is mapped from a file."""

    filename: str
    dtype: Any
    offset: int
    shape: tuple[int, ...]


def _by_file(value: Any) -> Any:
    """Return the pickled form of a constant: for a mapped array its file, not its content."""
    if isinstance(value, np.memmap) and value.base is not None and value.flags.c_contiguous:
        # the base of a view is a memmap; the view has the `offset` of that memmap, not its own
        root = value.base
        if not isinstance(root, np.memmap) and value.filename is not None:
            return _FileOfArray(str(value.filename), value.dtype, value.offset, value.shape)
    return value


def _remade(text: str, constants: Mapping[str, Any], folder: Path | None) -> Net:
    # "r": constants of a net are read-only
    arrays = {
        name: np.memmap(value.filename, value.dtype, "r", value.offset, value.shape)
        if isinstance(value, _FileOfArray)
        else value
        for name, value in constants.items()
    }
    return Net(text, arrays, folder)
