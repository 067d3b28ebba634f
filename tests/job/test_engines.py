"""The same job on every engine: this process, others of this machine, and tasks of a Ray cluster write the same."""

import json
import os
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marks import THOROUGH, thorough
from ray_session import ray_session

from seqflow import ops
from seqflow.errors import JobError, ProviderError, SeqflowError
from seqflow.job import Job, Report, run
from seqflow.job.opening import open_loader
from seqflow.job.part_tasks import Folders, setup_of, tasks_of
from seqflow.loader import Stats
from seqflow.loader.order.windows import Parts

Tables = dict[str, Any]

TRUNCATE = "b = truncate(tokens.values, tokens.lengths, max_length=30)\nreturn b.values, b.lengths, label"
SMALL = {"part_bytes": "32 KiB", "row_group_bytes": "8 KiB"}
JOBS: dict[str, Tables] = {
    "rows": {"batch": {"n": 16}},
    "rows across windows": {
        "source": {"columns": ["label"]},
        "batch": {"n": 300},
        "order": {"shuffle": True},
    },
    "rows across windows, the last dropped": {
        "source": {"columns": ["label"]},
        "batch": {"n": 300, "drop_last": True},
    },
    "packed and shuffled": {
        "order": {"shuffle": True, "seed": 3},
        "prepare": {"net": TRUNCATE},
        "batch": {"kind": "packed", "capacity": 64, "rows": 8},
    },
    "budget": {"batch": {"kind": "tokens", "max_tokens": 500}},
    "buckets": {"batch": {"kind": "buckets", "boundaries": [8, 20], "n": 8}},
    "sorted": {"batch": {"n": 16}, "output": {"sort_by": ["-label"]}},
    "sorted into files of rows": {"batch": {"n": 16}, "output": {"sort_by": "label", "rows_per_file": 1000}},
    "partitioned": {
        "source": {"columns": ["label", "lang"]},
        "batch": {"n": 16},
        "output": {"partition_by": "lang"},
    },
    "one file": {"batch": {"n": 16}, "output": {"path": "o/out.parquet"}},
    "arrow, two threads": {"batch": {"n": 16}, "output": {"kind": "arrow", "threads": 2}},
    "files of rows": {"batch": {"n": 16}, "output": {"part_bytes": "1 GiB", "rows_per_file": 700}},
    "filtered": {"source": {"where": "label > 300 and tokens.lengths > 4"}, "batch": {"n": 16}},
    "dictionary": {"source": {"columns": ["word", "label"]}, "batch": {"n": 16}},
    "constants": {
        "prepare": {"net": "scaled = float64(label) * c\nreturn scaled, label"},
        "source": {"columns": ["label"]},
        "batch": {"n": 16},
        "constants": {"c": "c.npy"},
    },
    "a tokenizer": {
        "source": {"columns": ["text", "label"]},
        "prepare": {
            "net": "ids, n = tokenize(text.values, text.lengths, tokenizer='tok.json')\nreturn ids, n, label"
        },
        "batch": {"kind": "packed", "capacity": 256},
    },
    "a tokenizer as a constant": {
        "source": {"columns": ["text", "label"]},
        "prepare": {
            "net": "ids, n = tokenize(text.values, text.lengths, tokenizer=tok)\nreturn ids, n, label"
        },
        "batch": {"kind": "packed", "capacity": 256},
        "constants": {"tok": "tok.json"},
    },
    "a net that refuses rows": {
        "net": {"net": "kept = refuse_some(label)"},
        "batch": {"n": 16},
        "imports": ["refusing"],
    },
    "an index": {"order": {"index": "lengths.arrow"}, "batch": {"kind": "tokens", "max_tokens": 500}},
    "skips and totals": {
        "source": {"columns": ["label"]},
        "batch": {"n": 30},
        "skip": [[3, 5], [7, 24], [95, 99]],
        "totals": {"sum": "label", "mean": "label / 2.0"},
        "steps_of": 4,
    },
    "totals of packed rows": {
        "batch": {"kind": "packed", "capacity": 64, "rows": 8, "columns": ["tokens"]},
        "source": {"columns": ["tokens"]},
        "totals": ["tokens.lengths"],
        "steps_of": 2,
    },
    "skips and a balance": {
        "source": {"columns": ["tokens", "label"], "where": "label > -1"},
        "order": {"index": "lengths.arrow"},
        "batch": {"kind": "tokens", "max_tokens": 500, "balance": {"group": 2, "linear": 1.0}},
        "totals": {"trained": "tokens.values > 40"},
    },
    "nothing written": {"batch": {"n": 16}, "output": {"kind": "none"}},
    "no rows": {"source": {"where": "label < 0"}, "batch": {"n": 16}},
}

