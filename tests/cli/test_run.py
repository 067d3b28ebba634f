"""`seqflow run`."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from command import seqflow


def test_run_prints_a_closing_table_and_no_progress_where_nobody_watches(folder: Path) -> None:
    done = seqflow("run", "job.toml", folder=folder)
    assert (done.returncode, done.stderr) == (0, "")
    table = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert (table["rows"], table["tokens"], table["batches"]) == ("100", "450", "26")
    assert table["output"].startswith("out/part-00000.parquet (1, ")
    assert set(table) == {"rows", "tokens", "fill", "batches", "seconds", "tokens/s", "peak", "bad", "output"}


def test_run_prints_no_tokens_where_no_one_column_has_them(folder: Path) -> None:
    pq.write_table(pa.table({"ids": [[1, 2], []], "weights": [[0.5, 1.0], []]}), folder / "users.parquet")
    (folder / "users.toml").write_text('source.paths = "users.parquet"\noutput.path = "users"\n')
    done = seqflow("run", "users.toml", folder=folder)
    table = dict(line.split(maxsplit=1) for line in done.stdout.splitlines())
    assert (table["rows"], table["tokens"], table["tokens/s"], table["fill"]) == ("2", "-", "-", "-")


def test_run_with_json_prints_one_object(folder: Path) -> None:
    report = json.loads(seqflow("run", "job.toml", "--json", folder=folder).stdout)
    assert (report["rows"], report["tokens"], report["bad_rows"]) == (100, 450, 0)
    assert report["files"] == ["out/part-00000.parquet"]
    assert report["output_bytes"] == (folder / "out" / "part-00000.parquet").stat().st_size


def test_run_quietly_prints_nothing(folder: Path) -> None:
    done = seqflow("run", "job.toml", "--quiet", folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert (folder / "out").exists()


def test_settings_input_and_output_can_be_overridden(folder: Path) -> None:
    (folder / "docs.parquet").rename(folder / "a.parquet")
    (folder / "jobs").mkdir()
    (folder / "job.toml").rename(folder / "jobs" / "job.toml")
    overrides = ("--set", "batch.kind=packed", "--set", "batch={kind='packed', capacity=16}")
    done = seqflow(
        "run", "jobs/job.toml", "--input", "a.parquet", "--input", "a.*", "--output", "x.parquet", *overrides,
        folder=folder,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    packed = pq.read_table(folder / "x.parquet")
    assert packed.schema.field("tokens").type == pa.list_(pa.int32(), 16)
    assert sum(map(sum, packed["piece_lengths"].to_pylist())) == 450


def test_the_output_is_named_without_a_way_through_other_folders(folder: Path) -> None:
    (folder / "jobs").mkdir()
    job = (folder / "job.toml").read_text().replace('"docs', '"../docs').replace('"out"', '"../out"')
    (folder / "jobs" / "job.toml").write_text(job)
    table = seqflow("run", "jobs/job.toml", folder=folder).stdout
    assert table.splitlines()[-1].split()[1] == "out/part-00000.parquet"


def test_a_symbolic_link_on_the_way_to_the_output_is_followed(folder: Path) -> None:
    (folder / "deep" / "jobs").mkdir(parents=True)
    (folder / "jobs").symlink_to(folder / "deep" / "jobs")
    job = (folder / "job.toml").read_text().replace('"docs', f'"{folder}/docs').replace('"out"', '"../out"')
    (folder / "jobs" / "job.toml").write_text(job)
    table = seqflow("run", "jobs/job.toml", folder=folder).stdout
    assert table.splitlines()[-1].split()[1] == "jobs/../out/part-00000.parquet"
    assert (folder / "deep" / "out" / "part-00000.parquet").exists()


def test_a_second_run_says_that_the_output_is_complete(folder: Path) -> None:
    first = seqflow("run", "job.toml", "--resume", folder=folder)
    assert first.stderr == "seqflow: there was no run to continue; this one started again\n"
    again = seqflow("run", "job.toml", folder=folder)
    assert again.returncode == 0
    assert again.stderr == "seqflow: the output is complete, nothing was done; --overwrite makes it again\n"
    assert "seconds" not in again.stdout
    (folder / "out" / "part-00000.parquet").unlink()
    refused = seqflow("run", "job.toml", "--resume", folder=folder)
    assert refused.returncode == 2
    assert "gone, or not as this job has written them: 'part-00000.parquet'" in refused.stderr
    assert seqflow("run", "job.toml", "--overwrite", "--quiet", folder=folder).stderr == ""
    other = seqflow("run", "job.toml", "--set", "batch.max_tokens=21", folder=folder)
    assert other.returncode == 2
    assert "'out' is of another job or of other data: batch.max_tokens was 20" in other.stderr
