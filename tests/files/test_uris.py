"""Paths and URIs as text."""

import pytest

from seqflow.files.uris import is_uri, join, scheme_of, split, without_query
from seqflow.hidden import shown


@pytest.mark.parametrize(
    "uri",
    ["s3://b/x", "S3://b/x", "s3a://b/x", "gs://b/x", "az://c/x", "abfss://c@a.dfs.core.windows.net/x", "http://h/x",
     "https://h/x?sig=1", "hf://datasets/u/n/x", "memory://m/x"],
)  # fmt: skip
def test_uris_name_objects_of_stores(uri):
    assert is_uri(uri)


@pytest.mark.parametrize(
    "path", ["/data/a", "a", "", "file:///data/a", "C:/data", "c:\\data", "s3", "b:x", "ftp://h/x"]
)
def test_other_texts_are_paths(path):
    assert not is_uri(path)


def test_a_folder_called_like_a_scheme_is_a_path(tmp_path, monkeypatch):
    (tmp_path / "s3:" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert scheme_of("s3://b") is None
    assert not is_uri("s3://b")
    assert is_uri("s3://other")


def test_names_are_joined_as_the_place_does():
    assert join("s3://b/a/", "c", "d.csv") == "s3://b/a/c/d.csv"
    assert join("s3://b", "c") == "s3://b/c"
    assert join("/data", "c", "d.csv") == "/data/c/d.csv"


@pytest.mark.parametrize(
    ("uri", "parts"),
    [
        ("s3://b/a/c.csv", ("s3://b", "a/c.csv")),
        ("S3://b/a", ("s3://b", "a")),
        ("s3://b", ("s3://b", "")),
        ("s3:/b/a", ("s3://b", "a")),
        ("https://h:80/a/b", ("https://h:80", "a/b")),
        ("s3://b/a?c", ("s3://b", "a?c")),
    ],
)
def test_a_uri_is_a_root_and_a_key(uri, parts):
    assert split(uri) == parts


@pytest.mark.parametrize(
    ("uri", "text"),
    [
        ("s3://b/a", "s3://b/a"),
        ("https://h/a?X-Amz-Signature=abc&Expires=12", "https://h/a?X-Amz-Signature=…&Expires=…"),
        ("https://h/a?sig=a%2Bb#c", "https://h/a?sig=…"),
        ("https://user:secret@h/a", "https://…@h/a"),
        ("https://token@h/a", "https://…@h/a"),
        (
            "abfss://container@account.dfs.core.windows.net/a",
            "abfss://container@account.dfs.core.windows.net/a",
        ),
        ("https://h/a?opaque-token", "https://h/a?…"),
    ],
)
def test_messages_show_no_values_of_queries_and_no_passwords(uri, text):
    assert shown(uri) == text


def test_the_end_of_a_path_tells_the_format():
    assert without_query("https://h/a.parquet?versionId=1.csv") == "https://h/a.parquet"
    assert without_query("/data/a?b.parquet") == "/data/a?b.parquet"
