"""`seqflow trace FILE --row N`: where a row of an output comes from."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

from seqflow.errors import JobError
from seqflow.job import Job, run
from seqflow.job.row_traces import trace_row

JOB = """
[source]
paths = "in/docs*.parquet"
[order]
shuffle = true
window = "2 KiB"
[prepare]
net = '''{prepare}'''
[batch]
{batch}
[net]
net = '''{net}'''
[output]
path = "out"
part_bytes = "2 KiB"
"""
CUT = """\
ids, sizes = bytes_to_tokens(text.values, text.lengths, end=256)
tokens.values, tokens.lengths, _ = split_sequences(ids, sizes, chunk=10)
return tokens.values, tokens.lengths"""
KEEP = "kept, _ = boolean_mask(id, id % 3 == 1)\nreturn kept"
PACK = 'kind = "packed"\ncapacity = 16\nrows = 4'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of 200 rows; the text of a row is its id, in 1 to 30 digits."""
    (tmp_path / "in").mkdir()
    for number in range(2):
        ids = np.arange(200) + 200 * number
        table = pa.table({"id": ids, "text": [f"{one:0{one % 30 + 1}}" for one in ids.tolist()]})
        pq.write_table(table, tmp_path / "in" / f"docs{number}.parquet", row_group_size=30)
    return tmp_path


def write(folder: Path, prepare: str = "", batch: str = "n = 16", net: str = "") -> Path:
    text = JOB.format(prepare=prepare, batch=batch, net=net)
    for section in ("prepare", "net"):
        text = text.replace(f"[{section}]\nnet = ''''''\n", "")
    (folder / "job.toml").write_text(text)
    return folder / "job.toml"


