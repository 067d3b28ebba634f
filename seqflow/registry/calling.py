"""Makes the op that users call: a Python function that checks its inputs and runs the body."""

import builtins
import linecache
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.deprecated_names import old_names, renamed_arguments
from seqflow.errors import OpError, OpTypeError, SeqflowError
from seqflow.registry.errors import (
    check_names,
    explain,
    explain_memory,
    missing_input,
    name_op,
    too_many_inputs,
)
from seqflow.registry.python_signature import python_signature
from seqflow.signature import Attribute, Repeated, Signature, bind, fast_condition
from seqflow.signature.language import CONCRETE_DTYPES

_UNSET = object()
# an error in the condition only means that some input does not fit: `check` then converts it or raises the error
_TEMPLATE = """\
def {name}({parameters}):
{renamed}{defaults}    try:
        fits = {condition}
    except (KernelError, TypeError, ValueError, ZeroDivisionError):
        fits = False
    try:
        if not fits:
            {names} = check({inputs}, {attributes}, _extra, _unknown)
        return {call}
    except MemoryError as error:
        raise explain_memory(error, {names}) from None
    except KernelError as error:
        raise explain(error) from None
    except SeqflowError as error:
        name_op(error)
        raise
    except (ValueError, OverflowError, IndexError) as error:
        raise OpError(f"{name}: {{error}}") from error
"""


_RENAMED = """\
    if {given}:
        return call_renamed({inputs} + _extra, dict({arguments}, **_unknown))
"""


def make_call(
    function: Callable[..., Any], signature: Signature, attributes: tuple[Attribute, ...], result: type | None
) -> Callable[..., Any]:
    """Return the checked op. Its code is generated at the first call, since a program calls few of all ops."""
    name = function.__name__
    scope: dict[str, Any] = {"__builtins__": builtins}  # torch's compiler looks for builtins there
    call = FunctionType(_first_call.__code__, scope, name)

    def generate() -> Callable[..., Any]:
        made = _generate(function, signature, attributes, result)
        scope.update(made.__globals__)
        call.__defaults__, call.__kwdefaults__ = made.__defaults__, made.__kwdefaults__
        call.__code__ = made.__code__  # last: a call in another thread needs the lines above
        return call

    scope["generate"] = generate
    call.__module__, call.__qualname__ = function.__module__, name
    call.__wrapped__ = function  # type: ignore[attr-defined]
    call.__signature__ = python_signature(signature, attributes, result)  # type: ignore[attr-defined]
    return call


def _first_call(*args: Any, **named: Any) -> Any:
    return generate()(*args, **named)  # type: ignore[name-defined]  # noqa: F821  # in the scope of each op


def _generate(
    function: Callable[..., Any], signature: Signature, attributes: tuple[Attribute, ...], result: type | None
) -> FunctionType:
    """Generate the function: one expression checks the common case, `bind` everything else."""
    name = function.__name__
    inputs = [argument.name for argument in signature.input_arguments]
    named = [attribute.name for attribute in attributes]
    source = _source(name, signature, attributes, result)
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
        "check": _checker(name, signature, attributes),
        "explain": lambda error: explain(name, signature, error),
        "explain_memory": lambda error, values: explain_memory(
            name, signature, error, dict(zip(inputs + named, values, strict=True))
        ),
        "name_op": lambda error: name_op(name, signature, error),
        "unset": _UNSET,
        "call_renamed": _renamed_call(name, attributes, lambda: made),
    }
    file = f"<op {name}>"
    exec(compile(source, file, "exec"), scope)
    # tracebacks show the generated lines; the file does not exist
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    made: FunctionType = scope[name]
    return made


