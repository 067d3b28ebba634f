"""Commands on URIs."""

import json
from pathlib import Path
from typing import Any

import pytest
from command import seqflow

import seqflow as sf
from stores import SECRET


@pytest.fixture
def uri(own: Any, bucket: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An object with the rows of docs.parquet; credentials are in the environment."""
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket.options["aws_access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "xdg"))
    found: str = bucket.put("docs/docs.parquet", folder / "docs.parquet")
    return found


@pytest.fixture
def options(own: Any) -> list[str]:
    return ["--storage-option", f"aws_endpoint_url={own.url}", "--storage-option", "retry_seconds=5"]


def test_inspect(uri: str, options: list[str], folder: Path) -> None:
    done = seqflow("inspect", uri, *options, "--json")
    assert done.returncode == 0, done.stderr
    local = json.loads(seqflow("inspect", folder / "docs.parquet", "--json").stdout)
    assert {**json.loads(done.stdout), "path": ""} == {**local, "path": ""}


def test_report(uri: str, options: list[str], folder: Path, own: Any) -> None:
    done = seqflow("report", uri, "-o", folder / "page.html", *options)
    assert done.returncode == 0, done.stderr
    assert uri in (folder / "page.html").read_text()
    signed = f"{own.url}/bucket/docs/docs.parquet?X-Sig=hidden"
    done = seqflow("report", signed, "-o", folder / "other.html")
    assert done.returncode == 0, done.stderr
    page = (folder / "other.html").read_text()
    assert "hidden" not in page + done.stdout + done.stderr
    assert "docs.parquet?X-Sig=…" in page


def test_index(uri: str, options: list[str], folder: Path, own: Any, bucket: Any) -> None:
    done = seqflow("index", uri, "--lengths", "tokens", "--json", *options)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["rows"], found["tokens"]) == (100, 450)
    assert Path(found["file"]).parent == folder / "xdg" / "seqflow" / "lengths"
    loader = sf.Loader(uri, batch=sf.TokenBudget(20), index=True, storage_options=bucket.options)
    assert str(loader.index) == found["file"]
    own.clear()
    assert (
        json.loads(seqflow("index", uri, "--lengths", "tokens", "--json", *options).stdout)["blocks_read"]
        == 0
    )
    placed = seqflow("index", uri, "--lengths", "tokens", "--output", folder / "i.arrow", *options)
    assert placed.returncode == 0, placed.stderr
    assert (folder / "i.arrow").exists()


def test_init_writes_a_job_that_runs(uri: str, options: list[str], folder: Path, own: Any) -> None:
    done = seqflow("init", uri, "-o", folder / "new.toml", *options)
    assert done.returncode == 0, done.stderr
    text = (folder / "new.toml").read_text()
    assert f'paths = ["{uri}"]' in text
    assert f'storage_options.aws_endpoint_url = "{own.url}"' in text
    assert "storage_options.retry_seconds = 5" in text
    checked = seqflow("check", folder / "new.toml")
    assert checked.returncode == 0, checked.stderr
    ran = seqflow("run", folder / "new.toml", "--set", "output.path=made", folder=folder)
    assert ran.returncode == 0, ran.stderr
    assert sf.open(folder / "made").num_rows


def test_train_tokenizer_and_build_vocabulary(
    uri: str, options: list[str], folder: Path, bucket: Any
) -> None:
    for number in range(3):
        bucket.put(f"texts/{number}.txt", b"the words of the texts " * 20)
    done = seqflow(
        "train-tokenizer",
        "s3://bucket/texts",
        "--vocab-size",
        "270",
        "--output",
        folder / "t.json",
        "--json",
        *options,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["texts"] == 3
    done = seqflow("build-vocabulary", uri, "tokens.values", folder / "v.arrow", "--json", *options)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["occurrences"] == 450


@pytest.mark.parametrize("command", ["inspect", "index", "report", "init"])
def test_secrets_in_a_command_are_refused(command: str, uri: str, folder: Path) -> None:
    output = ["-o", folder / "new"] if command in ("report", "init") else []
    done = seqflow(command, uri, *output, "--storage-option", "aws_secret_access_key=hidden")
    assert done.returncode == 2
    assert (
        "--storage-option: 'aws_secret_access_key' is a secret, which all users of this machine can"
        in done.stderr
    )
    assert "hidden" not in done.stderr + done.stdout


def test_wrong_options_are_told(uri: str, folder: Path) -> None:
    done = seqflow("inspect", uri, "--storage-option", "aws_region")
    assert done.returncode == 2
    assert "--storage-option aws_region: expected KEY=VALUE, such as aws_region=eu-west-1" in done.stderr
    done = seqflow("report", folder / "job.toml", "-o", folder / "r.html", "--storage-option", "aws_region=x")
    assert done.returncode == 2
    assert (
        "--storage-option: the job has this setting; write --set source.storage_options.KEY=VALUE"
        in done.stderr
    )
    done = seqflow("inspect", "s3://bucket/none.parquet", "--storage-option", "aws_endpoint_url=http://127.0.0.1:9",
                   "--storage-option", "retry_seconds=0.1")  # fmt: skip
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "s3://bucket/none.parquet: no answer in 0 s" in done.stderr


@pytest.mark.parametrize("output", ["traced", "traced/one.parquet"])
def test_a_row_of_an_output_is_traced(
    uri: str, options: list[str], folder: Path, own: Any, bucket: Any, output: str
) -> None:
    table = '[source.storage_options]\naws_endpoint_url = "{0}"\n[output.storage_options]\naws_endpoint_url = "{0}"\n'
    (folder / "job.toml").write_text(
        f'[source]\npaths = "{uri}"\n[batch]\nn = 7\n[output]\npath = "{bucket.uri}/{output}"\n'
        + table.format(own.url)
    )
    done = seqflow("run", "job.toml", folder=folder)
    assert done.returncode == 0, done.stderr
    name = output if output.endswith(".parquet") else f"{output}/part-00000.parquet"
    for more in (options, [*options, "--job", str(folder / "job.toml")], ["--job", str(folder / "job.toml")]):
        traced = seqflow("trace", f"{bucket.uri}/{name}", "--row", "93", *more, "--json", folder=folder)
        assert traced.returncode == 0, traced.stderr
        (found,) = json.loads(traced.stdout)["sources"]
        assert (found["file"], found["row"]) == (uri, 93)
    for missing in (f"{bucket.uri}/{name}x", f"{bucket.uri}/docs/docs.parquet"):
        refused = seqflow("trace", missing, "--row", "0", *options, folder=folder)
        assert refused.returncode == 2
        assert "no manifest next to it names it" in refused.stderr
    bucket.put(name, folder / "docs.parquet")
    changed = seqflow("trace", f"{bucket.uri}/{name}", "--row", "0", *options, folder=folder)
    assert changed.returncode == 2
    assert "is not as its job has written it" in changed.stderr
    for key in bucket.keys("traced/"):
        if "_manifest" in key:
            bucket.put(key, b'{"files": [')
    cut = seqflow("trace", f"{bucket.uri}/{name}", "--row", "0", *options, folder=folder)
    assert (cut.returncode, "Traceback" in cut.stderr) == (2, False)
    assert "no manifest next to it names it" in cut.stderr
