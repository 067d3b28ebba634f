"""Batches that a job leaves out, and totals of steps as columns of its output."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

import seqflow as sf
from seqflow.errors import JobError, SeqflowError
from seqflow.job import Job, Report, run
from seqflow.job.checking import check
from seqflow.job.opening import open_loader
from seqflow.job.planning import plan

Tables = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with docs.parquet: 200 rows of tokens and labels, in row groups of 10."""
    draw = np.random.default_rng(0)
    tokens = [draw.integers(0, 99, n).tolist() for n in draw.integers(1, 9, 200)]
    table = pa.table({"tokens": pa.array(tokens, pa.list_(pa.int32())), "label": np.arange(200)})
    pq.write_table(table, tmp_path / "docs.parquet", row_group_size=10)
    return tmp_path


def job(folder: Path, **tables: Any) -> Job:
    usual: Tables = {
        "source": {"paths": "docs.parquet"},
        "order": {"window": 400},
        "batch": {"n": 8},
        "output": {"path": "out.parquet", "part_bytes": 1200},
    }
    merged = {name: {**section, **tables.pop(name, {})} for name, section in usual.items()}
    return Job.from_dict({**merged, **tables}, folder)


def table_of(report: Report) -> pa.Table:
    return pa.concat_tables([pq.read_table(file) for file in report.files])


