"""Example scripts run; the example jobs have their tests beside those of jobs."""

import runpy
import tomllib
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
MODULES = {
    name for job in EXAMPLES.glob("*.toml") for name in tomllib.loads(job.read_text()).get("imports", [])
}
SCRIPTS = sorted(path for path in EXAMPLES.glob("*.py") if path.stem not in MODULES)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs(path, capsys):
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
