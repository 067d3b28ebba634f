"""Parameters of an op for Python's tools: `inspect.signature(ops.lstm)`."""

from collections.abc import Iterator
from inspect import Parameter
from inspect import Signature as PythonSignature

from seqflow.signature import Attribute, Repeated, Signature


class _Annotation(str):
    """Text of an annotation, shown without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def python_signature(
    signature: Signature, attributes: tuple[Attribute, ...], result: type | None, *, variadic: bool = False
) -> PythonSignature:
    """Return the Python signature: inputs by position, attributes by keyword, with annotations and defaults."""
    parameters = [*_inputs(signature, variadic), *map(_keyword, attributes)]
    return PythonSignature(parameters, return_annotation=_Annotation(_returned(signature, result)))


def _inputs(signature: Signature, variadic: bool) -> Iterator[Parameter]:
    for item in signature.inputs:
        for argument in item.arguments if isinstance(item, Repeated) else (item,):
            takes = "Sequence[ArrayLike]" if isinstance(item, Repeated) and not variadic else "ArrayLike"
            yield Parameter(
                argument.name,
                Parameter.VAR_POSITIONAL if variadic else Parameter.POSITIONAL_OR_KEYWORD,
                default=None if argument.optional else Parameter.empty,
                annotation=_Annotation(f"{takes}{' | None' if argument.optional else ''}"),
            )


def _keyword(attribute: Attribute) -> Parameter:
    annotation = _Annotation(attribute.annotation)
    return Parameter(attribute.name, Parameter.KEYWORD_ONLY, default=attribute.default, annotation=annotation)


def _returned(signature: Signature, result: type | None) -> str:
    if result is not None:
        return result.__name__
    outputs = ["list[ndarray]" if isinstance(item, Repeated) else "ndarray" for item in signature.outputs]
    return outputs[0] if outputs else "None"
