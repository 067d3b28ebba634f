"""Every kernel is one function in NumPy, declared in its family, and one of the extension under the same name."""

import importlib
import inspect
import pkgutil
import re
import traceback
from pathlib import Path

import numpy as np
import pytest

from seqflow import kernels
from seqflow.kernels.dispatch import KERNELS, Kernel, extension

NOT_KERNELS = {
    "compiled_isas", "enter_single_thread", "hold_rows", "isa", "isas", "leave_single_thread", "num_threads", "quick_check_lengths", "set_isa", "kept_bytes",
    "empty_bytes", "set_kept_limit",
    "set_num_threads", "call_on_tensors", "set_up_tensors", "tensor_of_array",
}  # fmt: skip
MODULES = [
    importlib.import_module(f"seqflow.kernels.{found.name}")
    for found in pkgutil.iter_modules(kernels.__path__)
    if not found.name.startswith("_")
]
built = pytest.mark.skipif(extension() is None, reason="native kernels were not built")


def test_every_kernel_is_public():
    assert set(kernels.__all__) >= set(KERNELS)
    assert all(getattr(kernels, name) is kernel.call for name, kernel in KERNELS.items())


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_family_lists_its_kernels(module):
    own = {name for name, kernel in KERNELS.items() if kernel.body.__module__ == module.__name__}
    listed = {name for name in getattr(module, "__all__", ()) if name in KERNELS}
    assert listed == own


def test_every_kernel_says_what_it_does():
    assert all(inspect.getdoc(kernel.call) for kernel in KERNELS.values())


def test_forms_are_those_of_parameters():
    assert all(set(kernel.forms) <= set(kernel.parameters) for kernel in KERNELS.values())


@built
def test_the_extension_has_every_kernel_and_no_other():
    assert {name for name in vars(extension()) if not name.startswith("__")} == set(KERNELS) | NOT_KERNELS


@built
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_native_functions_take_as_many_arguments_and_decline_any(kernel):
    assert kernel.native(*[None] * len(kernel.parameters)) is NotImplemented
    with pytest.raises(TypeError):
        kernel.native(*[None] * (len(kernel.parameters) + 1))


def test_a_kernel_looks_like_its_function_in_numpy():
    assert list(inspect.signature(kernels.unpad).parameters) == ["padded", "lengths", "side", "out"]
    assert kernels.unpad.__module__ == "seqflow.kernels.padding"
    with pytest.raises(TypeError, match=r"unpad\(\) missing 1 required positional argument: 'lengths'"):
        kernels.unpad(np.zeros((1, 1)))
    with pytest.raises(TypeError, match=r"unpad\(\) takes from 2 to 3 positional arguments but 4 were given"):
        kernels.unpad(np.zeros((1, 1)), [1], "left", np.zeros(1))


def test_a_traceback_shows_the_lines_that_dispatch():
    with pytest.raises(kernels.KernelError) as caught:
        kernels.check_lengths(np.array([-1]))
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "result = first(lengths)" in lines


def double(values, *, plus=0):
    """Twice the values."""
    return np.asarray(values) * 2 + plus


def test_a_kernel_without_a_native_function_is_its_function_in_numpy(any_kernels):
    kernel = Kernel(double, {})
    kernel.select(any_kernels != "reference")
    assert kernel.native is None
    assert kernel.call([1, 2], plus=1).tolist() == [3, 5]


def test_what_the_native_function_declines_is_asked_again_in_its_form_and_then_left_to_numpy():
    asked = []

    def native(values, plus):
        asked.append(values)
        return "native" if isinstance(values, np.ndarray) and plus == 0 else NotImplemented

    kernel = Kernel(double, {"values": kernels.forms.COUNTS})
    kernel.native = native
    kernel.select(True)
    assert kernel.call(np.array([1, 2])) == "native"
    assert len(asked) == 1
    assert kernel.call([1, 2]) == "native"
    assert len(asked) == 3
    assert kernel.call([1, 2], plus=1).tolist() == [3, 5]
    with pytest.raises(TypeError, match="values is float64, expected integers"):
        kernel.call([1.5])
    kernel.select(False)
    assert kernel.call(np.array([1, 2])).tolist() == [2, 4]


@pytest.mark.parametrize(
    "call",
    [
        lambda: kernels.segment_reduce("sum", np.array([1j, 2]), np.array([2])),
        lambda: kernels.softmax_within(np.array([1, 2], np.longdouble), np.array([2])),
        lambda: kernels.sort_within(np.array(["b", "a"]), np.array([2])),
        lambda: kernels.gather(np.array(["b", None]), np.array([1, 0])),
        lambda: kernels.pad(np.zeros((2, 0)), np.array([2]), 3)[0],
    ],
)
def test_what_is_not_native_is_what_numpy_says(call):
    found = call()
    with kernels.use("reference"):
        expected = call()
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


FUNCTION = re.compile(r"^( *[^\n#/]*\)(?: const)?) \{([^{}]*)\}", re.MULTILINE)


def only_fetches(body: str) -> bool:
    """Whether a function of C++ has no statements but fetches, under any conditions, and constants for them."""
    statements = re.sub(r"#pragma.*|for \([^()]*\)|if \(\w+\)", "", body).split(";")
    rest = {line.strip().partition(" ")[0].partition("(")[0] for line in statements} - {"", "const"}
    return rest == {"__builtin_prefetch"}


def test_a_function_that_only_fetches_is_always_inline():
    """GCC knows no effect of it, and leaves out its calls."""
    files = sorted((Path(kernels.__file__).parent / "cpp").rglob("*.[hc]*"))
    functions = [found for file in files for found in FUNCTION.findall(file.read_text(encoding="utf-8"))]
    heads = [head.strip() for head, body in functions if only_fetches(body)]
    assert len(heads) == 5
    assert [head for head in heads if "always_inline" not in head] == []
