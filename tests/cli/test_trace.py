"""`seqflow trace`: where a batch of a job comes from."""

import json
from pathlib import Path

from command import seqflow


def test_an_element_of_a_packed_row_is_found_in_its_file(folder: Path) -> None:
    options = ("--set", 'batch={kind="packed", capacity=16}', "--set", 'source.columns=["tokens"]')
    where = ("--batch", "0", "--row", "1", "--element", "3")
    done = seqflow("trace", folder / "job.toml", *where, *options)
    assert done.returncode == 0, done.stderr
    assert "docs.parquet, block 0, row " in done.stdout
    assert ", column tokens, element " in done.stdout
    as_json = seqflow("trace", folder / "job.toml", *where, "--json", *options)
    (found,) = json.loads(as_json.stdout)["sources"]
    assert f"row {found['row']}, column tokens, element {found['element']}" in done.stdout
    shown = seqflow("trace", folder / "job.toml", "--batch", "0", "--row", "1", "--show", *options)
    assert "segment_ids" in shown.stdout


def test_a_batch_behind_the_end_is_an_error(folder: Path) -> None:
    done = seqflow("trace", folder / "job.toml", "--batch", "1000")
    assert done.returncode == 1
    assert "trace: number is 1000, expected less than" in done.stderr
