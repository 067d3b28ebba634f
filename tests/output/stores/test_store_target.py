"""Outputs in stores: what is there at the end, who may write, and what a run that fails leaves."""

import json
import os
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from outputs import names, record, write
from store_server import Faults, StoreServer

import seqflow as sf
from seqflow.errors import JobError, MissingSourceError, StoreError
from seqflow.files.store import StoreFiles
from seqflow.files.writing import StoreWriter
from seqflow.output import OutputWriter, open_output
from seqflow.record import Record, from_arrow
from stores import Bucket


def to(bucket: Bucket, key: str = "out", **settings: object) -> OutputWriter:
    return open_output(f"{bucket.uri}/{key}", storage_options=bucket.options, **settings)  # type: ignore[arg-type]


def shown(bucket: Bucket, prefix: str = "") -> list[str]:
    """The keys without those of logs."""
    return [key for key in bucket.keys(prefix) if "/.progress/" not in key]


def letters(start: int, rows: int) -> Record:
    """Rows with a column to make folders of, whose names have characters that URIs write in another way."""
    texts = pa.array([("a b", "ä%", "c/d", "e=f")[(start + i) % 4] for i in range(rows)])
    return from_arrow(pa.table({"x": np.arange(start, start + rows), "of": texts}))


def test_a_prefix_gets_parts_and_a_manifest_as_a_folder_does(store: Bucket, tmp_path: Path) -> None:
    for output in (to(store), open_output(tmp_path / "local")):
        with output:
            output.write(record(0, 5))
            output.commit()
            output.write(record(5, 3))
            files = output.finish()
    assert [file.num_rows for file in files] == [5, 3]
    assert shown(store) == ["out/_manifest.json", "out/part-00000.parquet", "out/part-00001.parquet"]
    for name in ("part-00000.parquet", "part-00001.parquet"):
        assert store.get(f"out/{name}") == (tmp_path / "local" / name).read_bytes()
    manifest = json.loads(store.get("out/_manifest.json"))
    without = [{key: one[key] for key in one if key != "etag"} for one in manifest["files"]]
    assert without == json.loads((tmp_path / "local" / "_manifest.json").read_text())["files"]
    assert len(store.keys("out/.progress")) == 1  # so that numbers never come again


@pytest.mark.parametrize(
    "settings", [{"sort_by": "-x"}, {"partition_by": "of"}, {"kind": "arrow", "threads": 2}]
)
def test_arranged_parts_are_those_of_a_folder(
    own: StoreServer, bucket: Bucket, tmp_path: Path, settings: dict
) -> None:
    for output in (to(bucket, **settings), open_output(tmp_path / "local", **settings)):
        with output:
            for start in range(0, 60, 20):
                output.write(letters(start, 20))
                output.commit()
            output.finish()
    local = [path for path in (tmp_path / "local").rglob("*") if path.is_file() and path.name[0] != "_"]
    for path in local:
        at = tmp_path / "store" / "bucket" / "out" / path.relative_to(tmp_path / "local")
        assert at.read_bytes() == path.read_bytes()
    assert len(shown(bucket)) == len(local) + 1


def test_one_object_is_joined_of_pieces_and_replaced_at_once(bucket: Bucket, tmp_path: Path) -> None:
    for rows in (4, 7):
        with to(bucket, "one.parquet") as output:
            for start in (0, rows):
                output.write(record(start, rows))
                output.commit()
            files = output.finish()
        assert output.place(files[0]) == "s3://bucket/one.parquet"
        write(tmp_path / f"{rows}.parquet", [record(0, rows), record(rows, rows)])
        found = pq.read_table(pa.BufferReader(bucket.get("one.parquet")))
        assert found["x"].to_pylist() == list(range(2 * rows))
    assert shown(bucket) == ["one.parquet"]


def test_a_second_writer_is_refused_by_the_name_of_the_first(store: Bucket) -> None:
    with to(store) as output:
        output.write(record(0, 5))
        with (
            pytest.raises(JobError, match=rf"process {os.getpid()} on .*, is writing to 's3://.*/out'"),
            to(store),
        ):
            pass
        output.finish()
    assert shown(store) == ["out/_manifest.json", "out/part-00000.parquet"]


