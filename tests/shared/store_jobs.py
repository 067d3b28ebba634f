"""Jobs that write to a store, run in processes of their own, and what they leave there."""

import json
import os
from pathlib import Path
from typing import Any

from command import Process
from killed_jobs import start, write_slow_job

from stores import SECRET, Bucket

OPTIONS = (
    '[output.storage_options]\naws_endpoint_url = "{url}"\naws_region = "us-east-1"\nretry_seconds = 20\n'
)
KEYS = {"AWS_ACCESS_KEY_ID": "ak", "AWS_SECRET_ACCESS_KEY": SECRET}


def write_store_job(
    folder: Path, bucket: Bucket, output: str = "out", *, more: str = "", **settings: Any
) -> None:
    """Write a slow job whose output is a key of the bucket."""
    settings = {"part_bytes": "1", "bad_rows": "bad.parquet", "files": 2, "rows": 600, **settings}
    arranged = f"{settings.pop('arranged', '')}\n{more}\n{OPTIONS.format(url=bucket.url)}"
    write_slow_job(folder, f"{bucket.uri}/{output}", arranged=arranged, **settings)
    if "://" in settings["bad_rows"]:
        with (folder / "job.toml").open("a") as file:
            file.write(OPTIONS.replace("output", "bad_rows").format(url=bucket.url))


def run(folder: Path, *arguments: str, **environment: str) -> Process:
    return start(folder, *arguments, **KEYS, **environment)


def done(process: Process) -> str:
    """The output of a run that must succeed."""
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    return errors


def refused(process: Process) -> str:
    """The error of a run that must not succeed."""
    _, errors = process.communicate()
    assert process.returncode not in (0, None), "it was not refused"
    return errors


def objects(bucket: Bucket, prefix: str = "out") -> dict[str, bytes]:
    """The objects of an output without its log; a manifest without etags and the path of the job."""
    found = {key: bucket.get(key) for key in bucket.keys(prefix) if ".progress" not in key}
    for key in found:
        if "_manifest" in key:
            manifest = json.loads(found[key])
            manifest["files"] = [{**one, "etag": ""} for one in manifest["files"]]
            manifest["made_by"] = ""
            found[key] = json.dumps(manifest).encode()
    return found


def log(bucket: Bucket, prefix: str = "out") -> list[str]:
    return [key.rpartition("/")[2] for key in bucket.keys(f"{prefix}/.progress")]


def clear(bucket: Bucket, prefix: str = "out") -> None:
    bucket.delete(*bucket.keys(prefix))


def environ() -> dict[str, str]:
    return {**os.environ, **KEYS}