REFUSING = '''
from seqflow import OpError, op

@op("x[N] -> y[N]")
def refuse_some(x):
    """The same, without some numbers."""
    if (x % 211 == 3).any():
        raise OpError("a number that is refused")
    return x
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Three files of 1,000 rows in row groups of 50, of which some tokens are null."""
    draw = np.random.default_rng(0)
    for part in range(3):
        lists = [
            [None] if i % 97 == 5 else [*map(int, draw.integers(0, 99, n))]
            for i, n in enumerate(draw.integers(0, 40, 1000))
        ]
        words = [f"word{part}{n}" for n in draw.integers(0, 30, 1000)]
        columns = {
            "tokens": pa.array(lists, pa.list_(pa.int32())),
            "label": np.arange(1000) + 1000 * part,
            "word": pa.array(words).dictionary_encode(),
            "lang": draw.choice(["py", "c"], 1000),
            "text": [f"the {word} and the hat" for word in words],
        }
        pq.write_table(pa.table(columns), tmp_path / f"in{part}.parquet", row_group_size=50)
    np.save(tmp_path / "c.npy", np.float64(2.5))
    text = np.frombuffer(b"the cat and the hat", np.uint8)
    learned = ops.train_tokenizer(text, np.array([len(text)]), vocabulary_size=260)
    (tmp_path / "tok.json").write_bytes(learned.tobytes())
    (tmp_path / "refusing.py").write_text(REFUSING)
    return tmp_path


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """A cluster of two CPUs, in which drivers of this process run."""
    with ray_session(2):
        yield


ENGINES: dict[str, dict[str, Any]] = {"workers": {"workers": 2}, "ray": {"kind": "ray"}}
engines = pytest.mark.parametrize("engine", ["workers", pytest.param("ray", marks=pytest.mark.slow)])
ON_RAY = ("packed and shuffled", "one file", "sorted", "a net that refuses rows")
"""Jobs of which Ray gets different things. Other jobs differ by what a task does, in any process."""
AS_IN_ONE_PROCESS = (
    "rows across windows, the last dropped", "budget", "buckets", "sorted into files of rows", "arrow, two threads",
    "filtered", "dictionary", "a tokenizer", "totals of packed rows", "skips and a balance", "rows", "packed and shuffled",
    "partitioned", "files of rows", "constants", "nothing written", "rows across windows", "no rows",
)  # fmt: skip
"""Jobs of which other processes of this machine get what they get of one of the rest."""


def settings_of(engine: str, request: pytest.FixtureRequest) -> dict[str, Any]:
    if engine == "ray":
        request.getfixturevalue("cluster")
    return ENGINES[engine]


def job(folder: Path, tables: Tables, engine: dict[str, Any] | None = None) -> Job:
    """A job of many small parts. Bad rows go to a quarantine file, unless all rows have to be known before."""
    counted = tables.get("source", {}).get("columns") in (["label"], ["word", "label"])
    small = {"part_bytes": 3000, "row_group_bytes": 500} if counted else SMALL
    bad_rows = {"policy": "raise"} if counted else {"policy": "quarantine", "path": "o/bad.parquet"}
    usual: Tables = {
        "source": {"paths": "in*.parquet"},
        "order": {"window": 800 if counted else "8 KiB"},
        "output": {"path": "o/out", **small},
        "engine": engine or {},
    }
    merged = {name: {**section, **tables.get(name, {})} for name, section in usual.items()}
    rest = {name: section for name, section in tables.items() if name not in usual}
    return Job.from_dict({"bad_rows": bad_rows, **rest, **merged}, folder)


def written(folder: Path) -> dict[str, bytes]:
    """Everything that a run has left; removed."""
    places = [folder / "o", folder / "lengths.arrow", *folder.glob(".*")]
    files = [
        file
        for place in places
        for file in ([place] if place.is_file() else place.rglob("*"))
        if file.is_file()
    ]
    found = {str(file.relative_to(folder)): file.read_bytes() for file in files}
    folders = sorted(str(place.relative_to(folder)) for place in (folder / "o").rglob("*") if place.is_dir())
    shutil.rmtree(folder / "o", ignore_errors=True)
    for file in files:
        file.unlink(missing_ok=True)
    return {**found, "folders": json.dumps(folders).encode()}


def counted(report: Report) -> dict[str, Any]:
    names = (
        "rows",
        "dropped",
        "skipped",
        "filtered",
        "rows_read",
        "tokens",
        "fill",
        "batches",
        "bad_rows",
        "files",
    )
    return {name: getattr(report, name) for name in names}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "name"),
    [("workers", name) for name in JOBS if THOROUGH or name not in AS_IN_ONE_PROCESS]
    + [("ray", name) for name in (JOBS if THOROUGH else ON_RAY)],
)
def test_every_engine_writes_the_same_bytes(
    folder: Path, name: str, engine: str, request: pytest.FixtureRequest
) -> None:
    settings = settings_of(engine, request)
    expected = run(job(folder, JOBS[name]))
    files = written(folder)
    if name not in ("nothing written", "no rows"):
        assert len(files) > 3
    seen: list[Stats] = []
    report = run(job(folder, JOBS[name], settings), lambda stats, total: seen.append(stats))
    assert counted(report) == counted(expected)
    assert written(folder) == files
    assert seen


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["ray", *thorough("workers")])
@pytest.mark.parametrize(
    "name",
    [
        "one file",
        *thorough("rows across windows", "skips and totals", "packed and shuffled", "sorted", "an index"),
    ],
)
def test_a_run_goes_on_with_another_engine(
    folder: Path, name: str, engine: str, request: pytest.FixtureRequest
) -> None:
    settings = settings_of(engine, request)
    expected = run(job(folder, JOBS[name]))
    files = written(folder)

    def stop(stats: Stats, total: int | None) -> None:
        if stats.batches >= expected.batches // 2:
            raise InterruptedError("enough")

    for first, second in [(None, settings), (settings, None)]:
        with pytest.raises(InterruptedError) as caught:
            run(job(folder, JOBS[name], first), stop)
        assert caught.value.__notes__ == ["what is finished is kept: --resume goes on after it"]
        assert not list((folder / "o").rglob("*tasks*"))
        report = run(job(folder, JOBS[name], second), resume=True)
        assert report.outcome == "resumed"
        assert counted(report) == counted(expected)
        files.pop("lengths.arrow", None)  # of a whole run alone
        assert written(folder) == files


@pytest.mark.slow
@pytest.mark.each_choice
@engines
@pytest.mark.parametrize(
    ("tables", "kind", "message"),
    [
        ({"bad_rows": {"policy": "raise"}, "batch": {"n": 16}}, ProviderError, "in0.parquet, block 0, row 5, column 'tokens'"),
        ({"net": {"net": "y = gather(label, int64(label))\nreturn y"}, "batch": {"n": 16}, "bad_rows": {"policy": "raise"}, "source": {"columns": ["label"]}}, SeqflowError, "gather"),
    ],
)  # fmt: skip
def test_an_error_is_that_of_a_run_in_this_process(
    folder: Path,
    tables: Tables,
    kind: type[Exception],
    message: str,
    engine: str,
    request: pytest.FixtureRequest,
) -> None:
    settings = settings_of(engine, request)
    errors = []
    for one in (None, settings):
        described = job(folder, tables, one)
        with pytest.raises(kind, match=message) as caught:
            run(described)
        errors.append((type(caught.value), str(caught.value), getattr(caught.value, "__notes__", [])))
        assert not (folder / "o").exists()
    assert errors[0] == errors[1]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["workers", *thorough("ray")])
def test_a_file_that_changes_meanwhile_is_an_error(
    folder: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    settings = settings_of(engine, request)

    def change(stats: Stats, total: int | None) -> None:
        os.utime(folder / "in2.parquet", ns=(1, 1))

    tables = {**JOBS["rows"], "output": {"part_bytes": 1}}  # more parts than can be made ahead
    with pytest.raises(ProviderError, match=r"in2\.parquet changed while it was read"):
        run(job(folder, tables, settings), change)


KILLER = '''
import os, signal
from seqflow import op

