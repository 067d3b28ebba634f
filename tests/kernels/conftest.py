"""Every test of a kernel runs on every kind of it there is here."""

import kernel_sets
import pytest

from seqflow import kernels


@pytest.fixture(params=kernel_sets.ALL)
def any_kernels(request):
    with kernels.use(request.param):
        yield request.param


@pytest.fixture(
    params=kernel_sets.NATIVE or [pytest.param(None, marks=pytest.mark.skip("native kernels were not built"))]
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