def test_a_run_that_is_taken_over_stops(bucket: Bucket) -> None:
    other = to(bucket)
    other.takes_over = True
    with to(bucket) as output, other:
        output.write(record(0, 5))
        with pytest.raises(
            JobError, match=r"another run has taken over 's3://bucket/out' meanwhile \(process"
        ):
            output.finish()
        other.write(record(0, 3))
        other.finish()
    assert json.loads(bucket.get("out/_manifest.json"))["rows"] == 3


def test_a_run_that_sleeps_through_the_end_of_another_stops(bucket: Bucket) -> None:
    other = to(bucket)
    other.takes_over = True
    with to(bucket) as output:
        output.write(record(0, 5))
        with other:
            other.write(record(0, 3))
            other.finish()
        # its next number is free again
        with pytest.raises(JobError, match="another run has taken over"):
            output.finish()
    assert json.loads(bucket.get("out/_manifest.json"))["rows"] == 3


def test_an_end_that_is_repeated_keeps_the_manifest(own: StoreServer, bucket: Bucket, tmp_path: Path) -> None:
    manifest = tmp_path / "store" / "bucket" / "out" / "_manifest.json"
    options = {**bucket.options, "retry_seconds": 0.3}
    output = open_output("s3://bucket/out", storage_options=options)
    with output:
        output.write(record(0, 5))
        # the manifest is written, and the end of the log is not
        own.choose = lambda request, number: "reset" if request.kind == "PUT" and manifest.exists() else ""
        with pytest.raises(StoreError, match="no answer"):
            output.finish()
    own.choose = None
    before = {key: bucket.get(key) for key in shown(bucket)}
    other = to(bucket)
    other.takes_over = True
    with other:
        other.resume(other.target.read_progress() or {})  # type: ignore[union-attr]
        other.install()
    assert {key: bucket.get(key) for key in shown(bucket)} == before
    assert len(before) == 2


def test_what_a_run_that_was_killed_at_once_has_left_stops_nobody(bucket: Bucket) -> None:
    bucket.put("out/.progress/probe-00", b"")
    with to(bucket) as output:
        output.write(record(0, 5))
        output.finish()
    assert shown(bucket) == ["out/_manifest.json", "out/part-00000.parquet"]


def test_a_store_that_ignores_conditions_is_refused_unless_there_is_a_single_writer(
    own: StoreServer, bucket: Bucket
) -> None:
    own.faults = Faults(ignore_none_match=True)
    with (
        pytest.raises(JobError, match=r"s3://bucket ignores If-None-Match.*\n.*single_writer = true"),
        to(bucket),
    ):
        pass
    assert bucket.keys() == []
    with to(bucket, single_writer=True) as output:
        output.write(record(0, 5))
        output.finish()
    assert shown(bucket) == ["out/_manifest.json", "out/part-00000.parquet"]


def test_data_of_another_origin_are_refused_and_left_alone(bucket: Bucket) -> None:
    bucket.put("out/precious.parquet", b"mine")
    with (
        pytest.raises(JobError, match=r"'s3://bucket/out' holds 'precious.parquet', which its manifest"),
        to(bucket),
    ):
        pass
    assert bucket.keys() == ["out/precious.parquet"]


def test_a_run_that_fails_leaves_the_earlier_output(bucket: Bucket) -> None:
    with to(bucket) as output:
        output.write(record(0, 5))
        output.finish()
    before = {key: bucket.get(key) for key in shown(bucket)}
    with pytest.raises(ValueError, match="ours"), to(bucket) as output:
        raise ValueError("ours")
    assert {key: bucket.get(key) for key in shown(bucket)} == before


def test_a_run_that_fails_without_progress_leaves_no_parts_and_no_spool(
    bucket: Bucket, tmp_path: Path
) -> None:
    output = to(bucket)

    def fail() -> None:
        with output:
            output.write(record(0, 5))
            output.commit()
            assert output.target.names.folder.is_dir()  # type: ignore[union-attr]
            raise ValueError("ours")

    with pytest.raises(ValueError, match="ours"):
        fail()
    assert shown(bucket) == []
    assert not output.target.names.folder.exists()  # type: ignore[union-attr]


