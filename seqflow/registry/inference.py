"""What an op makes of specs: dtypes, shapes and rows of its results, before there is data."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from seqflow.shape import Dimension, Equalities, Guard, InferenceContext
from seqflow.signature import Described, Signature
from seqflow.signature.specs import Names, Specs, bind_specs
from seqflow.tensor import TensorSpec


class Inference(NamedTuple):
    """What inference says of one call."""

    outputs: list[TensorSpec]
    guards: list[Guard]
    """Sizes that were taken to be equal without proof."""
    requested: frozenset[str] = frozenset()
    """Inputs whose values, were they known, would say more of the outputs' shapes."""


def infer(
    op_name: str,
    signature: Signature,
    specs: Specs,
    attributes: Mapping[str, Any],
    *,
    same: tuple[str, str] | None,
    shape: Callable[[InferenceContext], None] | None,
    values: Mapping[str, Any],
    names: Names | None,
    results: Sequence[str] | None,
    equalities: Equalities | None,
) -> Inference:
    """The outputs' specs: as the signature says, and then as the op's shape function does.

    `attributes` are all attributes; `same` and `shape` are what `OpDef` says, and the rest what `OpDef.infer` does.
    """
    known = equalities if equalities is not None else Equalities()
    called = names if names is not None else _own_names(specs)
    tensor_names = signature.tensor_names(attributes)
    called_outputs = [f"{op_name}.{name}" for name in signature.result_names(attributes)]
    tensors = called_outputs if results is None else list(results)
    with known.staged():
        if same is not None:
            _unify(op_name, signature, same, specs, called, known)
        outputs, guards = bind_specs(
            signature, specs, attributes=attributes, names=called, results=tensors, equalities=known
        )
    if shape is None:
        return Inference(outputs, guards)
    context = _context(op_name, specs, attributes, values, outputs, known)
    context.tensors = _tensors(called) | dict(zip(tensor_names, tensors, strict=True))
    found = [TensorSpec(one.dtype, one.shape, one.rows) for one in context.run(shape)]
    requested = context.requested_tensors | context.requested_shapes
    return Inference(found, guards + context.guards, frozenset(requested))


def _own_names(specs: Specs) -> Names:
    """The signature's own names; those in lists are numbered."""
    return {
        name: [f"{name}[{i}]" for i in range(len(spec))] if isinstance(spec, (list, tuple)) else name
        for name, spec in specs.items()
    }


def _context(
    op_name: str,
    specs: Specs,
    attributes: Mapping[str, Any],
    values: Mapping[str, Any],
    outputs: list[TensorSpec],
    equalities: Equalities,
) -> InferenceContext:
    """What the shape function sees: the inputs, and the outputs as far as the signature tells."""
    shapes: dict[str, Any] = {}
    rows: dict[int | str, Any] = {}
    dtypes: dict[int | str, Any] = {}
    for name, spec in specs.items():
        if isinstance(spec, TensorSpec):
            shapes[name], rows[name], dtypes[name] = spec.shape, spec.rows, spec.dtype
        else:
            shapes[name] = [one.shape for one in spec]
            rows[name], dtypes[name] = [one.rows for one in spec], [one.dtype for one in spec]
    context = InferenceContext(
        op_name,
        shapes,
        attributes=attributes,
        input_values={name: values[name] for name in values if name in specs},
        rows=rows,
        dtypes=dtypes,
        equalities=equalities,
        num_outputs=len(outputs),
    )
    for i, spec in enumerate(outputs):
        context.set_output(i, spec.shape, rows=spec.rows, dtype=spec.dtype)
    return context


def _tensors(called: Names) -> dict[str, str]:
    """The tensors that inputs are; those of a list under `xs[0]`, `xs[1]`."""
    found: dict[str, str] = {}
    for name, given in called.items():
        if isinstance(given, str):
            found[name] = given
        else:
            found |= {f"{name}[{i}]": tensor for i, tensor in enumerate(given)}
    return found


def _unify(
    op_name: str,
    signature: Signature,
    same: tuple[str, str],
    specs: Specs,
    names: Names,
    known: Equalities,
) -> None:
    """Take two lengths tensors to have the same values, two others to have the same rows."""
    if not all(argument.is_lengths for argument in signature.input_arguments):
        spaces = [spec.rows for name in same if isinstance(spec := specs[name], TensorSpec)]
        if len(spaces) == 2 and None not in spaces:
            known.unify_rows(*spaces)
        return
    one, other = (str(names[name]) for name in same)
    known.unify_rows(Described(one), Described(other))
    known.equate(Dimension.sum_of(one), Dimension.sum_of(other), op_name)
    known.equate(Dimension.max_of(one), Dimension.max_of(other), op_name)
