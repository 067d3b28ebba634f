"""Commands that write a file replace none unasked."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

COMMANDS = {
    "build-vocabulary": ("out.arrow", ["build-vocabulary", "t.parquet", "n"]),
    "train-tokenizer": ("out.json", ["train-tokenizer", "t.parquet", "--vocab-size", 260, "--output"]),
    "report": ("out.html", ["report", "t.parquet", "-o"]),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_there_is_replaced_only_with_overwrite(tmp_path: Path, command: str) -> None:
    name, arguments = COMMANDS[command]
    pq.write_table(pa.table({"n": [1, 2, 1], "text": ["ab", "ab", "c"]}), tmp_path / "t.parquet")
    assert seqflow(*arguments, name, folder=tmp_path).returncode == 0
    before = (tmp_path / name).stat()
    refused = seqflow(*arguments, name, folder=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert f"output: '{name}' exists\n  --overwrite replaces it" in refused.stderr
    after = (tmp_path / name).stat()  # whoever looks at it may change the time of access
    assert (after.st_ino, after.st_size, after.st_mtime_ns) == (
        before.st_ino,
        before.st_size,
        before.st_mtime_ns,
    )
    assert seqflow(*arguments, name, "--overwrite", folder=tmp_path).returncode == 0
    assert (tmp_path / name).stat().st_mtime_ns > before.st_mtime_ns
