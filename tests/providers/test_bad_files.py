"""Damaged files: each policy, at opening and at reading, counted once."""

import bz2
import errno
import gzip
import json
import os
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import seqflow as sf
from seqflow.errors import DamagedFileError, JobError, OpError, ProviderError
from seqflow.record.validation import kind_of_error

ROWS = 60


def write(path: Path, start: int = 0, **options: Any) -> Path:
    table = pa.table(
        {"n": pa.array(range(start, start + ROWS)), "t": [f"row {n}" for n in range(start, start + ROWS)]}
    )
    pq.write_table(table, path, row_group_size=20, **options)
    return path


def numbers(loader: Any) -> list[int]:
    return [n for batch in loader for n in batch["n"].tolist()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Four files, of which two are damaged."""
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(4):
        write(folder / f"{number}.parquet", ROWS * number)
    (folder / "1.parquet").write_bytes(b"")
    content = (folder / "3.parquet").read_bytes()
    (folder / "3.parquet").write_bytes(content[: len(content) // 2])
    return folder


GOOD = [*range(ROWS), *range(2 * ROWS, 3 * ROWS)]


def test_an_error_names_the_first_and_says_what_to_type(folder: Path) -> None:
    with pytest.raises(DamagedFileError, match=r"1\.parquet is not a Parquet file[^$]*bad_files='skip'"):
        sf.open(folder)


def test_the_others_are_read_and_the_damaged_listed(folder: Path) -> None:
    provider = sf.open(folder, bad_files="skip")
    assert [(Path(one.path).name, one.block, one.rows) for one in provider.damaged] == [
        ("1.parquet", None, None),
        ("3.parquet", None, None),
    ]
    assert provider.num_rows is None
    assert "damaged: " in repr(provider)
    loader = sf.Loader(provider, batch=sf.Rows(7))
    assert numbers(loader) == GOOD
    assert [Path(one.path).name for one in loader.stats().bad_files] == ["1.parquet", "3.parquet"]
    assert "damaged files" in repr(loader.stats())
    assert numbers(loader) == GOOD
    assert len(loader.stats().bad_files) == 2


def test_there_may_be_at_most_so_many(folder: Path) -> None:
    with pytest.raises(
        DamagedFileError, match=r"2 files are damaged, and bad_files allows max=1:[^$]*3\.parquet"
    ):
        sf.open(folder, bad_files=sf.BadFiles("skip", max=1))
    assert len(sf.open(folder, bad_files=sf.BadFiles("skip", max=2)).damaged) == 2


def test_all_damaged_is_an_error(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.parquet").write_bytes(b"PAR1 or not")
    with pytest.raises(DamagedFileError, match=r"all files are damaged \(2\), the first: .*a\.parquet"):
        sf.open(tmp_path, bad_files="skip")


@pytest.mark.parametrize(
    ("policy", "message"),
    [("skp", "bad_files is 'skp', expected"), (True, "bad_files is True"), (sf.BadFiles, "bad_files is")],
)
def test_a_policy_that_is_none_is_an_error(folder: Path, policy: Any, message: str) -> None:
    with pytest.raises(ProviderError, match=message):
        sf.open(folder, bad_files=policy)


def test_bounds_that_mean_nothing_are_errors() -> None:
    with pytest.raises(ProviderError, match="max is -1, expected 0 or more"):
        sf.BadFiles("skip", max=-1)
    with pytest.raises(ProviderError, match="max is 2, expected None with 'raise'"):
        sf.BadFiles(max=2)
    with pytest.raises(ProviderError, match="no option 'bad_files' for memory"):
        sf.open({"n": [1]}, bad_files="skip")


def flipped(path: Path, at: int, bit: int = 0) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 1 << bit
    path.write_bytes(content)


def data_pages(path: Path) -> list[tuple[int, int]]:
    """Start and size of each column chunk, row group by row group."""
    footer = pq.read_metadata(path)
    chunks = [
        footer.row_group(group).column(at)
        for group in range(footer.num_row_groups)
        for at in range(footer.num_columns)
    ]
    return [
        (
            min(one.data_page_offset, one.dictionary_page_offset or one.data_page_offset),
            one.total_compressed_size,
        )
        for one in chunks
    ]


def test_a_damaged_page_costs_its_row_group(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", write_page_checksum=True, use_dictionary=False)
    start, size = data_pages(path)[2]  # of the second row group
    flipped(path, start + size - 3)
    with pytest.raises(DamagedFileError, match=r"a\.parquet, row group 1 can't be read: .*CRC"):
        numbers(sf.Loader(path))
    loader = sf.Loader(path, bad_files="skip", batch=8)
    assert numbers(loader) == [*range(20), *range(40, 60)]
    (bad,) = loader.stats().bad_files
    assert (bad.path, bad.block, bad.rows) == (str(path), 1, 20)
    assert "CRC" in bad.reason
    with pytest.raises(DamagedFileError, match="max=0"):
        numbers(sf.Loader(path, bad_files=sf.BadFiles("skip", max=0)))


def test_other_columns_of_a_damaged_row_group_are_read_if_they_alone_are_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path / "a.parquet", write_page_checksum=True, use_dictionary=False)
    start, size = data_pages(path)[3]  # texts of the second row group
    flipped(path, start + size - 3)
    loader = sf.Loader(path, columns=["n"], bad_files="skip")
    assert numbers(loader) == [*range(60)]
    assert not loader.stats().bad_files
    assert numbers(sf.Loader(path, where="n > 30", bad_files="skip")) == [*range(40, 60)]


@pytest.mark.slow
def test_flipped_bits_in_pages_with_checksums_never_change_a_value(tmp_path: Path) -> None:
    """Bodies by their checksums, headers by the counts of rows: the other rows come out, each damage counted once."""
    good = write(tmp_path / "good.parquet", write_page_checksum=True).read_bytes()
    path, draw = tmp_path / "bad.parquet", random.Random(0)
    pages = data_pages(tmp_path / "good.parquet")
    for _ in range(400):
        start, size = draw.choice(pages)
        path.write_bytes(good)
        flipped(path, start + draw.randrange(size), draw.randrange(8))
        loader = sf.Loader(path, bad_files="skip", batch=9)
        rows = [
            (n, bytes(values).decode())
            for batch in loader
            for n, values in zip(
                batch["n"].tolist(),
                sf.Sequence(batch["t.values"], [batch["t.lengths"]]).to_lists(),
                strict=True,
            )
        ]
        bad = loader.stats().bad_files
        lost = {n for one in bad for n in range(20 * one.block, 20 * one.block + 20)}  # type: ignore[operator]
        assert rows == [(n, f"row {n}") for n in range(ROWS) if n not in lost]
        assert sum(one.rows or 0 for one in bad) == len(lost)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["parquet", "jsonl.gz"])
def test_a_file_cut_anywhere_is_left_out_whole(tmp_path: Path, suffix: str) -> None:
    one, other = tmp_path / f"a.{suffix}", tmp_path / f"b.{suffix}"
    if suffix == "parquet":
        write(one), write(other, ROWS)
    else:
        for path, start in ((one, 0), (other, ROWS)):
            path.write_bytes(
                gzip.compress("".join(f'{{"n": {n}}}\n' for n in range(start, start + ROWS)).encode())
            )
    content = other.read_bytes()
    for cut in range(1, len(content), 1 if suffix == "jsonl.gz" else 7):
        other.write_bytes(content[:cut])
        loader = sf.Loader([one, other], columns=["n"], bad_files="skip", batch=7)
        assert numbers(loader) == [*range(ROWS)], cut
        assert [Path(bad.path).name for bad in loader.stats().bad_files] == [other.name]


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress])
def test_a_cut_compressed_file_of_lines_is_left_out_whole(tmp_path: Path, compress: Any) -> None:
    suffix = {gzip.compress: "gz", bz2.compress: "bz2"}[compress]
    lines = {
        name: [f'{{"n": {n}}}\n' for n in range(start, start + 5000)]
        for name, start in (("a", 0), ("b", 9000))
    }
    for name, of_file in lines.items():
        (tmp_path / f"{name}.jsonl.{suffix}").write_bytes(compress("".join(of_file).encode()))
    content = (tmp_path / f"a.jsonl.{suffix}").read_bytes()
    (tmp_path / f"a.jsonl.{suffix}").write_bytes(content[:-20])
    with pytest.raises(DamagedFileError, match=rf"a\.jsonl\.{suffix} can't be read"):
        numbers(sf.Loader(tmp_path))
    loader = sf.Loader(tmp_path, bad_files="skip", batch=100)
    assert numbers(loader) == [*range(9000, 14000)]
    assert len(loader.stats().bad_files) == 1


LINES = {
    "csv": "n\n1\n2\n",
    "jsonl": '{"n": 1}\n{"n": 2}\n',
}
JUNK = {
    "binary": bytes(range(255, -1, -1)) * 9,
    "zeros": bytes(300),
    "cut": b'"n',
    "a page": b"\n<html>\n<p>\xe9</p>\n",
}


@pytest.mark.parametrize("junk", JUNK.values(), ids=JUNK)
@pytest.mark.parametrize("kind", LINES)
def test_a_file_of_lines_of_which_none_can_be_read_is_damaged_wherever_it_is(
    tmp_path: Path, kind: str, junk: bytes
) -> None:
    paths = [tmp_path / f"{name}.{kind}" for name in ("good", "empty", "junk")]
    for path, content in zip(paths, (LINES[kind].encode(), b"", junk), strict=True):
        path.write_bytes(content)
    options = {"kind": kind}
    alone = sf.open(paths[:1], **options)
    for order in (paths, paths[::-1]):
        loader = sf.Loader(order, **options, bad_files="skip")
        assert loader.source.schema == alone.schema
        assert sum(batch.num_rows for batch in loader) == 2
        ((path, block, reason, rows),) = loader.stats().bad_files
        assert (path, block, rows) == (str(paths[2]), None, None)
        assert "line 1: " in reason or "line 2: " in reason
        with pytest.raises(ProviderError, match=r"junk\.[^$]*line \d[^$]*\n  .*(bad_files|bad_rows)='skip'"):
            [*sf.Loader(order, **options)]
    with pytest.raises(DamagedFileError, match="all files are damaged"):
        sf.open(paths[2:], **options, bad_files="skip")


def test_commands_go_on_without_a_damaged_file_of_lines(tmp_path: Path) -> None:
    from seqflow.job import Job, run
    from seqflow.job.first_job.starting import starting_job
    from seqflow.report.report import report_of_path

    (tmp_path / "a.csv").write_text(LINES["csv"])
    (tmp_path / "b.csv").write_bytes(JUNK["binary"])
    assert report_of_path(str(tmp_path)).found.damaged.num_files == 1
    start = starting_job([str(tmp_path / "*.csv")], tmp_path / "job.toml")
    (tmp_path / "job.toml").write_text(start.text)
    job = Job.read(tmp_path / "job.toml")
    assert "1 damaged file" in start.seen.refused_by(job)
    report = run(job)
    assert (report.rows, report.bad_files.num_files) == (2, 1)


def test_a_file_that_vanishes_while_it_is_read_is_counted(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / f"{number}.parquet", ROWS * number)
    provider = sf.open(tmp_path, bad_files="skip")
    loader = sf.Loader(provider, batch=20, threads=0, window=1)
    batches = iter(loader)
    next(batches)
    (tmp_path / "2.parquet").unlink()
    rest = [n for batch in batches for n in batch["n"].tolist()]
    assert rest == [*range(20, 2 * ROWS)]
    assert {Path(one.path).name for one in loader.stats().bad_files} == {"2.parquet"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_missing_permission_is_always_an_error(folder: Path) -> None:
    (folder / "0.parquet").chmod(0)
    with pytest.raises(ProviderError, match="permission denied") as caught:
        sf.open(folder, bad_files="skip")
    assert not isinstance(caught.value, DamagedFileError)


@pytest.mark.parametrize(
    ("error", "is_damage"),
    [
        (pa.ArrowInvalid("magic bytes"), True),
        (OSError("Corrupt snappy compressed data."), True),
        (FileNotFoundError(errno.ENOENT, "No such file"), True),
        (OSError(errno.EIO, "Input/output error"), False),
        (PermissionError(errno.EACCES, "Permission denied"), False),
        (ConnectionResetError(errno.ECONNRESET, "reset"), False),
        (MemoryError(), False),
        (pa.ArrowMemoryError("malloc"), False),
        (ImportError("no module"), False),
    ],
)
def test_a_device_a_permission_a_network_and_the_memory_are_no_damage(
    error: Exception, is_damage: bool
) -> None:
    assert (kind_of_error(error) is DamagedFileError) == is_damage


def test_a_mended_file_is_a_change(folder: Path) -> None:
    loader = sf.Loader(folder, bad_files="skip", batch=10)
    next(iter(loader))
    state = json.loads(json.dumps(loader.state_dict()))
    again = sf.Loader(folder, bad_files="skip", batch=10)
    again.load_state_dict(state)
    assert numbers(again) == GOOD[10:]
    write(folder / "1.parquet", ROWS)
    with pytest.raises(OpError, match=r"1\.parquet is new"):
        sf.Loader(folder, bad_files="skip", batch=10).load_state_dict(state)


def test_ranks_read_the_same_rows_without_the_damaged(folder: Path) -> None:
    found = [
        n
        for rank in range(2)
        for n in numbers(sf.Loader(folder, bad_files="skip", batch=5, rank=rank, world_size=2, tail="pad"))
    ]
    assert sorted(found) == GOOD


def test_quarantine_enters_damage_next_to_bad_rows(folder: Path) -> None:
    with pytest.raises(OpError, match="'quarantine', but bad_rows names no file"):
        sf.Loader(folder, bad_files="quarantine")
    path = folder.parent / "bad.parquet"
    start, size = data_pages(write(folder / "0.parquet", write_page_checksum=True, use_dictionary=False))[0]
    flipped(folder / "0.parquet", start + size - 3)
    loader = sf.Loader(folder, bad_files="quarantine", bad_rows=sf.BadRows("quarantine", path), batch=20)
    assert numbers(loader) == GOOD[20:]
    table = pq.read_table(path)
    bad = table["bad"].to_pylist()
    assert [(Path(one["file"]).name, one["block"], one["row"]) for one in bad] == [
        ("1.parquet", 0, None),
        ("3.parquet", 0, None),
        ("0.parquet", 0, None),
    ]
    assert table["n"].to_pylist() == [None] * 3


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_job_counts_them_in_its_manifest(folder: Path, workers: int) -> None:
    out = folder.parent / "out"
    job = sf_job(folder, out, workers)
    with pytest.raises(DamagedFileError, match=r"1\.parquet"):
        run(sf_job(folder, out, workers, policy="raise"))
    report = run(job)
    assert report.rows == len(GOOD)
    assert [Path(one.path).name for one in report.bad_files] == ["1.parquet", "3.parquet"]
    manifest = json.loads((out / "_manifest.json").read_text())
    assert [Path(path).name for path, *_ in manifest["counts"]["bad_files"]] == ["1.parquet", "3.parquet"]
    assert pa.table(sf.open(out).read(next(iter(sf.open(out).blocks())))).num_rows > 0
    bad = pq.read_table(folder.parent / "bad.parquet")["bad"].to_pylist()
    assert [Path(one["file"]).name for one in bad] == ["1.parquet", "3.parquet"]


def sf_job(folder: Path, out: Path, workers: int, policy: str = "quarantine") -> Any:
    from seqflow.job import Job

    return Job.from_dict(
        {
            "source": {"paths": str(folder)},
            "bad_files": {"policy": policy},
            "bad_rows": {"policy": "quarantine", "path": str(folder.parent / "bad.parquet")},
            "batch": 10,
            "engine": {"workers": workers},
            "output": {"path": str(out), "part_bytes": 1},
        },
        folder.parent,
    )


def run(job: Any) -> Any:
    from seqflow.job import run as run_job

    return run_job(job)


@pytest.mark.slow
def test_an_append_leaves_out_new_damaged_files_and_takes_mended_ones(folder: Path) -> None:
    from seqflow.job import run as run_job

    out = folder.parent / "out"
    job = sf_job(folder, out, workers=1, policy="skip")
    run(job)
    write(folder / "4.parquet", 4 * ROWS)
    (folder / "5.parquet").write_bytes(b"PAR1")
    report = run_job(job, append=True)
    assert report.rows == len(GOOD) + ROWS
    bad = json.loads((out / "_manifest.json").read_text())["counts"]["bad_files"]
    assert [Path(path).name for path, *_ in bad] == ["1.parquet", "3.parquet", "5.parquet"]
    write(folder / "3.parquet", 3 * ROWS)
    assert run_job(job, append=True).rows == len(GOOD) + 2 * ROWS
    bad = json.loads((out / "_manifest.json").read_text())["counts"]["bad_files"]
    assert [Path(path).name for path, *_ in bad] == ["1.parquet", "5.parquet"]
    (folder / "0.parquet").unlink()
    with pytest.raises(JobError, match=r"0\.parquet"):
        run_job(job, append=True)


def test_the_page_of_a_job_with_a_quarantine_file_is_made(folder: Path) -> None:
    from seqflow.report.report import report_of_job

    page = report_of_job(sf_job(folder, folder.parent / "out", workers=1), "job").page
    assert page.count("is not a Parquet file, or damaged") == 2
    assert not (folder.parent / "bad.parquet").exists()


def test_reasons_are_counted_without_values(tmp_path: Path) -> None:
    pq.write_table(pa.table({"n": [*range(100, 200)]}), tmp_path / "a.parquet")
    loader = sf.Loader(tmp_path, schema={"n": "int8"}, bad_rows="skip")
    assert len(numbers(loader)) == 28
    assert loader.stats().reasons == {"n: not a value of int8": 72}
