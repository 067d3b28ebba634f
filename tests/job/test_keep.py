"""Jobs that leave rows out on purpose: their output, their counts, and what a run that goes on compares."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from killed_jobs import KILLING

from seqflow.errors import JobError, NetError, OpError
from seqflow.job import Job, run
from seqflow.job.checking import check
from seqflow.job.planning import plan
from seqflow.ops import hash, hash_text

ROWS = 200
IDS = np.arange(ROWS)
TEXTS = [f"user {n % 17}é" for n in range(ROWS)]
DROP = np.array([4, 20, 33])
KEPT = [n for n in IDS.tolist() if n not in DROP and hash([n])[0] % 3 != 0]
KEEP = ["find(drop, id) < 0", "hash(id) % 3 != 0"]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    table = pa.table(
        {
            "id": IDS,
            "name": TEXTS,
            "tokens": pa.array([[n] * (n % 5) for n in range(ROWS)], pa.list_(pa.int32())),
            "at": pa.array(IDS, pa.timestamp("us", "UTC")),
            "lang": pa.array(["py", "c"] * (ROWS // 2)).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=20)
    np.save(tmp_path / "drop.npy", DROP)
    return tmp_path


def tables_of(folder: Path, **sections: Any) -> dict[str, Any]:
    return {
        "source": {"paths": "a.parquet"},
        "order": {"window": 900},
        "keep": KEEP,
        "batch": {"kind": "rows", "n": 8},
        "constants": {"drop": "drop.npy"},
        "output": {"path": str(folder / "out"), "part_bytes": 900},
        **sections,
    }


def job_of(folder: Path, **sections: Any) -> Job:
    return Job.from_dict(tables_of(folder, **sections), folder)


def written(folder: Path) -> pa.Table:
    return pq.read_table(folder / "out")


def test_a_job_writes_the_rows_that_are_kept_with_their_types(data: Path) -> None:
    assert "tokens.lengths" in str(check(job_of(data)))
    assert plan(job_of(data)).is_estimate
    report = run(job_of(data))
    found = written(data)
    assert found["id"].to_pylist() == KEPT
    assert found["name"].to_pylist() == [TEXTS[n] for n in KEPT]
    assert [field.type for field in found.schema] == [
        pa.int64(), pa.string(), pa.list_(pa.int32()), pa.timestamp("us", "UTC"),
        pa.dictionary(pa.int32(), pa.string()),
    ]  # fmt: skip
    assert (report.rows, report.filtered, report.skipped) == (len(KEPT), ROWS - len(KEPT), ROWS - len(KEPT))
    assert (report.rows_read, report.bad_rows) == (ROWS, 0)
    counts = json.loads((data / "out" / "_manifest.json").read_text())["counts"]
    assert (counts["filtered"], counts["filtered_by_keep"]) == (ROWS - len(KEPT), ROWS - len(KEPT))
    by_condition = {KEEP[0]: len(DROP), KEEP[1]: ROWS - len(KEPT) - len(DROP)}
    assert counts["filtered_by_condition"] == report.filtered_by_condition == by_condition
    again = run(job_of(data))
    assert (again.outcome, again.filtered_by_condition) == ("complete", by_condition)


def test_workers_make_the_same_bytes(data: Path) -> None:
    sections: dict[str, Any] = {"require": "id != 100", "bad_rows": {"policy": "skip"}}
    sections["source"] = {"paths": "a.parquet", "where": "id >= 10"}
    here = run(job_of(data, **sections))
    expected = {path.name: path.read_bytes() for path in here.files}
    counts = json.loads((data / "out" / "_manifest.json").read_text())["counts"]
    assert counts["reasons"] == {"id: require: id != 100 is false": 1}
    assert counts["filtered"] - counts["filtered_by_keep"] == 10
    there = run(job_of(data, **sections, engine={"workers": 2}), overwrite=True)
    assert {path.name: path.read_bytes() for path in there.files} == expected
    again = json.loads((data / "out" / "_manifest.json").read_text())["counts"]
    assert {**again, "tokens": 0} == {**counts, "tokens": 0}


def test_a_mix_and_texts(data: Path) -> None:
    source = {"paths": "a.parquet", "weight": 1}
    tables = tables_of(
        data, mix={"stop": "all", "sources": [{"name": name, **source} for name in "ab"]},
        keep="hash_text(name.values, name.lengths) % 2 == 0",
    )  # fmt: skip
    del tables["source"], tables["constants"]
    report = run(Job.from_dict(tables, data))
    content = [text.encode() for text in TEXTS]
    hashes = hash_text(np.frombuffer(b"".join(content), np.uint8), list(map(len, content)))
    assert set(written(data)["name"].to_pylist()) == {TEXTS[n] for n in np.flatnonzero(hashes % 2 == 0)}
    assert report.filtered == report.skipped > 0


def test_a_condition_and_its_constants_are_part_of_the_job(data: Path) -> None:
    run(job_of(data))
    record = json.loads((data / "out" / "_manifest.json").read_text())["job"]
    assert record["keep"][0]["constants"]
    np.save(data / "drop.npy", DROP + 1)
    with pytest.raises(JobError, match=r"keep\[0\]\.constants\.drop"):
        run(job_of(data))
    np.save(data / "drop.npy", DROP)
    with pytest.raises(
        JobError, match=r"keep\[1\]\.net\.\S+ \(line 1\) was .* and is .*hash\(id\) % 3 == 0`"
    ):
        run(job_of(data, keep=["find(drop, id) < 0", "hash(id) % 3 == 0"]))
    without = tables_of(data)
    del without["keep"], without["constants"]
    with pytest.raises(JobError, match=r"keep was \[.*\] and is None now"):
        run(Job.from_dict(without, data))
    run(Job.from_dict(without, data), overwrite=True)
    assert "keep" not in json.loads((data / "out" / "_manifest.json").read_text())["job"]


def test_wrong_conditions_are_errors_before_data_are_read(data: Path) -> None:
    with pytest.raises(JobError, match=r"keep\.fulfilled = id >"):
        job_of(data, keep="id >")
    with pytest.raises(JobError, match="keep is 5, expected text"):
        job_of(data, keep=5)
    with pytest.raises(NetError, match="nothing assigns 'idd'"):
        check(job_of(data, keep=["find(drop, idd) < 0"]))
    with pytest.raises(OpError, match=r"keep: id \+ 1 is int64\[0\], expected one truth value"):
        check(job_of(data, keep=["find(drop, id) < 0", "id + 1"]))


def test_the_command_shows_rows_that_are_filtered(data: Path) -> None:
    (data / "job.toml").write_text(
        'keep = "hash(id) % 10 == 0"\n[source]\npaths = "a.parquet"\n[output]\npath = "out"\n'
    )
    done = seqflow("run", "job.toml", folder=data)
    assert done.returncode == 0, done.stderr
    kept = [n for n in range(ROWS) if hash([n])[0] % 10 == 0]
    assert written(data)["id"].to_pylist() == kept
    assert f"{ROWS - len(kept)}" in next(line for line in done.stdout.splitlines() if "filtered" in line)
    assert any(
        line.split() == ["hash(id)", "%", "10", "==", "0", f"{ROWS - len(kept)}"]
        for line in done.stdout.splitlines()
    )


def test_json_has_the_counts_of_conditions(data: Path) -> None:
    text = 'keep = ["id >= 10", "id % 2 == 0"]\n[source]\npaths = "a.parquet"\n[output]\npath = "out"\n'
    (data / "job.toml").write_text(text)
    done = seqflow("run", "job.toml", "--json", folder=data)
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["filtered_by"] == {"keep": 105}
    assert report["filtered_by_condition"] == {"id >= 10": 10, "id % 2 == 0": 95}


KILLER = f"""
{KILLING}
if "KILL_AT" in os.environ:
    os.replace = killing(os.replace)
