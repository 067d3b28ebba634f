"""README stays true."""

import re
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_example_on_the_first_screen_runs(monkeypatch):
    monkeypatch.chdir(ROOT)
    code = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
    scope = {}
    exec(code, scope)
    np.testing.assert_array_equal(scope["x"], [[5, 6, 0], [0, 0, 0], [7, 8, 9]])
    assert scope["n"].tolist() == [2, 0, 2]
    assert scope["packed"].packed.shape[1] == 4
    assert scope["batch"]["bytes.values"].dtype == np.uint8


def test_the_commands_are_those_ci_runs():
    commands = re.findall(r"```sh\n(pip install .*?)\n```", README)
    assert len(commands) == 2
    ci = (ROOT / ".ci" / "run").read_text()
    for command in commands:
        for part in command.split(" && "):
            assert part.replace("pip install", "pip install --quiet") in ci or part in ci
