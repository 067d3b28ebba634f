"""README, and the pages it leads to first, stay true."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from pages import blocks_of, code_of

import seqflow as sf

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
STARTED = (ROOT / "docs" / "getting-started.md").read_text()
SPARSE = (ROOT / "docs" / "sparse-features.md").read_text()


READER = """
import json, subprocess, sys

scope = {}
for language, code in json.loads(sys.stdin.read()):
    if language == "python":
        exec(code, scope)
    else:
        subprocess.run(code, shell=True, check=True)
assert scope["x"].tolist() == [[5, 6, 0], [0, 0, 0], [7, 8, 9]]
assert scope["n"].tolist() == [2, 0, 2]
assert scope["packed"].packed.shape[1] == 4
assert scope["batch"]["tokens"].shape[1] == 2048
assert scope["pooled"].sum(axis=1).tolist() == [2, 0]
assert 0.2 < (scope["rows"]["labels"] != -100).mean() < 0.8
"""


@pytest.mark.slow
def test_its_blocks_run_in_order_in_a_fresh_clone(tmp_path):
    """In one interpreter, after the first command; nothing is added to what the clone has."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        pytest.skip("this is not a clone")
    listed = ["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    for name in filter(None, subprocess.check_output(listed, text=True).split("\0")):
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, tmp_path / name, follow_symlinks=False)
    blocks = [(block.language, block.text) for block in blocks_of("README.md") if block.language]
    commands = [text for language, text in blocks if language == "sh"]
    assert [text.startswith("pip install") for text in commands] == [True, True, False, False]
    seen = [
        (language, text.removeprefix("pip install . && "))
        for language, text in blocks
        if text != commands[1]  # the tests
    ]
    command = f'seqflow() {{ {shlex.quote(sys.executable)} -m seqflow "$@"; }}\n'
    seen = [(language, command * (language == "sh") + text) for language, text in seen]
    done = subprocess.run(
        [sys.executable, "-c", READER], input=json.dumps(seen), cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"lib/python[^ ]*/[^ ]*\.py, block \d+, row \d+", done.stdout)
    assert (tmp_path / "out-2" / "_manifest.json").exists()  # of job.toml


def test_the_job_over_features_is_run_by_the_commands_that_its_file_shows():
    commands = code_of("docs/sparse-features.md", "seqflow build-vocabulary").splitlines()
    job = (ROOT / "examples" / "imports.toml").read_text()
    assert [line.strip("# ") for line in job.splitlines() if line.startswith("#     ")][:3] == commands


def test_it_is_one_screen():
    assert len(README.split()) <= 700
    text = re.sub(r"(?s)```.*?```|<picture>.*?</picture>", "", README)
    assert len([line for line in text.splitlines() if line and not line.startswith("|")]) <= 45


def test_its_picture_of_fill_is_what_the_benchmark_found():
    found = json.loads((ROOT / "docs" / "pictures" / "fill.json").read_text())["fill"]
    shown = re.search(r"not padding: (\d+) % .* (\d+) % .* ([\d.]+) %", README).groups()
    assert [float(one) for one in shown] == [
        round(100 * fill, 2 if fill > 0.99 else None) for fill in found.values()
    ]
    for theme in ("light", "dark"):
        picture = (ROOT / "docs" / "pictures" / f"fill-{theme}.svg").read_text()
        assert all(f"{fill:.2%}" in picture for fill in found.values())


def test_its_picture_of_values_is_drawn_by_the_code():
    words = sf.Sequence(
        np.array(["the", "cat", "sat", "on", "a", "mat", "today"]), [[2, 0, 3], [2, 1, 0, 3, 1]]
    )
    for theme in ("light", "dark"):
        assert (ROOT / "docs" / "pictures" / f"values-{theme}.svg").read_text() == words.to_svg(theme)


def test_the_signature_is_what_the_command_prints():
    shown = re.search(r"\$ seqflow ops lengths_sum\n(.*)\n", README)[1]
    assert seqflow("ops", "lengths_sum").stdout.splitlines()[0] == shown


def test_the_error_is_what_the_op_says():
    shown = re.search(r"\n(lengths_sum: .*)\n```", README)[1]
    with pytest.raises(sf.LodError) as raised:
        sf.ops.lengths_sum(np.arange(6), [3, 4])
    assert str(raised.value).splitlines()[0] == shown


def test_the_loader_runs_on_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    pq.write_table(pa.table({"tokens": [[1, 2, 3], [], [4]], "n": [1, 2, 3]}), "docs/one.parquet")
    code = code_of("docs/getting-started.md", "loader = ")
    scope = {"sf": sf}
    exec(code, scope)
    assert sorted(scope["batch"]["x"].tolist()) == [[0, 0, 0], [1, 2, 3], [4, 0, 0]]
    assert scope["state"]["epoch"] == 1


def test_a_list_column_unpacks(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"tokens": [[1, 2, 3], [], [4]]}), "docs.parquet")
    code = re.search(r"`(values, lengths = sf.open.*?)`", STARTED)[1]
    scope = {"sf": sf}
    exec(code, scope)
    assert (scope["values"].tolist(), scope["lengths"].tolist()) == ([1, 2, 3, 4], [3, 0, 1])


def test_each_op_it_names_exists():
    names = re.findall(r"(?:sf\.ops|auto|ops)\.(\w+)\(", README + STARTED + SPARSE)
    assert len(names) > 5
    assert set(names) <= set(sf.registry.names())


def test_each_place_it_names_exists():
    places = re.findall(r"\]\((.+?)\)|`([\w./]+/(?:[\w.]+\.\w+)?)`", README)
    named = [place for pair in places for place in pair if place]
    made = "out/"  # by the first command, in whose place it may have run
    assert named.count(made) == 1
    assert [place for place in named if place != made and not (ROOT / place.partition("#")[0]).exists()] == []


def test_the_commands_are_those_ci_runs():
    commands = re.findall(r"```sh\n(pip install .*?)\n```", README)
    assert len(commands) == 2
    ci = (ROOT / ".ci" / "run").read_text()
    for command in commands:
        for part in command.split(" && "):
            assert part.replace("pip install", "pip install --quiet") in ci or part in ci
