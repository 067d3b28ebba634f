"""Example scripts run; the example jobs have their tests beside those of jobs."""

import json
import runpy
import tomllib
from pathlib import Path

import pytest

ARGUMENTS = {"make_conversations": ["conversations.parquet", str(Path(json.__file__).parent)]}
EXAMPLES = Path(__file__).parents[2] / "examples"
MODULES = {
    name for job in EXAMPLES.glob("*.toml") for name in tomllib.loads(job.read_text()).get("imports", [])
}
TRAINING = "click_model"
MODEL = "pack_images"
ELSEWHERE = {path.stem for path in EXAMPLES.glob("*_source.py")} | {  # run by other tests
    "packed_llama",
    "train_torchrun",
    "train_accelerate",
    "train_trainer",
    "train_lightning",
}
SCRIPTS = sorted(
    path for path in EXAMPLES.glob("*.py") if path.stem not in MODULES | ELSEWHERE | {TRAINING, MODEL}
)


@pytest.mark.slow
@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs(path, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", [str(path), *ARGUMENTS.get(path.stem, ())])
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out


@pytest.mark.slow
def test_clicks_are_learned(capsys):
    pytest.importorskip("torch")
    runpy.run_path(str(EXAMPLES / f"{TRAINING}.py"), run_name="__main__")
    before, *_, last = capsys.readouterr().out.splitlines()
    assert int(before.split()[1].rstrip("%")) < 75 < 80 < int(last.split()[-2].rstrip("%"))


@pytest.mark.slow
def test_packed_documents_with_images_are_as_if_alone(capsys):
    pytest.importorskip("transformers")
    runpy.run_path(str(EXAMPLES / f"{MODEL}.py"), run_name="__main__")
    assert "packed and alone differ by" in capsys.readouterr().out