def row_at(trace: Any) -> int:
    """The id of the row that a trace names."""
    return int(trace.file[-9]) * 200 + trace.block * 30 + trace.row


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prepare", "net"), [("", ""), (KEEP, ""), ("", KEEP), ("", "y = id * 2\nreturn y, id"), (KEEP, "more = kept + 0\nreturn more, kept")]
)  # fmt: skip
def test_a_row_is_found_in_its_file(folder: Path, prepare: str, net: str) -> None:
    report = run(Job.read(write(folder, prepare, net=net)))
    assert len(report.files) > 1
    for file in report.files[::2]:
        table = pq.read_table(file)
        ids = (table["kept"] if "kept" in table.column_names else table["id"]).to_pylist()
        for row in (0, len(ids) // 2, len(ids) - 1):
            (found,) = trace_row(file, row)
            assert row_at(found) == ids[row]


def test_pieces_of_a_packed_row_are_found_with_their_parts_and_elements(folder: Path) -> None:
    report = run(Job.read(write(folder, CUT, PACK)))
    tokens = pq.read_table(report.files[1])["tokens"].to_pylist()
    for row in range(0, len(tokens), 7):
        made: list[int] = []
        for piece in trace_row(report.files[1], row):
            text = [*f"{row_at(piece):0{row_at(piece) % 30 + 1}}".encode(), 256]
            assert (piece.part is None) == (len(text) <= 10)
            start = (piece.part or 0) * 10 + piece.element
            made += text[start : start + piece.elements]
        assert tokens[row][: len(made)] == made


def test_the_command_prints_and_the_manifest_names_the_job(folder: Path) -> None:
    write(folder, CUT, PACK)
    done = seqflow("run", "job.toml", "--output", "other/place", "--set", "batch.capacity=20", folder=folder)
    assert done.returncode == 0, done.stderr
    made_by = json.loads((folder / "other/place/_manifest.json").read_text())["made_by"]
    assert made_by == {"file": "../../job.toml", "set": {"batch.capacity": 20}}
    traced = seqflow("trace", "other/place/part-00001.parquet", "--row", "3", folder=folder)
    assert traced.returncode == 0, traced.stderr
    pattern = r".*docs\d.parquet, block \d, row \d+(, part \d)?, column tokens, elements \d to \d"
    assert all(re.fullmatch(pattern, line) for line in traced.stdout.splitlines())
    as_json = seqflow("trace", "other/place/part-00001.parquet", "--row", "3", "--json", folder=folder)
    assert json.loads(as_json.stdout)["sources"][0]["column"] == "tokens"


def test_a_batch_of_a_job_is_followed_through_prepare(folder: Path) -> None:
    done = seqflow("trace", write(folder, CUT, PACK), "--batch", "1", folder=folder)
    assert done.returncode == 0, done.stderr
    assert "a row that the net prepare made" not in done.stdout
    assert re.search(r", part \d, column tokens, elements 0 to \d", done.stdout)


def test_the_file_of_a_row_is_named_where_a_block_has_several(folder: Path) -> None:
    for number in range(5):
        (folder / f"text{number}.txt").write_text(f"{number}" * (number + 1))
    (folder / "job.toml").write_text(
        '[source]\npaths = "text*.txt"\ncolumns = ["bytes"]\n[batch]\nn = 2\n[output]\npath = "out"\n'
    )
    (file,) = run(Job.read(folder / "job.toml")).files
    assert [Path(trace_row(file, row)[0].file).name for row in (0, 4)] == ["text0.txt", "text4.txt"]


def test_skips_and_mixes_are_followed(folder: Path) -> None:
    path = write(folder)
    path.write_text("skip = [[1, 4]]\n" + path.read_text())
    files = run(Job.read(path)).files
    file = files[0]
    ids = pq.read_table(file)["id"].to_pylist()
    assert [row_at(trace_row(file, row)[0]) for row in (0, 15)] == [ids[0], ids[15]]
    last = files[-1]
    assert row_at(trace_row(last, 3)[0]) == pq.read_table(last)["id"][3].as_py()
    sources = "".join(
        f'[[mix.sources]]\nname = "s{n}"\npaths = "in/docs{n}.parquet"\nweight = 1\n' for n in range(2)
    )
    path.write_text(
        JOB.format(prepare=KEEP, batch="n = 16", net="")
        .replace('[source]\npaths = "in/docs*.parquet"\n', sources)
        .replace("[net]\nnet = ''''''\n", "")
        .replace('"out"', '"mixed"')
    )
    file = run(Job.read(path)).files[-1]
    table = pq.read_table(file)
    (found,) = trace_row(file, 5)
    assert (row_at(found), found.source) == (table["kept"][5].as_py(), f"s{table['source'][5]}")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ("a row that is not there", r"row is 999, expected 0 to \d+, the rows of"),
        ("a file of no output", "is not a file of an output: no manifest next to it names it"),
        ("other data", "was made of another job or of other data: the data have changed: docs0.parquet"),
        ("another job", r"was made of another job or of other data: batch\.n was 16"),
        ("no job file", "the job file .* is not there any more"),
        ("a changed file", "is not as its job has written it"),
    ],
)
def test_what_cannot_be_traced_is_an_error(folder: Path, change: str, text: str) -> None:
    path = write(folder)
    file, row = run(Job.read(path)).files[0], 1
    if change == "a row that is not there":
        row = 999
    elif change == "a file of no output":
        file = Path(shutil.copy(file, folder / "copy.parquet"))
    elif change == "other data":
        pq.write_table(
            pq.read_table(folder / "in/docs0.parquet").slice(1),
            folder / "in/docs0.parquet",
            row_group_size=30,
        )
    elif change == "another job":
        write(folder, batch="n = 17")
    elif change == "no job file":
        path.rename(folder / "elsewhere.toml")
    else:
        file.write_bytes(file.read_bytes() + b"x")
    with pytest.raises(JobError, match=text):
        trace_row(file, row)
    if change == "no job file":
        assert trace_row(file, row, Job.read(folder / "elsewhere.toml"))


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ('path = "out"', 'path = "out"\nsort_by = "id"', "do not follow each other as the batches do"),
        ('path = "out"', 'path = "out"\nthreads = 2', "do not follow each other as the batches do"),
        ("n = 16", 'kind = "tokens"\nmax_tokens = 64\nbalance = {group = 2, linear = 1}', "the job has a balance"),
        ("[output]", "[net]\nnet = \"y = unique(id)\\nreturn y.unique\"\n[output]", "makes rows of batch 0 of which it is not known"),
    ],
)  # fmt: skip
def test_rows_that_do_not_follow_the_batches_are_an_error(
    folder: Path, old: str, new: str, text: str
) -> None:
    path = write(folder)
    job = path.read_text().replace(old, new)
    if "balance" in new:
        job = job.replace("[batch]", f'[prepare]\nnet = """\n{CUT}"""\n[batch]')
    path.write_text(job)
    file = run(Job.read(path)).files[0]
    with pytest.raises(JobError, match=text):
        trace_row(file, 0)


