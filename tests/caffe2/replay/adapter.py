"""Calls of Caffe2's operators: their inputs and arguments are checked, and mapped to those of an op."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np

from seqflow import registry
from seqflow.errors import OpError, OpTypeError, SeqflowError, ShapeError, nearest
from seqflow.kernels.arrays import Array
from seqflow.registry import OpDef
from seqflow.signature import Attribute, read_attributes
from seqflow.signature.bind_arrays import as_array


class Caffe2Argument(NamedTuple):
    """Maps an argument of an operator to an attribute of the op."""

    attribute: str | None
    hint: Any
    """Type of its values, as in the annotations of ops' parameters."""
    default: Any = inspect.Parameter.empty
    convert: Callable[[Any], Any] = lambda value: value


class Adapter(NamedTuple):
    """How a call of an operator differs from a call of its op; by default it does not, and takes no arguments."""

    call: Callable[..., Any] | None = None
    """Function with the operator's inputs as positional parameters and its arguments as keyword-only ones; it returns
    one array or several. If only names, order and dtypes differ, the other fields are enough."""
    strings: bool = False
    """Whether the operator only moves and compares elements, so that it also takes strings."""
    inputs: str = ""
    """The op's inputs in the operator's order; by default as in the op. Inputs in lists alternate."""
    outputs: str = ""
    """The operator's outputs, by the names of the op's outputs; `int32` before a name marks a conversion."""
    arguments: Mapping[str, Caffe2Argument] = {}
    settings: Mapping[str, Any] = {}
    """Attributes of the op that follow from the operator's name."""

    def called(self, op: OpDef) -> Callable[..., Any] | None:
        """Return the function to call; None for the op itself."""
        if self.call is not None or not (self.inputs or self.outputs or self.arguments or self.settings):
            return self.call
        return _renaming(op, self)


ADAPTERS: dict[str, Adapter] = {}
"""Adapters of the operators that differ from their op, by Caffe2's name; every family adds its own."""
GRADIENT_ONLY = Caffe2Argument(None, bool, False)
"""An argument that concerns only the gradient: it is accepted and has no effect."""


def _renaming(op: OpDef, adapter: Adapter) -> Callable[..., Any]:
    """Return a function that renames, reorders and casts according to an adapter."""
    names = adapter.inputs.split(", ") if adapter.inputs else _input_names(op)
    by_turns = bool(op.signature.listed)

    def call(*arrays: Any, **given: Any) -> list[Array]:
        if by_turns and len(arrays) % len(names):
            raise OpError(f"found {len(arrays)} inputs, expected {', '.join(names)}, alternating")
        inputs = [list(arrays[i :: len(names)]) for i in range(len(names))] if by_turns else arrays
        attributes = dict(adapter.settings)
        for name, argument in adapter.arguments.items():
            if argument.attribute is not None:
                attributes[argument.attribute] = argument.convert(given.get(name, argument.default))
        found = op.call(**dict(zip(names, inputs, strict=False)), **attributes)
        results = dict(zip(op.output_names, found if op.result is not None else [found], strict=True))
        chosen = [one.rpartition(" ") for one in (adapter.outputs or ", ".join(results)).split(", ")]
        return [int32(results[name]) if dtype else results[name] for dtype, _, name in chosen]

    kind = inspect.Parameter.VAR_POSITIONAL if by_turns else inspect.Parameter.POSITIONAL_ONLY
    parameters = [inspect.Parameter(name, kind) for name in (["inputs"] if by_turns else names)]
    call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [*parameters, *(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=one.default)
                        for name, one in adapter.arguments.items())]
    )  # fmt: skip
    call.__annotations__ = {name: argument.hint for name, argument in adapter.arguments.items()}
    return call


def _input_names(op: OpDef) -> list[str]:
    return [argument.name for argument in op.signature.input_arguments]


def origins() -> dict[str, OpDef]:
    """Return the op that computes each operator, as the ops declare it."""
    ops = map(registry.get, registry.names())
    return {name: op for op in ops if op.caffe2 for name in op.caffe2.split(", ")}


