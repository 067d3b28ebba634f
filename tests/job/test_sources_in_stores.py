"""Jobs whose sources lie in a store: their keys, what is refused, and what is no part of them."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqflow.errors import JobError
from seqflow.job import Job, run
from stores import SECRET


@pytest.fixture(autouse=True)
def environment(own: Any, bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Credentials in the environment, and objects with 300 rows in all."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket.options["aws_access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    for number in range(3):
        sink = pa.BufferOutputStream()
        table = pa.table({"x": np.arange(100 * number, 100 * number + 100)})
        pq.write_table(table, sink, row_group_size=10)
        bucket.put(f"in/{number}.parquet", sink.getvalue().to_pybytes())


def text(own: Any, source: str = "", rest: str = "") -> str:
    return f"""
[source]
paths = "s3://bucket/in/*.parquet"
{source}
[source.storage_options]
aws_endpoint_url = "{own.url}"
aws_region = "us-east-1"
[order]
window = 200
threads = 0
[batch]
n = 10
[output]
path = "out"
part_bytes = 200
{rest}
"""


def rows(folder: Path) -> list[int]:
    return [one for file in sorted(folder.glob("*.parquet")) for one in pq.read_table(file)["x"].to_pylist()]


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_a_job_reads_a_store(own: Any, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(text(own, 'cache = "cache"\ncache_bytes = "1 MiB"'))
    job = Job.read("job.toml")
    assert job.source.store.cache_bytes == "1 MiB"
    run(job)
    assert rows(tmp_path / "out") == [*range(300)]
    assert (tmp_path / "cache").is_dir()
    assert SECRET.encode() not in everything_in(tmp_path / "out")
    assert own.url.encode() not in everything_in(tmp_path / "out")


def test_a_run_is_resumed_with_other_ways_to_the_store(own: Any, bucket: Any, tmp_path: Path) -> None:
    def stop(stats: Any, total: Any) -> None:
        if stats.batches >= 12:
            raise InterruptedError

    (tmp_path / "job.toml").write_text(text(own))
    with pytest.raises(InterruptedError):
        run(Job.read("job.toml"), stop)
    changed = text(own, 'cache = "cache"').replace("us-east-1", "eu-west-1")
    other = changed.replace("[order]", "retry_seconds = 3\n[order]")
    (tmp_path / "job.toml").write_text(other)
    run(Job.read("job.toml"), resume=True)
    assert rows(tmp_path / "out") == [*range(300)]
    manifest = json.loads((tmp_path / "out" / "_manifest.json").read_text())
    assert not {"storage_options", "cache"} & {name.rpartition(".")[2] for name in manifest["job"]}


def test_a_run_is_not_resumed_on_other_objects(own: Any, bucket: Any, tmp_path: Path) -> None:
    def stop(stats: Any, total: Any) -> None:
        if stats.batches >= 12:
            raise InterruptedError

    (tmp_path / "job.toml").write_text(text(own))
    with pytest.raises(InterruptedError):
        run(Job.read("job.toml"), stop)
    bucket.put("in/2.parquet", bucket.get("in/1.parquet"))
    with pytest.raises(JobError, match="data"):
        run(Job.read("job.toml"), resume=True)


def test_a_mix_reads_stores(own: Any, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(f"""
[[mix.sources]]
paths = "s3://bucket/in/0.parquet"
weight = 1
cache = "cache"
storage_options = {{aws_endpoint_url = "{own.url}", aws_region = "us-east-1"}}
[[mix.sources]]
paths = ["s3://bucket/in/1.parquet"]
weight = 1
storage_options.aws_endpoint_url = "{own.url}"
storage_options.aws_region = "us-east-1"
[mix]
stop = "all"
[batch]
n = 10
[output]
path = "out"
""")
    run(Job.read("job.toml"))
    assert set(rows(tmp_path / "out")) == {*range(200)}
    assert (tmp_path / "cache").is_dir()


@pytest.mark.parametrize(
    "secret",
    [
        'aws_secret_access_key = "{}"', 'secret = "{}"', 'token = "{}"', 'azure_storage_account_key = "{}"',
        'client_kwargs = {{aws_session_token = "{}"}}', 'default_headers = {{Authorization = "Bearer {}"}}',
    ],
)  # fmt: skip
def test_a_secret_in_a_job_file_is_refused(secret: str, own: Any, tmp_path: Path) -> None:
    line = secret.format(SECRET)
    (tmp_path / "job.toml").write_text(text(own).replace("[order]", f"{line}\n[order]"))
    with pytest.raises(JobError) as error:
        Job.read("job.toml")
    assert re.match(r"job.toml, line [58]: \[source.storage_options\] has '", str(error.value))
    assert "set an environment variable: AWS_ACCESS_KEY_ID" in str(error.value)
    assert SECRET not in str(error.value)


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("cache_bytes = 'much'", "cache_bytes is 'much', expected bytes"),
        ("cache = 3", "cache is 3, expected a path"),
        ("storage_option = {}", "unknown key 'storage_option' in .source. .did you mean 'storage_options'"),
        ("cache_bytes = 100", "cache_bytes is given, but no cache"),
    ],
)
def test_wrong_keys_of_stores_are_told(source: str, expected: str, own: Any, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(text(own, source))
    with pytest.raises(Exception, match=expected):
        run(Job.read("job.toml"))


@pytest.mark.parametrize(
    ("section", "name"),
    [
        ('[constants]\nc = "s3://bucket/c.npy?sig=hidden"', "c"), ('[net]\nfile = "https://host/net.txt?sig=hidden"', "file"),
        ('[prepare]\nfile = "s3://bucket/net.txt?sig=hidden"', "file"),
    ],
)  # fmt: skip
def test_constants_and_nets_lie_on_this_machine(section: str, name: str, own: Any, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(text(own, rest=section))
    with pytest.raises(
        JobError, match=r"is a URI, and only sources are read from stores\n  copy it to this"
    ) as error:
        Job.read("job.toml")
    assert "hidden" not in str(error.value)


def test_settings_on_the_way_replace_those_of_the_file(own: Any, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(text(own).replace(own.url, "http://127.0.0.1:9"))
    job = Job.read("job.toml", {"source.storage_options.aws_endpoint_url": own.url, "source.cache": "c"})
    assert job.source.store.storage_options == {"aws_endpoint_url": own.url, "aws_region": "us-east-1"}
    assert job.overrides["source.cache"] == str(tmp_path / "c")
    run(job)
    assert rows(tmp_path / "out") == [*range(300)]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_worker_processes_read_stores(workers: int, own: Any, tmp_path: Path) -> None:
    (tmp_path / "job.toml").write_text(text(own, rest=f"[engine]\nworkers = {workers}"))
    run(Job.read("job.toml"))
    assert rows(tmp_path / "out") == [*range(300)]


def test_a_presigned_url_is_in_no_file_of_the_output(own: Any, bucket: Any, tmp_path: Path) -> None:
    url = f"{own.url}/bucket/in/0.parquet?X-Sig=hidden"
    for paths in (f'[source]\npaths = "{url}"', f'[[mix.sources]]\npaths = "{url}"\nweight = 1'):
        (tmp_path / "job.toml").write_text(
            f'{paths}\n[batch]\nn = 10\n[output]\npath = "out"\n[bad_rows]\npolicy = "quarantine"\npath = "bad.parquet"'
        )
        run(Job.read("job.toml"), overwrite=True)
        assert rows(tmp_path / "out") == [*range(100)]
        assert b"hidden" not in everything_in(tmp_path / "out")
