"""Kernels: each has a reference function in NumPy, which defines it, and a native one in C++, for speed.

`data`, `table`, `source` and `padded` are arrays of any dtype with at least one axis; non-contiguous and read-only
ones are fine. `lengths` are one-dimensional and, like `indices`, of any integer dtype. Results are new C-contiguous
arrays, unless `out` is given: a writable C-contiguous array of exactly the result's shape and dtype. Invalid input
raises KernelError, with its position; after an error, `out` may be partly written.

Native kernels are used if they were built, with the best compiled instruction set that the processor has. The
environment variable SEQFLOW_KERNELS changes that: `reference` selects NumPy; `baseline`, `avx2` or `avx512` select
the native kernels with that instruction set. SEQFLOW_ISAS selects the sets that are compiled at installation.

To add a kernel: write it in NumPy in the file of its family, with `@kernel`, and add it to `__all__`; write its loop
in the folder of its family in cpp/, and a function of the same name and parameters in cpp/bindings/<family>.cpp.
Then build.
`.ci/add_kernel.patch` is an example.
"""

# ruff: noqa: F403

from seqflow.kernels.arrays import check_out, mean_dtype, sum_dtype
from seqflow.kernels.assigning import *
from seqflow.kernels.attention import *
from seqflow.kernels.bucketing import *
from seqflow.kernels.discounting import *
from seqflow.kernels.dispatch import (
    KERNELS,
    empty_bytes,
    info,
    isas,
    kept_memory,
    num_threads,
    set_kept_memory,
    set_num_threads,
    single_thread,
    use,
)
from seqflow.kernels.error import KernelError
from seqflow.kernels.files.chunks import *
from seqflow.kernels.files.footers import *
from seqflow.kernels.files.line_columns import *
from seqflow.kernels.files.lines import *
from seqflow.kernels.groups import *
from seqflow.kernels.hashing import *
from seqflow.kernels.lengths import *
from seqflow.kernels.matching import *
from seqflow.kernels.matrices import *
from seqflow.kernels.moves import *
from seqflow.kernels.ordering import *
from seqflow.kernels.packing import *
from seqflow.kernels.padding import *
from seqflow.kernels.quantized import *
from seqflow.kernels.recurrent_cells.forward import *
from seqflow.kernels.reductions import *
from seqflow.kernels.scans import *
from seqflow.kernels.sharing import *
from seqflow.kernels.softmax import *
from seqflow.kernels.spreading import *
from seqflow.kernels.vocabulary import *

__all__ = [
    "KernelError",
    "check_out",
    "empty_bytes",
    "info",
    "isas",
    "kept_memory",
    "mean_dtype",
    "num_threads",
    "set_kept_memory",
    "set_num_threads",
    "single_thread",
    "sum_dtype",
    "use",
]
__all__.extend(KERNELS)