def test_skipped_batches_are_left_out_and_counted(folder: Path) -> None:
    report = run(job(folder, skip=[[2, 4], [20, 99]]))
    left = [row for row in range(200) if row // 8 not in (2, 3, 20, 21, 22, 23, 24)]
    assert table_of(report)["label"].to_pylist() == left
    assert (report.batches, report.rows, report.skipped) == (18, len(left), 200 - len(left))


def test_an_epoch_that_is_skipped_as_a_whole_makes_an_empty_file(folder: Path) -> None:
    report = run(job(folder, skip=[[0, 99]], totals={"all": "label"}))
    found = table_of(report)
    assert len(found) == 0
    assert found.schema.field("step.all").type == pa.int64()


@pytest.mark.parametrize("part", [1200, "1 GiB"])
def test_each_row_has_the_totals_of_its_step_and_steps_begin_again_with_each_part(
    folder: Path, part: int | str
) -> None:
    totals = {"labels": "label", "high": "tokens.values > 50", "half": "tokens.values / 2.0"}
    report = run(job(folder, totals=totals, steps_of=3, output={"path": "parts", "part_bytes": part}))
    assert (len(report.files) == 1) == (part == "1 GiB")
    for file in report.files:
        found = pq.read_table(file)
        assert found.schema.field("step.half").type == pa.float64()
        for first in range(0, len(found), 24):
            step = found.slice(first, 24)
            values = np.concatenate(step["tokens"].to_pylist())
            assert set(step["step.labels"].to_pylist()) == {sum(step["label"].to_pylist())}
            assert set(step["step.high"].to_pylist()) == {np.count_nonzero(values > 50)}
            assert np.allclose(step["step.half"].to_numpy(), values.sum() / 2)


def test_totals_are_those_of_a_loader(folder: Path) -> None:
    totals = {"trained": "tokens.values > 50"}
    description = job(folder, totals=totals, steps_of=4, output={"part_bytes": "1 GiB"})
    expected = [
        int(batch["step.trained"]) for batch in open_loader(description) for _ in range(batch.num_rows)
    ]
    assert table_of(run(description))["step.trained"].to_pylist() == expected


def test_skipped_batches_count_in_no_total(folder: Path) -> None:
    report = run(
        job(folder, skip=[[1, 2]], totals={"rows": "label >= 0"}, steps_of=5, output={"part_bytes": "1 GiB"})
    )
    assert table_of(report)["step.rows"].to_pylist()[:32] == [32] * 32


@pytest.mark.parametrize(
    ("line", "text"),
    [
        ("skip = 5", "line 1: skip is 5, expected a list"),
        ("skip = [[5, 3]]", r"line 1: skip has \(5, 3\), expected a first batch before"),
        ("skip = [[1, 3], [2, 5]]", "line 1: skip has .* which overlap"),
        ('totals = "label"', "line 1: totals is 'label', expected a table"),
        ("totals = {x = 3}", "line 1: totals is {'x': 3}, expected names and expressions"),
        ('totals = {x = "label +"}', "line 1: expression, column 8"),
        ("steps_of = 2", "line 1: steps_of is given, but no totals"),
        ('totals = ["label"]\nsteps_of = 0', "line 2: steps_of is 0, expected an integer, 1 or more"),
        ('totals = ["label"]\nsteps_of = 2\n[batch]\nkind = "tokens"\nmax_tokens = 9\nbalance = {group = 2, linear = 1}',
         r"line 2: steps_of is given, and \[batch.balance\] has its own"),
    ],
)  # fmt: skip
def test_wrong_skips_and_totals_are_named_with_their_line(folder: Path, line: str, text: str) -> None:
    (folder / "job.toml").write_text(f'{line}\n[source]\npaths = "docs.parquet"\n')
    with pytest.raises(JobError, match=text):
        Job.read(folder / "job.toml")


@pytest.mark.parametrize("look", [check, run, plan])
def test_a_total_of_an_unknown_tensor_is_an_error_before_reading(folder: Path, look: Any) -> None:
    with pytest.raises(
        SeqflowError, match=r"totals: x names 'labels', which the records have not .did you mean 'label'"
    ):
        look(job(folder, totals={"x": "labels"}))
    assert not (folder / "out.parquet").exists()


def test_a_total_beyond_int64_is_an_error(folder: Path) -> None:
    large = pa.table({"label": pa.array([2**63, 5], pa.uint64())})
    pq.write_table(large, folder / "large.parquet")
    with pytest.raises(
        JobError, match="sum of step 0 is 9223372036854775813, expected at most 9223372036854775807"
    ):
        run(job(folder, source={"paths": "large.parquet"}, totals={"sum": "label"}))


def test_a_column_of_the_same_name_is_an_error(folder: Path) -> None:
    with pytest.raises(JobError, match=r"the batches have a column 'step.x' already"):
        check(job(folder, net={"net": "step.x = label + 1"}, totals={"x": "label"}))


def test_skips_with_workers_need_counted_batches(folder: Path) -> None:
    tables: Tables = {"batch": {"kind": "tokens", "max_tokens": 20, "n": 0}, "skip": [[1, 3]]}
    tables["batch"].pop("n")
    text = (
        'skip = [[1, 3], [7, 30]]\n[source]\npaths = "docs.parquet"\n[order]\nwindow = 400\nINDEX\n[batch]\n'
    )
    text += 'kind = "tokens"\nmax_tokens = 20\n[output]\npath = "OUT"\npart_bytes = 1200\n'
    path = folder / "job.toml"
    path.write_text(text.replace("INDEX", "").replace("OUT", "one"))
    assert run(Job.read(path)).batches > 20
    with pytest.raises(JobError, match=r"skip: workers make parts by themselves.*\n.*seqflow index"):
        run(Job.read(path, {"engine.workers": 2, "output.path": str(folder / "two")}))
    assert not (folder / "two").exists()
    path.write_text(text.replace("INDEX", 'index = "lengths.arrow"').replace("OUT", "two"))
    with pytest.raises(JobError, match="seqflow index"):
        check(Job.read(path, {"engine.workers": 2}))
    assert seqflow("index", path).returncode == 0
    report = run(Job.read(path, {"engine.workers": 2}))
    assert table_of(report).equals(pq.read_table(folder / "one"))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"skip": [[1, 2]]}, r"skip was None and is \[\[1, 2, 0\]\] now"),
        ({"totals": {"x": "label"}}, "totals was None and is {'x': 'label'} now"),
    ],
)
def test_skips_and_totals_are_part_of_the_identity_of_a_job(folder: Path, change: Tables, text: str) -> None:
    run(job(folder))
    with pytest.raises(JobError, match=text):
        run(job(folder, **change))
    assert run(job(folder, **change), overwrite=True).outcome == "new"
    assert run(job(folder, **change)).outcome == "complete"


@pytest.mark.each_choice
@pytest.mark.parametrize("plan_of", [{"n": 8}, {"kind": "tokens", "max_tokens": 30}])
@pytest.mark.parametrize("stop_after", [5, 9, 12])
def test_a_run_that_failed_goes_on_with_skips_and_totals(
    folder: Path, plan_of: Tables, stop_after: int
) -> None:
    tables: Tables = {
        "source": {"paths": "docs.parquet"}, "order": {"window": 400}, "batch": plan_of,
        "output": {"path": "whole", "part_bytes": 400}, "skip": [[2, 3], [5, 9], [12, 18]],
        "totals": {"x": "tokens.values"}, "steps_of": 3,
    }  # fmt: skip
    whole = run(Job.from_dict(tables, folder))
    broken = Job.from_dict({**tables, "output": {"path": "out", "part_bytes": 400}}, folder)

    def fail(stats: sf.loader.Stats, total: int | None) -> None:
        if stats.batches == stop_after:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        run(broken, fail)
    report = run(broken, resume=True)
    assert report.outcome == "resumed"
    assert [file.read_bytes() for file in report.files] == [file.read_bytes() for file in whole.files]
    assert (report.skipped, report.batches) == (whole.skipped, whole.batches)
