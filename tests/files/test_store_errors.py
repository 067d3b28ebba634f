"""Each error of a store names the object, what was found and what to do, in words of its own."""

import os
import re
import subprocess
import sys

import pytest
from store_server import Faults, free_port

from seqflow.errors import DamagedFileError, ProviderError, ProviderOptionError, StoreError
from seqflow.files.errors import RequestPlace, judge
from seqflow.files.store import StoreFiles
from stores import SECRET

MB = bytes(1 << 20)


@pytest.fixture
def files(bucket):
    return StoreFiles({**bucket.options, "retry_seconds": 0.4})


def error_of(files, uri, start=0, stop=1 << 20):
    with pytest.raises(ProviderError) as found:
        files.read(uri, start, stop)
    return str(found.value)


def test_no_answer_tells_for_how_long_and_how_often_it_was_tried(own, bucket, files):
    uri = bucket.put("a.parquet", MB)
    files.entry(uri)
    own.stop()
    text = error_of(files, uri)
    found = re.match(r"(.*): no answer in \d+ s, after (\d+) attempts; the last: connection refused\n", text)
    assert found is not None, text
    assert found[1] == f"{uri}, bytes 0 … 1048575"
    assert int(found[2]) > 1
    assert "retry_seconds" in text


@pytest.mark.parametrize(
    ("fault", "cause"),
    [("unavailable", "SlowDown"), ("internal", "InternalError"), ("reset", "reset"), ("cut", "cut")],
)
def test_the_last_cause_is_named(own, bucket, files, fault, cause):
    uri = bucket.put("a.parquet", MB)
    files.entry(uri)
    own.faults = Faults(**{fault: 1})
    assert f"attempts; the last: {cause if len(cause) > 5 else 'the connection was ' + cause}" in error_of(
        files, uri
    )
    assert own.counts["GET"] > 1


def test_a_stall_is_no_answer_in_time(own, bucket):
    uri = bucket.put("a.parquet", MB)
    files = StoreFiles({**bucket.options, "retry_seconds": 1.5, "read_timeout": "1s"})
    files.entry(uri)
    own.faults = Faults(stall=1)
    assert "the last: no answer in time" in error_of(files, uri)


def test_a_replaced_object_is_named_with_its_version(own, bucket, files):
    uri = bucket.put("a.parquet", MB)
    version = files.entry(uri).version
    bucket.put("a.parquet", MB)
    text = error_of(files, uri)
    assert text == (
        f"{uri} is another object than when it was opened: its version was {version}, and the store has another now\n"
        "  open it again"
    )
    assert own.counts["GET"] == 1


def test_a_replaced_object_is_found_without_conditions_too(own, bucket, files):
    own.faults = Faults(ignore_match=True)
    test_a_replaced_object_is_named_with_its_version(own, bucket, files)


def test_a_short_body_is_counted_in_bytes(own, bucket, files):
    uri = bucket.put("a.parquet", MB)
    files.entry(uri)
    own.faults = Faults(short=1)
    assert error_of(files, uri).startswith(f"{uri}, bytes 0 … 1048575: 524288 bytes came, expected 1048576")
    assert own.counts["GET"] > 1


@pytest.mark.parametrize("fault", ["whole", "html"])
def test_servers_without_ranges_and_pages_between_are_told(own, bucket, files, fault):
    uri = bucket.put("a.parquet", MB)
    files.entry(uri)
    own.faults = Faults(**{fault: 1})
    text = error_of(files, uri, 0, 1000)
    assert text.startswith(
        f"{uri}, bytes 0 … 999: the server sends whole files only (it ignores ranges), or something between answers "
        "for it"
    )
    assert own.counts["GET"] > 1


def test_a_page_instead_of_a_whole_object_is_told(own, bucket, files):
    """An object of one request is asked for as a range, too."""
    uri = bucket.put("a.parquet", b"12345")
    files.entry(uri)
    own.faults = Faults(html=1)
    assert "the server sends whole files only" in error_of(files, uri)


def test_a_denied_request_names_key_and_reason(own, bucket, files):
    uri = bucket.put("a.parquet", MB)
    own.faults = Faults(denied=1)
    with pytest.raises(StoreError) as found:
        files.entry(uri)
    assert str(found.value) == (
        "s3://bucket/a.parquet: access denied to key 'ak': SignatureDoesNotMatch\n"
        "  the secret is another, or the clock of this machine is off by more than 15 minutes"
    )
    assert own.counts["HEAD"] == 1


def test_a_head_has_no_body_so_the_reason_is_asked_for(own, bucket, files):
    uri = bucket.put("a.parquet", MB)
    files.entry(uri)
    own.faults = Faults(skew=1)
    assert error_of(files, uri).startswith(f"{uri}: access denied to key 'ak': RequestTimeTooSkewed\n")


def test_an_unknown_key_is_named(own, bucket):
    uri = bucket.put("a.parquet", MB)
    files = StoreFiles(bucket.options | {"aws_access_key_id": "AKID-other"})
    with pytest.raises(StoreError, match="access denied to key 'AKID-other': InvalidAccessKeyId"):
        list(files.list(bucket.uri))
    assert SECRET not in error_of(files, uri)


