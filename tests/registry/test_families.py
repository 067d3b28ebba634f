"""Families of ops are imported when one of their ops is looked up; each test is a fresh process."""

import subprocess
import sys

import pytest

from seqflow import ops


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.stdout.strip()


def test_an_op_has_not_the_name_of_a_family():
    # Python sets a module that it imports as an attribute of its package: it would hide the op
    assert ops.FAMILIES.keys().isdisjoint(module.rpartition(".")[2] for module in ops.FAMILIES.values())


@pytest.mark.parametrize("module", ["seqflow", "seqflow.ops"])
def test_an_import_leaves_what_is_not_used(module):
    code = f"import sys, {module}; print([name for name in ('numpy', 'pyarrow', 'dataclasses') if name in sys.modules])"
    assert run(code) == "[]"


def test_a_call_imports_neither_arrow_nor_masked_arrays_nor_other_families():
    found = run(
        "import sys\n"
        "import seqflow as sf\n"
        "print(sf.ops.lengths_sum([1.0, 2.0], [2]).tolist())\n"
        "print([name for name in ('pyarrow', 'numpy.ma', 'seqflow.ops.elementwise') if name in sys.modules])"
    )
    assert found == "[3.0]\n[]"


def test_an_op_of_a_user_cannot_take_a_name_before_its_family_is_imported():
    found = run(
        "import seqflow as sf\n"
        "def pad(x): return x\n"
        "try:\n"
        "    sf.op('x[N] -> y[N]')(pad)\n"
        "except sf.OpError as error:\n"
        "    print(error)"
    )
    assert "pad: an op of that name is registered already" in found
    assert "it is one of seqflow's own: take another name" in found


@pytest.mark.slow
def test_an_op_that_is_unregistered_is_forgotten_before_its_family_is_imported():
    found = run(
        "from seqflow import registry\n"
        "registry.unregister('pad')\n"
        "print('pad' in registry.names(), 'unpad' in registry.names())\n"
        "try:\n"
        "    registry.get('pad')\n"
        "except registry.lookup.UnknownOpError as error:\n"
        "    print(error)"
    )
    assert found.startswith("False True\nno op is named 'pad'")


@pytest.mark.slow
def test_threads_look_up_ops_of_all_families_at_once():
    found = run(
        "import sys\n"
        "from concurrent.futures import ThreadPoolExecutor\n"
        "sys.setswitchinterval(1e-5)\n"
        "import seqflow as sf\n"
        "def look_up(seed):\n"
        "    names = sorted(sf.registry.names(), key=lambda name: hash((name, seed)))\n"
        "    return [name for name in names if sf.registry.get(name).name != name]\n"
        "with ThreadPoolExecutor(8) as pool:\n"
        "    print(list(pool.map(look_up, range(8))))"
    )
    assert found == str([[]] * 8)


def test_results_can_be_unpickled_before_their_family_is_imported():
    found = run("import pickle\nprint(pickle.loads(b'cseqflow.ops\\nPadResult\\n(I1\\nI2\\nt\\x81.'))")
    assert found == "PadResult(padded=1, mask=2)"


def test_what_is_not_an_op_has_no_attribute():
    with pytest.raises(AttributeError, match="no op is named 'NoSuchResult'"):
        ops.NoSuchResult  # noqa: B018
