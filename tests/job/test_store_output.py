"""Jobs that write to a store: runs that are killed, two at once, appends, and another machine that goes on."""

import json
import random
import shutil
import signal
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from command import Process
from marks import THOROUGH
from store_jobs import clear, done, log, objects, refused, run, write_store_job
from store_server import Faults, Request, StoreServer

from seqflow.errors import JobError
from seqflow.job import Job
from stores import Bucket

WRITING = ("PUT", "PUT PART", "DELETE MANY")


class KilledAt:
    """Kills a process when the server gets its request of this number that writes; those before `begins` are free."""

    def __init__(self, number: int, begins: Callable[[], bool] = lambda: True) -> None:
        self.left, self.process, self.begins = number, None, begins

    def __call__(self, request: Request, _: int) -> str | None:
        self.left -= request.kind in WRITING and self.begins()
        if self.left == 0 and self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            return "cut"
        return None

    process: Process | None


def killed(own: StoreServer, folder: Path, number: int, *arguments: str, **environment: str) -> bool:
    """Whether a run was killed at a request; else it has come to its end."""
    own.choose = choose = KilledAt(number)
    choose.process = run(folder, *arguments, **environment)
    _, errors = choose.process.communicate()
    own.choose = None
    assert choose.process.returncode in (0, -signal.SIGKILL), errors
    return choose.process.returncode != 0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "job").mkdir()
    return tmp_path / "job"


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.parametrize("bad_rows", ["bad.parquet", "s3://bucket/bad.parquet"])
@pytest.mark.parametrize("settings", [{}, {"arranged": 'sort_by = "-window"'}, {"output": "one.parquet"}])
def test_a_job_that_is_killed_at_any_request_writes_the_bytes_of_an_undisturbed_run(
    own: StoreServer, bucket: Bucket, folder: Path, settings: dict[str, Any], bad_rows: str
) -> None:
    write_store_job(folder, bucket, bad_rows=bad_rows, rows=400, **settings)
    done(run(folder))
    first, local = objects(bucket, ""), sorted(path.name for path in folder.iterdir())
    bucket.delete(*bucket.keys())
    draw, kills = random.Random(str(settings)), 0
    faults = Faults(unavailable=0.05, cut=0.05, lost=0.03, methods="PUT POST", seed=1)
    while kills < (20 if THOROUGH else 4):
        own.faults = faults
        kills += (was := killed(own, folder, draw.randrange(3, 60), "--resume", WAIT="0.01"))
        own.faults = Faults()
        if not was:
            assert objects(bucket, "") == first
            bucket.delete(*bucket.keys())
    done(run(folder, "--resume"))
    assert objects(bucket, "") == first
    assert sorted(path.name for path in folder.iterdir()) == local
    assert not list((folder.parent / "store" / ".uploads").glob("*"))


@pytest.mark.slow
def test_a_run_that_goes_on_removes_the_pieces_of_bad_rows_that_the_killed_one_left(
    own: StoreServer, bucket: Bucket, folder: Path
) -> None:
    """It was killed when the quarantine file was there, and its pieces still were."""
    write_store_job(folder, bucket, rows=400, bad_rows="s3://bucket/bad.parquet")
    done(run(folder))
    first = objects(bucket, "")
    bucket.delete(*bucket.keys())
    joined = own.store.folder / bucket.name / "bad.parquet"
    own.choose = choose = KilledAt(1, begins=joined.exists)
    choose.process = run(folder)
    choose.process.communicate()
    own.choose = None
    assert choose.process.returncode == -signal.SIGKILL
    assert len([key for key in bucket.keys("") if key.startswith(".bad.parquet/")]) > 1
    done(run(folder, "--resume"))
    assert objects(bucket, "") == first


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--resume"]])
def test_of_two_runs_at_once_one_writes_and_the_other_names_it(
    own: StoreServer, bucket: Bucket, folder: Path, flags: list[str]
) -> None:
    write_store_job(folder, bucket, rows=200, part_bytes="4096", bad_rows="s3://bucket/bad.parquet")
    done(run(folder))
    first = objects(bucket)
    races = 0
    while races < (20 if THOROUGH else 3):
        clear(bucket)
        two = [run(folder, *flags, WAIT="0.02") for _ in range(2)]
        errors = {one.pid: one.communicate()[1] for one in two}
        if [one.returncode for one in two] == [0, 0]:  # one began when the other had ended
            assert any("the output is complete" in text for text in errors.values()), errors
            continue
        races += 1
        assert sorted(one.returncode for one in two) == [0, 2], errors
        winner, loser = sorted(two, key=lambda one: one.returncode)
        assert f"process {winner.pid} on " in errors[loser.pid]
        assert objects(bucket) == first


