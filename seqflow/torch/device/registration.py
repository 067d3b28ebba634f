"""`@implements("lengths_sum")`: registration of implementations, checks of their inputs, and forms of results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from seqflow import registry
from seqflow.errors import LodError, OpError, OpTypeError, SeqflowError
from seqflow.kernels import KernelError
from seqflow.registry import OpDef
from seqflow.registry.errors import explain, name_op
from seqflow.signature import Argument, Repeated, bind
from seqflow.signature.language import POINTING, AtLeast, Max, Sum, flatten
from seqflow.torch.device.checks import check
from seqflow.torch.dtypes import numpy_dtype

UNSIGNED = (torch.uint16, torch.uint32, torch.uint64)
"""dtypes that torch stores but does not compute with: allowed for lengths and indices, which become int64."""

Result = Tensor | list[Tensor]
Body = TypeVar("Body", bound=Callable[..., Any])


@dataclass(frozen=True)
class Implementation:
    """Op in torch's own functions: call it with all inputs by position, and attributes by name."""

    name: str
    body: Callable[..., Any]
    """Takes checked inputs, with integers as int64, and all attributes; returns a tensor or a tuple."""
    syncs: str
    """Values that the host waits for if the tensors are on another device; empty if there are none."""
    keeps_bfloat16: bool = False
    """Whether the body takes bfloat16 as it is."""

    @cached_property
    def op(self) -> OpDef:
        return registry.get(self.name)

    def __call__(self, *inputs: Any, **attributes: Any) -> Tensor | tuple[Result, ...]:
        try:
            completed = self._attributes(attributes)
            given = self._inputs(inputs)
            _check_inputs(self.op, given, completed)
            found = self.body(*[self._prepared(*pair) for pair in self._pairs(given)], **completed)
        except KernelError as error:
            raise explain(self.name, self.op.signature, error) from None
        except SeqflowError as error:
            raise name_op(self.name, self.op.signature, error) from None
        if isinstance(found, tuple):
            wide = self.op.signature.wide
            return tuple(_apart(one, given, i in wide) for i, one in enumerate(found))
        made = _apart(found, given)
        return (made,) if isinstance(made, list) else made

    def _attributes(self, attributes: Mapping[str, Any]) -> dict[str, Any]:
        """Return all attributes, checked; `out` is not among them, for results are new tensors."""
        completed = self.op.complete(self.op.check_attributes(attributes))
        if completed.pop("out", None) is not None:
            raise OpError("out is given, but results on tensors are new ones: leave it out")
        return completed

    def _inputs(self, inputs: Sequence[Any]) -> list[Any]:
        arguments = self.op.signature.input_arguments
        if len(inputs) > len(arguments):
            expected = ", ".join(argument.name for argument in arguments)
            raise OpTypeError(f"found {len(inputs)} inputs, expected {expected}")
        return [*inputs, *[None] * (len(arguments) - len(inputs))]

    def _pairs(self, given: Sequence[Any]) -> Iterator[tuple[Argument, Any]]:
        return zip(self.op.signature.input_arguments, given, strict=True)

    def _prepared(self, argument: Argument, value: Any) -> Any:
        """Return integers that describe or point at rows as int64, and bfloat16 as float32."""
        if value is None:
            return None
        if isinstance(value, (list, tuple)):
            return [self._prepared(argument, one) for one in value]
        if argument.is_lengths or argument.dtype.word in ("int", *POINTING):
            return value.detach().long()
        return value.float() if value.dtype is torch.bfloat16 and not self.keeps_bfloat16 else value


IMPLEMENTED: dict[str, Implementation] = {}


def implements(name: str, *, syncs: str = "", keeps_bfloat16: bool = False) -> Callable[[Body], Body]:
    """Register the second implementation of an op. `syncs` names the values that the host must wait for."""

    def register(body: Body) -> Body:
        IMPLEMENTED[name] = Implementation(name, body, syncs, keeps_bfloat16)
        return body

    return register


# Inputs


def _check_inputs(op: OpDef, given: Sequence[Any], attributes: Mapping[str, Any]) -> None:
    """Raise the errors of the op on arrays for dtypes, ranks, sizes and lengths, and OpError for several devices."""
    arguments = op.signature.input_arguments
    devices: dict[torch.device, str] = {}
    for argument, value in zip(arguments, given, strict=True):
        for one in (
            [value] if argument.name not in op.signature.listed and value is not None else _each(value)
        ):
            if not isinstance(one, Tensor):
                raise OpTypeError(f"{argument.name} is {type(one).__name__}, expected a tensor")
            devices.setdefault(one.device, argument.name)
            if one.dtype in UNSIGNED and not (
                argument.is_lengths or argument.dtype.word in ("int", *POINTING)
            ):
                raise OpTypeError(f"{argument.name} is {one.dtype}, with which torch does not compute")
    if len(devices) > 1:
        found = ", ".join(f"{name} is on {device}" for device, name in devices.items())
        raise OpError(f"{found}, expected one device")
    stand_ins = _StandIns(op, given)
    bind(op.signature, stand_ins.grouped(), attributes)
    if next(iter(devices)).type not in ("cpu", "meta"):
        stand_ins.check_lengths()


