"""A job is everything that decides its output: an edit of any of it is noticed, and named."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

import seqflow as sf
from seqflow.errors import JobError
from seqflow.job import Job, run
from seqflow.loader import Stats

NET = "y = x * 1\nreturn x, y"
WITH_CONSTANT = "y = x * gather(c, x - x)\nreturn x, y"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pq.write_table(pa.table({"x": np.arange(300)}), tmp_path / "in.parquet", row_group_size=10)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def job(folder: Path, **sections: object) -> Job:
    settings = {
        "source": {"paths": "in.parquet"},
        "order": {"window": 200, "threads": 0},
        "batch": {"n": 10},
        "net": {"net": NET},
        "output": {"path": "out", "part_bytes": 200},
    }
    return Job.from_dict({**settings, **sections}, folder)


def stopped(stopped_job: Job, after: int = 12) -> None:
    """A run that fails behind some batches."""

    with pytest.raises(InterruptedError):
        run(stopped_job, stop_after(after))


def constant(folder: Path, value: int) -> dict[str, object]:
    np.save(folder / "c.npy", np.array([value]))
    return {"constants": {"c": "c.npy"}}


def net_file(folder: Path, factor: int) -> dict[str, object]:
    (folder / "net.txt").write_text(f"y = x * {factor}\nreturn x, y")
    return {"net": {"file": "net.txt"}}


def tokenizer(folder: Path, word: bytes) -> dict[str, object]:
    text = np.frombuffer(word * 3, np.uint8)
    learnt = sf.ops.train_tokenizer(text, np.array([len(text)]), vocabulary_size=258)
    (folder / "t.json").write_bytes(learnt.tobytes())
    pq.write_table(pa.table({"s": ["abab"] * 300}), folder / "in.parquet", row_group_size=10)
    return {"net": {"net": 'i, n = tokenize(s.values, s.lengths, tokenizer="t.json")\nreturn i, n'}}


def vocabulary(folder: Path, key: int) -> dict[str, object]:
    sf.Vocabulary([key, 5]).save(folder / "v.arrow")
    return {"net": {"net": "i = encode(x, v)\nreturn i"}, "constants": {"v": "v.arrow"}}


EDITS = {
    "net": (
        lambda at: {"net": {"net": "y = x * 1\nreturn x, y"}},
        lambda at: {"net": {"net": "y = x * 7\nreturn x, y"}},
        r"net\.net\.y \(line 1\) was `y = x \* 1` and is `y = x \* 7` now",
    ),
    "file of the net": (
        lambda at: net_file(at, 1),
        lambda at: net_file(at, 7),
        r"net\.net\.y \(line 1\) was `y = x \* 1` and is `y = x \* 7` now",
    ),
    "prepare": (
        lambda at: {"prepare": {"net": "# twice\nz = x * 1\nreturn x, z"}, "net": {}},
        lambda at: {"prepare": {"net": "# twice\nz = x * 7\nreturn x, z"}, "net": {}},
        r"prepare\.net\.z \(line 2\) was `z = x \* 1` and is `z = x \* 7` now",
    ),
    "constant": (
        lambda at: {"net": {"net": WITH_CONSTANT}, **constant(at, 1)},
        lambda at: {"net": {"net": WITH_CONSTANT}, **constant(at, 7)},
        r"net\.constants\.c \(c\.npy\) has other content",
    ),
    "constant of prepare, not mapped": (
        lambda at: {"prepare": {"net": WITH_CONSTANT}, "net": {}, **constant(at, 1), **NOT_MAPPED},
        lambda at: {"prepare": {"net": WITH_CONSTANT}, "net": {}, **constant(at, 7), **NOT_MAPPED},
        r"prepare\.constants\.c \(c\.npy\) has other content",
    ),
    "tokenizer": (
        lambda at: tokenizer(at, b"bbbb"),
        lambda at: tokenizer(at, b"abab"),
        r"net\.files\[0\] \(t\.json\) has other content",
    ),
    "vocabulary": (
        lambda at: vocabulary(at, 1),
        lambda at: vocabulary(at, 7),
        r"net\.constants\.v \(v\.arrow\) has other content",
    ),
}
NOT_MAPPED = {"source": {"paths": "in.parquet", "parquet": {"memory_map": False}}}


@pytest.mark.slow
@pytest.mark.parametrize(("first", "second", "difference"), EDITS.values(), ids=EDITS)
def test_an_edit_is_named_and_nothing_is_mixed(folder, first, second, difference):
    assert run(job(folder, **first(folder))).outcome == "new"
    assert run(job(folder, **first(folder))).outcome == "complete"
    for resume in (False, True):
        with pytest.raises(JobError, match=f"of another job or of other data: {difference}"):
            run(job(folder, **second(folder)), resume=resume)
    stopped(job(folder, **{**first(folder), "output": {"path": "other", "part_bytes": 200}}))
    with pytest.raises(JobError, match=f"of another job or of other data: {difference}"):
        run(job(folder, **{**second(folder), "output": {"path": "other", "part_bytes": 200}}), resume=True)
    assert run(job(folder, **second(folder)), overwrite=True).outcome == "new"


@pytest.mark.parametrize(
    "text",
    [
        "# a comment\n\n   y   =  x*1   # here\nreturn x,y",
        "y = (x * 1)\nreturn x, y",
        "\ny = x * 1\n\n\nreturn x, y\n",
    ],
)
def test_comments_and_spaces_make_no_other_net(folder, text):
    run(job(folder))
    assert run(job(folder, net={"net": text})).outcome == "complete"


def test_the_order_of_statements_makes_no_other_net_where_return_names_the_outputs(folder):
    statements = ["a = x * 2", "b = x * 3", "y = a + b"]
    run(job(folder, net={"net": "\n".join([*statements, "return x, y"])}))
    again = run(job(folder, net={"net": "\n".join([*reversed(statements), "return x, y"])}))
    assert again.outcome == "complete"


def test_the_order_of_outputs_makes_another_net(folder):
    run(job(folder, net={"net": "a = x * 2\nb = x * 3"}))
    with pytest.raises(JobError, match=r"net\.net was \['a', 'b'\] and is \['b', 'a'\] now"):
        run(job(folder, net={"net": "b = x * 3\na = x * 2"}))


def test_a_job_that_was_moved_and_its_copied_input_are_the_same(folder):
    made = {"net": {"net": WITH_CONSTANT}, **constant(folder, 3)}
    run(job(folder, **made))
    moved = folder / "elsewhere"
    moved.mkdir()
    for name in ("in.parquet", "c.npy"):
        (moved / name).write_bytes((folder / name).read_bytes())
    (folder / "out").rename(moved / "out")
    assert run(job(moved, **made)).outcome == "complete"


OPS = """
from seqflow import op
from {helper} import FACTOR