def test_a_job_that_is_not_in_a_file_has_to_be_given(folder: Path) -> None:
    tables = {"source": {"paths": "in/*.parquet"}, "output": {"path": "out.parquet"}}
    job = Job.from_dict(tables, folder)
    run(job)
    with pytest.raises(JobError, match="names no job file\n  give it with --job"):
        trace_row(folder / "out.parquet", 0)
    assert trace_row(folder / "out.parquet", 7, job)[0].row == 7


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("out.parquet",), "a file of an output needs --row"),
        (("out.parquet", "--row", "1", "--batch", "2"), "a file of an output needs --row"),
        (("job.toml",), "a job needs --batch"),
    ],
)
def test_the_command_says_which_options_it_needs(folder: Path, arguments: tuple[str, ...], text: str) -> None:
    write(folder)
    done = seqflow("trace", *arguments, folder=folder)
    assert done.returncode != 0
    assert text in done.stderr


def test_rows_and_batches_are_found_where_bad_rows_were_set_aside(folder: Path) -> None:
    """Tracing writes nothing: the file with the bad rows is that of the run."""
    table = pa.table({"id": pa.array([0, None, 2, 3]), "text": ["a", "b", None, "d"]})
    pq.write_table(table, folder / "in" / "docs9.parquet")
    job = write(folder)
    job.write_text(job.read_text() + '\n[bad_rows]\npolicy = "quarantine"\npath = "bad.parquet"\n')
    assert seqflow("run", "job.toml", folder=folder).returncode == 0
    bad = (folder / "bad.parquet").read_bytes()
    (file,) = (folder / "out").glob("*-00000.parquet")
    assert seqflow("trace", str(file), "--row", "3", folder=folder).stdout.strip()
    assert seqflow("trace", "job.toml", "--batch", "0", folder=folder).stdout.strip()
    assert (folder / "bad.parquet").read_bytes() == bad


def test_rows_of_a_mix_are_found_where_bad_rows_were_set_aside(folder: Path) -> None:
    for name in ("a", "b"):
        table = pa.table({"id": pa.array([0, None, 2, 3, 4] * 8), "of": [name] * 40})
        pq.write_table(table, folder / f"{name}.parquet")
    sources = "".join(
        f'[[mix.sources]]\nname = "{name}"\npaths = "{name}.parquet"\nweight = {weight}\n'
        for name, weight in (("a", 1), ("b", 3))
    )
    bad = '[bad_rows]\npolicy = "quarantine"\npath = "bad.parquet"\n'
    (folder / "job.toml").write_text(f'{sources}[batch]\nn = 8\n[output]\npath = "out"\n{bad}')
    (file,) = run(Job.read(folder / "job.toml")).files
    found = pq.read_table(file)
    for row in range(0, found.num_rows, 5):
        (one,) = trace_row(file, row)
        source = pq.read_table(one.file)
        assert source.slice(one.row, 1).to_pylist() == found.slice(row, 1).select(["id", "of"]).to_pylist()


def test_rows_of_an_append_are_found_where_bad_rows_were_set_aside(folder: Path) -> None:
    job = write(folder)
    job.write_text(job.read_text() + '\n[bad_rows]\npolicy = "quarantine"\npath = "bad.parquet"\n')
    job.write_text(job.read_text().replace("shuffle = true", "shuffle = false"))
    run(Job.read(job))
    table = pa.table({"id": pa.array([1000, None, 1002]), "text": ["a", "b", "c"]})
    pq.write_table(table, folder / "in" / "docs9.parquet")
    report = run(Job.read(job), append=True)
    assert pq.read_table(report.files[-1])["id"].to_pylist() == [1000, 1002]
    (found,) = trace_row(report.files[-1], 1)
    assert (Path(found.file).name, found.row) == ("docs9.parquet", 2)