@dataclass(frozen=True)
class Operator:
    """An operator of Caffe2: the op that computes it, and the function that adapts its calls."""

    op: OpDef
    call: Callable[..., Any] | None
    strings: bool

    def run(
        self, name: str, inputs: Sequence[Any], arguments: Mapping[str, Any], num_outputs: int | None = None
    ) -> list[Array]:
        """Return the operator's outputs, or the first `num_outputs` of them; every error begins with its name."""
        try:
            arrays = self._inputs(inputs)
            # operators with an argument `num_outputs` compute other results for it; for others the last outputs are
            # dropped
            if num_outputs is not None and any(one.name == "num_outputs" for one in self.attributes):
                arguments, num_outputs = {**arguments, "num_outputs": num_outputs}, None
            values = self._arguments(arguments)
            if any(array.dtype.kind in "OUS" for array in arrays):
                outputs = self._run_on_strings(arrays, values)
            else:
                outputs = self._call(arrays, values)
            return outputs if num_outputs is None else self._first(outputs, num_outputs)
        except SeqflowError as error:
            error.in_op(name)
            raise
        except (ValueError, OverflowError) as error:
            raise OpError(f"{name}: {error}") from error

    @cached_property
    def attributes(self) -> tuple[Attribute, ...]:
        """The arguments of the operator."""
        return () if self.call is None else read_attributes(self.call)

    @cached_property
    def _parameters(self) -> list[inspect.Parameter]:
        parameters = inspect.signature(self.call or self.op.function).parameters.values()
        return [parameter for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]

    @property
    def _inputs_text(self) -> str:
        return ", ".join(
            f"{p.name}…" if p.kind is p.VAR_POSITIONAL else p.name if p.default is p.empty else f"[{p.name}]"
            for p in self._parameters
        )

    def _inputs(self, inputs: Sequence[Any]) -> list[Array]:
        if not isinstance(inputs, (list, tuple)):
            raise OpTypeError(f"inputs is {type(inputs).__name__}, expected a list of arrays")
        many = any(p.kind is p.VAR_POSITIONAL for p in self._parameters)
        fewest = sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in self._parameters)
        if len(inputs) < max(fewest, 1) or (len(inputs) > len(self._parameters) and not many):
            raise OpError(f"found {len(inputs)} inputs, expected {self._inputs_text}")
        last = len(self._parameters) - 1
        return [_as_input(self._parameters[min(i, last)].name, value) for i, value in enumerate(inputs)]

    def _arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        known = {attribute.name: attribute for attribute in self.attributes}
        for name in arguments:
            if name not in known:
                taken = f"it takes {', '.join(known)}" if known else "it takes none"
                raise OpError(f"there is no argument {name!r}{nearest(name, known)}, {taken}")
        for name, attribute in known.items():
            if attribute.required and name not in arguments:
                raise OpError(f"the argument {name} is missing, expected {attribute.expected}")
        return {name: known[name].check(_plain(known[name], value)) for name, value in arguments.items()}

    def _call(self, arrays: Sequence[Array], arguments: Mapping[str, Any]) -> list[Array]:
        call = self.call or self.op.call
        found = call(*arrays, **arguments)
        return [found] if isinstance(found, np.ndarray) else list(found)

    @staticmethod
    def _first(outputs: list[Array], count: int) -> list[Array]:
        if not isinstance(count, int) or not 1 <= count <= len(outputs):
            raise OpError(f"num_outputs is {count!r}, expected 1 to {len(outputs)}")
        return outputs[:count]

    def _run_on_strings(self, arrays: Sequence[Array], arguments: Mapping[str, Any]) -> list[Array]:
        """Run the op on indices into a list of all strings, as uint64: a dtype that Caffe2 does not have.

        Equal strings have the same index.
        """
        pool: list[Any] = [""]
        known: dict[Any, int] = {}
        moved = []
        for array, place in zip(arrays, self._places(len(arrays)), strict=True):
            if array.dtype.kind not in "OUS":
                if array.dtype == np.uint64:
                    raise OpTypeError(f"{place} is uint64, which cannot be used together with strings")
                moved.append(array)
                continue
            texts = [_text(place, text) for text in array.ravel().tolist()]
            if not self.strings:
                raise OpTypeError(f"{place} holds strings, expected numbers")
            pool += [text for text in dict.fromkeys(texts) if text not in known]
            known.update((text, i) for i, text in enumerate(pool[len(known) + 1 :], len(known) + 1))
            # uint64 marks strings among the results: Caffe2 has no tensors of this dtype
            moved.append(np.array([known[text] for text in texts], np.uint64).reshape(array.shape))
        # index 0 is the text for padding; it must have the type of the other texts
        if len(pool) > 1 and all(isinstance(text, bytes) for text in pool[1:]):
            pool[0] = b""
        texts_by_place = np.array(pool, object)
        found = self._call(moved, arguments)
        return [
            np.asarray(texts_by_place[array], object) if array.dtype == np.uint64 else array
            for array in found
        ]

    def _places(self, count: int) -> list[str]:
        last = len(self._parameters) - 1
        return [self._parameters[min(i, last)].name for i in range(count)]