@op("x[N] -> y[N]")
def deadly(x):
    """The same, but for one number."""
    if (x == 1234).any() and os.environ.get("DEADLY") != "no":
        os.kill(os.getpid(), signal.SIGKILL)
    return x
'''


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["workers", *thorough("ray")])
def test_a_part_that_always_kills_its_worker_ends_with_an_error_that_names_it(
    folder: Path, engine: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = settings_of(engine, request)
    (folder / "killer.py").write_text(KILLER)
    tables: Tables = {"imports": ["killer"], "net": {"net": "y = deadly(label)"}, "batch": {"n": 16}}
    with pytest.raises(
        JobError, match=r"engine: part \d+, windows? \d+.* of .*in1\.parquet.*died 6 times"
    ) as caught:
        run(job(folder, tables, settings))
    assert caught.value.__notes__ == ["what is finished is kept: --resume goes on after it"]
    monkeypatch.setenv("DEADLY", "no")
    resumed = run(job(folder, tables), resume=True)
    assert resumed.outcome == "resumed"
    files = written(folder)
    run(job(folder, tables))
    assert written(folder) == files


def test_what_other_processes_cannot_have_is_refused_before_anything_is_written(folder: Path) -> None:
    (folder / "in.jsonl").write_text('{"word": "a"}\n{"word": "b"}\n')
    tables: Tables = {
        "source": {
            "paths": "in.jsonl",
            "jsonl": {"schema": {"word": "dictionary<values=string, indices=int32>"}},
        },
        "batch": {"n": 1},
    }
    described = job(folder, tables, {"workers": 2})
    with pytest.raises(SeqflowError, match="dictionary"):
        run(described)
    assert not (folder / "o").exists()


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        ({"workers": 0}, "workers is 0, expected an integer, 1 or more"),
        ({"kind": "spark"}, "kind is 'spark', expected 'local' or 'ray'"),
        ({"memory": "much"}, "memory"),
        ({"worker": 2}, "unknown key 'worker' in .engine."),
    ],
)
def test_settings_that_are_none_are_named(folder: Path, engine: dict[str, Any], message: str) -> None:
    with pytest.raises(JobError, match=message):
        job(folder, JOBS["rows"], engine)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "message"),
    [
        *thorough(({"memory": "900 TiB"}, r"a worker needs 900.*, but no node of the cluster has more than")),
        ({"cpus": 1000}, r"a worker needs 1000 CPUs, but no node of the cluster has more than 2"),
    ],
)
def test_more_than_any_node_has_is_refused(
    folder: Path, cluster: None, engine: dict[str, Any], message: str
) -> None:
    with pytest.raises(JobError, match=message):
        run(job(folder, JOBS["rows"], {"kind": "ray", **engine}))
    assert not (folder / "o").exists()


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"address": "127.0.0.1:1"}, {"address": "auto"}, {}])
def test_a_cluster_that_is_not_there_is_named_at_once(
    folder: Path, settings: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")
    if ray.is_initialized():
        ray.shutdown()
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    message = r"there is no Ray cluster at '127\.0\.0\.1:1': Connection refused"
    with pytest.raises(JobError, match=message):
        run(job(folder, JOBS["rows"], {"kind": "ray", **settings}))
    assert not (folder / "o").exists()


@pytest.mark.slow
@pytest.mark.skipif(not THOROUGH, reason="another test's cluster of this machine would be found")
def test_auto_without_a_cluster_is_refused(folder: Path) -> None:
    ray = pytest.importorskip("ray")
    if ray.is_initialized():
        ray.shutdown()
    with pytest.raises(JobError, match="Ray cannot be reached at 'auto'"):
        run(job(folder, JOBS["rows"], {"kind": "ray", "address": "auto"}))
    assert not (folder / "o").exists()


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        ("output", r"engine: the folder of the output, '.*o/out', differs on"),
        ("bad rows", r"engine: the folder of the quarantine file, '.*o', differs on"),
        ("constant", r"constants\.c: '.*c\.npy' is not there on"),
        ("source", r"engine: '.*in1\.parquet' is not there on"),
    ],
)
def test_what_a_worker_does_not_see_is_named(folder: Path, missing: str, message: str) -> None:
    """As on another machine, which does not share the file system."""
    described = job(
        folder, {**JOBS["constants"], "bad_rows": {"policy": "quarantine", "path": "o/bad.parquet"}}
    )
    loader = open_loader(described)
    parts, bad_rows = folder / "o" / "out" / ".tasks-1", folder / "o" / ".bad.parquet.tasks-1"
    for place in (parts, bad_rows):
        place.mkdir(parents=True)
    worker = pickle.loads(
        setup_of(described, loader, "a run", Folders(parts, bad_rows), measures=False).prepare
    )
    task = next(task for task in tasks_of(loader, Parts(1), 0) if task.name.endswith("in1.parquet"))
    gone = {
        "output": parts,
        "bad rows": bad_rows,
        "constant": folder / "c.npy",
        "source": folder / "in1.parquet",
    }
    if gone[missing].is_dir():
        gone[missing].rmdir()
    else:
        gone[missing].unlink()
    with pytest.raises(JobError, match=message):
        worker()(task)


def test_without_ray_the_error_says_what_to_install(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(
        JobError, match=r"engine: Ray cannot be imported: .*\n  pip install \'\.\[ray\]\' in a clone"
    ):
        run(job(folder, JOBS["rows"], {"kind": "ray"}))
    assert not (folder / "o").exists()
