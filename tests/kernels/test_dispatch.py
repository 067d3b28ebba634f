"""Which kernels are used, and how to say so."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from seqflow import kernels
from seqflow.kernels import dispatch


def test_info_says_which_kernels_are_in_use(any_kernels):
    info = kernels.info()
    assert info["kernels"] == ("reference" if any_kernels == "reference" else "native")
    assert info["isa"] == (None if any_kernels == "reference" else any_kernels)


def test_a_choice_ends_with_its_block():
    before = kernels.info()
    with kernels.use("reference"):
        assert kernels.info()["kernels"] == "reference"
        assert kernels.check_lengths(np.array([1, 2])) == 3
    assert kernels.info() == before


def test_an_unknown_choice_is_an_error():
    with pytest.raises(ValueError, match="expected 'reference', 'native'"), kernels.use("fast"):
        pass


def run(choice):
    """What a fresh Python says with SEQFLOW_KERNELS set, of the package that is tested: not of sources that lie here."""
    code = "from seqflow import kernels; print(kernels.info()['kernels'], kernels.info()['isa'])"
    environment = os.environ | {"SEQFLOW_KERNELS": choice}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_environment_forces_the_reference():
    assert run("reference").stdout.split() == ["reference", "None"]


def test_the_environment_forces_an_instruction_set(native):
    isa = native.info()["isa"]
    assert run(isa).stdout.split() == ["native", isa]


@pytest.mark.parametrize("isa", [name for name in dispatch.INSTRUCTION_SETS if name not in kernels.isas()])
def test_an_instruction_set_that_is_missing_is_an_error_that_says_why(native, isa):
    why = "they were compiled for baseline|this processor does not have it"
    assert re.search(f"no kernels with instruction set {isa}: ({why})", run(isa).stderr)
    with (
        pytest.raises(RuntimeError, match=f"no kernels with instruction set {isa}: ({why})"),
        kernels.use(isa),
    ):
        pass


def test_with_the_reference_no_instruction_set_is_used():
    with kernels.use("reference"):
        assert (kernels.info()["isa"], kernels.info()["isas"]) == (None, [])
