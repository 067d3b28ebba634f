"""Fake kernels: ops by inference, for tensors without data or with symbolic sizes."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from seqflow.registry import OpDef
from seqflow.registry.inference import CallOfSpecs, infer
from seqflow.shape import PartialShape
from seqflow.shape.guards import Guard
from seqflow.signature import Repeated
from seqflow.tensor import TensorSpec
from seqflow.torch.dtypes import numpy_dtype, torch_dtype
from seqflow.torch.ops.schemas import attributes_of
from seqflow.torch.ops.sizes import Evaluation, Size, Symbols, check_equal, remember, remembered


def fake_kernel(op: OpDef) -> Callable[..., Any]:
    """Return the op on tensors without data."""
    names = [one.name for one in op.signature.input_arguments]

    def fake(*tensors: Any, **given: Any) -> Any:
        inputs: dict[str, Any] = {
            name: list(one) if isinstance(one, (list, tuple)) else one
            for name, one in zip(names, tensors, strict=False)
            if one is not None
        }
        total = given.pop("total", None) if op.takes_total else None
        if total is not None and remembered(inputs["lengths"], "sum") is None:
            remember(inputs["lengths"], "sum", total)
        attributes = _attributes(op, given)
        return _Call(op, inputs, attributes).results()

    return fake


def _attributes(op: OpDef, given: Mapping[str, Any]) -> dict[str, Any]:
    known = {one.name: one for one in attributes_of(op)}
    found = dict(op.defaults)
    for name, value in given.items():
        if value is None and not known[name].required:
            continue
        found[name] = numpy_dtype(value) if known[name].kind == "dtype" else known[name].check(value)
    return found


class _Call:
    """Call of an op on fake tensors."""

    def __init__(self, op: OpDef, inputs: Mapping[str, Any], attributes: Mapping[str, Any]) -> None:
        self.op = op
        self.inputs = inputs
        self.attributes = attributes
        self.flat = _flat(inputs)
        self.symbols = Symbols()

    def results(self) -> Any:
        inferred = self._infer(self.symbols.shape)
        # a rank may depend on a size, which is then guarded: `int` makes torch compile for this size alone
        if any(one.shape.dimensions is None for one in inferred.outputs):
            inferred = self._infer(lambda tensor: PartialShape([int(size) for size in tensor.shape]))
        evaluation = Evaluation(self.symbols, self.flat, _new_size)
        for guard in inferred.guards:
            if isinstance(guard, Guard):
                self._assume(guard, evaluation)
        wide = self.op.signature.wide
        outputs = [self._tensor(spec, evaluation, i in wide) for i, spec in enumerate(inferred.outputs)]
        for name, tensor in zip(self.op.result_names(self.attributes), outputs, strict=True):
            for what, size in evaluation.of_output(f"{self.op.name}.{name}").items():
                remember(tensor, what, size)
        return self._grouped(outputs)

    def _infer(self, shape_of: Callable[[Tensor], PartialShape]) -> Any:
        def spec(tensor: Tensor) -> TensorSpec:
            return TensorSpec(numpy_dtype(tensor.dtype), shape_of(tensor))

        specs = {
            name: [spec(one) for one in value] if isinstance(value, list) else spec(value)
            for name, value in self.inputs.items()
        }
        return infer(CallOfSpecs.alone(self.op, specs, self.attributes))

    def _assume(self, guard: Guard, evaluation: Evaluation) -> None:
        """Record the sizes that inference assumed to be equal: from now on a sum of lengths is a number of rows."""
        for left, right in guard.pairs():
            for one, other in ((left, right), (right, left)):
                missing = evaluation.missing_alone(one)
                if missing is not None and (size := evaluation.known(other)) is not None:
                    remember(*missing, size)
                    break
            else:
                check_equal([evaluation.size(left)], [evaluation.size(right)], f"{self.op.name}: {guard}")

    def _tensor(self, spec: TensorSpec, evaluation: Evaluation, wide: bool) -> Tensor:
        first = next(iter(self.flat.values()))
        dtype = torch_dtype(spec.dtype)
        narrow = not wide and any(one.dtype is torch.bfloat16 for one in self.flat.values())
        if dtype is torch.float32 and narrow:
            dtype = torch.bfloat16
        return torch.empty(evaluation.shape(spec.shape), dtype=dtype, device=first.device)

    def _grouped(self, outputs: list[Tensor]) -> Any:
        """Return the outputs as the op returns them: one, or a tuple; lists as lists."""
        if not outputs and not self.op.output_names:
            return None
        remaining = iter(outputs)
        found: list[Any] = []
        for item in self.op.signature.outputs:
            if isinstance(item, Repeated):
                count = item.length(self.attributes)
                found += [[next(remaining) for _ in range(count)] for _ in item.arguments]
            else:
                found.append(next(remaining))
        return found[0] if len(found) == 1 else tuple(found)


def _flat(inputs: Mapping[str, Any]) -> dict[str, Tensor]:
    """Return the input tensors by the names that inference gives them: `data`, `data[1]`."""
    found: dict[str, Tensor] = {}
    for name, value in inputs.items():
        found |= (
            {f"{name}[{i}]": one for i, one in enumerate(value)} if isinstance(value, list) else {name: value}
        )
    return found


def _new_size(min: int = 0, max: int | None = None) -> Size:
    """Return a new size that depends on data."""
    return torch.library.get_ctx().new_dynamic_size(min=min, max=max)
