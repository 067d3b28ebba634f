"""README stays true."""

import re
from pathlib import Path

import numpy as np

import seqflow as sf

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


def test_lengths_ride_along_as_it_says():
    code = re.search(r"## Lengths that ride along.*?```python\n(.*?)```", README, re.DOTALL)[1]
    rng = np.random.default_rng(0)
    scope = {
        "sf": sf,
        "values": rng.random((7, 4)),
        "sentences_per_document": [2, 0, 3],
        "words_per_sentence": [2, 1, 0, 3, 1],
        "w1": (rng.random((8, 4)), rng.random((8, 2))),
        "w2": rng.random((3, 2)),
        "w3": (rng.random((6, 3)), rng.random((6, 2))),
    }
    exec(code, scope)
    assert scope["z"].lod == scope["words"].lod
    assert scope["sentences"].lod == scope["context"].lod == sf.LoD([2, 0, 3])
    by_hand = sf.ops.lstm(scope["values"], scope["words_per_sentence"], *scope["w1"]).h
    np.testing.assert_array_equal(scope["h"].values, by_hand)
    np.testing.assert_allclose(scope["documents"][0], scope["z"].values[:3].sum(axis=0))


def test_the_commands_are_those_ci_runs():
    commands = re.findall(r"```sh\n(pip install .*?)\n```", README)
    assert len(commands) == 2
    ci = (ROOT / ".ci" / "run").read_text()
    for command in commands:
        for part in command.split(" && "):
            assert part.replace("pip install", "pip install --quiet") in ci or part in ci
