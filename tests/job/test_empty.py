"""Jobs without rows."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqflow.errors import ProviderError
from seqflow.job import Job, run

EMPTY_JOBS = {
    "as they come": {},
    "with nets": {
        "prepare": {"net": "t = truncate(tokens.values, tokens.lengths, max_length=2)\nreturn t.values, t.lengths, label"},
        "net": {"net": "x, mask = pad(t.values, t.lengths, max_length=2)\nreturn x, mask, label"},
    },
    "by tokens": {"batch": {"kind": "tokens", "max_tokens": 8}},
    "packed": {"batch": {"kind": "packed", "capacity": 8}},
    "some columns": {"output": {"columns": ["label"]}},
}  # fmt: skip


@pytest.mark.parametrize("settings", EMPTY_JOBS.values(), ids=EMPTY_JOBS.keys())
@pytest.mark.parametrize("path", ["out", "out.parquet", "out.arrow"])
def test_a_job_without_rows_leaves_an_empty_file_of_the_same_schema(
    folder: Path, settings: dict[str, dict[str, object]], path: str
) -> None:
    whole = pq.read_table(folder / "docs.parquet")
    pq.write_table(whole.slice(0, 0), folder / "none.parquet")
    reports, schemas = [], []
    for source in ("docs.parquet", "none.parquet"):
        target = folder / source.removesuffix(".parquet") / path
        output = {**settings.get("output", {}), "path": str(target)}
        report = run(Job.from_dict({**settings, "source": {"paths": source}, "output": output}, folder))
        (file,) = report.files
        reports.append(report)
        schemas.append(pa.ipc.open_file(file).schema if path == "out.arrow" else pq.read_schema(file))
    assert schemas[0].equals(schemas[1])
    assert (reports[1].rows, reports[1].batches) == (0, 0)
    if path == "out":
        manifest = json.loads((folder / "none" / "out" / "_manifest.json").read_text())
        assert (manifest["rows"], manifest["columns"]) == (0, schemas[1].names)
        assert [entry["rows"] for entry in manifest["files"]] == [0]
        assert pq.read_table(folder / "none" / "out").num_rows == 0


def test_where_all_rows_are_bad_the_job_ends_with_an_error(folder: Path) -> None:
    tokens = pa.array([[None], [1, None]], pa.list_(pa.int32()))
    pq.write_table(pa.table({"tokens": tokens}), folder / "holes.parquet")
    source, bad = {"paths": "holes.parquet"}, {"policy": "skip"}
    with pytest.raises(ProviderError, match="leaves out all 2 rows"):
        run(Job.from_dict({"source": source, "output": {"path": "o.parquet"}, "bad_rows": bad}, folder))
    assert not (folder / "o.parquet").exists()
