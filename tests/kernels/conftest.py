"""Every test of a kernel runs on every kind of it there is here: NumPy and each instruction set."""

import pytest

from seqflow import kernels

NATIVE = kernels.isas()


@pytest.fixture(params=["reference", *NATIVE])
def any_kernels(request):
    with kernels.use(request.param):
        yield request.param


@pytest.fixture(
    params=NATIVE or [pytest.param(None, marks=pytest.mark.skip("native kernels were not built"))]
)
def native(request):
    """The native kernels, with one of the instruction sets of this machine."""
    with kernels.use(request.param):
        yield kernels


@pytest.fixture
def two_threads():
    """Calls may use two threads, whatever the number of cores."""
    before = kernels.num_threads()
    kernels.set_num_threads(2)
    yield
    kernels.set_num_threads(before)