@op("x[N] -> y[N]")
def {name}(x):
    \"\"\"Times.\"\"\"
    return x * {factor} * FACTOR
"""


def in_a_process(folder: Path, module: str) -> str:
    text = f'imports = ["{module}"]\n[source]\npaths = "in.parquet"\n[net]\nnet = "y = times(x)\\nreturn x, y"\n[output]\npath = "out"\n'
    (folder / "job.toml").write_text(text)
    return seqflow("run", "job.toml", "--quiet", folder=folder).stderr


@pytest.mark.parametrize(
    ("module", "files", "edited"),
    [
        ("my_times", {"my_times.py": ("my_factor", 1), "my_factor.py": 1}, "my_times.py"),
        ("my_times", {"my_times.py": ("my_factor", 1), "my_factor.py": 1}, "my_factor.py"),
        ("my_pack", {"my_pack/__init__.py": ".times", "my_pack/times.py": (".factor", 1), "my_pack/factor.py": 1}, "my_pack/factor.py"),
        ("my_pack.times", {"my_pack/__init__.py": "", "my_pack/times.py": (".factor", 1), "my_pack/factor.py": 1}, "my_pack/factor.py"),
    ],
)  # fmt: skip
def test_an_edited_module_is_named(folder, module, files, edited):
    def write(factor: int) -> None:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(exist_ok=True)
            at = factor if name == edited else 1
            if isinstance(content, tuple):
                path.write_text(OPS.format(helper=content[0], name="times", factor=at))
            elif isinstance(content, int):
                path.write_text(f"FACTOR = {at}\n")
            else:
                path.write_text(content and f"from {content} import *\n")

    write(1)
    assert in_a_process(folder, module) == ""
    assert "the output is complete" in in_a_process(folder, module)
    write(7)
    found = in_a_process(folder, module)
    assert f"{edited} has other content" in found


def rows_of(path: Path) -> list[tuple[int, int]]:
    table = pq.read_table(path).to_pydict()
    return list(zip(table["x"], table["y"], strict=True))


def times(factor: int) -> dict[str, object]:
    return {"net": {"net": f"y = x * {factor}\nreturn x, y"}}


@pytest.mark.each_choice
@pytest.mark.parametrize("path", ["out", "out.parquet"])
@pytest.mark.parametrize("plan", [{"n": 10}, {"n": 7}, {"kind": "tokens", "max_tokens": 30}])
def test_accepted_changes_go_on_and_the_manifest_says_from_where(folder, path, plan):
    lists = [[i] * (i % 4) for i in range(300)]
    pq.write_table(pa.table({"x": np.arange(300), "t": lists}), folder / "in.parquet", row_group_size=10)
    others = {"batch": plan, "output": {"path": path, "part_bytes": 200}}
    stopped(job(folder, **others, **times(1)))
    with pytest.raises(JobError, match="--resume --accept-changes uses the changes after"):
        run(job(folder, **others, **times(7)), resume=True)
    report = run(job(folder, **others, **times(7)), resume=True, accept_changes=True)
    assert (report.outcome, report.changes) == (
        "resumed",
        ("net.net.y (line 1) was `y = x * 1` and is `y = x * 7` now",),
    )
    target = folder / path
    record = target / "_manifest.json" if path == "out" else folder / ".out.parquet.manifest.json"
    (change,) = json.loads(record.read_text())["changes"]
    rows = rows_of(target)
    assert [x for x, _ in rows] == list(range(300))
    start = change["from_row"]
    assert 0 < start < 300
    assert [y for _, y in rows] == [x * (1 if at < start else 7) for at, (x, _) in enumerate(rows)]
    assert change["differences"] == [*report.changes]
    if path == "out":
        assert rows_of(target / change["from_part"])[0] == rows[start]
    assert run(job(folder, **others, **times(7))).outcome == "complete"
    with pytest.raises(JobError, match="of another job"):
        run(job(folder, **others, **times(1)))


def test_each_accepted_change_has_its_own_note(folder):
    stopped(job(folder, **times(1)), after=8)
    with pytest.raises(InterruptedError):
        run(job(folder, **times(2)), stop_after(12), resume=True, accept_changes=True)
    run(job(folder, **times(3)), resume=True, accept_changes=True)
    first, second = json.loads((folder / "out/_manifest.json").read_text())["changes"]
    starts = [first["from_row"], second["from_row"]]
    factors = [1 + sum(at >= start for start in starts) for at in range(300)]
    assert set(factors) == {1, 2, 3}
    assert [y for _, y in rows_of(folder / "out")] == [x * factors[x] for x in range(300)]


def stop_after(count: int):
    def stop(stats: Stats, total: int | None) -> None:
        if stats.batches == count:
            raise InterruptedError

    return stop


@pytest.mark.parametrize(
    "batch", [{"n": 7}, {"kind": "tokens", "max_tokens": 20}, {"kind": "packed", "capacity": 8, "rows": 4}]
)
@pytest.mark.parametrize("sizes", [(3, 2), (2, 3)])
def test_another_prepare_goes_on_without_losing_or_repeating_a_row(folder, batch, sizes):
    """It makes another number of rows of each window."""
    lists = [list(range(100 * i, 100 * i + i % 8)) for i in range(300)]
    pq.write_table(pa.table({"t": lists}), folder / "in.parquet", row_group_size=10)
    parts = {"order": {"window": 900, "threads": 0}, "batch": batch, "net": {}}

    def split(size: int) -> Job:
        net = f"p = split_sequences(t.values, t.lengths, chunk={size})\nreturn p.values, p.lengths"
        return job(folder, **parts, prepare={"net": net})

    stopped(split(sizes[0]), after=20)
    report = run(split(sizes[1]), resume=True, accept_changes=True)
    assert len(report.changes) == 1
    table = pq.read_table(folder / "out").to_pydict()
    if "segment_ids" in table:  # of packed rows, 0 where there is none
        segments = table["segment_ids"]
        found = [
            v for row, of in zip(table["p"], segments, strict=True) for v, s in zip(row, of, strict=True) if s
        ]
    else:
        found = [value for row in table[next(iter(table))] for value in row]
    assert sorted(found) == [value for row in lists for value in row]


def test_another_prepare_of_the_same_rows_goes_on_inside_a_window(folder):
    """The rows are counted before they are read, and batches run across windows."""
    parts = {"batch": {"n": 7}, "net": {}}
    prepares = [{"prepare": {"net": f"y = x * {factor}\nreturn x, y"}} for factor in (1, 7)]
    stopped(job(folder, **parts, **prepares[0]))
    run(job(folder, **parts, **prepares[1]), resume=True, accept_changes=True)
    rows = rows_of(folder / "out")
    assert [x for x, _ in rows] == list(range(300))
    assert {y // x for x, y in rows[1:]} == {1, 7}


@pytest.mark.parametrize("setting", [{"sort_by": "-x"}, {"partition_by": "x"}])
def test_changes_of_sorted_or_partitioned_output_are_not_accepted(folder, setting):
    output = {"output": {"path": "out", "part_bytes": 200, **setting}}
    pq.write_table(pa.table({"x": np.arange(300) % 3}), folder / "in.parquet", row_group_size=10)
    stopped(job(folder, **output, **times(1)))
    with pytest.raises(JobError, match="is sorted or partitioned, and changes cannot be accepted"):
        run(job(folder, **output, **times(7)), resume=True, accept_changes=True)
    assert run(job(folder, **output, **times(7)), overwrite=True).outcome == "new"


@pytest.mark.parametrize(
    ("sections", "difference"),
    [
        ({"batch": {"n": 11}}, r"batch\.n was 10 and is 11 now"),
        ({"order": {"window": 400, "threads": 0}}, "window was 200 and is 400"),
        ({"order": {"window": 200, "shuffle": True, "threads": 0}}, "shuffle was None and is 0"),
        ({"source": {"paths": "in.parquet", "fill": 3}}, "source.fill was None and is 3"),
        ({"output": {"path": "out", "part_bytes": 300}}, "output.part_bytes was"),
    ],
)
def test_no_change_of_data_order_or_batches_is_accepted(folder, sections, difference):
    stopped(job(folder, **times(1)))
    with pytest.raises(
        JobError, match=f"{difference}(.|\n)*only changes of nets, constants, tokenizers, imports"
    ):
        run(job(folder, **{**times(7), **sections}), resume=True, accept_changes=True)


def test_changes_of_the_data_are_not_accepted(folder):
    stopped(job(folder, **times(1)))
    pq.write_table(pa.table({"x": np.arange(300)[::-1]}), folder / "in.parquet", row_group_size=10)
    with pytest.raises(JobError, match=r"the data have changed: in\.parquet (has other content|had)"):
        run(job(folder, **times(7)), resume=True, accept_changes=True)


def test_another_type_of_a_column_is_refused_behind_accepted_changes(folder):
    stopped(job(folder, **times(1)))
    other = {"net": {"net": "y = x * 0.5\nreturn x, y"}}
    with pytest.raises(JobError, match="column 'y' is double in one batch and int64 before"):
        run(job(folder, **other), resume=True, accept_changes=True)


def test_changes_are_accepted_with_resume_only(folder):
    with pytest.raises(JobError, match="expected resume"):
        run(job(folder), accept_changes=True)


def test_a_complete_output_of_other_code_stays_refused(folder):
    run(job(folder, **times(1)))
    with pytest.raises(JobError, match=r"net\.net\.y \(line 1\)"):
        run(job(folder, **times(7)), resume=True, accept_changes=True)


@pytest.mark.parametrize("source", [{"columns": ["x"]}, {"fill": 0}, {"valid": True}])
def test_a_setting_of_the_source_is_named_once(folder, source):
    run(job(folder))
    with pytest.raises(JobError) as error:
        run(job(folder, source={"paths": "in.parquet", **source}))
    assert f"source.{next(iter(source))} was" in str(error.value)
    assert "also" not in str(error.value)


def test_a_record_of_another_format_is_refused_and_says_so(folder):
    run(job(folder))
    manifest = folder / "out/_manifest.json"
    content = json.loads(manifest.read_text())
    del content["job"]["format"], content["job"]["net"]
    manifest.write_text(json.dumps(content))
    with pytest.raises(JobError, match="another version of seqflow"):
        run(job(folder))


def test_a_large_constant_is_read_for_its_digest_once(folder, monkeypatch):
    monkeypatch.setattr("seqflow.identity.content._LARGE", 1)
    monkeypatch.setattr("seqflow.identity.content._SETTLED", -1e9)
    made = {"net": {"net": WITH_CONSTANT}, **constant(folder, 3)}
    run(job(folder, **made))
    (kept,) = (folder / "cache/seqflow/digests").iterdir()
    assert run(job(folder, **made)).outcome == "complete"
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "digest": "as kept"}))
    with pytest.raises(JobError, match="as kept"):
        run(job(folder, **made))
