"""Example scripts run; the example job has its tests beside the command line."""

import json
import runpy
from pathlib import Path

import pytest

ARGUMENTS = {"make_conversations": ["conversations.parquet", str(Path(json.__file__).parent)]}
SCRIPTS = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs(path, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path), *ARGUMENTS.get(path.stem, ())])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out
