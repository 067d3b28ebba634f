"""A net as a module of torch that trains, compiles and exports, and converts back to a net.

torch's functions repeat rows, and take any lengths that fit. So the rows of each tensor are inferred, once for each
structure of a batch, as the executor does for arrays, and what inference assumes is checked in each call.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seqflow.arguments import checked
from seqflow.errors import LodError, NetError, SeqflowError, nearest
from seqflow.executor import PLAIN, UNKNOWN, check_guard, step_guards
from seqflow.net import Net, Step
from seqflow.record.record import parents_by_name
from seqflow.shape import Guard, SameLengths
from seqflow.torch.compiler import constant_when_traced, known_sizes
from seqflow.torch.dtypes import numpy_dtype, to_array, to_tensor
from seqflow.torch.ops.eager import is_eager
from seqflow.torch.ops.net_functions import Check, net_function
from seqflow.torch.ops.registration import call_of

Run = Callable[..., tuple[Tensor, ...]]
_UNSAID = ""
"""Parent of a tensor of a dict whose rows are not known."""
_TRACED = "_traced_run_of_"
Sizes = tuple[int | None, ...]
Structure = tuple[tuple[str | None, torch.dtype, Sizes], ...]
"""Parent, dtype and sizes of each tensor that a batch must have; None for a size of 2 or more."""


class NetModule(nn.Module):
    """Module made of a net by `module`.

    Its parameters and buffers have the names of the net's tensors, with `_` in place of dots. A name that modules use
    for something else gets a `_` at the end: `training_`.
    """

    def __init__(self, net: Net, parameters: Mapping[str, Any], buffers: Mapping[str, Any]) -> None:
        super().__init__()
        self.net = Net(net.text, folder=net.folder)
        self.inputs = tuple(name for name in self.net.inputs if name not in {*parameters, *buffers})
        """Tensors that a batch must have."""
        self.outputs = self.net.outputs()
        """Tensors that `forward` returns."""
        self._attributes: dict[str, str] = {}
        """Attributes of the module, by the names of the net's tensors."""
        for name, value in parameters.items():
            tensor = _owned(value)
            if not tensor.is_floating_point():
                raise NetError(
                    f"module: the parameter {name!r} is {tensor.dtype}, expected floats: make it a buffer"
                )
            self.register_parameter(self._attribute(name), nn.Parameter(tensor))
        for name, value in buffers.items():
            self.register_buffer(self._attribute(name), _owned(value))
        known = _said_parents(dict.fromkeys(self.inputs))
        is_whole = not any(
            by == _UNSAID and {"values", "keys"} & {*name.split(".")} for name, by in known.items()
        )
        self._parents = known if is_whole else None
        """Lengths that describe the rows of each input, by its name; None if other tensors of a batch may do so."""
        self._runs: dict[Structure, Run | None] = {}
        """The net as a function, for each structure of a batch; None for one whose sizes inference needs."""

    def _attribute(self, name: str) -> str:
        attribute = name.replace(".", "_")
        if attribute in self._attributes.values():
            raise NetError(f"module: two tensors would be called {attribute}, one of them {name!r}")
        if hasattr(self, attribute):
            attribute += "_"
        self._attributes[name] = attribute
        return attribute

    def forward(self, batch: Mapping[str, Any]) -> dict[str, Tensor]:
        """Return the outputs of the net by name, for a batch: a record, or tensors or arrays by name.

        Raises NetError for an input that the batch does not have, and for a batch that is not a mapping; LodError
        and ShapeError for rows that do not belong together, with the statement and the names of the tensors, as
        `sf.run` does. In a batch of a loader all columns have the same rows. In a dict only `x.values` and
        `x.lengths` are known to belong together; other tensors take the rows that they are first combined with.
        """
        if not hasattr(batch, "keys"):
            raise NetError(
                f"module: the batch is {type(batch).__name__}, expected tensors by name: {{name: tensor}}"
            )
        given = {name: self._input(batch, name) for name in self.inputs}
        parents = getattr(batch, "parents", None) or self._parents or _said_parents(batch)
        is_compiling = torch.compiler.is_compiling()
        sizes_of = known_sizes if is_compiling else _small_sizes
        structure = tuple(
            [(parents.get(name, _UNSAID), one.dtype, sizes_of(one)) for name, one in given.items()]
        )
        if is_compiling:
            run = getattr(self, self._traced_run(structure))
        else:
            run = self._runs.get(structure) or self._run_for(structure, given)
        held = self._attributes
        tensors = [getattr(self, held[name]) if name in held else given[name] for name in self.net.inputs]
        return dict(zip(self.outputs, run(*tensors), strict=True))

    def _run_for(self, structure: Structure, given: Mapping[str, Tensor]) -> Run:
        """Return the net as a function of tensors of this structure, or of these sizes if inference needs them."""
        if structure not in self._runs:
            try:
                run = self._runs[structure] = self._checked_run(structure)
                return run
            except SeqflowError:
                self._runs[structure] = None
        sized = tuple(
            [
                (parent, dtype, (*sizes[:1], *given[name].shape[1:]))
                for name, (parent, dtype, sizes) in zip(given, structure, strict=True)
            ]
        )
        known = self._runs.get(sized)
        if known is None:
            known = self._runs[sized] = self._checked_run(sized)
        return known

    @constant_when_traced
    def _traced_run(self, structure: Structure) -> str:
        """Return the attribute that has the net as a function to compile, without checks if inference needs sizes."""
        # an attribute for each structure, since a program is compiled again when a dict that it has read changes
        name = f"{_TRACED}{str(structure).encode().hex()}"  # a name of Python
        try:
            vars(self)[name] = self._checked_run(structure)
        except LodError:
            raise
        except SeqflowError:
            vars(self)[name] = net_function(self.net, call_of)
        return name

    def _checked_run(self, structure: Structure) -> Run:
        """Return the net as a function, with the checks of what inference assumes; raise the errors of inference."""
        entries: list[tuple[str, Any, int, Any, Sizes]] = []
        for name, attribute in self._attributes.items():
            one = getattr(self, attribute)
            entries.append((name, numpy_dtype(one.dtype), one.ndim, PLAIN, tuple(one.shape)))
        for name, (parent, dtype, sizes) in zip(self.inputs, structure, strict=True):
            rows = sizes[:1] if parent == _UNSAID else (None,) * len(sizes[:1])
            by = UNKNOWN if parent == _UNSAID else parent
            entries.append((name, numpy_dtype(dtype), len(sizes), by, (*rows, *sizes[1:])))
        known = {*self.net.inputs}
        checks: dict[int, tuple[list[Check], list[Check]]] = {}
        for number, (step, guards) in enumerate(
            zip(self.net.steps, step_guards(self.net, tuple(entries)), strict=True)
        ):
            before = [_check_of(guard, step, known) for guard in guards.before]
            known |= {*step.results} - {"_"}
            checks[number] = before, [_check_of(guard, step, known) for guard in guards.after]
        return net_function(self.net, call_of, checks=checks)

    def _input(self, batch: Mapping[str, Any], name: str) -> Tensor:
        if name not in batch:
            raise NetError(f"module: the batch has no {name!r}{nearest(name, batch)}, which the net takes")
        value = batch[name]
        return value if isinstance(value, Tensor) else to_tensor(np.asarray(value))

    def to_net(self) -> Net:
        """Return the net with the current values of parameters and buffers as its constants, for jobs and NumPy."""
        values = {name: getattr(self, attribute) for name, attribute in self._attributes.items()}
        return self.net.bind(**{name: to_array(value.cpu()).copy() for name, value in values.items()})

    def extra_repr(self) -> str:
        return str(self.net)

    def __getstate__(self) -> dict[str, Any]:
        # functions of generated source do not pickle
        return {name: one for name, one in vars(self).items() if not name.startswith(_TRACED)} | {"_runs": {}}


