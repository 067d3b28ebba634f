"""`@op` declares a function as an op."""

import inspect
from collections import namedtuple
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Literal, TypeVar

from seqflow.arguments import checked
from seqflow.deprecated_names import old_names, rename
from seqflow.errors import GradientError, OpError, OpTypeError, SeqflowError
from seqflow.registry.calling import make_call
from seqflow.registry.definition import FileCheck, OpDef, ShapeFunction, family_of
from seqflow.registry.description import help_text
from seqflow.registry.gradients import Gradients
from seqflow.registry.higher_floors import DERIVATIVES
from seqflow.registry.lookup import register, unregister
from seqflow.signature import Attribute, Signature, parse, read_attributes
from seqflow.signature.attributes import check_annotated
from seqflow.signature.language import Count, Given, Name, parts

F = TypeVar("F", bound=Callable[..., Any])


@checked()
def op(
    signature: str,
    *,
    caffe2: str | None = None,
    known_as: str = "",
    same: tuple[str, str] | None = None,
    shape: ShapeFunction | None = None,
    files: FileCheck | None = None,
    random: str | None = None,
    renamed: Mapping[str, str] | None = None,
    grad: Gradients | None = None,
    takes_total: bool = False,
    sparse_factor: Literal["one", "shares", "weights", "weights by position"] | None = None,
    trained_as: str | None = None,
    **claims: Any,
) -> Callable[[F], F]:
    """Declare a function as an op under its own name.

    The positional parameters of the function are the signature's inputs, its keyword-only parameters are the
    attributes. The signature may also define outputs, `lengths'[B] := minimum(lengths, k)`, and bound them,
    `lengths'[B] <= lengths`.

    Args:
        signature: Inputs and outputs of the op, with their axes and dtypes: docs/signatures.md.
        caffe2: Operators of Caffe2 it comes from, separated by commas.
        known_as: Its names in other libraries, and in questions, separated by semicolons.
        same: Two lengths inputs that the op declares to be equal.
        shape: Shape function, for shapes that the signature cannot express.
        files: Takes the attributes, reads the files among them, and raises what every call with them would
            raise.
        random: Attribute that seeds its random numbers; a run may mix a number of its own into the seed.
        renamed: Maps old names of attributes, in earlier nets, jobs and calls, to the new ones.
        grad: Derivative of each input (see `seqflow.registry.gradients`).
        takes_total: Whether calls in torch may give the sum of the lengths.
        sparse_factor: Factor of each row in a pooled look-up that may have a sparse gradient in torch.
        trained_as: Op with the same inputs and attributes, and more outputs after those of this op, that torch runs
            if a gradient is required: its derivative reads them instead of computing them again.
        claims: `depends`, `rows`, `steps`, `masks`, `describes`, `inverse`, `moves`, `several`, `pure` (see
            `seqflow.signature.op_properties`).

    Results of ops of users are checked after each call; OpError is raised when they differ from the signature
    or the shape function.
    """
    if not isinstance(signature, str):
        raise OpTypeError(
            f"op: signature is {getattr(signature, '__name__', repr(signature))}, expected text: "
            '@sf.op("data[N] -> y[N]")'
        )
    if "defines" in claims:
        raise OpError(f"defines= is said in the signature, `name[…] := value` after an output\n  {signature}")

    def declare(function: F) -> F:
        _check_name(function)
        read = parse(signature)
        if family_of(function) is not None:
            claims.setdefault("moves", ", ".join(read.moved))
        rename(function.__name__, renamed or {})
        definition = _define(
            function,
            read,
            caffe2=caffe2,
            known_as=known_as,
            same=same,
            shape=shape,
            files=files,
            random=random,
            claimed=claims,
            grad=grad,
            takes_total=takes_total,
            sparse_factor=sparse_factor,
            trained_as=trained_as,
        )
        if definition.family is None:  # a user's op: raise the errors of its claims at the declaration
            _ = definition.claims
        if random is not None and random not in {attribute.name for attribute in definition.attributes}:
            raise OpError(f"{definition.name}: random = {random!r} is none of its attributes")
        definition.call.__doc__ = help_text(definition)
        _check_gradient_names(definition)
        register(definition)  # before its gradients are checked, in nets that call it
        if definition.family is None and grad is not None:
            _check_gradients(definition)
        return definition.call  # type: ignore[return-value]

    return declare


