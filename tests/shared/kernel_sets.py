"""The kernels that tests run on: NumPy and the best instruction set of this machine; slow tests take each of the others."""

import pytest

from seqflow import kernels

*others, best = kernels.isas() or [None]
NATIVE = [*(pytest.param(isa, marks=pytest.mark.slow) for isa in others), *([best] if best else [])]
ALL = ["reference", *NATIVE]
