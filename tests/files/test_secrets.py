"""No secret is shown, stored or sent to other processes, unless it was given as a value."""

import json
import logging
import pickle

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow
from store_server import Faults

import seqflow as sf
from seqflow.files.clients import client_of_uri
from seqflow.files.options import secret_in, store_options
from seqflow.files.store import StoreFiles
from seqflow.hidden import is_secret
from stores import SECRET

SIGNATURE = "signature-of-tests"


@pytest.fixture
def bad_files(bucket, tmp_path):
    """Objects with rows of which some are bad; the keys of the store are needed."""
    for number in range(2):
        table = pa.table({"row": pa.array([None if i % 50 == 7 else i for i in range(200)], pa.int64())})
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=50)
        bucket.put(f"in/{number}.parquet", tmp_path / "a.parquet")
    return f"{bucket.uri}/in/*.parquet"


@pytest.fixture
def everything_is_logged(caplog):
    caplog.set_level(logging.DEBUG)
    return caplog


def texts_of(source, loader):
    """Yield what a source and a loader show and keep."""
    yield from map(repr, (source, loader, source.source, source.store))
    yield from map(str, (source, loader, list(source.blocks())))
    yield source._repr_html_() if hasattr(source, "_repr_html_") else ""
    list(loader)
    yield json.dumps(loader.state_dict())
    yield repr(loader.stats())
    yield json.dumps(loader.describe()) if hasattr(loader, "describe") else ""


def test_what_is_shown_and_kept_has_no_secret(own, bucket, bad_files, tmp_path, everything_is_logged):
    options = {**bucket.options, "aws_session_token": "token-of-tests"}
    settings = {
        "bad_rows": sf.BadRows("quarantine", path=tmp_path / "bad.parquet"),
        "index": tmp_path / "index.arrow",
    }
    source = sf.open(bad_files, storage_options=options)
    loader = sf.Loader(bad_files, shuffle=True, storage_options=options, **settings)
    shown = [*texts_of(source, loader), everything_is_logged.text]
    own.faults = Faults(denied=1)
    with pytest.raises(sf.SeqflowError) as found:
        sf.open(bad_files, storage_options=options)
    shown.append(str(found.value))
    own.faults = Faults(unavailable=1)
    with pytest.raises(sf.SeqflowError) as found:
        sf.open(bad_files, storage_options={**options, "retry_seconds": 0.2})
    shown += [str(found.value), repr(found.value)]
    assert (tmp_path / "bad.parquet").exists()
    kept = (
        b"".join(path.read_bytes() for path in tmp_path.glob("*.parquet"))
        + (tmp_path / "index.arrow").read_bytes()
    )
    for secret in (SECRET, "token-of-tests"):
        assert [text for text in shown if secret in text] == []
        assert secret.encode() not in kept


def test_credentials_of_the_environment_stay_there(own, bucket, bad_files, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ak")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_ENDPOINT_URL", own.url)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    source = sf.open(bad_files)
    assert (
        sum(one.num_rows for one in source) == 400 if hasattr(source, "__iter__") else source.num_rows == 400
    )
    assert SECRET.encode() not in pickle.dumps(source)
    assert SECRET.encode() not in pickle.dumps(sf.Loader(source))
    given = sf.open(bad_files, storage_options=bucket.options)
    assert SECRET.encode() in pickle.dumps(given)  # a worker has no other way to it


@pytest.fixture
def presigned(own, bucket, bad_files):
    """URLs of the two objects, with a signature in their queries."""
    return [
        f"{own.url}/bucket/in/{number}.parquet?X-Amz-Signature={SIGNATURE}&n={number}" for number in range(2)
    ]