def _source(name: str, signature: Signature, attributes: tuple[Attribute, ...], result: type | None) -> str:
    inputs = [argument.name for argument in signature.input_arguments]
    named = [attribute.name for attribute in attributes]
    conditions = [fast_condition(signature, {a.name: a.optional for a in attributes}) or "False"]
    conditions += filter(None, (attribute.condition() for attribute in attributes))
    call = f"function({', '.join(inputs + [f'{n}={n}' for n in named])})"
    renamed = old_names(name)
    given = " or ".join(f"{old} is not unset" for old in renamed)
    arguments = ", ".join(f"{n}={n}" for n in [*named, *renamed])
    return _TEMPLATE.format(
        name=name,
        renamed=_RENAMED.format(given=given, inputs=_tuple(inputs), arguments=arguments) if renamed else "",
        parameters=", ".join(
            [f"{a.name}={None if a.optional else 'unset'}" for a in signature.input_arguments]
            + ["*_extra"]
            + [f"{a.name}={'unset' if a.required else f'default_{a.name}'}" for a in attributes]
            + [f"{old}=unset" for old in renamed]
            # so that `check` can name the nearest one: an empty dict costs a call 30 ns, a wrapper 200
            + ["**_unknown"]
        ),
        defaults="".join(
            f"    if {one} is None:\n        {one} = {of}\n" for one, of in signature.defaults.items()
        ),
        condition=" and ".join(["not _extra and not _unknown", *conditions]),
        names=_tuple(inputs + named),
        inputs=_tuple(inputs),
        attributes=_tuple(named),
        call=f"result(*{call})" if result else call,
    )


def _tuple(names: list[str]) -> str:
    return f"({', '.join(names)}{',' if len(names) == 1 else ''})"


def _renamed_call(
    name: str, attributes: tuple[Attribute, ...], call: Callable[[], Callable[..., Any]]
) -> Callable[..., Any]:
    """Return a function that renames old names of attributes and calls the op; it is given all attributes."""
    absent = {attribute.name: attribute.default for attribute in attributes if not attribute.required}

    def call_renamed(inputs: tuple[Any, ...], given: dict[str, Any]) -> Any:
        chosen = {key: value for key, value in given.items() if value is not absent.get(key, _UNSET)}
        return call()(*inputs, **renamed_arguments(name, chosen))

    return call_renamed


def _checker(name: str, signature: Signature, attributes: tuple[Attribute, ...]) -> Callable[..., Any]:
    """Return the slow form of the check: of attributes, then of inputs; it returns the arguments of the body."""

    inputs = [argument.name for argument in signature.input_arguments]

    def check(
        values: tuple[Any, ...], given: tuple[Any, ...], extra: tuple[Any, ...], unknown: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        try:
            check_names(name, signature, "argument", unknown, [*inputs, *(one.name for one in attributes)])
            if extra:
                raise too_many_inputs(len(values) + len(extra), inputs, attributes)
            for input, value in zip(inputs, values, strict=True):
                if value is _UNSET:
                    raise missing_input(input, name)
            for attribute, value in zip(attributes, given, strict=True):
                if value is _UNSET:
                    raise OpTypeError(
                        f"{attribute.name} is missing", advice=f"{attribute.name}={attribute.expected}"
                    )
            checked = [attribute.check(value) for attribute, value in zip(attributes, given, strict=True)]
            known = {attribute.name: value for attribute, value in zip(attributes, checked, strict=True)}
            bound = bind(signature, signature.grouped(values), known)
            return (*_ungroup(signature, bound), *checked)
        except SeqflowError as error:  # a short traceback: frames of the check do not help the caller
            raise name_op(name, signature, error).with_traceback(None) from None

    return check


def _ungroup(signature: Signature, bound: tuple[Any, ...]) -> list[Any]:
    """Undo `Signature.grouped`: the repetitions of a group become one list for each of its arguments."""
    arguments: list[Any] = []
    for item, value in zip(signature.inputs, bound, strict=True):
        if isinstance(item, Repeated):
            arguments += [list(column) for column in zip(*value, strict=True)]
        else:
            arguments.append(value)
    return arguments
