"""Running jobs."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from outputs import write_job

from seqflow.errors import JobError, NetError, UnknownColumnError
from seqflow.job import Job, OutputSection, SourceSection, run
from seqflow.loader import Stats
from seqflow.vocabulary import Vocabulary


def test_running_a_job_reports_what_it_did(folder: Path) -> None:
    seen: list[tuple[int, int | None]] = []

    def progress(stats: Stats, total: int | None) -> None:
        seen.append((stats.batches, total))

    path = write_job(
        folder, '[source]\npaths = "docs.parquet"\n[batch]\nn = 4\n[output]\npath = "out.parquet"'
    )
    report = run(Job.read(path), progress)
    assert (report.rows, report.tokens, report.batches, report.bad_rows) == (10, 25, 3, 0)
    assert report.fill == 25 / (4 * 5 + 4 * 6 + 2 * 2)
    assert report.files == (folder / "out.parquet",)
    assert report.output_bytes == (folder / "out.parquet").stat().st_size
    assert report.peak_memory > 10 << 20
    assert seen == [(0, 10), (1, 10), (2, 10), (3, 10)]
    before, after = (pq.read_table(folder / name) for name in ("docs.parquet", "out.parquet"))
    assert after.to_pylist() == before.to_pylist()


def test_a_job_with_prepare_constants_and_net(folder: Path) -> None:
    np.save(folder / "table.npy", np.arange(12.0).reshape(6, 2))
    job = Job.from_dict(
        {
            "source": {"paths": "docs.parquet", "columns": ["tokens"]},
            "prepare": {
                "net": "t = truncate(tokens.values, tokens.lengths, max_length=2)\nreturn t.values, t.lengths"
            },
            "net": {"net": "x = sparse_lengths_sum(table, t.values, t.lengths)\nreturn x"},
            "constants": {"table": "table.npy"},
            "output": {"path": "out.parquet"},
        },
        folder,
    )
    run(job)
    x = pq.read_table(folder / "out.parquet")["x"].to_pylist()
    assert x == [[2, 4], [0, 0], [2, 4], [0, 1], [2, 4], [2, 4], [0, 0], [2, 4], [2, 4], [2, 4]]


@pytest.mark.slow
def test_own_ops_are_imported_from_the_folder_of_the_job_which_is_on_the_path_only_then(folder: Path) -> None:
    (folder / "job_ops.py").write_text(
        "from seqflow import op\n\n"
        '@op("x[N] -> doubled[N]")\ndef doubled_in_a_job(x):\n    """Twice x."""\n    return x * 2\n'
    )
    job = Job.from_dict(
        {
            "imports": ["job_ops"],
            "source": {"paths": "docs.parquet", "columns": ["label"]},
            "net": {"net": "y = doubled_in_a_job(label)\nreturn y"},
            "output": {"path": "out.parquet"},
        },
        folder,
    )
    program = f"import sys; from seqflow.job import run, Job; run(Job.read({str(folder / 'job.toml')!r})); print(sys.path)"
    write_job(
        folder,
        'imports = ["job_ops"]\n[source]\npaths = "docs.parquet"\ncolumns = ["label"]\n'
        '[net]\nnet = "y = doubled_in_a_job(label)\\nreturn y"\n[output]\npath = "out.parquet"',
    )
    assert job.imports == ("job_ops",)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert str(folder) not in done.stdout
    assert pq.read_table(folder / "out.parquet")["y"].to_pylist() == list(range(0, 20, 2))


def test_a_missing_module_is_a_job_error(folder: Path) -> None:
    job = Job.from_dict({"imports": ["no_such_ops"], "source": {"paths": "docs.parquet"}}, folder)
    with pytest.raises(JobError, match="imports: there is no module 'no_such_ops'"):
        run(job)


def test_a_malformed_net_says_where_in_the_job_it_stands(folder: Path) -> None:
    job = Job.from_dict({"source": {"paths": "docs.parquet"}, "prepare": {"net": "x = nope(label)"}}, folder)
    with pytest.raises(NetError) as caught:
        run(job)
    assert caught.value.__notes__ == ["in [prepare] of the job"]


def test_a_vocabulary_is_a_constant(folder: Path) -> None:
    made = Vocabulary.build(folder / "docs.parquet", "tokens")
    made.save(folder / "tokens.arrow")
    net = {"net": "ids = encode(tokens.values, v)\nreturn ids, tokens.lengths"}
    sections = {"source": {"paths": "docs.parquet"}, "constants": {"v": "tokens.arrow"}, "net": net}
    run(Job.from_dict({**sections, "output": {"path": "out.parquet"}}, folder))
    ids = pq.read_table(folder / "out.parquet")["ids"].to_pylist()
    tokens = pq.read_table(folder / "docs.parquet")["tokens"].to_pylist()
    assert ids == [made.encode(row).tolist() for row in tokens]


def test_an_arrow_file_that_is_no_vocabulary_is_a_job_error(folder: Path) -> None:
    (folder / "v.arrow").write_text("no vocabulary")
    job = Job.from_dict({"source": {"paths": "docs.parquet"}, "constants": {"v": "v.arrow"}}, folder)
    with pytest.raises(JobError, match=r"constants\.v: .*v\.arrow"):
        run(job)


def test_a_constant_that_is_not_an_array_file_is_a_job_error(folder: Path) -> None:
    (folder / "t.npy").write_text("no array")
    job = Job.from_dict({"source": {"paths": "docs.parquet"}, "constants": {"t": "t.npy"}}, folder)
    with pytest.raises(JobError, match=r"constants.t: .*t.npy is not a .npy file"):
        run(job)
    np.savez(folder / "t.npz", a=np.arange(3))
    job = Job.from_dict({"source": {"paths": "docs.parquet"}, "constants": {"t": "t.npz"}}, folder)
    with pytest.raises(JobError, match=r"constants.t: .*t.npz has several arrays, expected one"):
        run(job)


def test_an_unknown_column_fails_before_anything_is_written(folder: Path) -> None:
    source = {"paths": "docs.parquet", "columns": ["token"]}
    with pytest.raises(UnknownColumnError, match="tokens"):
        run(Job.from_dict({"source": source, "output": {"path": "out"}}, folder))
    assert not (folder / "out").exists()


def test_bad_rows_are_counted_and_set_aside(folder: Path) -> None:
    table = pa.table({"tokens": pa.array([[1, 2], [None], [3]], pa.list_(pa.int32()))})
    pq.write_table(table, folder / "holes.parquet")
    job = Job.from_dict(
        {
            "source": {"paths": "holes.parquet"},
            "output": {"path": "out.parquet"},
            "bad_rows": {"policy": "quarantine", "path": "bad.arrow"},
        },
        folder,
    )
    report = run(job)
    assert (report.rows, report.bad_rows) == (2, 1)
    assert pq.read_table(folder / "out.parquet")["tokens"].to_pylist() == [[1, 2], [3]]
    assert pa.ipc.open_file(folder / "bad.arrow").read_all()["bad"].to_pylist()[0]["row"] == 1


def test_an_output_is_sorted_and_in_folders_whatever_the_order_of_the_batches(folder: Path) -> None:
    settings = {
        "source": {"paths": "docs.parquet"},
        "order": {"shuffle": True, "window": 100},
        "batch": {"n": 3},
        "net": {"net": "half = label % 2\nreturn label, half, tokens.values, tokens.lengths"},
        "output": {"path": "out", "partition_by": "half", "sort_by": "-label", "rows_per_file": 3},
    }
    report = run(Job.from_dict(settings, folder))
    found = [
        (file.parent.name, pq.read_table(file, partitioning=None)["label"].to_pylist())
        for file in report.files
    ]
    assert found == [("half=0", [8, 6, 4]), ("half=0", [2, 0]), ("half=1", [9, 7, 5]), ("half=1", [3, 1])]
    assert run(Job.from_dict(settings, folder)).outcome == "complete"


def test_a_run_never_writes_over_its_own_input(tmp_path):
    source = tmp_path / "x.parquet"
    pq.write_table(pa.table({"x": [[1, None], [2]]}), source)
    before = source.read_bytes()
    for output, bad in (
        ({"path": str(source)}, {}),
        ({"path": str(tmp_path)}, {}),
        ({"kind": "none"}, {"policy": "quarantine", "path": str(source)}),
        (
            {"path": str(tmp_path / "o")},
            {"policy": "quarantine", "path": str(tmp_path / "o" / "part-00000.parquet")},
        ),
    ):
        job = Job.from_dict({"source": {"paths": [str(source)]}, "output": output, "bad_rows": bad})
        with pytest.raises(JobError, match=r"a file that is read|belongs to output.path"):
            run(job)
    assert source.read_bytes() == before


def test_a_module_that_cannot_be_imported_is_an_error_of_the_job(tmp_path):
    (tmp_path / "broken.py").write_text("x = = 1")
    job = Job.from_dict({"source": {"paths": ["*"]}, "imports": ["broken"]}, tmp_path)
    with pytest.raises(JobError, match="imports: the module 'broken' cannot be imported: SyntaxError"):
        run(job)


def test_a_tilde_stands_for_the_folder_of_the_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    np.save(folder / "table.npy", np.zeros((10, 2)))
    path = write_job(
        folder,
        '[source]\npaths = ["~/docs.parquet"]\n[net]\nfile = "~/net.txt"\n[constants]\ntable = "~/table.npy"\n'
        '[output]\npath = "~/out"\n[bad_rows]\npolicy = "quarantine"\npath = "~/bad.arrow"\n',
    )
    (folder / "net.txt").write_text("x = sparse_lengths_sum(table, tokens.values, tokens.lengths)\nreturn x")
    assert run(Job.read(path)).files == (folder / "out" / "part-00000.parquet",)
    job = Job.read(path, {"output.path": "~/other/rows.parquet", "source.paths": "~/*.parquet"})
    assert run(job).files == (folder / "other" / "rows.parquet",)
    with pytest.raises(JobError, match="is or holds"):
        run(Job(source=SourceSection(paths="~/docs.parquet"), output=OutputSection(path="~/docs.parquet")))


@pytest.mark.parametrize("section", ["prepare", "net"])
@pytest.mark.parametrize("arranged", [{}, {"sort_by": "text"}, {"partition_by": "text"}])
def test_text_that_was_made_into_bytes_is_a_column_of_text_again(tmp_path, section, arranged):
    texts = ["ABC", "Straße", "", "left out", "a much longer text"] * 4
    pq.write_table(pa.table({"t": texts}), tmp_path / "in.parquet", row_group_size=3)
    net = (
        "low = lower(t.values, t.lengths)\n"
        "kept = filter_sequences(low.values, low.lengths != 8, low.lengths)\n"
        "text = as_text(kept.values, kept.lengths)\nsize = kept.lengths * 1\nreturn text, size"
    )
    parts = {"source": {"paths": "in.parquet"}, section: {"net": net}, "batch": {"kind": "rows", "n": 2}}
    run(Job.from_dict(parts | {"output": {"path": "out", **arranged}}, tmp_path))
    found = ds.dataset(tmp_path / "out", partitioning="hive").to_table()["text"]
    assert found.type == pa.string()
    expected = [text.lower() for text in texts if text != "left out"]
    assert sorted(found.to_pylist()) == sorted(expected)
    if "partition_by" not in arranged:
        assert found.to_pylist() == (sorted(expected) if arranged else expected)