def test_a_presigned_url_is_read_and_its_query_is_not_shown(own, presigned, tmp_path, everything_is_logged):
    settings = {
        "bad_rows": sf.BadRows("quarantine", path=tmp_path / "bad.parquet"),
        "index": tmp_path / "index.arrow",
    }
    source = sf.open(presigned)
    loader = sf.Loader(presigned, shuffle=True, **settings)
    shown = [*texts_of(source, loader), everything_is_logged.text]
    own.faults = Faults(denied=1)
    with pytest.raises(sf.SeqflowError) as found:
        sf.open(presigned)
    shown.append(str(found.value))
    own.faults = Faults(short=1)
    with pytest.raises(sf.SeqflowError) as found:
        StoreFiles({"retry_seconds": 0.2}).read(presigned[0], 0, 100)
    shown.append(str(found.value))
    own.faults = Faults()
    with pytest.raises(sf.SeqflowError) as found:
        sf.open(presigned[0].replace("/0.", "/missing."))
    shown.append(str(found.value))
    kept = (
        b"".join(path.read_bytes() for path in tmp_path.glob("*.parquet"))
        + (tmp_path / "index.arrow").read_bytes()
    )
    assert [text for text in shown if SIGNATURE in text] == []
    assert SIGNATURE.encode() not in kept
    bad = pq.read_table(tmp_path / "bad.parquet")
    assert bad.num_rows == 8
    assert "X-Amz-Signature=…" in str(bad.to_pylist())


JOB = """
[source]
paths = {paths}
[order]
shuffle = true
[batch]
kind = "rows"
n = 16
[output]
path = "out"
[bad_rows]
policy = "quarantine"
path = "bad.parquet"
"""


def test_nothing_that_a_job_writes_or_says_has_a_secret(own, bucket, bad_files, presigned, tmp_path):
    environment = {
        "AWS_ACCESS_KEY_ID": "ak", "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_ENDPOINT_URL": own.url,
        "AWS_REGION": "us-east-1", "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }  # fmt: skip
    for number, paths in enumerate(([bad_files], presigned)):
        folder = tmp_path / f"job{number}"
        folder.mkdir()
        (folder / "job.toml").write_text(JOB.format(paths=json.dumps(paths)))
        said = ""
        for command in (
            ["run", "job.toml"],
            ["run", "job.toml", "--resume"],
            ["run", "job.toml", "--overwrite"],
        ):
            done = seqflow(*command, folder=folder, **environment)
            said += done.stdout + done.stderr
        assert "400" in said or "392" in said, said
        done = seqflow("report", "job.toml", "--output", "report.html", folder=folder, **environment)
        said += done.stdout + done.stderr
        done = seqflow("inspect", paths[0], folder=folder, **environment)
        said += done.stdout + done.stderr
        assert done.returncode == 0, said
        (folder / "job.toml").unlink()
        files = [
            path
            for path in tmp_path.rglob("*")
            if path.is_file() and "store" not in path.relative_to(tmp_path).parts
        ]
        assert len(files) > 3
        for secret in (SECRET, SIGNATURE):
            assert secret not in said
            assert [path for path in files if secret.encode() in path.read_bytes()] == []


@pytest.mark.parametrize(
    "name", ["aws_secret_access_key", "secret", "aws_session_token", "azure_storage_sas_key", "key"]
)
def test_a_literal_secret_in_a_job_file_is_refused(own, bucket, bad_files, tmp_path, name):
    text = JOB.format(paths=json.dumps([bad_files])) + f'[source.storage_options]\n{name} = "{SECRET}"\n'
    (tmp_path / "job.toml").write_text(text)
    done = seqflow("run", "job.toml", folder=tmp_path)
    assert done.returncode != 0
    assert name in done.stderr
    assert SECRET not in done.stdout + done.stderr
    assert not (tmp_path / "out").exists()


def test_which_options_are_secret():
    secrets = [
        "aws_secret_access_key",
        "secret",
        "token",
        "aws_session_token",
        "azure_storage_account_key",
        "sas_token",
    ]
    assert [name for name in secrets if not is_secret(name)] == []
    others = ["aws_region", "endpoint_url", "retry_seconds", "azure_storage_account_name", "skip_signature"]
    assert [name for name in others if is_secret(name)] == []
    assert secret_in({"client_kwargs": {"aws_secret_access_key": "x"}}) == "aws_secret_access_key"


def test_errors_of_wrong_options_show_no_values():
    with pytest.raises(sf.SeqflowError) as found:
        client_of_uri("s3://bucket", store_options({"aws_secret_access_kee": SECRET}, "s3"))
    assert SECRET not in str(found.value)
    with pytest.raises(sf.SeqflowError) as found:
        client_of_uri("az://bucket", store_options({"account_name": "a", "account_key": SECRET + "%"}, "az"))
    assert SECRET not in str(found.value)