@pytest.mark.slow
def test_an_append_that_is_killed_at_any_point_adds_each_row_once(
    own: StoreServer, bucket: Bucket, folder: Path
) -> None:
    write_store_job(folder, bucket, rows=120, part_bytes="4096", bad_rows="s3://bucket/bad.parquet")

    def begin() -> None:
        bucket.delete(*bucket.keys(""))
        (folder / "docs1.parquet").rename(folder / "later")
        done(run(folder))
        (folder / "later").rename(folder / "docs1.parquet")

    begin()
    done(run(folder, "--append"))
    appended = objects(bucket, "")
    manifests = [key for key in appended if "_manifest" in key]
    assert len(manifests) == 1
    for number in range(1, 11, 1 if THOROUGH else 3):
        begin()
        was_killed = killed(own, folder, number, "--append")
        assert was_killed
        done(run(folder, "--append", "--resume"))
        found = objects(bucket, "")
        assert {key for key in found if "_manifest" not in key} == {
            key for key in appended if "_manifest" not in key
        }
        assert all(found[key] == appended[key] for key in found if "_manifest" not in key)
        assert [found[key] for key in found if "_manifest" in key] == [appended[manifests[0]]]


@pytest.mark.slow
def test_another_machine_goes_on_after_the_log_alone(own: StoreServer, bucket: Bucket, folder: Path) -> None:
    write_store_job(folder, bucket, rows=200, part_bytes="4096")
    done(run(folder))
    first = objects(bucket)
    clear(bucket)
    (folder / "bad.parquet").unlink()
    assert killed(own, folder, 9, WAIT="0.02")
    assert "is writing to 's3://bucket/out', or was killed" in refused(run(folder))
    other = folder.with_name("other")
    other.mkdir()
    shutil.move(folder, other / "place")
    (other / "tmp").mkdir()
    own.clear()
    done(run(other / "place", "--resume", TMPDIR=str(other / "tmp")))
    assert objects(bucket) == first
    assert list((other / "tmp").glob("seqflow-spool*")) == []
    done(run(other / "place"))  # it is complete


@pytest.mark.slow
def test_a_damaged_part_is_named_and_an_overwritten_output_is_the_new_one(
    own: StoreServer, bucket: Bucket, folder: Path
) -> None:
    write_store_job(folder, bucket, rows=100, part_bytes="4096")
    done(run(folder))
    first = objects(bucket)
    bucket.put("out/part-00001.parquet", b"other bytes")
    for how in ((), ("--resume",)):
        assert "files of 's3://bucket/out' are gone, or not as this job" in refused(run(folder, *how))
    done(run(folder, "--overwrite", "--workers", "2"))
    assert objects(bucket) == first
    assert len(log(bucket)) == 1


@pytest.mark.slow
def test_secrets_in_a_job_file_are_refused_and_options_are_no_part_of_its_identity(
    own: StoreServer, bucket: Bucket, folder: Path
) -> None:
    write_store_job(folder, bucket, rows=30)
    done(run(folder))
    text = (folder / "job.toml").read_text()
    manifest = json.loads(bucket.get("out/_manifest.json"))
    assert "storage_options" not in json.dumps(manifest)
    (folder / "job.toml").write_text(
        text.replace("retry_seconds = 20", "retry_seconds = 30\nuser_agent = 'me'")
    )
    before = own.counts["PUT"]
    done(run(folder))  # it is complete
    assert own.counts["PUT"] - before <= 4  # the probe and the claim
    for secret in ('secret = "x"', 'aws_secret_access_key = "x"', 'client_kwargs = {token = "x"}'):
        (folder / "job.toml").write_text(text.replace("retry_seconds = 20", secret))
        with pytest.raises(
            JobError, match=r"job.toml, line \d+: \[output.storage_options\] has .*\n.*AWS_ACCESS"
        ):
            Job.read(folder / "job.toml")
    given = tomllib.loads(text)
    given["output"]["storage_options"] = {"secret": "hidden"}
    assert "hidden" not in repr(Job.from_dict(given, folder))


@pytest.mark.slow
def test_an_output_is_refused_where_the_source_would_find_it(bucket: Bucket, folder: Path) -> None:
    write_store_job(folder, bucket, rows=30, bad_rows="s3://bucket/out/bad.parquet")
    assert "bad_rows.path: 's3://bucket/out/bad.parquet' belongs to output.path" in refused(run(folder))
    assert bucket.keys() == []


@pytest.mark.slow
def test_the_bad_rows_of_another_output_stay_in_a_store(
    own: StoreServer, bucket: Bucket, folder: Path
) -> None:
    write_store_job(folder, bucket, rows=30, bad_rows="s3://bucket/bad.parquet")
    done(run(folder))
    first = objects(bucket, "")
    assert "bad.parquet" in first
    other = run(folder, "--output", "s3://bucket/other")
    assert "'s3://bucket/bad.parquet' has the bad rows of another output, 's3://bucket/out'" in refused(other)
    assert {key: one for key, one in objects(bucket, "").items() if key in first} == first
    # what a run that was killed before its end has left: pieces, and no file
    bucket.delete("bad.parquet")
    bucket.put(".bad.parquet/bad.parquet.part-00000", first["bad.parquet"])
    assert "has the bad rows of another output" in refused(run(folder, "--output", "s3://bucket/other"))
    assert bucket.get(".bad.parquet/bad.parquet.part-00000") == first["bad.parquet"]
    done(run(folder, "--overwrite"))
    assert objects(bucket, "")["bad.parquet"] == first["bad.parquet"]
    assert bucket.keys(".bad.parquet") == []