def test_an_expired_token_is_told(own, bucket, files):
    uri = bucket.put("a.parquet", MB)
    files.entry(uri)
    own.faults = Faults(expired=1)
    assert "ExpiredToken" in error_of(files, uri)
    assert own.counts["GET"] == 1


def test_a_missing_bucket_may_lie_in_another_region(own, bucket, files):
    with pytest.raises(
        StoreError, match="s3://no-such-bucket does not exist, or lies in another region than us-east-1"
    ):
        list(files.list("s3://no-such-bucket/a"))
    uri = bucket.put("a.parquet", MB)
    files.entry(uri)
    own.faults = Faults(region=1)
    assert error_of(files, uri).startswith(
        "s3://bucket does not exist, or lies in another region than us-east-1"
    )


def test_a_missing_object_is_damage_that_can_be_left_out(files, bucket):
    with pytest.raises(DamagedFileError, match=r"s3://bucket/a\.parquet does not exist"):
        files.read("s3://bucket/a.parquet", 0, 1)


def test_an_unknown_host_is_named(bucket):
    files = StoreFiles(
        {**bucket.options, "aws_endpoint_url": "http://no-such-host.invalid", "retry_seconds": 0.3}
    )
    text = error_of(files, "s3://bucket/a.parquet")
    assert text.startswith(
        "the host of s3://bucket, 'no-such-host.invalid', is not known: check region and endpoint"
    )


def test_no_credentials_is_an_advice_and_no_address_of_the_cloud(own, monkeypatch, tmp_path):
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    options = {
        "aws_endpoint_url": own.url, "aws_region": "us-east-1", "retry_seconds": 0.3,
        "aws_metadata_endpoint": f"http://127.0.0.1:{free_port()}",
    }  # fmt: skip
    text = error_of(StoreFiles(options), "s3://bucket/a.parquet")
    assert text.startswith(
        "no credentials for s3://bucket: neither options, environment nor this machine have any\n"
    )
    assert "AWS_ACCESS_KEY_ID" in text
    assert 'storage_options={"skip_signature": True}' in text


def test_the_metadata_of_a_cloud_that_no_one_answers_is_no_credentials():
    for host in ("169.254.169.254", "metadata.google.internal"):
        error = OSError(
            f"Error performing PUT http://{host}/latest/api/token in 1s - HTTP error: error sending request"
        )
        assert str(judge(RequestPlace("s3://b", "s3://b/a"), error).error).startswith(
            "no credentials for s3://b: "
        )


def test_a_public_bucket_is_read_without_credentials(own, bucket):
    uri = bucket.put("a.bin", b"12345")
    for options in ({"aws_skip_signature": True}, {"anon": True}):
        found = StoreFiles({"endpoint_url": own.url, "region": "us-east-1", **options}).read(uri, 0, 5)
        assert found.to_pybytes() == b"12345"
    own.public = False
    with pytest.raises(StoreError, match=r"s3://bucket: access denied: AccessDenied"):
        list(StoreFiles({"endpoint_url": own.url, "anon": True}).list(bucket.uri))


def test_options_of_fsspec_are_understood(own, bucket):
    uri = bucket.put("a.bin", b"12345")
    options = {
        "key": "ak",
        "secret": SECRET,
        "client_kwargs": {"endpoint_url": own.url, "region_name": "us-east-1"},
    }
    assert StoreFiles(options).read(uri, 0, 5).to_pybytes() == b"12345"


@pytest.mark.parametrize(
    "options", [{"no_such_option": 1}, {"aws_regoin": "x"}, {"retry_seconds": "soon"}, {"retry_seconds": 0}]
)
def test_an_unknown_option_is_named(bucket, options):
    with pytest.raises(ProviderOptionError, match=f"storage_options.*{next(iter(options))}"):
        StoreFiles(bucket.options | options).entry("s3://bucket/a")


def test_the_account_of_azure_is_asked_for(monkeypatch):
    with pytest.raises(ProviderError, match="azure_storage_account_name"):
        StoreFiles().entry("az://container/a")


def test_a_missing_package_is_named(own, bucket):
    program = f"""
import sys
sys.modules.update(dict.fromkeys(["obstore", "obstore.store", "obstore.exceptions"]))
import seqflow as sf
from seqflow.files.store import StoreFiles
try:
    StoreFiles({bucket.options!r}).entry("s3://bucket/a")
except sf.SeqflowError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == (
        "reading s3://bucket needs a package that is not installed\n  pip install '.[stores]' in a clone of seqflow\n"
    )


def test_nothing_is_imported_before_the_first_uri():
    program = "import sys, seqflow, seqflow.files.store; print([n for n in sys.modules if n.split('.')[0] == 'obstore'])"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_what_is_final_is_asked_once_and_what_may_pass_again():
    place = RequestPlace("s3://b", "s3://b/a")

    def seconds(status, code=""):
        return judge(
            place, OSError(f"Server returned non-2xx status code: {status} X: <Error><Code>{code}</Code>")
        ).seconds

    assert {status: seconds(status) for status in (400, 401, 403, 404, 412, 416)} == dict.fromkeys(
        (400, 401, 403, 404, 412, 416), 0
    )
    assert {seconds(status) for status in (408, 409, 429, 500, 502, 503, 504)} == {float("inf")}
    assert {seconds(400, "RequestTimeout"), seconds(403, "SlowDown"), seconds(400, "InternalError")} == {
        float("inf")
    }