def _as_input(name: str, value: Any) -> Array:
    array = np.asarray(value, object) if _holds_text(value) else None
    return as_array(name, value) if array is None else array


def _holds_text(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "OUS"
    return isinstance(value, (list, tuple)) and any(isinstance(one, (str, bytes)) for one in value)


def _text(name: str, text: Any) -> Any:
    if isinstance(text, (str, bytes)):
        return text
    raise OpTypeError(f"{name} holds {text!r} ({type(text).__name__}), expected strings")


def _plain(attribute: Attribute, value: Any) -> Any:
    """Convert bools to 0 and 1, and text to bytes, as Caffe2 stores them."""
    if attribute.kind == "bool" and isinstance(value, (int, np.integer)) and value in (0, 1):
        return bool(value)
    if attribute.kind in ("str", "choice") and isinstance(value, bytes):
        return value.decode(errors="replace")
    return value


def int32(array: Array) -> Array:
    """Convert lengths, ids and positions to int32, as in Caffe2; raise OpError when they do not fit (Caffe2 wraps
    around).
    """
    largest = int(array.max(initial=0))
    if largest > np.iinfo(np.int32).max:
        raise OpError(f"the result holds {largest}, more than Caffe2's int32 can hold")
    return array.astype(np.int32)


def chosen(number: int) -> int | None:
    """Return None for an argument of -1, which means "not given"."""
    return None if number == -1 else number


def single_integer(name: str, array: Array) -> int:
    """Return an integer argument that was given as an input."""
    if array.size != 1 or array.dtype.kind not in "iu":
        raise OpError(f"{name} is {array.dtype} {array.shape}, expected one integer")
    return int(array.reshape(())[()])


def integers_of(name: str, array: Array) -> tuple[int, ...]:
    """Return a list of integers that was given as an input."""
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise OpError(f"{name} is {array.dtype} {array.shape}, expected integers in one dimension")
    return tuple(array.tolist())


def from_front(name: str, x: Array, axis: int) -> int:
    """Return an axis that may be counted from the end; raise ShapeError when there is no such axis."""
    if not -x.ndim <= axis < x.ndim:
        raise ShapeError(f"axis is {axis}, but {name} has {x.ndim} dimension{'' if x.ndim == 1 else 's'}")
    return axis % x.ndim


def num_rows(name: str, x: Array) -> int:
    """Return the size of the first axis; raise ShapeError when there is none."""
    if not x.ndim:
        raise ShapeError(f"{name} has no dimensions, expected 1 or more")
    return len(x)


def as_matrix(name: str, x: Array) -> Array:
    """Return a matrix with the first axis as rows, all others as columns; raise ShapeError when there are no axes."""
    return x.reshape(num_rows(name, x), prod(x.shape[1:]))


def seed_of(random_seed: int | None) -> int:
    """Return the seed of a random operator: a new one if none is given."""
    return int(np.random.default_rng().integers(2**63)) if random_seed is None else random_seed
