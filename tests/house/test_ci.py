"""The scripts of .ci: their steps exist, and so does all that they name."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = [".ci/run", ".ci/full", ".ci/readme"]

pytestmark = pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="a source distribution has no .ci")


def full(*arguments):
    return subprocess.run([ROOT / ".ci" / "full", *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("script", SCRIPTS)
def test_bash_understands_the_script(script):
    done = subprocess.run(["bash", "-n", ROOT / script], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("script", SCRIPTS)
def test_what_a_script_names_exists(script):
    named = re.findall(
        r"(?<![\w$\"/{-])(?:\$PWD/)?((?:tests|examples|\.ci)/[\w./]+)", (ROOT / script).read_text()
    )
    assert named
    made = {"tests/kernels/test_added_kernel.py"}  # by the patch
    assert [name for name in named if name not in made and not (ROOT / name).exists()] == []


def test_every_step_is_a_function_and_an_unknown_one_is_refused():
    steps = full("--list").stdout.split()
    text = (ROOT / ".ci" / "full").read_text()
    assert steps
    assert [step for step in steps if f"\n{step}() {{\n" not in text] == []
    done = full("no_step")
    assert done.returncode == 2
    assert "there is no step no_step" in done.stderr


def test_a_step_that_fails_ends_the_run(tmp_path):
    """Steps are functions, in which bash forgets `set -e` where they are tested in a condition."""
    script = tmp_path / ".ci" / "full"
    script.parent.mkdir()
    text = (ROOT / ".ci" / "full").read_text()
    script.write_text(text.replace("  .ci/run\n", "  false\n  echo went on\n"))
    done = subprocess.run(["bash", script, "run", "fuzz"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.split("\n") == ["== run", ""]


def test_no_workflow_publishes_anything_by_itself():
    """Wheels are kept as files of a run: whoever makes a release uploads them."""
    workflows = sorted((ROOT / ".github" / "workflows").iterdir())
    assert workflows
    for workflow in workflows:
        text = workflow.read_text().lower()
        uses = re.findall(r"uses: (\S+?)@", text)
        assert set(uses) <= {"actions/checkout", "pypa/cibuildwheel", "actions/upload-artifact"}
        assert (
            re.findall(r"twine|publish|gh release|secrets\.|id-token|: write|schedule:|pull_request", text)
            == []
        )


def test_the_kernels_can_be_built_with_the_sanitizers_that_are_asked_for():
    asked = re.findall(r"SEQFLOW_SANITIZE=(\S+)", (ROOT / ".ci" / "full").read_text())
    assert asked == ["address,fuzzer-no-link", "address,undefined", "thread"]
    assert "-fsanitize=${SEQFLOW_SANITIZE}" in (ROOT / "seqflow" / "kernels" / "CMakeLists.txt").read_text()
