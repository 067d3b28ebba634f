"""An index that is there is updated: only files that are new or have changed are read."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from marks import thorough

JOB = """
[source]
paths = "in*.parquet"
[prepare]
net = "b, n = truncate(tokens.values, tokens.lengths, max_length=9)\\nreturn b, n, tag"
[batch]
kind = "tokens"
max_tokens = 100
[order]
index = "lengths.arrow"
[output]
path = "out"
[bad_rows]
policy = "skip"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    draw = np.random.default_rng(0)
    for part in range(3):
        columns = {
            "tokens": pa.array(
                [None if i == 7 else [*range(n)] for i, n in enumerate(draw.integers(0, 20, 500))]
            ),
            "tag": pa.array([f"tag{n}" for n in draw.zipf(1.5, 500) % 97]).dictionary_encode(),
        }
        pq.write_table(pa.table(columns), tmp_path / f"in{part}.parquet", row_group_size=40)
    (tmp_path / "job.toml").write_text(JOB)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    "source",
    [("job.toml", "--set", "order.window=600"), *thorough((("job.toml",),))],
    ids=["slices", "blocks"],
)
def test_an_index_that_is_there_is_updated_by_files_that_are_new_or_changed(
    folder: Path, source: tuple[str, ...]
) -> None:
    def index(*more: str) -> dict[str, Any]:
        done = seqflow("index", *source, "--json", *more, folder=folder)
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    assert index()["blocks_read"] == 39
    assert index()["blocks_read"] == 0
    old = pq.read_table(folder / "in0.parquet")
    pq.write_table(old.slice(0, 100), folder / "in00.parquet", row_group_size=40)  # between the others
    assert (index()["blocks_read"], index()["rows"]) == (3, 1596)
    pq.write_table(old.slice(7), folder / "in1.parquet", row_group_size=40)
    assert index()["blocks_read"] == 13
    (folder / "in0.parquet").unlink()
    assert (index()["blocks"], index()["blocks_read"]) == (29, 0)
    updated = (folder / "lengths.arrow").read_bytes()
    assert index("--anew")["blocks_read"] == 29
    assert (folder / "lengths.arrow").read_bytes() == updated
    assert seqflow("run", "job.toml", *source[1:], "--quiet", folder=folder).stderr == ""


def test_an_index_of_other_settings_is_made_anew(folder: Path) -> None:
    for more, read in [
        ((), 39),
        (("--set", "source.where=tokens.lengths > 3"), 39),
        (("--set", "prepare.net=return tokens.values, tokens.lengths, tag"), 39),
    ]:
        done = seqflow("index", "job.toml", "--json", *more, folder=folder)
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["blocks_read"] == read, more
