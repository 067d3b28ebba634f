"""Loaders on stores under a DataLoader, under ranks, and in forked processes, which the client does not live through."""

import contextlib
import json
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refused_passes import refusal_of
from store_server import Faults, StoreServer, free_port
from two_machines import elsewhere, environment

import seqflow as sf
from seqflow.errors import StoreError
from seqflow.files.cache import Cache
from seqflow.files.store import StoreFiles
from seqflow.job import Job
from seqflow.job.opening import open_job_output, open_loader
from seqflow.job.part_tasks import Folders, setup_of, tasks_of
from seqflow.loader.order.windows import Parts
from seqflow.ray.sending import setup_of_loader
from seqflow.torch import data_loader, iterable
from stores import SECRET, Bucket, Process

torch = pytest.importorskip("torch")
DataLoader = torch.utils.data.DataLoader


def put_rows(bucket: Bucket, folder: Path, files: int = 6) -> str:
    draw = np.random.default_rng(0)
    for number in range(files):
        table = pa.table({"x": np.arange(4000) + 4000 * number, "y": draw.integers(0, 2**60, 4000)})
        pq.write_table(table, folder / "rows.parquet", row_group_size=400, compression="none")
        bucket.put(f"rows/{number}.parquet", folder / "rows.parquet")
    return f"{bucket.uri}/rows/*.parquet"


def loader_of(uri: str, bucket: Bucket, cache: Path | None = None, **options: object) -> sf.Loader:
    source = sf.open(uri, storage_options=bucket.options, cache=None if cache is None else str(cache))
    return sf.Loader(source, batch=100, shuffle=sf.Shuffle(1), window="32 KiB", **options)


def ids(batches: object) -> list[int]:
    return [value for batch in batches for value in batch["x"].tolist()]


def in_fork(do: Callable[[], object]) -> str:
    """The text of the error that a function raises in a forked child."""
    here, there = os.pipe()
    child = os.fork()
    if not child:
        try:
            result = f"no error: {do()!r}"
        except BaseException as error:
            result = f"{type(error).__name__}: {error}"
        os.write(there, result.encode())
        os._exit(0)
    os.close(there)
    with os.fdopen(here) as file:
        text = file.read()
        os.waitpid(child, 0)
    return text


# A forked child


@pytest.mark.slow
def test_a_forked_child_raises_and_names_spawn(own: StoreServer, bucket: Bucket, tmp_path: Path) -> None:
    uri = bucket.put("a.bin", bytes(3_000_000))
    files, known = StoreFiles(bucket.options), StoreFiles(bucket.options, cache=Cache(str(tmp_path)))
    assert files.read(uri, 0, 10).size == known.read(uri, 0, 10).size == 10
    asked: list[Callable[[], object]] = [
        lambda: files.read(uri, 10, 20),
        lambda: files.stream(uri).read(),
        lambda: files.local_copy(uri),
        lambda: list(files.list(bucket.uri)),
        lambda: StoreFiles(bucket.options).entry(uri),
        lambda: known.read(uri, 10, 20),
        lambda: sf.open(uri, storage_options=bucket.options),
        lambda: pickle.loads(pickle.dumps(files)).read(uri, 10, 20),
    ]
    for do in asked:
        found = in_fork(do)
        assert found.startswith("StoreError: this process was forked after reading from s3://bucket")
        assert 'multiprocessing_context="spawn"' in found


@pytest.mark.slow
def test_a_fork_amid_requests_of_other_threads_does_not_hang(own: StoreServer, bucket: Bucket) -> None:
    """Whoever holds a lock of the files does not exist in the child."""
    uri = bucket.put("a.bin", bytes(30_000_000))
    own.faults = Faults(latency=0.05)
    files = StoreFiles(bucket.options)
    for _ in range(10):
        files.plan([(uri, at, at + 1_000_000) for at in range(0, 30_000_000, 1_000_000)], files)
        found = in_fork(lambda: files.read(uri, 500, 3_000_000))
        assert found.startswith("StoreError: this process was forked")
        files.drop(files)


def test_a_fork_before_the_first_request_reads() -> None:
    """In a process of its own: this one has read from stores."""
    assert in_new_process(FORK_FIRST) == "b'01234'"


