"""`seqflow build-vocabulary`."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

from seqflow import Vocabulary
from seqflow.cli.build_vocabulary import build_vocabulary
from seqflow.errors import JobError, MissingSourceError, OpTypeError, UnknownColumnError

TAGS = [["b", "a", "b"], [], None, ["c", "b", None], ["a"]]


@pytest.fixture
def tags(tmp_path: Path) -> Path:
    pq.write_table(pa.table({"tags": TAGS, "user": [3, 3, None, 8, 5]}), tmp_path / "tags.parquet")
    return tmp_path


def test_the_keys_of_a_column_come_by_falling_count(tags: Path) -> None:
    done = seqflow(
        "build-vocabulary", "tags.parquet", "tags", "made/tags.arrow", "--max-size", 3, folder=tags
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert dict(line.split(maxsplit=1) for line in done.stdout.splitlines()) == {
        "keys": "3, 6 times",
        "kept": "2, 83.3% of all times",
        "ids": "3, 0 for unknown keys",
        "output": "made/tags.arrow",
    }
    vocabulary = Vocabulary.load(tags / "made" / "tags.arrow")
    assert vocabulary.keys == ["b", "a"]
    assert "2  'a'  2" in " ".join(repr(vocabulary).split()).replace(" ", "  ")


@pytest.mark.parametrize("column", ["tags", "user"])
def test_the_file_has_the_count_of_each_key(tags: Path, column: str) -> None:
    """As that of `Vocabulary.build`, so that rarer keys may be left out later."""
    build_vocabulary(str(tags / "tags.parquet"), column, tags / "made.arrow")
    Vocabulary.build(tags / "tags.parquet", column).save(tags / "built.arrow")
    with pa.ipc.open_file(tags / "made.arrow") as made, pa.ipc.open_file(tags / "built.arrow") as built:
        found = made.read_all()
        assert found.equals(built.read_all())
    flat = [key for row in TAGS if row for key in row if key] if column == "tags" else [3, 3, 8, 5]
    counts = {key: flat.count(key) for key in flat}
    names = [key.decode() if isinstance(key, bytes) else key for key in found["key"].to_pylist()]
    assert dict(zip(names, found["count"].to_pylist(), strict=True)) == counts
    frequent = {key for key, times in counts.items() if times > 1}
    assert set(Vocabulary.load(tags / "made.arrow", min_count=2).keys) == frequent


def test_integers_are_keys_too_and_rare_ones_are_left_out(
    tags: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    build_vocabulary(str(tags / "tags.parquet"), "user", tags / "users.arrow", min_count=2, json=True)
    assert json.loads(capsys.readouterr().out) == {
        "keys": 3, "occurrences": 4, "kept": 1, "kept_occurrences": 2, "ids": 2,
        "bad_rows": 0, "bad_files": [], "file": str(tags / "users.arrow"),
    }  # fmt: skip
    assert Vocabulary.load(tags / "users.arrow").keys == [3]


JOB = """
[source]
paths = "tags.parquet"
columns = ["tags"]
fill = {tags = [], "tags.values" = ""}
[prepare]
net = '''
size = tags.lengths + 10
return size, tags.lengths, tags.values.lengths, tags.values.values
'''
[net]
net = "known = encode(size, ids)"
[constants]
ids = "not_made_yet.arrow"
"""


def test_a_job_is_run_up_to_its_prepare(tags: Path) -> None:
    (tags / "job.toml").write_text(JOB)
    for name, keys in (("size", [10, 13, 11]), ("tags", ["b", "a", "", "c"])):
        build_vocabulary(str(tags / "job.toml"), name, tags / f"{name}.arrow")
        assert Vocabulary.load(tags / f"{name}.arrow").keys == keys
    pq.write_table(pa.table({"tags": [["x"]]}), tags / "other.parquet")
    done = seqflow(
        "build-vocabulary", "job.toml", "tags", "other.arrow", "--input", "other.parquet", folder=tags
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert Vocabulary.load(tags / "other.arrow").keys == ["x"]
    np.save(tags / "drop.npy", np.array([13]))
    kept = JOB.replace("[constants]", '[constants]\ndrop = "drop.npy"')
    (tags / "job.toml").write_text('keep = "find(drop, size) < 0"\n' + kept)
    build_vocabulary(str(tags / "job.toml"), "size", tags / "kept.arrow")
    assert Vocabulary.load(tags / "kept.arrow").keys == [10, 11]


@pytest.mark.parametrize(
    ("source", "column", "output", "kind", "message"),
    [
        (
            "tags.parquet",
            "tag",
            "x.arrow",
            UnknownColumnError,
            r"has no column 'tag' \(did you mean 'tags'\?\)",
        ),
        ("tags.parq", "tags", "x.arrow", MissingSourceError, "tags.parq does not exist"),
        ("tags.parquet", "tags", "x.npy", JobError, "x.npy' does not end in .arrow"),
        ("tags.parquet", "tags", "data.arrow", JobError, "data.arrow' exists and is not a vocabulary"),
        ("float.parquet", "x", "x.arrow", OpTypeError, "keys are double, expected integers or strings"),
        ("job.toml", "tag", "x.arrow", JobError, r"prepares no tensor 'tag' \(did you mean 'tags'\?\)"),
    ],
)
def test_what_cannot_be_built_is_an_error(
    tags: Path, source: str, column: str, output: str, kind: type[Exception], message: str
) -> None:
    (tags / "job.toml").write_text('[source]\npaths = "tags.parquet"\ncolumns = ["tags"]\nvalid = true')
    pq.write_table(pa.table({"x": [0.5]}), tags / "float.parquet")
    with pa.ipc.new_file(tags / "data.arrow", pa.schema([("x", pa.int64())])):
        pass
    with pytest.raises(kind, match=message):
        build_vocabulary(str(tags / source), column, tags / output)
    assert not (tags / "x.arrow").exists()


def test_settings_of_a_job_are_an_error_for_a_file(tags: Path) -> None:
    done = seqflow("build-vocabulary", "tags.parquet", "tags", "x.arrow", "--set", "a=1", folder=tags)
    assert done.returncode == 2
    assert "tags.parquet is not a job (a TOML file), so --input and --set cannot be used" in done.stderr
