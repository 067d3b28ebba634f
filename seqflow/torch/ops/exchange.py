"""Arrays on the memory of tensors, and tensors on that of arrays, by one native call.

torch has functions for this, DLPack's exchange functions, since about 2.10. They take a tenth of the time of
`x.detach().numpy()`, which is most of a small call. The native functions decline what they do not know: another
device, layout or dtype, the negative bit, tensors without memory.
"""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from torch import Tensor
from torch.nn import Parameter

from seqflow.kernels.dispatch import extension


def _exchange() -> tuple[Callable[..., Any], Callable[..., Any]]:
    functions, native = getattr(Tensor, "__dlpack_c_exchange_api__", None), extension()
    if functions is None or native is None:
        return (lambda tensors: None), (lambda array: None)
    table = import_module("numpy._core._multiarray_umath")._ARRAY_API
    if not native.set_up_tensors(functions, table, Tensor, Parameter):
        return (lambda tensors: None), (lambda array: None)
    return native.arrays_of_tensors, native.tensor_of_array


arrays_of, tensor_of = _exchange()
"""`arrays_of`: arrays on the memory of a tuple of tensors; `tensor_of`: a tensor on that of an array. Or None."""
