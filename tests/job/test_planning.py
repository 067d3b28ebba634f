"""The plan of a job, before it runs."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from outputs import names, write_job

from seqflow.job import Job, run
from seqflow.job.planning import plan


@pytest.mark.parametrize(
    ("batch", "counted"), [({"n": 4}, True), ({"kind": "tokens", "max_tokens": 8}, False)]
)
def test_a_plan_is_what_the_run_does_where_one_window_holds_everything(
    folder: Path, batch: dict[str, object], counted: bool
) -> None:
    before = names(folder)
    job = Job.from_dict(
        {"source": {"paths": "docs.parquet"}, "batch": batch, "output": {"path": "out"}}, folder
    )
    planned = plan(job)
    assert names(folder) == before
    report = run(job)
    assert (planned.windows, planned.rows, planned.is_estimate) == (1, 10, not counted)
    assert (planned.batches, planned.fill) == (report.batches, report.fill)


@pytest.mark.parametrize("batch", [{"kind": "packed", "capacity": 4}, {"kind": "tokens", "max_tokens": 4}])
def test_rows_that_are_split_are_counted(tmp_path: Path, batch: dict[str, object]) -> None:
    pq.write_table(pa.table({"tokens": [[1] * 9, [2] * 3, [3] * 5]}), tmp_path / "x.parquet")
    for oversize, split in (("split", 2), ("truncate", 0)):
        settings = {"source": {"paths": "x.parquet"}, "batch": {**batch, "oversize": oversize}}
        planned = plan(Job.from_dict({**settings, "output": {"path": "out"}}, tmp_path))
        assert planned.split == split
        assert dict(planned.lines()).get("rows split") == ("2 in the first window" if split else None)


def test_batches_of_many_windows_are_estimated_from_the_first(folder: Path) -> None:
    settings = {
        "source": {"paths": "docs.parquet"},
        "order": {"window": 100},
        "batch": {"kind": "packed", "capacity": 4},
    }
    planned = plan(Job.from_dict({**settings, "output": {"kind": "none"}}, folder))
    assert planned.windows > 1
    assert planned.is_estimate
    assert planned.batches >= planned.windows
    assert planned.memory > 0
    assert planned.output_bytes == 0


def test_a_plan_says_how_the_output_is_arranged(folder: Path) -> None:
    text = '[source]\npaths = "docs.parquet"\n[output]\npath = "out"\nsort_by = "-label"\npartition_by = "label2"\n'
    net = '"label2 = label * 2\\nreturn label, label2, tokens.values, tokens.lengths"'
    write_job(folder, f"{text}[prepare]\nnet = {net}")
    done = seqflow("run", "job.toml", "--dry-run", folder=folder)
    table = dict(line.rsplit(maxsplit=1) for line in done.stdout.splitlines())
    assert (table["sorted by"], table["folders by"]) == ("-label", "label2")
    done = seqflow("run", "job.toml", "--dry-run", "--set", "output.sort_by=tokens", folder=folder)
    assert "sort_by has 'tokens', which is list<" in done.stderr


def test_a_job_without_rows_has_no_batches(folder: Path) -> None:
    pq.write_table(pq.read_table(folder / "docs.parquet").slice(0, 0), folder / "none.parquet")
    planned = plan(Job.from_dict({"source": {"paths": "none.parquet"}, "output": {"path": "out"}}, folder))
    assert (planned.rows, planned.batches, planned.fill) == (0, 0, None)


def test_the_command_prints_the_plan_and_writes_nothing(folder: Path) -> None:
    write_job(folder, '[source]\npaths = "docs.parquet"\n[batch]\nn = 4\n[output]\npath = "out"')
    before = names(folder)
    done = seqflow("run", "job.toml", "--dry-run", folder=folder)
    assert (done.returncode, done.stderr, names(folder)) == (0, "", before)
    table = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert (table["windows"], table["rows"], table["batches"]) == ("1", "10", "3")
    assert set(table) == {"windows", "rows", "input", "batches", "fill", "output", "memory"}


def test_a_plan_says_what_ranks_would_wait(folder: Path) -> None:
    batch = {"kind": "packed", "capacity": 6, "rows": 1, "balance": {"group": 2, "steps_of": 1, "linear": 1}}
    settings = {
        "source": {"paths": "docs.parquet", "columns": ["tokens"]},
        "batch": batch,
        "output": {"kind": "none"},
    }
    planned = plan(Job.from_dict(settings, folder))
    assert planned.costs is not None
    assert planned.costs.steps > 0
    assert 1 <= planned.costs.imbalance <= planned.costs.imbalance_undealt
    lines = dict(planned.lines())
    assert lines["imbalance"].startswith(f"{planned.costs.imbalance:.4f}, undealt")
    assert "with pool = " in lines["its bound"]
    few = plan(Job.from_dict({**settings, "batch": {**batch, "balance": {"group": 99, "linear": 1}}}, folder))
    assert dict(few.lines())["imbalance"].startswith("not known")
    none = plan(Job.from_dict({**settings, "batch": {**batch, "balance": {"group": 2, "linear": 1}}}, folder))
    assert none.costs is not None


@pytest.mark.slow
@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize(
    ("window", "capacity"), [("1 MiB", 512), ("8 MiB", 2048), ("64 MiB", 2048), ("64 MiB", 32768)]
)
@pytest.mark.parametrize("engine", [(), ("--workers", "2")])
def test_the_peak_of_a_run_is_near_its_estimate(
    tmp_path: Path, window: str, capacity: int, engine: tuple[str, ...]
) -> None:
    sizes = ("--set", f"order.window={window}", "--set", f"batch.capacity={capacity}", *engine)
    job = Path(__file__).parents[2] / "examples" / "pack_source.toml"
    command = ("run", str(job), "--json", "--output", "out", *sizes)
    planned = json.loads(seqflow(*command, "--dry-run", folder=tmp_path).stdout)
    measured = json.loads(seqflow(*command, folder=tmp_path).stdout)
    assert planned["peak_memory"] == pytest.approx(measured["peak_memory"], rel=0.4)
    assert planned["memory"] < planned["peak_memory"]


def test_a_plan_says_the_peak_of_a_process_and_of_each_worker(folder: Path) -> None:
    job = {"source": {"paths": "docs.parquet"}, "batch": {"n": 4}, "output": {"path": "out"}}
    planned = plan(Job.from_dict(job, folder))
    assert planned.peak_memory > 20 << 20 > planned.memory
    lines = dict(plan(Job.from_dict({**job, "engine": {"workers": 3}}, folder)).lines())
    assert re.match(r"about \d\S* [MG]iB in each of 3 workers, ", lines["memory"])
