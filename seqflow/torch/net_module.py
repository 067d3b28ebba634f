"""A net as a module of torch that trains, compiles and exports, and converts back to a net."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from seqflow.arguments import checked
from seqflow.errors import NetError, nearest
from seqflow.net import Net
from seqflow.torch.ops.dtypes import to_array, to_tensor
from seqflow.torch.ops.net_functions import net_function
from seqflow.torch.ops.registration import call_of


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
        self._run = net_function(self.net, call_of)

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

        Raises NetError for an input that the batch does not have, and for a batch that is not a mapping.
        """
        if not hasattr(batch, "keys"):
            raise NetError(
                f"module: the batch is {type(batch).__name__}, expected tensors by name: {{name: tensor}}"
            )
        held = self._attributes
        given = [
            getattr(self, held[name]) if name in held else self._input(batch, name)
            for name in self.net.inputs
        ]
        return dict(zip(self.outputs, self._run(*given), strict=True))

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
        # `_run` is compiled from generated source, which does not pickle; `__setstate__` makes it again
        return {name: value for name, value in self.__dict__.items() if name != "_run"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._run = net_function(self.net, call_of)


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


def _owned(value: Any) -> Tensor:
    """Return a new tensor with the values of a tensor or an array."""
    return value.detach().clone() if isinstance(value, Tensor) else torch.tensor(np.asarray(value))
