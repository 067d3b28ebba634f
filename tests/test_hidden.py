"""No credential is in a repr, an error or a log, wherever it was given."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

import seqflow as sf
from seqflow.errors import SeqflowError
from seqflow.hidden import hidden
from seqflow.job import Job, run

SECRET = "S3CR3T"
URIS = [
    "https://host/a.parquet?sig={}&se=2",
    "https://host/a.parquet?X-Amz-Signature={}",
    "https://host/a.parquet?{}",
    "https://me:{}@host:9000/a.parquet",
    "https://me:p@{}@host/a.parquet",
    "https://{}@host/a.parquet",
    "s3://key:{}@bucket/a.parquet",
    "az://container/a.parquet?sig={}",
    "https://host/a.parquet#access_token={}",
]
OPTIONS = [
    {"aws_secret_access_key": SECRET},
    {"token": SECRET},
    {"azure_storage_sas_key": SECRET},
    {"client_kwargs": {"password": SECRET}},
    {"default_headers": {"X-Api": SECRET}},
    {"proxy_url": f"http://me:{SECRET}@host:1"},
    {"retry_seconds": SECRET},
    {"retry_seconds": {"token": SECRET}},
    {"timeout": SECRET},
    {"timeout": [SECRET]},
    {"connect_timeout": {"a": SECRET}},
    {"aws_region": [SECRET]},
    SECRET,
    [SECRET],
]


def places(uri, options):
    """Keys of jobs that hold a URI, and options of its store."""
    access = {} if options is None else {"storage_options": options}
    yield {"source": {"paths": uri, **access}}
    yield {"source": {"paths": [uri, uri], **access}}
    yield {"mix": {"sources": [{"paths": uri, "weight": 1, **access}, {"paths": "b.parquet", "weight": 1}]}}
    yield {"source": {"paths": "b.parquet"}, "output": {"path": uri.rpartition(".")[0], **access}}
    bad = {"policy": "quarantine", "path": uri.partition("?")[0], **access}
    yield {"source": {"paths": "b.parquet"}, "bad_rows": bad}
    yield {"source": {"paths": uri, "kind": "json:loads", "options": {"password": SECRET}, **access}}


def texts_of(action, caplog):
    caplog.clear()
    try:
        yield repr(action())
    except SeqflowError as error:
        yield from (str(error), repr(error), *getattr(error, "__notes__", ()))
    yield caplog.text


@pytest.mark.parametrize("uri", URIS)
def test_uris_of_jobs_are_shown_without_credentials(uri, caplog):
    for settings in places(uri.format(SECRET), None):
        for text in texts_of(lambda settings=settings: Job.from_dict(settings), caplog):
            assert SECRET not in text, settings
    for text in texts_of(lambda: sf.open(5, kind=uri.format(SECRET)), caplog):
        assert SECRET not in text


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_of_stores_are_shown_without_credentials(options, caplog, tmp_path):
    for settings in places("s3://bucket/a.parquet", options):
        for text in texts_of(lambda settings=settings: Job.from_dict(settings), caplog):
            assert SECRET not in text, settings
    if not isinstance(options, dict) or {"retry_seconds", "timeout", "connect_timeout"} & options.keys():
        job = {"source": {"paths": "memory://bucket/a.parquet", "storage_options": options}}
        for text in texts_of(lambda: run(Job.from_dict(job, tmp_path)), caplog):
            assert SECRET not in text
        for text in texts_of(lambda: sf.open("https://host/a.parquet", storage_options=options), caplog):
            assert SECRET not in text


def test_overrides_and_bad_rows_are_shown_without_credentials():
    job = Job.from_dict({"source": {"paths": "a.parquet"}})
    given = {"source.paths": URIS[0].format(SECRET), "source.storage_options.aws_secret_access_key": SECRET}
    assert SECRET not in repr(Job(source=job.source, overrides=given))
    assert SECRET not in repr(sf.BadRows("quarantine", path="s3://key:S3CR3T@bucket/bad.parquet"))


WORDS = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1, max_size=9)


@given(before=st.text(max_size=9), uri=st.sampled_from(URIS), secret=WORDS.map(lambda word: f"#{word}#"))
def test_a_credential_in_any_text_is_hidden_and_the_rest_is_not(before, uri, secret):
    text = f"{before} '{uri.format(secret)}' after"
    found = hidden(text)
    assert secret not in found
    assert found.endswith("' after")
    assert hidden(found) == found


@pytest.mark.parametrize(
    "text", ["a/b?c=d", "x = 'y'", "https://host:80/a@b", "{'name': 'x'}", "s3://b/k=1/p-?/l=en"]
)
def test_other_text_stays(text):
    assert hidden(text) == text


def test_logs_have_no_credentials(caplog):
    logging.getLogger("seqflow").warning("cannot read %s", URIS[3].format(SECRET))
    assert "https://…@host:9000/a.parquet" in caplog.text


def test_an_error_hides_them_in_its_message_and_its_repr():
    error = sf.OpError(f"cannot read {URIS[0].format(SECRET)}: {{'token': '{SECRET}'}}")
    assert SECRET not in str(error) + repr(error) + error.message
    assert "sig=…" in str(error)
