"""What is installed: the wheel's files, with a compiler and without one."""

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
FOLDERS = {"seqflow": ROOT / "seqflow", "seqflow/ops": ROOT / "ops", "seqflow/providers": ROOT / "providers"}
SUFFIXES = {".py", ".pyi", ".typed"}


def sources():
    """The files of the package, by their place in the wheel."""
    return {
        f"{place}/{file.relative_to(folder)}"
        for place, folder in FOLDERS.items()
        for file in folder.rglob("*")
        if (file.suffix in SUFFIXES or file.name in ("families.txt", "names_elsewhere.txt", "known_as.txt", "page.css", "parts.toml", "functions.txt", "help.txt", "spelled.txt")) and not (folder.name == "seqflow" and file.is_relative_to(folder / "ops"))
        and not (folder.name == "seqflow" and file.is_relative_to(folder / "providers"))
        and "cpp" not in file.parts
    }  # fmt: skip


def call(*command, folder=None, **environment):
    done = subprocess.run(
        [str(part) for part in command],
        cwd=folder,  # `python -m` imports from it first
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """A wheel built from a source distribution of this tree."""
    out = tmp_path_factory.mktemp("dist")
    # of sources that are the same, the objects of this tree's build are used: to compile them takes minutes
    kept = ROOT.glob(f"build/cp{sys.version_info.major}{sys.version_info.minor}-*/objects")
    environment = {"SEQFLOW_OBJECTS": max(map(str, kept), default=str(out / "objects"))}
    call(sys.executable, "-m", "build", "--outdir", out, ROOT, **environment)
    (found,) = out.glob("*.whl")
    return found


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    compiled = {name for name in names if name.startswith("seqflow/kernels/_native")} - sources()
    assert names - compiled == sources()
    assert len(compiled) == 1


def test_without_a_compiler_the_main_job_runs_on_the_reference_kernels(tmp_path):
    target = tmp_path / "installed"
    false = "/bin/false"
    call(
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--target",
        target,
        ROOT,
        CC=false,
        CXX=false,
    )
    assert not list(target.glob("seqflow/kernels/_native*.so"))
    plain = {"PYTHONPATH": f"{target}{os.pathsep}{sysconfig.get_paths()['purelib']}"}
    base = (sys.executable, "-S")  # the virtual environment's site would find the tree this test runs in
    info = json.loads(call(*base, "-m", "seqflow", "info", "--json", folder=target, **plain))
    assert info["kernels"] == "reference"
    report = call(
        *base, "-m", "seqflow", "run", ROOT / "examples" / "pack_source.toml",
        "--output", tmp_path / "packed", "--json", folder=target, **plain,
    )  # fmt: skip
    assert json.loads(report)["fill"] >= 0.999
