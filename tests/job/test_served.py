"""Jobs of trainers: batches of servers as the source, written as the job of the servers would write them."""

import json
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pages import code_of

import seqflow as sf
from seqflow import JobError
from seqflow.job import Job, run
from seqflow.job.checking import check
from seqflow.job.opening import open_batches, open_loader
from seqflow.job.planning import plan
from seqflow.job.row_traces import open_traceable

TABLE = pa.table({"id": np.arange(900), "x": [list(range(n % 7)) for n in range(900)]})
SERVERS = {
    "rows": {
        "batch": 20,
        "order": {"shuffle": True, "window": "4 KiB"},
        "net": {"net": "return id, x.lengths, x.values"},
    },
    "packed": {"batch": {"kind": "packed", "capacity": 64, "columns": ["x"]}},
    "totals": {"batch": 20, "totals": {"n": "x.lengths"}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("jobs")
    pq.write_table(TABLE, path / "rows.parquet", row_group_size=60)
    return path


def of_servers(folder, name, **more):
    return Job.from_dict({"source": {"paths": "rows.parquet"}, **SERVERS[name], **more}, folder)


def of_trainer(server, folder, output="out/", **more):
    source = {"served": [server.url], **more.pop("source", {})}
    return Job.from_dict({"source": source, "output": {"path": output}, **more}, folder)


def written(files):
    return pa.concat_tables([pq.read_table(file) for file in files])


@pytest.mark.parametrize("name", SERVERS)
def test_the_output_is_that_of_the_job_of_the_servers(folder, tmp_path, name):
    local = of_servers(folder, name, output={"path": str(tmp_path / "local.parquet")})
    expected = run(local)
    with sf.serve(open_batches(local), port=0) as server:
        job = of_trainer(server, tmp_path, "served.parquet")
        assert check(job) is None
        found = run(job)
        assert written(found.files).equals(written(expected.files))
        assert (found.rows, found.tokens, found.batches) == (expected.rows, expected.tokens, expected.batches)
        assert run(job).outcome == "complete"
        with pytest.raises(JobError, match=r"another job or of other data: tail was 'drop'"):
            run(of_trainer(server, tmp_path, "served.parquet", source={"tail": "pad"}))


def test_the_batches_of_a_job_in_python(folder, tmp_path, monkeypatch):
    with sf.serve(open_batches(of_servers(folder, "rows")), port=0) as server:
        (tmp_path / "trainer.toml").write_text(f'[source]\nserved = ["{server.url}"]\n')
        monkeypatch.chdir(tmp_path)
        names = {}
        exec(code_of("docs/serving.md", "from seqflow.job import Job, open_batches"), names)
    assert names["batch"].number == 44


def test_ranks_and_skips_are_those_of_the_trainer(folder, tmp_path):
    with sf.serve(open_batches(of_servers(folder, "rows")), port=0) as server:
        source = {"rank": 1, "world_size": 3, "tail": "pad", "ahead": "1 MiB", "timeout": 20}
        job = of_trainer(server, tmp_path, source=source, skip=[[3, 6]])
        local = sf.served(server.url, skip=[(3, 6)], rank=1, world_size=3, tail="pad")
        ids = [one for batch in local for one in batch["id"].tolist()]
        assert written(run(job).files)["id"].to_pylist() == ids
        assert [batch.number for batch in open_batches(job).take(3)] == [1, 7, 10]


def test_a_run_goes_on_after_the_parts_that_are_finished(folder, tmp_path):
    output = {"path": str(tmp_path / "out"), "rows_per_file": 100}
    expected = written(run(of_servers(folder, "rows", output={"path": str(tmp_path / "all.parquet")})).files)

    class Stopped(Exception):
        pass

    def stop(stats, total):
        if stats.batches >= 23:
            raise Stopped

    with sf.serve(open_batches(of_servers(folder, "rows")), port=0) as server:
        job = Job.from_dict({"source": {"served": server.url}, "output": output}, tmp_path)
        with pytest.raises(Stopped):
            run(job, stop)
        report = run(job, resume=True)
        assert (report.outcome, report.batches, report.rows) == ("resumed", 45, 900)
        assert written(report.files).equals(expected)


TRAINER = (
    'skip = [[0, 2]]\n[source]\nserved = "flight://127.0.0.1:1"\ntimeout = 0.2\n[output]\npath = "out/"\n'
)


@pytest.mark.parametrize(
    ("added", "text"),
    [
        ("\n[net]\nnet = 'return id'", r"line 8: net is given next to source\.served: .*\n.*in the job of the servers"),
        ("\n[order]\nshuffle = true", "line 8: order is given next"),
        ("\n[batch]\nn = 3", "line 8: batch is given next"),
        ("\n[engine]\nworkers = 2", "line 8: engine is given next"),
        ("\n[bad_rows]\npolicy = 'skip'", "line 8: bad_rows is given next"),
        ("\n[deduplicate]\non = 'id'", "line 8: deduplicate is given next"),
        ("\n[serve]\nport = 2", "line 8: serve is given next"),
        ("\n[source.csv]\ndelimiter = ';'", r"csv is given next to source\.served"),
        ("\n[source.storage_options]\nregion = 'x'", "storage_options is given next"),
    ],
)  # fmt: skip
def test_what_the_job_of_the_servers_decides_is_refused(tmp_path, added, text):
    (tmp_path / "trainer.toml").write_text(TRAINER + added)
    with pytest.raises(JobError, match=text):
        Job.read(tmp_path / "trainer.toml")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("where = 'id > 3'", "line 4: where is given next to source.served"),
        ("paths = 'x'", "line 4: paths is given next to source.served"),
        ("timeout = 'x'", "line 4: timeout is 'x', expected seconds above 0, at most 86,400"),
        ("tail = 'no'", "line 4: tail is 'no', expected 'drop' or 'pad' or 'repeat'"),
        ("token = 'secret'", "line 4: unknown key 'token' in .source.*did you mean 'token_file'"),
        ("served_by = 1", "unknown key 'served_by'"),
    ],
)
def test_a_wrong_key_is_named_with_its_line(tmp_path, key, text):
    (tmp_path / "trainer.toml").write_text(TRAINER.replace("timeout = 0.2", key))
    with pytest.raises(JobError, match=text):
        Job.read(tmp_path / "trainer.toml")


