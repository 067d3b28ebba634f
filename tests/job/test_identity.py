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


def stop_after(count: int):
    def stop(stats: Stats, total: int | None) -> None:
        if stats.batches == count:
            raise InterruptedError

    return stop


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
def test_a_run_with_other_settings_does_not_go_on(folder, sections, difference):
    stopped(job(folder, **times(1)))
    with pytest.raises(JobError, match=f"{difference}(.|\n)*--overwrite replaces it"):
        run(job(folder, **sections), resume=True)


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
