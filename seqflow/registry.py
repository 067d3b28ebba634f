"""The ops: `@op` declares one, `get` looks one up.

An op is one place: its signature, its attributes, its docs with an example, its origin and its function. The
decorator turns the function into the checked op that users call; every error leaves it with the op's name in
front and its signature behind.
"""

from __future__ import annotations

import inspect
import sys
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from seqflow import kernels
from seqflow.errors import LodError, OpError, OpIndexError, SeqflowError, UnknownOpError, nearest
from seqflow.signature import (
    Attribute,
    Repeated,
    Signature,
    bind,
    fast_condition,
    parse,
    read_attributes,
)
from seqflow.signature.language import CONCRETE_DTYPES

if TYPE_CHECKING:  # inference is imported when it is asked for: calling ops does without
    from seqflow.shape import Equalities, Guard, InferenceContext
    from seqflow.signature.specs import Names, Specs
    from seqflow.tensor import TensorSpec

F = TypeVar("F", bound=Callable[..., Any])


ShapeFunction = Callable[["InferenceContext"], None]


class Inference(NamedTuple):
    """What inference says of one call."""

    outputs: list[TensorSpec]
    guards: list[Guard]
    """Sizes that were taken to be equal without proof."""
    requested: frozenset[str] = frozenset()
    """Inputs whose values, were they known, would say more of the outputs' shapes."""


