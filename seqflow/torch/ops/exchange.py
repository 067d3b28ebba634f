"""Arrays on the memory of tensors, and tensors on that of arrays, by one native call.

torch has functions for this, DLPack's exchange functions, since about 2.10. They take a tenth of the time of
`x.detach().numpy()`, which is most of a small call. The native functions decline what they do not know: another
device, layout or dtype, the negative bit, tensors without memory.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import Parameter

from seqflow.kernels.dispatch import extension


def _exchange() -> tuple[Callable[..., Any], ...]:
    functions, native = getattr(Tensor, "__dlpack_c_exchange_api__", None), extension()
    if functions is not None and native is not None and native.set_up_tensors(functions, Tensor, Parameter):
        return native.tensor_of_array, native.call_on_tensors
    return (lambda array: None), (lambda *call: NotImplemented)


tensor_of, call_on_tensors = _exchange()
"""`tensor_of`: a tensor on the memory of an array, or None.

`call_on_tensors`: a function of arrays on tensors; NotImplemented if they are not plain ones of the CPU. It takes the
function, another one of a result and the arrays, which converts a result that a tensor cannot share, the tensors, and
the attributes (None: none).
"""
