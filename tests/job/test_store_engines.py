"""Jobs from store to store with workers: what a run in one process leaves on this machine, byte for byte."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marks import one_in, thorough

from seqflow.job import Job, run
from stores import Bucket

Tables = dict[str, Any]
LABELS = {"columns": ["label"]}
JOBS: dict[str, Tables] = {
    "packed": {"batch": {"kind": "packed", "capacity": 64, "rows": 8}, "order": {"shuffle": True, "seed": 3}},
    "sorted": {"batch": {"n": 16}, "output": {"sort_by": ["-label"]}},
    "partitioned": {"batch": {"n": 16}, "output": {"partition_by": "lang"}},
    "one file": {"batch": {"n": 16}, "output": {"path": "out.parquet"}},
    "two threads": {"batch": {"n": 16}, "output": {"threads": 2, "row_group_bytes": "2 KiB"}},
    "a net in a file": {"batch": {"n": 16}, "net": {"file": "net.txt"}},
    # parts without rows, and of one file where threads could write two: later parts have other numbers than expected
    "parts without rows": {"batch": {"n": 16}, "keep": ["label < 250 or label > 900"]},
    "few row groups": {"batch": {"n": 16}, "output": {"threads": 2, "row_group_bytes": "1 MiB"}},
}  # fmt: skip
QUICK = ("packed", "sorted", "parts without rows", "few row groups")


@pytest.fixture
def folder(tmp_path: Path, bucket: Bucket) -> Path:
    """A job's folder, and its source in the bucket: two files of 600 rows, of which some tokens are null."""
    draw = np.random.default_rng(0)
    (tmp_path / "job").mkdir()
    for part in range(2):
        lists = [
            [None] if i % 97 == 5 else [*map(int, draw.integers(0, 99, n))]
            for i, n in enumerate(draw.integers(0, 40, 600))
        ]
        columns = {
            "tokens": pa.array(lists, pa.list_(pa.int32())),
            "label": np.arange(600) + 600 * part,
            "lang": draw.choice(["py", "c"], 600),
        }  # fmt: skip
        pq.write_table(pa.table(columns), tmp_path / f"in{part}.parquet", row_group_size=50)
        bucket.put(f"in/in{part}.parquet", tmp_path / f"in{part}.parquet")
    (tmp_path / "job" / "net.txt").write_text("twice = label * 2\n")
    return tmp_path


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, bucket: Bucket) -> None:
    """Address and credentials as a user has them: in the environment, none in the job."""
    for name, value in {**bucket.options, "aws_allow_http": "true"}.items():
        monkeypatch.setenv(name.upper(), value)


def job(
    folder: Path, name: str, bucket: Bucket | None = None, engine: Tables | None = None, **more: Tables
) -> Job:
    """The job from store to store, or on this machine."""
    tables: Tables = {**JOBS[name], **more}
    output = {"part_bytes": "32 KiB", "row_group_bytes": "8 KiB", "path": "out", **tables.get("output", {})}
    source = {"paths": str(folder / "in*.parquet"), **tables.get("source", {})}
    if bucket is None:
        output["path"] = str(folder / "local" / output["path"])
    else:
        output["path"] = f"{bucket.uri}/{output['path']}"
        source["paths"] = f"{bucket.uri}/in/in*.parquet"
    tables |= {"source": source, "output": output, "engine": engine or {}}
    tables["order"] = {"window": "8 KiB", **tables.get("order", {})}
    bad_rows = {
        "policy": "quarantine",
        "path": str(folder / ("bad" if bucket else "local_bad") / "bad.parquet"),
    }
    return Job.from_dict({"bad_rows": bad_rows, **tables}, folder / "job")


def objects(bucket: Bucket, prefix: str = "out") -> dict[str, bytes]:
    """The data files of an output. Of the log one object is left, and nothing else is hidden."""
    keys = [*bucket.keys(prefix), *bucket.keys(f"{prefix}.parquet"), *bucket.keys(".out.parquet")]
    hidden = [key for key in keys if "/." in f"/{key}"]
    assert all(".progress/" in key or key.endswith("_manifest.json") for key in hidden)
    return {key: bucket.get(key) for key in keys if key not in hidden and "_manifest" not in key}


def expected_of(folder: Path, name: str, **more: Tables) -> dict[str, bytes]:
    run(job(folder, name, **more))
    root = folder / "local"
    files = [file for file in root.rglob("*.parquet") if "/." not in str(file)]
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in files}


@pytest.mark.slow
@pytest.mark.parametrize("name", one_in(3, JOBS))
def test_workers_write_the_bytes_of_one_process(folder: Path, bucket: Bucket, name: str) -> None:
    expected = expected_of(folder, name)
    report = run(job(folder, name, bucket, {"workers": 2}))
    assert objects(bucket) == expected
    assert (folder / "bad" / "bad.parquet").stat().st_size > 0
    bad, local = (pq.read_table(folder / place / "bad.parquet") for place in ("bad", "local_bad"))
    assert bad.num_rows == local.num_rows == report.bad_rows
    assert run(job(folder, name, bucket)).outcome == "complete"


def stop_after(batches: int) -> Any:
    def stop(stats: Any, total: object) -> None:
        if stats.batches >= batches:
            raise InterruptedError("enough")

    return stop


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "packed",
        *thorough("sorted", "one file"),
    ],
)
def test_a_run_goes_on_in_another_way(folder: Path, bucket: Bucket, name: str) -> None:
    expected, workers = expected_of(folder, name), {"workers": 2}
    for first, second in [(workers, None), (None, workers)]:
        with pytest.raises(InterruptedError):
            run(job(folder, name, bucket, first), stop_after(30))
        assert run(job(folder, name, bucket, second), resume=True).outcome == "resumed"
        assert objects(bucket) == expected
        bucket.delete(*bucket.keys())
        for part in range(2):
            bucket.put(f"in/in{part}.parquet", folder / f"in{part}.parquet")