FORK_FIRST = """
import os, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
import tempfile
from store_server import StoreServer
from seqflow.files.store import StoreFiles
folder = Path(tempfile.mkdtemp())
(folder / "bucket").mkdir()
(folder / "bucket" / "a.bin").write_bytes(b"0123456789")
with StoreServer(folder) as server:
    files = StoreFiles(server.options)
    child = os.fork()
    if not child:
        print(files.read("s3://bucket/a.bin", 0, 5).to_pybytes(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def in_new_process(program: str, *arguments: object) -> str:
    shared = Path(__file__).parents[1] / "shared"
    command = [sys.executable, "-c", program, shared, *arguments]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_forked_workers_of_a_data_loader_raise(own: StoreServer, bucket: Bucket, tmp_path: Path) -> None:
    loader = loader_of(put_rows(bucket, tmp_path, 1), bucket)
    data = DataLoader(iterable(loader), batch_size=None, num_workers=2, multiprocessing_context="fork")
    assert "multiprocessing_context" in refusal_of(data, StoreError)


# A DataLoader that is made here


def test_a_data_loader_of_a_store_spawns(own: StoreServer, bucket: Bucket, tmp_path: Path) -> None:
    loader = loader_of(put_rows(bucket, tmp_path, 1), bucket)
    data = data_loader(loader, num_workers=2)
    assert data.multiprocessing_context.get_start_method() == "spawn"
    assert data_loader(loader).multiprocessing_context is None
    forked = data_loader(loader, num_workers=2, multiprocessing_context="fork")
    assert forked.multiprocessing_context.get_start_method() == "fork"
    assert ids(data_loader(loader)) == ids(loader_of(f"{bucket.uri}/rows/*.parquet", bucket))
    local = sf.Loader(pa.table({"x": [1, 2, 3], "y": [4, 5, 6]}), batch=2)
    assert data_loader(local, num_workers=2).multiprocessing_context is None
    mix = sf.Mix({"a": local, "b": loader}, weights={"a": 1, "b": 1})
    assert data_loader(mix, num_workers=1).multiprocessing_context.get_start_method() == "spawn"


# One cache


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:This DataLoader will create:UserWarning")
def test_spawned_workers_share_one_cache(own: StoreServer, bucket: Bucket, tmp_path: Path) -> None:
    uri = put_rows(bucket, tmp_path)
    own.faults = Faults(latency=0.05)
    own.clear()
    expected = ids(loader_of(uri, bucket, tmp_path / "one"))
    alone = own.counts["GET"]
    own.clear()
    loader = loader_of(uri, bucket, tmp_path / "many")
    found = ids(data_loader(loader, num_workers=4))
    assert found == expected
    assert own.counts["GET"] < 2 * alone, (own.counts, alone)  # each for itself: that times the processes
    own.clear()
    assert ids(loader_of(uri, bucket, tmp_path / "many")) == expected
    assert own.counts["GET"] == 0


RANK = """
import json, sys
import seqflow as sf
uri, cache, rank, options = sys.argv[2], sys.argv[3], int(sys.argv[4]), json.loads(sys.argv[5])
loader = sf.Loader(sf.open(uri, storage_options=options, cache=cache), batch=100, shuffle=sf.Shuffle(1), window="32 KiB",
                   rank=rank, world_size=4)
print(json.dumps([[value for value in batch["x"].tolist()] for batch in loader]))
"""


@pytest.mark.slow
def test_ranks_share_one_cache(own: StoreServer, bucket: Bucket, tmp_path: Path) -> None:
    uri = put_rows(bucket, tmp_path)
    own.faults = Faults(latency=0.05)
    own.clear()
    expected = ids(loader_of(uri, bucket, tmp_path / "one"))
    alone = own.counts["GET"]
    own.clear()
    arguments = ("shared", uri, tmp_path / "many")
    ranks = [
        subprocess.Popen(
            [sys.executable, "-c", RANK, *map(str, arguments), str(rank), json.dumps(bucket.options)],
            stdout=subprocess.PIPE, text=True,
        )
        for rank in range(4)
    ]  # fmt: skip
    found = [json.loads(rank.communicate()[0]) for rank in ranks]
    assert sorted(value for rank in found for batch in rank for value in batch) == sorted(expected)
    assert own.counts["GET"] < 2 * alone, (own.counts, alone)  # each for itself: that times the processes


# Two machines

TRAIN = """
import json, os, sys
import torch.distributed as dist
import seqflow as sf
from seqflow.torch import data_loader
dist.init_process_group("gloo")
def loader_of():
    return sf.Loader("s3://bucket/rows/*.parquet", batch=100, shuffle=sf.Shuffle(1), window="32 KiB")