def test_a_write_whose_answer_is_lost_counts(own: StoreServer, bucket: Bucket) -> None:
    own.choose = lambda request, number: "lost" if request.kind == "PUT" and number % 2 == 0 else ""
    with to(bucket) as output:
        output.write(record(0, 5))
        output.finish()
    assert own.met["lost"] > 2
    assert shown(bucket) == ["out/_manifest.json", "out/part-00000.parquet"]


def test_a_store_that_goes_away_is_an_error_that_names_it(own: StoreServer, bucket: Bucket) -> None:
    output = open_output("s3://bucket/out", storage_options={**bucket.options, "retry_seconds": 0.5})
    with output:
        output.write(record(0, 5))
        own.choose = lambda request, number: "reset" if "part-" in request.path else ""
        with pytest.raises(StoreError, match=r"s3://bucket/out/part-00000\.parquet: no answer in \d+ s"):
            output.finish()


def test_large_files_are_uploaded_in_parts_and_aborted_if_they_fail(
    own: StoreServer, bucket: Bucket, tmp_path: Path
) -> None:
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(80 << 20)
    writer = StoreWriter(StoreFiles({**bucket.options, "retry_seconds": 2}))
    own.choose = lambda request, number: "cut" if request.kind == "PUT PART" and number == 2 else ""
    made = writer.upload("s3://bucket/large", large, "ab" * 32)
    assert made is not None
    assert made.size == 80 << 20
    assert made.sha256 == "ab" * 32
    assert own.met["cut"] == 1
    bucket.delete("large")
    own.clear()
    own.choose = lambda request, number: "internal" if request.kind == "PUT PART" else ""
    with pytest.raises(StoreError):
        writer.upload("s3://bucket/large", large, "ab" * 32)
    assert own.counts["ABORT UPLOAD"] == own.counts["CREATE UPLOAD"] > 0
    assert bucket.keys() == []


def test_schemes_that_cannot_be_written_are_named() -> None:
    with (
        pytest.raises(StoreError, match="objects of https cannot be written"),
        open_output("https://host/out"),
    ):
        pass
    with pytest.raises(JobError, match="'ftp://host/out', whose scheme cannot be written"):
        open_output("ftp://host/out")
    with pytest.raises(JobError, match=r"'s3://b/out\?sig=…' has a query"):
        open_output("s3://b/out?sig=abc")


def test_readers_refuse_an_output_that_is_not_complete_and_ignore_what_is_added(bucket: Bucket) -> None:
    with to(bucket) as output:
        output.write(record(0, 5))
        output.finish()
    bucket.put(
        "out/part-00001.parquet", bucket.get("out/part-00000.parquet")
    )  # as an append does before its end
    assert sf.open("s3://bucket/out", storage_options=bucket.options).num_rows == 5
    bucket.put(
        "out/_manifest-00000007.json", bucket.get("out/_manifest.json").replace(b"part-00000", b"part-00001")
    )
    found = sf.open("s3://bucket/out/*.parquet", storage_options=bucket.options).files
    assert found == ("s3://bucket/out/part-00001.parquet",)
    bucket.delete("out/_manifest.json", "out/_manifest-00000007.json")
    with pytest.raises(MissingSourceError, match="'s3://bucket/out' holds the beginning of an output"):
        sf.open("s3://bucket/out", storage_options=bucket.options)


def test_spools_of_killed_processes_are_removed(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "seqflow-spool-00").mkdir()
    (tmp_path / "seqflow-spool-00" / ".part-00000.parquet.done").write_bytes(b"")
    (tmp_path / "seqflow-spool-00.lock").write_text("")
    with to(bucket) as output, to(bucket, "other") as other:
        assert {name for name in names(tmp_path) if name.startswith("seqflow")} == {
            f"{one.target.names.folder.name}{end}"
            for one in (output, other)
            for end in ("", ".lock")  # type: ignore[union-attr]
        }
    assert not any(name.startswith("seqflow-spool") for name in names(tmp_path))