"""


@pytest.mark.slow
def test_a_killed_run_goes_on_byte_for_byte_with_its_counts(data: Path) -> None:
    (data / "killer.py").write_text(KILLER)
    (data / "job.toml").write_text(
        'imports = ["killer"]\nkeep = ["find(drop, id) < 0", "hash(id) % 3 != 0"]\nrequire = "id % 50 != 7"\n'
        '[source]\npaths = "a.parquet"\n[constants]\ndrop = "drop.npy"\n[bad_rows]\npolicy = "skip"\n'
        '[order]\nwindow = 900\n[batch]\nkind = "tokens"\nmax_tokens = 20\n[output]\npath = "out"\npart_bytes = 900\n'
    )
    assert seqflow("run", "job.toml", folder=data).returncode == 0
    expected = {path.name: path.read_bytes() for path in (data / "out").glob("*.parquet")}
    counts = json.loads((data / "out" / "_manifest.json").read_text())["counts"]
    for kill_at in range(1, 12, 2):
        done = seqflow("run", "job.toml", "--overwrite", folder=data, KILL_AT=str(kill_at))
        if done.returncode:
            done = seqflow("run", "job.toml", "--resume", folder=data)
        assert done.returncode == 0, done.stderr
        assert {path.name: path.read_bytes() for path in (data / "out").glob("*.parquet")} == expected
        assert json.loads((data / "out" / "_manifest.json").read_text())["counts"] == counts