loader, seen = loader_of(), []
batches = iter(loader.to("torch"))
for _ in range(20):
    seen.append(next(batches)["x"].tolist())
states = [None, None]
dist.all_gather_object(states, json.dumps(loader.state_dict()))
resumed = loader_of()
resumed.load_state_dict(json.loads(states[0]))
rest = [batch["x"].tolist() for batch in resumed.to("torch")]
found = [None, None]
dist.all_gather_object(found, [loader.rank, loader.world_size, os.path.exists(sys.argv[1]), states[0] == states[1], seen, rest])
if loader.rank == 0:
    print("FOUND", json.dumps(found), flush=True)
dist.barrier()
os._exit(0)  # gloo's own threads may end a process that leaves the usual way
"""


def run_together(nodes: list[list[str]], env: dict[str, str], folder: Path) -> list[str]:
    """What each node printed. A node that fails ends the others, which would wait for it."""
    with contextlib.ExitStack() as files:
        printed = [
            files.enter_context(open(folder / f"node{number}.txt", "w+")) for number in range(len(nodes))
        ]
        running = [
            subprocess.Popen(node, env=env, stdout=file) for node, file in zip(nodes, printed, strict=True)
        ]
        while None in (ends := [node.poll() for node in running]) and not any(ends):
            time.sleep(0.1)
        for node in running:
            if any(ends) and node.poll() is None:
                node.terminate()
            node.wait(60)
        for file in printed:
            file.seek(0)
        texts = [file.read() for file in printed]
    assert [node.returncode for node in running] == [0] * len(nodes), texts
    return texts


def test_a_node_that_fails_ends_the_others(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"\[-15, 1\]"):
        run_together([["sleep", "600"], ["false"]], dict(os.environ), tmp_path)


@pytest.mark.slow
def test_torchrun_on_two_machines_resumes(start_store: Callable[..., Process], tmp_path: Path) -> None:
    server = start_store()
    bucket = Bucket("own", "bucket", server.url, server.options)
    put_rows(bucket, tmp_path)
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", "--master-addr=127.0.0.1",
        f"--master-port={free_port()}", "--no-python",
    ]  # fmt: skip
    program = [sys.executable, "-c", TRAIN, str(tmp_path)]
    nodes = [[*command, "--node-rank=0", *program], elsewhere(*command, "--node-rank=1", *program)]
    env = environment(bucket.options, tmp_path) | {"AWS_ALLOW_HTTP": "true", "USE_LIBUV": "0"}
    first, _ = run_together(nodes, env, tmp_path)
    ranks = json.loads(next(line for line in first.splitlines() if line.startswith("FOUND"))[6:])
    assert [rank[:4] for rank in ranks] == [[0, 2, True, True], [1, 2, False, True]]
    alone = loader_of(f"{bucket.uri}/rows/*.parquet", bucket)
    expected = [batch["x"].tolist() for batch in alone]
    for at, (*_, seen, rest) in enumerate(ranks):
        assert [*seen, *rest] == expected[at::2]


# Credentials


def test_pickles_hold_credentials_only_where_they_were_given(
    own: StoreServer, bucket: Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uri = put_rows(bucket, tmp_path, 1)
    given = loader_of(uri, bucket)
    assert SECRET.encode() in pickle.dumps(given)
    for name, value in bucket.options.items():
        monkeypatch.setenv(name.upper(), value)
    provider = sf.open(uri)
    loader = sf.Loader(provider, batch=100)
    next(iter(loader))
    job = Job.from_dict(
        {"source": {"paths": uri}, "batch": {"n": 10}, "output": {"path": f"{bucket.uri}/out"}}, tmp_path
    )
    opened = open_loader(job)
    parts = [pickle.dumps(task) for task in tasks_of(opened, Parts(1), 0)]
    assert parts
    with open_job_output(job) as output:
        assert output.target is not None
        attempts = output.target.attempts_folder("0123456789abcdef")
        setup = setup_of(job, opened, "a run", Folders(attempts, None), measures=False)
        sent = [provider, loader, loader.to("torch"), iterable(loader), job, setup, attempts]
        found = [*map(pickle.dumps, sent), *parts, setup.prepare]
        reader = setup_of_loader(loader, sf.to_arrow(loader.empty_batch()).schema, pickle.dumps)
    for content in [*found, reader.prepare, repr(sent).encode(), repr(given).encode()]:
        assert SECRET.encode() not in content
    again = pickle.loads(pickle.dumps(loader))
    assert ids(again) == list(range(4000))