@dataclass(frozen=True, slots=True, eq=False)
class OpDef:
    """What is known of an op."""

    name: str
    signature: Signature
    attributes: tuple[Attribute, ...]
    function: Callable[..., Any]
    """The op's body: no checks; arrays in, one array or a tuple of arrays out."""
    call: Callable[..., Any]
    """The op itself: checks its inputs, then runs the body."""
    result: type | None
    """The NamedTuple of an op with several outputs."""
    caffe2: str | None = None
    """The operator of Caffe2 it comes from; several are separated by commas."""
    same: tuple[str, str] | None = None
    """Two lengths inputs that the op declares to be equal, and so the rows they describe."""
    shape: ShapeFunction | None = None
    """What the signature cannot say of the outputs' shapes; it finds what the signature says set already."""
    variadic: bool = False
    """It takes its one list of inputs as `*args`."""

    @property
    def doc(self) -> str:
        return inspect.cleandoc(self.function.__doc__ or "")

    @property
    def output_names(self) -> tuple[str, ...]:
        """The fields of the result."""
        return tuple(argument.field for argument in self.signature.output_arguments)

    def tensor_names(self, attributes: Mapping[str, Any]) -> list[str]:
        """All tensors of the results by the signature's names, which no input has.

        Those of lists are numbered: `parts.0`, `parts.1`.
        """
        return self._numbered([argument.name for argument in self.signature.output_arguments], attributes)

    def result_names(self, attributes: Mapping[str, Any]) -> list[str]:
        """All tensors of the results by the names of their fields, which nets use."""
        return self._numbered(self.output_names, attributes)

    def _numbered(self, names: Sequence[str], attributes: Mapping[str, Any]) -> list[str]:
        remaining = iter(names)
        found: list[str] = []
        for item in self.signature.outputs:
            if isinstance(item, Repeated):
                count = item.length(self.complete(attributes))
                found += [
                    f"{name}.{i}" for name in islice(remaining, len(item.arguments)) for i in range(count)
                ]
            else:
                found.append(next(remaining))
        return found

    def complete(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """The attributes with their defaults."""
        return {attribute.name: attribute.default for attribute in self.attributes} | dict(attributes)

    def infer(
        self,
        specs: Specs,
        attributes: Mapping[str, Any] | None = None,
        *,
        values: Mapping[str, Any] | None = None,
        names: Names | None = None,
        results: Sequence[str] | None = None,
        equalities: Equalities | None = None,
    ) -> Inference:
        """The outputs' specs for inputs of these specs; no data is needed.

        Where the op takes a list of tensors, `specs` has a list. `values` are those inputs that are known as
        arrays: a shape to reshape to, for instance. `names` and `results` say which tensors of a net the inputs
        and outputs are (by default they have the signature's own names), `equalities` what is known to be equal
        in it. Raises OpTypeError, ShapeError, and LodError where values meet lengths of other rows.

        >>> data, lengths = TensorSpec("float32", "{7,4}"), TensorSpec("int64", "{3}")
        >>> print(*registry.get("lengths_sum").infer({"data": data, "lengths": lengths}).outputs)
        float32{3,4}
        """
        from seqflow.inference import infer

        try:
            return infer(self, specs, attributes or {}, values or {}, names, results, equalities)
        except SeqflowError as error:
            raise _name_op(self.name, self.signature, error) from error.__cause__

    def __repr__(self) -> str:
        return f"<op {self.name}: {self.signature}>"


_ops: dict[str, OpDef] = {}


def _load_shipped() -> None:
    """Import the ops that come with seqflow, unless they are there or on their way."""
    if "seqflow.ops" not in sys.modules:
        import_module("seqflow.ops")


def names() -> list[str]:
    """The names of all registered ops, sorted."""
    _load_shipped()
    return sorted(_ops)


def get(name: str) -> OpDef:
    """The op of that name; UnknownOpError, with the nearest name, where there is none."""
    if name not in _ops:
        _load_shipped()
    if name not in _ops:
        raise UnknownOpError(f"no op is named {name!r}{nearest(name, _ops)}\n  `seqflow ops` lists them")
    return _ops[name]


def op(
    signature: str,
    *,
    caffe2: str | None = None,
    same: tuple[str, str] | None = None,
    shape: ShapeFunction | None = None,
) -> Callable[[F], F]:
    """Declare a function as an op under its own name.

    Its positional parameters are the signature's inputs, its keyword-only parameters the attributes. `caffe2`
    names the operator it comes from, or several, separated by commas; `same` two lengths inputs that it declares
    to be equal; `shape` is a shape function for what the signature cannot say.
    """

    def declare(function: F) -> F:
        definition = replace(_define(function, parse(signature)), caffe2=caffe2, same=same, shape=shape)
        register(definition)
        return definition.call  # type: ignore[return-value]

    return declare


def register(definition: OpDef) -> None:
    """Make an op known by its name; OpError where there is one of that name."""
    _load_shipped()
    if definition.name in _ops:
        raise OpError(f"{definition.name}: an op of that name is registered already")
    _ops[definition.name] = definition


def _define(function: Callable[..., Any], signature: Signature) -> OpDef:
    name = function.__name__
    attributes = read_attributes(function)
    _check_parameters(name, function, signature)
    outputs = [argument.field for argument in signature.output_arguments]
    title = name.title().replace("_", "") + "Result"
    result = namedtuple(title, outputs, module="seqflow.ops") if len(outputs) > 1 else None
    call = _compile(function, signature, attributes, result)
    return OpDef(name, signature, attributes, function, call, result)


def _check_parameters(name: str, function: Callable[..., Any], signature: Signature) -> None:
    parameters = inspect.signature(function).parameters.values()
    found = [parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
    expected = [argument.name for argument in signature.input_arguments]
    if found != expected:
        raise OpError(f"{name}: the function takes {found}, its signature says {expected}\n  {signature}")


_TEMPLATE = """\
def {name}({parameters}):
    try:
        fits = {condition}
    except (KernelError, TypeError, ValueError):
        fits = False
    try:
        if not fits:
            {inputs}{attributes} = check(({inputs}), ({attributes}))
        return {call}
    except KernelError as error:
        raise explain(error) from None
    except SeqflowError as error:
        raise name_op(error)
    except (ValueError, OverflowError) as error:
        raise OpError(f"{name}: {{error}}") from error
"""


def _compile(
    function: Callable[..., Any], signature: Signature, attributes: tuple[Attribute, ...], result: type | None
) -> Callable[..., Any]:
    """The checked op, generated once: the common case costs one expression, everything else goes to `bind`."""
    name = function.__name__
    inputs = [argument.name for argument in signature.input_arguments]
    required = [a.name for a in signature.input_arguments if not a.optional]
    conditions = [fast_condition(signature, {a.name: a.optional for a in attributes}) or "False"]
    conditions += filter(None, (attribute.condition() for attribute in attributes))
    call = f"function({', '.join(inputs + [f'{a.name}={a.name}' for a in attributes])})"
    source = _TEMPLATE.format(
        name=name,
        parameters=", ".join(
            [n if n in required else f"{n}=None" for n in inputs]
            + (["*"] if attributes else [])
            + [a.name if a.required else f"{a.name}=default_{a.name}" for a in attributes]
        ),
        condition=" and ".join(conditions),
        inputs="".join(f"{n}, " for n in inputs),
        attributes="".join(f"{a.name}, " for a in attributes),
        call=f"result(*{call})" if result else call,
    )
    scope = {f"default_{a.name}": a.default for a in attributes} | {
        **{word: np.dtype(word) for word in CONCRETE_DTYPES},
        "ndarray": np.ndarray,
        "dtype_class": np.dtype,
        "check_lengths": kernels.quick_check_lengths,
        "max_length": kernels.max_length,
        "KernelError": kernels.KernelError,
        "SeqflowError": SeqflowError,
        "OpError": OpError,
        "function": function,
        "result": result,
        "check": _checker(signature, attributes),
        "explain": lambda error: _explain(name, signature, error),
        "name_op": lambda error: _name_op(name, signature, error),
    }
    exec(compile(source, f"<op {name}>", "exec"), scope)
    call_checked: Callable[..., Any] = scope[name]
    call_checked.__doc__ = function.__doc__
    call_checked.__module__ = function.__module__
    call_checked.__wrapped__ = function  # type: ignore[attr-defined]
    return call_checked


def _checker(signature: Signature, attributes: tuple[Attribute, ...]) -> Callable[..., Any]:
    """The slow form of the check: attributes, then inputs; the values the body will get."""

    def check(values: tuple[Any, ...], given: tuple[Any, ...]) -> tuple[Any, ...]:
        checked = [attribute.check(value) for attribute, value in zip(attributes, given, strict=True)]
        named = {attribute.name: value for attribute, value in zip(attributes, checked, strict=True)}
        bound = bind(signature, _regroup(signature, values), named)
        return (*_ungroup(signature, bound), *checked)

    return check


def _regroup(signature: Signature, values: tuple[Any, ...]) -> list[Any]:
    """Positional arguments as `bind` wants them: those of one repetition together."""
    remaining = iter(values)
    return [
        [next(remaining) for _ in item.arguments] if isinstance(item, Repeated) else next(remaining)
        for item in signature.inputs
    ]


def _ungroup(signature: Signature, bound: tuple[Any, ...]) -> list[Any]:
    """The inverse: a repetition becomes one list for each of its arguments."""
    arguments: list[Any] = []
    for item, value in zip(signature.inputs, bound, strict=True):
        if isinstance(item, Repeated):
            arguments += [list(column) for column in zip(*value, strict=True)]
        else:
            arguments.append(value)
    return arguments


def _explain(name: str, signature: Signature, error: kernels.KernelError) -> SeqflowError:
    """What a kernel found wrong, as an error of the op."""
    kinds: Mapping[str, type[SeqflowError]] = {"index": OpIndexError, "negative": LodError, "sum": LodError}
    kind = kinds.get(error.kind, LodError if error.argument == "lengths" else OpError)
    return kind(f"{name}: {error} ({signature.inputs_text})")


def _name_op(name: str, signature: Signature, error: SeqflowError) -> SeqflowError:
    first, _, rest = str(error).removeprefix(f"{name}: ").partition("\n")
    origin = f" ({signature.inputs_text})" if not isinstance(error, OpError) else ""
    error.args = (f"{name}: {first}{origin}" + (f"\n{rest}" if rest else ""),)
    return error