def result_name(name: str) -> str:
    """Return the name of the NamedTuple of the results of an op with several outputs."""
    return name.title().replace("_", "") + "Result"


def _define(function: Callable[..., Any], signature: Signature, **facts: Any) -> OpDef:
    name = function.__name__
    _check_parameters(name, function, signature)
    check_annotated(function, signature.size_names())
    attributes = read_attributes(function)
    _check_values(name, signature, attributes)
    _check_renamed(name, attributes)
    outputs = [argument.field for argument in signature.output_arguments]
    result = namedtuple(result_name(name), outputs, module="seqflow.ops") if len(outputs) > 1 else None
    body = function
    if family_of(function) is None:  # only these checks need inference at once, so it is imported here
        from seqflow.registry.results import with_checked_results

        body = with_checked_results(function, lambda: definition)
    call = make_call(body, signature, attributes, result)
    doc = inspect.cleandoc(function.__doc__ or "")
    definition = OpDef(name, signature, attributes, function, call, result, doc, **facts)
    return definition


def _check_name(function: Callable[..., Any]) -> None:
    """Raise OpTypeError unless the function has a name that nets can use: it becomes the name of the op."""
    name = getattr(function, "__name__", None)
    if not isinstance(name, str) or not name.isidentifier():
        found = "a lambda" if name == "<lambda>" else f"{function!r}"
        raise OpTypeError(
            f"op: the function is {found}, expected one with a name, which is the name of the op\n"
            "  declare it as a function: @sf.op(…) above def doubled(x): return 2 * x"
        )


def _check_gradient_names(definition: OpDef) -> None:
    """Raise GradientError when a derivative is declared for a name that is not an input."""
    grad, known = definition.grad, definition.signature.arguments
    spoken_of = (
        [name.strip() for keys in grad for name in keys.split(",")] if isinstance(grad, Mapping) else []
    )
    wrong = next((name for name in spoken_of if name not in known), None)
    if wrong is not None:
        message = f"grad speaks of {wrong!r}, expected inputs: {', '.join(known)}"
        raise GradientError(message).in_op(definition.name)


def _check_gradients(definition: OpDef) -> None:
    """Check the derivative of a user's op, which nets can call already; unregister the op when a check fails."""
    try:
        import_module(DERIVATIVES).check_declared(definition)
    except SeqflowError:
        unregister(definition.name)
        raise


def _check_values(name: str, signature: Signature, attributes: tuple[Attribute, ...]) -> None:
    """Raise OpError when a definition or bound uses a name that is not an input, a size or an attribute."""
    known = {*signature.arguments, *(one.name for one in attributes), *signature.size_names()}
    for place, value in signature.values():
        for part in parts(value):
            spoken_of = (
                part.attribute if isinstance(part, Given) else part.of if isinstance(part, Count) else part
            )
            if str(spoken_of) not in known and isinstance(part, (Name, Given, Count)):
                raise OpError(
                    f"{name}: {place} speaks of {spoken_of}, expected an input, a size or an attribute\n  {signature}"
                )


def _check_renamed(name: str, attributes: tuple[Attribute, ...]) -> None:
    optional = {attribute.name for attribute in attributes if not attribute.required}
    for old, new in old_names(name).items():
        if new not in optional:
            raise OpError(
                f"{name}: renamed says that {old} is {new} now, expected an attribute with a default"
            )


def _check_parameters(name: str, function: Callable[..., Any], signature: Signature) -> None:
    parameters = inspect.signature(function).parameters.values()
    found = [parameter.name for parameter in parameters if parameter.kind is not parameter.KEYWORD_ONLY]
    expected = [argument.name for argument in signature.input_arguments]
    if found != expected:
        raise OpError(f"{name}: the function takes {found}, its signature says {expected}\n  {signature}")
