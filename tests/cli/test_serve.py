"""`seqflow serve`: one line of JSON when it is ready, and an end at SIGTERM that clients do not notice."""

import json
import signal
import subprocess
import sys

import pytest
from command import seqflow

import seqflow as sf

JOB = """
[source]
paths = "docs.parquet"
[order]
threads = 1
[batch]
kind = "tokens"
max_tokens = 40
[serve]
port = 0
"""


@pytest.fixture
def job(folder):
    (folder / "serve.toml").write_text(JOB)
    return folder / "serve.toml"


def begin(*arguments):
    command = [sys.executable, "-m", "seqflow", "serve", *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_a_job_is_served_until_sigterm(job):
    process = begin(job, "--processes", "2")
    try:
        ready = [json.loads(process.stdout.readline()) for _ in range(2)]
        assert {one["event"] for one in ready} == {"ready"}
        assert len({one["port"] for one in ready}) == 2
        assert len({one["identity"] for one in ready}) == 1
        served = sf.served([one["url"] for one in ready])
        local = sf.Loader(str(job.parent / "docs.parquet"), sf.TokenBudget(40), rank=0, world_size=1)
        for one, other in zip(local, served, strict=True):
            assert one["tokens.values"].tolist() == other["tokens.values"].tolist()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
        with pytest.raises(sf.OpError, match="none answers"):
            sf.served([one["url"] for one in ready], timeout=0.2)
    finally:
        process.kill()
        process.communicate()


def test_a_token_file_is_read_and_not_shown(job):
    (job.parent / "token").write_text("a-secret\n")
    process = begin(job, "--token-file", job.parent / "token")
    try:
        line = process.stdout.readline()
        assert "secret" not in line
        url = json.loads(line)["url"]
        with pytest.raises(sf.OpError, match="no token, or another"):
            sf.served(url, timeout=5)
        assert sum(1 for _ in sf.served(url, token="a-secret")) > 0
    finally:
        process.terminate()
        output, errors = process.communicate(timeout=30)
    assert "secret" not in output + errors


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--host", "0.0.0.0"), "give [serve] token_file, tls_cert and tls_key, or --insecure in a network"),
        (("--port", "70000"), "port is 70000, expected an integer, 0 to 65535"),
        (("--token-file", "missing"), "cannot read"),
        (("--set", "serve.colour=1"), "unknown key 'colour'"),
        (("--set", "bad_rows.policy=quarantine", "--set", "bad_rows.path=bad.parquet"), "a quarantine file"),
    ],
)
def test_wrong_settings_end_with_a_message(job, arguments, text):
    done = seqflow("serve", job, *arguments, folder=job.parent)
    assert done.returncode in (1, 2)
    assert text in done.stderr
    assert "Traceback" not in done.stderr