@checked()
def module(
    net: Net | str, *, parameters: Mapping[str, Any] | None = None, buffers: Mapping[str, Any] | None = None
) -> NetModule:
    """Return a net as an `nn.Module`: `forward` takes a batch, tensors by name, and returns the outputs by name.

    `state_dict` has both. `to_net()` returns the net with the trained values as constants.

    Random ops depend only on their seed: `dropout(x, seed=1)` drops the same elements in each call, also in
    `eval()`. Use `nn.Dropout` between two nets instead.

    Args:
        net: Net, or its text.
        parameters: Tensors of the net to train, with their initial values (tensors or arrays).
        buffers: Tensors with fixed values; the other constants of the net are also buffers.

    Raises NetError for names that are not inputs or constants of the net, and OpError for ops that torch
    cannot express.

    >>> import torch
    >>> model = module("y = fc(x, w)", parameters={"w": torch.ones(1, 2)})
    >>> model({"x": torch.ones(1, 2)})["y"]
    tensor([[2.]], grad_fn=<GeneratedBackwardFor_seqflow_fc_defaultBackward>)
    """
    net = Net(net) if isinstance(net, str) else net
    trained, fixed = dict(parameters or {}), dict(buffers or {})
    known = {*net.inputs, *net.constants}
    for name in (*trained, *fixed):
        if name not in known:
            raise NetError(f"module: the net takes no {name!r}{nearest(name, known)}")
    twice = next((name for name in trained if name in fixed), None)
    if twice is not None:
        raise NetError(f"module: {twice!r} is a parameter and a buffer, expected one of both")
    constants = {name: value for name, value in net.constants.items() if name not in trained | fixed}
    return NetModule(net, trained, constants | fixed)


def _said_parents(batch: Mapping[str, Any]) -> dict[str, str | None]:
    """Return the lengths that describe the rows of each tensor of a dict, by its name."""
    return {name: by or _UNSAID for name, by in parents_by_name(batch).items()}


def _small_sizes(tensor: Tensor) -> Sizes:
    """Return the sizes below 2, which may be repeated; None for others."""
    return tuple([size if size < 2 else None for size in tensor.shape])


def _check_of(guard: Guard | SameLengths, step: Step, known: set[str]) -> Check:
    """Return a check of what inference assumed; of tensors on other devices, only lengths to compare are read."""
    same_lengths = call_of("same_lengths") if isinstance(guard, SameLengths) else None
    compared = 0 if same_lengths is None else 2
    names = [name for name in dict.fromkeys([*guard.tensors(), *step.uses]) if name in known]

    def check(*tensors: Tensor) -> None:
        if not is_eager():
            if same_lengths is not None:
                same_lengths(*tensors[:2])
        elif not tensors[0].is_meta:
            seen: list[Any] = [
                to_array(one.cpu()) if one.is_cpu or i < compared else one for i, one in enumerate(tensors)
            ]
            check_guard(guard, step, dict(zip(names, seen, strict=True)))

    return names, check


def _owned(value: Any) -> Tensor:
    """Return a new tensor with the values of a tensor or an array."""
    return value.detach().clone() if isinstance(value, Tensor) else torch.tensor(np.asarray(value))
