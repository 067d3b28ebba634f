"""A job never writes over what it reads, whatever names and links lead there."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow import ops
from seqflow.errors import JobError, ProviderError
from seqflow.job import Job, run
from seqflow.job.checking import check


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder that seqflow has written, so that a run may replace its parts."""
    pq.write_table(pa.table({"x": [[1], [2, 3]]}), tmp_path / "first.parquet")
    run(Job.from_dict({"source": {"paths": ["first.parquet"]}, "output": {"path": "data"}}, tmp_path))
    return tmp_path / "data"


def refuses(folder: Path, paths: str, output: str, **sections: object) -> None:
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    job = Job.from_dict({"source": {"paths": [paths]}, "output": {"path": output}, **sections}, folder)
    with pytest.raises(JobError, match="a file that is read"):
        run(job)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("paths", ["data", "data/*.parquet", "link", "link/../data/part-00000.parquet"])
@pytest.mark.parametrize("output", ["data", "link", "through/data", "data/../link/"])
def test_links_to_the_folder_of_the_source(data: Path, paths: str, output: str) -> None:
    (data.parent / "link").symlink_to("data")
    (data.parent / "through").symlink_to(".")
    refuses(data.parent, paths, output)


def test_links_in_the_output_to_files_of_the_source(data: Path) -> None:
    for name, link in (("soft", os.symlink), ("hard", os.link)):
        (data.parent / name).mkdir()
        link(data / "part-00000.parquet", data.parent / name / "part-00000.parquet")
        refuses(data.parent, "data", name)
        link(data / "part-00000.parquet", data.parent / f"{name}.parquet")
        refuses(data.parent, "data", f"{name}.parquet")


def test_constants_and_nets_are_input_too(data: Path) -> None:
    folder = data.parent
    with (folder / "table.parquet").open("wb") as file:
        np.save(file, np.zeros((9, 2)))
    net = {"net": "y = gather(table, x.lengths)\nreturn y"}
    refuses(folder, "data", "table.parquet", constants={"table": "table.parquet"}, net=net)


def test_the_files_that_a_net_names_are_input_too(data: Path) -> None:
    pytest.importorskip("tokenizers")
    learned = ops.train_tokenizer(np.frombuffer(b"low", np.uint8), [3], vocabulary_size=256)
    (data.parent / "tok.parquet").write_bytes(learned.tobytes())
    net = {"net": "text, n = decode(x.values, x.lengths, tokenizer='tok.parquet')"}
    refuses(data.parent, "data", "tok.parquet", net=net)


def test_a_folder_beside_the_source_is_fine(data: Path) -> None:
    (data.parent / "data2").symlink_to("elsewhere")
    (data.parent / "elsewhere").mkdir()
    job = Job.from_dict({"source": {"paths": ["data"]}, "output": {"path": "data2"}}, data.parent)
    assert run(job).rows == 2


def test_a_quarantine_file_is_not_its_own_source(tmp_path: Path) -> None:
    bad, link = tmp_path / "bad.parquet", tmp_path / "link.parquet"
    pq.write_table(pa.table({"x": [[1, None]]}), tmp_path / "x.parquet")
    list(sf.Loader(tmp_path / "x.parquet", bad_rows=sf.BadRows("quarantine", bad)))
    link.symlink_to(bad)
    before = bad.read_bytes()
    with pytest.raises(ProviderError, match="a file of the source"):
        list(sf.Loader(bad, columns=["x"], bad_rows=sf.BadRows("quarantine", link)))
    assert bad.read_bytes() == before


@pytest.mark.parametrize(
    ("paths", "setting", "target"),
    [
        (".", "output.path", "out"),
        (".", "output.path", "out.parquet"),
        ("*.parquet", "bad_rows.path", "bad.parquet"),
        ("**/*.parquet", "output.path", "out"),
        ("**/*.parquet", "bad_rows.path", "sub/bad.parquet"),
    ],
)
def test_what_is_written_may_not_be_found_by_the_paths_of_the_source(tmp_path, paths, setting, target):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "a.parquet")
    job = {"source": {"paths": paths}, "batch": {"kind": "rows", "n": 1}, "output": {"path": "elsewhere/o"}}
    job |= {"output": {"path": str(tmp_path.parent / f"{tmp_path.name}-out")}}
    section, key = setting.split(".")
    job[section] = {key: target} | ({"policy": "quarantine"} if section == "bad_rows" else {})
    with pytest.raises((JobError, ProviderError), match="would be a file of the source"):
        check(Job.from_dict(job, tmp_path))
    job["source"]["exclude"] = ["out*", "bad*"]
    check(Job.from_dict(job, tmp_path))


@pytest.mark.parametrize("workers", [0, 2])
def test_two_jobs_do_not_share_a_quarantine_file(tmp_path, workers):
    (tmp_path / "a.jsonl").write_text('{"x": 1}\n{"x": \n')
    (tmp_path / "b.jsonl").write_text('{"x": 1}\n{"x": 2}\n')

    def job_of(name, output):
        settings = {"source": {"paths": f"{name}.jsonl"}, "batch": {"n": 1}, "output": {"path": output}}
        engine = {"workers": workers} if workers else {}
        bad_rows = {"policy": "quarantine", "path": "bad.parquet"}
        return Job.from_dict({**settings, "engine": engine, "bad_rows": bad_rows}, tmp_path)

    assert run(job_of("a", "out/a/")).bad_rows == 1
    content = (tmp_path / "bad.parquet").read_bytes()
    for name, output in (("b", "b"), ("a", "a2")):
        with pytest.raises(ProviderError, match=r"bad\.parquet' has the bad rows of another output, 'out/a'"):
            run(job_of(name, output))
        with pytest.raises(ProviderError, match="another output"):
            check(job_of(name, output))
    assert (tmp_path / "bad.parquet").read_bytes() == content
    assert run(job_of("a", "out/a")).outcome == "complete"
    assert run(job_of("a", "out/a"), overwrite=True).bad_rows == 1
    assert (tmp_path / "bad.parquet").read_bytes() == content