def test_errors_of_the_servers_are_those_of_a_client(folder, tmp_path):
    (tmp_path / "trainer.toml").write_text(TRAINER)
    job = Job.read(tmp_path / "trainer.toml")
    for act in (check, run):
        with pytest.raises(sf.SeqflowError, match=r"127\.0\.0\.1:1: none answers for 0\.2 seconds"):
            act(job)
    assert not (tmp_path / "out").exists()
    with sf.serve(open_batches(of_servers(folder, "rows")), port=0, token="known") as server:
        source = {"token_file": str(tmp_path / "token"), "timeout": 3}
        job = of_trainer(server, tmp_path, source=source)
        with pytest.raises(JobError, match=r"source\.token_file: cannot read .*token'"):
            run(job)
        (tmp_path / "token").write_text("another\n")
        with pytest.raises(sf.SeqflowError, match="no token, or another one"):
            run(job)
        (tmp_path / "token").write_text("known\n")
        assert run(job).rows == 900
        with pytest.raises(JobError, match="append: servers have the files of these batches"):
            run(job, append=True)


def test_what_needs_the_rows_asks_for_the_job_of_the_servers(tmp_path):
    (tmp_path / "trainer.toml").write_text(TRAINER)
    job = Job.read(tmp_path / "trainer.toml")
    for act in (open_loader, plan, open_traceable):
        with pytest.raises(JobError, match=r"source\.served: .*\n  give it the job of the servers"):
            act(job)


@pytest.mark.slow
def test_the_command_runs_and_checks_it_and_refuses_the_rest(folder, tmp_path):
    def seqflow(*arguments):
        command = [sys.executable, "-m", "seqflow", *arguments]
        return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)

    with sf.serve(open_batches(of_servers(folder, "rows")), port=0) as server:
        (tmp_path / "trainer.toml").write_text(TRAINER.replace("flight://127.0.0.1:1", server.url))
        assert "the servers answer" in seqflow("check", "trainer.toml").stdout
        assert json.loads(seqflow("check", "trainer.toml", "--json").stdout) == {"sources": []}
        done = seqflow("run", "trainer.toml", "--json", "--set", "source.timeout=10")
        assert json.loads(done.stdout)["rows"] == 860, done.stderr
        for command in (
            ("run", "trainer.toml", "--dry-run"),
            ("serve", "trainer.toml"),
            ("ledger", "trainer.toml"),
        ):
            done = seqflow(*command)
            assert done.returncode != 0
            assert "source.served: " in done.stderr
            assert "Traceback" not in done.stderr
