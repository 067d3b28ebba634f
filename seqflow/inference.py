"""What an op makes of specs: dtypes, shapes and rows of its results, before there is data."""

from collections.abc import Mapping, Sequence
from typing import Any

from seqflow.registry import Inference, OpDef
from seqflow.shape import Dimension, Equalities, InferenceContext
from seqflow.signature import Described
from seqflow.signature.specs import Names, Specs, bind_specs
from seqflow.tensor import TensorSpec


def infer(
    op: OpDef,
    specs: Specs,
    attributes: Mapping[str, Any],
    values: Mapping[str, Any],
    names: Names | None,
    results: Sequence[str] | None,
    equalities: Equalities | None,
) -> Inference:
    """The outputs' specs: as the signature says, and then as the op's shape function does."""
    known = equalities if equalities is not None else Equalities()
    given = op.complete(attributes)
    called = names if names is not None else _own_names(specs)
    tensors = [f"{op.name}.{name}" for name in op.result_names(given)] if results is None else list(results)
    with known.staged():
        if op.same is not None:
            _unify(op, op.same, specs, called, known)
        outputs, guards = bind_specs(
            op.signature, specs, attributes=given, names=called, results=tensors, equalities=known
        )
    if op.shape is None:
        return Inference(outputs, guards)
    context = _context(op, specs, given, values, outputs, known)
    context.tensors = _tensors(called) | dict(zip(op.tensor_names(given), tensors, strict=True))
    found = [TensorSpec(one.dtype, one.shape, one.rows) for one in context.run(op.shape)]
    requested = context.requested_tensors | context.requested_shapes
    return Inference(found, guards + context.guards, frozenset(requested))


def _own_names(specs: Specs) -> Names:
    """The signature's own names; those in lists are numbered."""
    return {
        name: [f"{name}[{i}]" for i in range(len(spec))] if isinstance(spec, (list, tuple)) else name
        for name, spec in specs.items()
    }


def _context(
    op: OpDef,
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
        op.name,
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


def _unify(op: OpDef, same: tuple[str, str], specs: Specs, names: Names, known: Equalities) -> None:
    """Take two lengths tensors to have the same values, two others to have the same rows."""
    if not all(argument.is_lengths for argument in op.signature.input_arguments):
        spaces = [spec.rows for name in same if isinstance(spec := specs[name], TensorSpec)]
        if len(spaces) == 2 and None not in spaces:
            known.unify_rows(*spaces)
        return
    one, other = (str(names[name]) for name in same)
    known.unify_rows(Described(one), Described(other))
    known.equate(Dimension.sum_of(one), Dimension.sum_of(other), op.name)
    known.equate(Dimension.max_of(one), Dimension.max_of(other), op.name)