def _each(value: Any) -> Sequence[Any]:
    if isinstance(value, (list, tuple)):
        return value
    return () if value is None else (value,)


class _StandIns:
    """Arrays in place of tensors, with the same dtypes and shapes, to bind the signature to.

    On the CPU they share the memory of the tensors. For other devices they have no data, and lengths are any numbers
    that add up to the rows, so that the host does not wait for the real ones.
    """

    def __init__(self, op: OpDef, given: Sequence[Any]) -> None:
        self.items = op.signature.inputs
        self.values = {
            argument.name: value for argument, value in zip(op.signature.input_arguments, given, strict=True)
        }

    def grouped(self) -> list[Any]:
        """Return the arrays as `bind` takes them: those of a repetition together."""
        found: list[Any] = []
        for item in self.items:
            if isinstance(item, Repeated):
                found.append([self._listed(argument) for argument in item.arguments])
            else:
                value = self.values[item.name]
                found.append(None if value is None else self._array(item, value, None))
        return found

    def check_lengths(self) -> None:
        """Check, on another device, that the lengths are not negative and add up to the rows they describe."""
        for argument, value, i in self._lengths():
            total = self._total(argument.name, i)
            sound = (value >= 0).all()
            if total is not None:
                sound &= value.sum(dtype=torch.int64) == total
            for room in self._rooms(argument.name):
                sound &= (value <= room).all()
            check(sound, partial(LodError, f"{argument.name} are negative, or do not fit what they describe"))

    def _lengths(self) -> Iterator[tuple[Argument, Tensor, int | None]]:
        for item in self.items:
            group = item.arguments if isinstance(item, Repeated) else (item,)
            for argument in group:
                value = self.values[argument.name]
                if argument.is_lengths and value is not None:
                    many = isinstance(item, Repeated)
                    yield from ((argument, one, i if many else None) for i, one in enumerate(_each(value)))

    def _listed(self, argument: Argument) -> Any:
        value = self.values[argument.name]
        if not isinstance(value, (list, tuple)):
            return value
        return [self._array(argument, one, i) for i, one in enumerate(value)]

    def _array(self, argument: Argument, tensor: Tensor, i: int | None) -> np.ndarray[Any, Any]:
        dtype = torch.float32 if tensor.dtype is torch.bfloat16 else tensor.dtype
        if tensor.is_cpu:
            return np.asarray(tensor.detach().to(dtype).numpy())
        if argument.is_lengths and tensor.ndim == 1:
            return _adding_up(len(tensor), self._total(argument.name, i) or 0).astype(numpy_dtype(dtype))
        return np.broadcast_to(np.zeros((), numpy_dtype(dtype)), tuple(tensor.shape))

    def _total(self, lengths: str, i: int | None) -> int | None:
        """Return the size of an axis that these lengths divide; None if the input has too few axes or tensors."""
        for argument in flatten(self.items):
            for value in _each(self.values[argument.name])[slice(i, None if i is None else i + 1)][:1]:
                for dim, key, _, _ in argument.axes:
                    if dim == Sum(lengths) and isinstance(key, int) and -value.ndim <= key < value.ndim:
                        return int(value.shape[key])
        return None

    def _rooms(self, lengths: str) -> Iterator[int]:
        """Yield the sizes of axes that no length exceeds."""
        for argument in (one for one in self.items if isinstance(one, Argument)):
            for dim, key, _, _ in argument.axes:
                if isinstance(dim, AtLeast) and dim.bound == Max(lengths) and isinstance(key, int):
                    yield int(self.values[argument.name].shape[key])


def _adding_up(count: int, total: int) -> np.ndarray[Any, Any]:
    """Return `count` lengths that add up to a total, as equal as possible."""
    if not count:
        return np.zeros(0, np.int64)
    return total // count + (np.arange(count) < total % count)


# Results


def _apart(found: Any, given: Sequence[Any], wide: bool = False) -> Result:
    """Return the result in its own memory; float32 becomes bfloat16 if an input is bfloat16, unless it is `wide`."""
    tensors = [one for value in given for one in _each(value)]
    if isinstance(found, list):
        return [_own(one, tensors) for one in found]
    return _own(found, tensors, wide)


def _own(found: Tensor, tensors: Sequence[Tensor], wide: bool = False) -> Tensor:
    if found.dtype is torch.float32 and not wide and any(one.dtype is torch.bfloat16 for one in tensors):
        return found.bfloat16()
    # by storage, not data_ptr(): views of one tensor start at different addresses, and empty ones at 0
    memory = found.untyped_storage()._cdata
    shared = any(one.untyped_storage()._cdata == memory for one in tensors)
    return found.clone() if shared else found
