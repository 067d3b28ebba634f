"""The job over features of Python files: their map, and the rows that are pooled from it."""

import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.cli.build_vocabulary import build_vocabulary
from seqflow.errors import OpError
from seqflow.job import Job, run
from seqflow.job.modules import import_modules

EXAMPLE = Path(__file__).parents[2] / "examples" / "imports.toml"
FILES = {
    "a.py": "import os, re\nfrom os import path as p\nprint(os.getcwd(), p.join('x'))\nprint()\n",
    "b.py": "",
    "c.py": "@cache\n@functools.wraps(print)\ndef f(x):\n    from . import y\n    return x().z()[0]()\n",
    "d.py": "print 'Python 2'\n",
}
FEATURES = {
    "a.py": {1: {"os": 1, "os.path": 1, "re": 1}, 2: {"os.getcwd": 1, "p.join": 1, "print": 2}},
    "b.py": {},
    "c.py": {1: {".y": 1}, 2: {"": 1, ".z": 1, "functools.wraps": 1, "x": 1}, 3: {"cache": 1, "functools.wraps": 1}},
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with the files; the op of the example is known meanwhile."""
    (tmp_path / "source").mkdir()
    for name, text in FILES.items():
        (tmp_path / "source" / name).write_text(text)
    import_modules(("python_features",), EXAMPLE.parent)
    yield tmp_path
    sf.registry.unregister("python_features")
    del sys.modules["python_features"]


def test_files_are_maps_in_four_tensors(folder: Path) -> None:
    texts = [FILES[name].encode() for name in FEATURES]
    source = np.frombuffer(b"".join(texts), np.uint8)
    features = sf.registry.get("python_features").call(source, np.array(list(map(len, texts))))
    maps = list(FEATURES.values())
    assert features.example_lengths.tolist() == [2, 0, 3]
    assert features.keys.tolist() == [1, 2, 1, 2, 3]
    assert features.values_lengths.tolist() == [3, 3, 1, 4, 2]
    names = np.split(features.names, np.cumsum(features.name_lengths)[:-1])
    expected = [use for each in maps for uses in each.values() for use in uses.items()]
    assert list(zip((name.tobytes().decode() for name in names), features.uses, strict=True)) == expected


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (b"print 'x'", "Missing parentheses"),
        (b"x\n=\n", "invalid syntax in line 2"),
        (b"x = '\xff'", "utf-8"),
        (b"x\0", "null bytes"),
        (b"(" * 300, "too many nested parentheses"),
    ],
)
def test_a_file_that_is_not_python_is_an_error_with_the_reason(
    folder: Path, source: bytes, reason: str
) -> None:
    with pytest.raises(OpError, match=f"source 1 is not Python: .*{reason}"):
        sf.registry.get("python_features").call(np.frombuffer(b"x" + source, np.uint8), [1, len(source)])


def test_the_rows_are_what_plain_python_computes(folder: Path) -> None:
    settings = {
        "source.paths": [str(folder / "source")],
        "output.path": str(folder / "rows"),
        "bad_rows.path": str(folder / "bad.parquet"),
        "constants.vocabulary": str(folder / "vocabulary.arrow"),
        "constants.table": str(folder / "table.npy"),
    }
    paths = [settings["source.paths"][0]]
    build_vocabulary(str(EXAMPLE), "names", folder / "vocabulary.arrow", max_size=6, input=paths)
    table = np.random.default_rng(0).normal(size=(12288, 32)).astype("f4")
    np.save(folder / "table.npy", table)
    report = run(Job.read(EXAMPLE, settings))

    assert (report.rows, report.bad_rows) == (3, 1)
    (bad,) = pq.read_table(folder / "bad.parquet")["bad"].to_pylist()
    assert re.search(r"is not Python: Missing parentheses .* in line 1$", bad["reason"])

    keys = sf.Vocabulary.load(folder / "vocabulary.arrow").keys
    assert keys == ["functools.wraps", "", ".y", ".z", "cache"]
    for row, name in zip(pq.read_table(folder / "rows").to_pylist(), FEATURES, strict=True):
        assert row["path"] == str(folder / "source" / name)
        assert row["keys"] == list(FEATURES[name])
        np.testing.assert_allclose(
            np.reshape(row["pooled"], (-1, 32)),
            [pooled(uses, keys, table) for uses in FEATURES[name].values()] or np.empty((0, 32)),
            rtol=1e-4, atol=1e-5,
        )  # fmt: skip


def pooled(uses: dict[str, int], keys: list[str], table: np.ndarray) -> np.ndarray:
    """The mean of the names' rows of the table, weighted with the logarithm of their uses."""
    total = sum(math.log1p(count) for count in uses.values())
    result = np.zeros(table.shape[1])
    for name, count in uses.items():
        data = np.frombuffer(name.encode(), np.uint8)
        hashed = sf.ops.hash_strings(data, [len(data)], num_buckets=4096)[0]
        row = keys.index(name) + 1 if name in keys else 8192 + hashed
        result += table[row] * math.log1p(count) / total
    return result
