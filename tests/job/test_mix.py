"""Jobs of several sources: the batches are those of a Mix."""

import json
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
from seqflow.loader import Stats

Tables = dict[str, Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files of 300, 200 and 90 rows, of which some tokens are null; ids begin at 1,000 times the number of the file."""
    draw = np.random.default_rng(0)
    for number, rows in enumerate((300, 200, 90)):
        tokens = [
            [None] if row % 37 == 5 else draw.integers(0, 99, n).tolist()
            for row, n in enumerate(draw.integers(1, 9, rows))
        ]
        ids = np.arange(rows) + 1000 * number
        table = pa.table({"tokens": pa.array(tokens, pa.list_(pa.int32())), "id": ids})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=20)
    return tmp_path


def sources(*weights: Any, **more: Any) -> list[Tables]:
    return [
        {"name": f"n{at}", "paths": f"{at}.parquet", "weight": one, **more} for at, one in enumerate(weights)
    ]


PLANS: dict[str, tuple[Tables, Any]] = {
    "rows": ({"n": 10}, sf.Rows(10)),
    "tokens": ({"kind": "tokens", "max_tokens": 40}, sf.TokenBudget(40)),
    "packed": (
        {"kind": "packed", "capacity": 16, "rows": 4, "columns": ["tokens"]},
        sf.Packed(16, rows=4, columns=["tokens"]),
    ),
}
MIXES: dict[str, tuple[Tables, Tables]] = {
    "numbers": ({"sources": sources(3, 1.5, 1)}, {"weights": [3, 1.5, 1]}),
    "all": ({"sources": sources(1, 1, 1), "stop": "all", "seed": 7}, {"weights": [1, 1, 1], "stop": "all", "seed": 7}),
    "schedules": (
        {"sources": sources({"points": [[0, 1.0], [9, 0]]}, {"points": [[0, 0], [20, 1]], "linear": True}, 0.3)},
        {"weights": [sf.Schedule({0: 1.0, 9: 0}), sf.Schedule({0: 0, 20: 1}, linear=True), 0.3]},
    ),
    "no column": ({"sources": sources(1, 1), "column": ""}, {"weights": [1, 1], "column": None}),
}  # fmt: skip


def job(folder: Path, mix: Tables, **tables: Any) -> Job:
    usual: Tables = {
        "order": {"window": 700, "shuffle": True, "seed": 3},
        "batch": {"n": 10},
        "output": {"path": "out", "part_bytes": 2000},
        "bad_rows": {"policy": "skip"},
    }
    merged = {name: {**section, **tables.pop(name, {})} for name, section in usual.items()}
    return Job.from_dict({"mix": mix, **merged, **tables}, folder)


def table_of(report: Report) -> pa.Table:
    return pa.concat_tables([pq.read_table(file) for file in report.files])


@pytest.mark.each_choice
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("name", MIXES)
def test_the_output_is_that_of_a_mix(folder: Path, name: str, plan: str) -> None:
    written, options = MIXES[name]
    batch, of_loader = PLANS[plan]
    weights = {f"n{at}": weight for at, weight in enumerate(options["weights"])}
    mix = sf.Mix(
        {f"n{at}": folder / f"{at}.parquet" for at in range(len(weights))},
        **{**options, "weights": weights},
        batch=of_loader, window=700, shuffle=sf.Shuffle(3), bad_rows="skip", skip=[(3, 5)],
    )  # fmt: skip
    expected = pa.Table.from_batches([sf.to_arrow(one) for one in mix])
    tables = {"batch": batch} if plan == "rows" else {}
    made = job(folder, written, skip=[[3, 5]], **tables)
    if plan != "rows":
        made = Job.from_dict(
            {
                "mix": written, "skip": [[3, 5]], "batch": batch,
                "order": {"window": 700, "shuffle": True, "seed": 3},
                "output": {"path": "out", "part_bytes": 2000}, "bad_rows": {"policy": "skip"},
            },
            folder,
        )  # fmt: skip
    report = run(made)
    assert table_of(report).equals(expected)
    assert len(report.files) > 1
    for count in ("rows", "tokens", "batches", "dropped", "skipped"):
        assert getattr(report, count) == getattr(mix.stats(), count), count


@pytest.mark.slow
@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("name", ["numbers", "all", "schedules"])
@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("stop_after", [5, 21])
@pytest.mark.parametrize(("threads", "output"), [(0, "o/out"), (2, "o/out.parquet")])
def test_a_run_that_failed_goes_on(
    folder: Path, name: str, plan: str, stop_after: int, threads: int, output: str
) -> None:
    def of(path: str) -> Job:
        return Job.from_dict(
            {
                "mix": MIXES[name][0], "batch": PLANS[plan][0],
                "order": {"window": 700, "shuffle": True, "threads": threads},
                "output": {"path": path, "part_bytes": 1000},
                "bad_rows": {"policy": "quarantine", "path": str(Path(path).parent / "bad.parquet")},
            },
            folder,
        )  # fmt: skip

    whole = run(of("w" + output[1:]))

    def fail(stats: Stats, total: int | None) -> None:
        if stats.batches == stop_after:
            raise InterruptedError

    with pytest.raises(InterruptedError) as caught:
        run(of(output), fail)
    assert caught.value.__notes__ == ["what is finished is kept: --resume goes on after it"]
    report = run(of(output), resume=True)
    assert report.outcome == "resumed"
    assert files(folder / "o") == files(folder / "w")
    for count in ("rows", "tokens", "batches", "dropped", "skipped", "bad_rows", "rows_read"):
        assert getattr(report, count) == getattr(whole, count), count


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_quarantine_file_has_the_bad_rows_of_all_sources(folder: Path) -> None:
    mix = {"sources": sources(1, 1), "stop": "all"}
    report = run(
        job(folder, mix, bad_rows={"policy": "quarantine", "path": "bad.parquet"}, output={"path": "out.parquet"},
            batch={"n": 10, "drop_last": True})
    )  # fmt: skip
    bad = pq.read_table(folder / "bad.parquet")["bad"].to_pylist()
    assert {Path(one["file"]).name for one in bad} == {"0.parquet", "1.parquet"}
    assert len(bad) == report.bad_rows


def test_rows_per_file_cuts_by_the_rows_of_batches(folder: Path) -> None:
    report = run(job(folder, {"sources": sources(1, 1)}, output={"rows_per_file": 50, "part_bytes": "1 GiB"}))
    rows = [pq.read_metadata(file).num_rows for file in report.files]
    assert len(rows) > 3
    assert all(50 <= n < 60 for n in rows[:-1])


def test_a_source_has_keys_of_its_own(folder: Path) -> None:
    (folder / "rows.jsonl").write_text(
        "".join(json.dumps({"ids": [n] * 3, "id": n}) + "\n" for n in range(40))
    )
    own = {
        "name": "lines", "paths": "rows.jsonl", "weight": 1.0, "rename": {"ids": "tokens"}, "columns": ["tokens", "id"],
        "jsonl": {"schema": {"ids": "list<int32>", "id": "int64"}}, "where": "id < 30",
    }  # fmt: skip
    mix = {"sources": [own, *sources(1, where="id >= 20")]}
    found = table_of(run(job(folder, mix, order={"window": "1 MiB"})))
    of_lines = [row["id"] for row in found.to_pylist() if row["source"] == 0]
    assert set(of_lines) <= set(range(30))
    assert min(row["id"] for row in found.to_pylist() if row["source"] == 1) >= 20


JOB = """\
[mix]
seed = 1
[[mix.sources]]
paths = "0.parquet"
weight = 0.7
[[mix.sources]]
name = "second"
paths = "1.parquet"
weight = {points = [[0, 0.8], [10_000, 0.2]], linear = true}
[batch]
kind = "tokens"
max_tokens = 40
[output]
path = "out"
[bad_rows]
policy = "skip"
"""


def test_the_command_runs_checks_and_traces_a_mix(folder: Path) -> None:
    (folder / "job.toml").write_text(JOB)
    done = seqflow("check", "job.toml", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "[source 0.parquet]" in done.stdout.replace(f"{folder}/", "")
    assert "[source second]" in done.stdout
    done = seqflow("run", "job.toml", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "batches" in done.stdout
    again = seqflow("run", "job.toml", folder=folder)
    assert "the output is complete" in again.stderr
    traced = seqflow("trace", "job.toml", "--batch", "1", "--json", folder=folder)
    assert traced.returncode == 0, traced.stderr
    assert json.loads(traced.stdout)["sources"][0]["source"]


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("weight = 0.7", "weight = -1", "line 5: weight is -1, expected a number, 0 or more"),
        ("weight = 0.7", "weight = true", "line 5: weight is True, expected a number"),
        ("weight = 0.7\n", "", r"line 3: \[\[mix.sources\]\] needs 'weight'"),
        ("[[0, 0.8], [10_000, 0.2]]", "[0.8]", r"line 9: points is \[0.8\], expected pairs"),
        ("[[0, 0.8]", "[[5, 0.8]", "line 9: the first batch with a weight is 5, expected 0"),
        ("linear", "lineer", r"line 9: unknown key 'lineer' in a weight \(did you mean 'linear'"),
        ('paths = "1.parquet"', "", r"line 6: \[mix.sources.1\] needs 'paths'"),
        ('paths = "1.parquet"', 'pathes = "1.parquet"', r"line 8: unknown key 'pathes'.*did you mean 'paths'"),
        ("seed = 1", "seed = 'x'", "line 2: seed is 'x', expected an integer"),
        ("seed = 1", "stop = 'never'", "line 2: stop is 'never', expected"),
        ('name = "second"', 'name = "FOLDER/0.parquet"', "line 6: two sources have the name"),
        ("[batch]", '[source]\npaths = "0.parquet"\n[batch]', r"line 10: there are \[source\] and \[mix\]"),
        ("[batch]", "[order]\nindex = 'x.arrow'\n[batch]", "line 11: index has the lengths of one source"),
        ("[batch]", "[engine]\nworkers = 2\n[batch]", "a mix is made by one process"),
    ],
)  # fmt: skip
def test_a_wrong_mix_is_named_with_its_line(folder: Path, old: str, new: str, text: str) -> None:
    assert old in JOB
    (folder / "job.toml").write_text(JOB.replace(old, new, 1).replace("FOLDER", str(folder)))
    with pytest.raises(JobError, match=text):
        Job.read(folder / "job.toml")


def test_totals_are_those_of_the_steps_of_the_mix(folder: Path) -> None:
    mix = sf.Mix(
        {f"n{at}": folder / f"{at}.parquet" for at in (0, 1)},
        weights={"n0": 2, "n1": 1}, batch=10, window=700, shuffle=sf.Shuffle(3), bad_rows="skip",
        totals={"elements": "tokens.lengths"}, steps_of=3,
    )  # fmt: skip
    expected = [int(batch["step.elements"]) for batch in mix for _ in range(batch.num_rows)]
    made = job(folder, {"sources": sources(2, 1)}, totals={"elements": "tokens.lengths"}, steps_of=3)
    report = run(made)
    assert len(report.files) > 1
    assert table_of(report)["step.elements"].to_pylist() == expected


def test_a_mix_without_sources_is_an_error(folder: Path) -> None:
    with pytest.raises(JobError, match=r"\[mix\] has no sources"):
        Job.from_dict({"mix": {"seed": 1}}, folder)


def test_sources_with_other_columns_are_an_error_of_check(folder: Path) -> None:
    other = [*sources(1), {"name": "b", "paths": "1.parquet", "weight": 1, "columns": ["id"]}]
    with pytest.raises(SeqflowError, match=r"tokens.* is missing in batches of source 1"):
        check(job(folder, {"sources": other}))


@pytest.mark.parametrize("command", [("index",), ("run", "--dry-run"), ("report",)])
def test_commands_for_one_source_say_so(folder: Path, command: tuple[str, ...]) -> None:
    (folder / "job.toml").write_text(JOB)
    done = seqflow(command[0], "job.toml", *command[1:], folder=folder)
    assert done.returncode != 0
    assert "this takes a job of one source, and [mix] has several" in done.stderr


def test_a_source_without_rows_is_named_and_may_have_no_weight(folder: Path) -> None:
    pq.write_table(pq.read_table(folder / "1.parquet").slice(0, 0), folder / "1.parquet")
    for stop in ("first", "all"):
        with pytest.raises(SeqflowError, match="Mix: source 'n1' has no batch"):
            run(job(folder, {"sources": sources(1, 1), "stop": stop}, output={"path": stop}))
    report = run(job(folder, {"sources": sources(1, 0)}))
    assert set(table_of(report)["source"].to_pylist()) == {0}


def test_an_output_of_another_order_of_mixes_is_refused(folder: Path) -> None:
    made = job(folder, {"sources": sources(1, 1)})
    run(made)
    (manifest,) = (folder / "out").glob("*manifest*")
    content = json.loads(manifest.read_text())
    del content["job"]["mix"]["order"]
    manifest.write_text(json.dumps(content))
    with pytest.raises(JobError, match=r"mix\.order is new: 2"):
        run(made)


@pytest.mark.parametrize("changed", [sources(1, 9), sources(1, 1, 4), sources(1, 1)[1:]])
def test_a_run_goes_on_with_other_weights_and_sources_after_its_finished_parts(
    folder: Path, changed: list[Tables]
) -> None:
    def fail(stats: Stats, total: int | None) -> None:
        if stats.batches == 12:
            raise InterruptedError

    with pytest.raises(InterruptedError):
        run(job(folder, {"sources": sources(1, 1)}), fail)
    made = job(folder, {"sources": changed})
    with pytest.raises(JobError, match="--resume --accept-changes uses the changes after the finished parts"):
        run(made, resume=True)
    report = run(made, resume=True, accept_changes=True)
    assert report.outcome == "resumed"
    (manifest,) = (folder / "out").glob("*manifest*")
    before = json.loads(manifest.read_text())["changes"][0]["from_row"]
    options = {"batch": 10, "window": 700, "shuffle": sf.Shuffle(3), "bad_rows": "skip"}
    mix = sf.Mix(
        {f"n{at}": folder / f"{at}.parquet" for at in range(2)}, weights={"n0": 1, "n1": 1}, **options
    )
    batches, state = iter(mix), mix.state_dict()
    first = []
    while sum(one.num_rows for one in first) < before:
        first.append(next(batches))
        state = mix.state_dict()
    assert 0 < len(first) < 12
    then = sf.Mix(
        {one["name"]: folder / one["paths"] for one in changed},
        weights={one["name"]: one["weight"] for one in changed},
        **options,
    )
    then.load_state_dict(state, changes="accept")
    expected = pa.Table.from_batches([sf.to_arrow(one) for one in (*first, *then)])
    assert table_of(report).equals(expected)


def test_another_weight_or_source_is_another_job(folder: Path) -> None:
    run(job(folder, {"sources": sources(1, 1)}))
    with pytest.raises(JobError, match=r"mix\.\S+ was .* and is .* now"):
        run(job(folder, {"sources": sources(1, 2)}))
    with pytest.raises(JobError, match="of another job or of other data"):
        run(job(folder, {"sources": sources(1, 1, 1)}))
    pq.write_table(pq.read_table(folder / "1.parquet").slice(0, 100), folder / "1.parquet", row_group_size=20)
    with pytest.raises(JobError, match=r"the data have changed: 1.parquet had"):
        run(job(folder, {"sources": sources(1, 1)}))
