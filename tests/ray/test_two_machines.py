"""A cluster whose machines share only a bucket: no path of one exists on the other."""

import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from killed_jobs import workers_of
from marks import thorough
from store_server import free_port
from two_machines import elsewhere, environment, ray_command

from stores import Bucket, own_process

pytestmark = pytest.mark.slow
PACKED, SORTED = 'kind = "packed"\ncapacity = 64\nrows = 8', "n = 16"
JOB = """
imports = ["slow_rows"]
[source]
paths = "s3://bucket/in/*.parquet"
[order]
shuffle = true
window = "8 KiB"
index = "lengths.arrow"
[prepare]
file = "prepare.txt"
[batch]
{batch}
[output]
path = "{output}"
part_bytes = "1"
row_group_bytes = "4 KiB"
{more}
[bad_rows]
policy = "quarantine"
path = "bad.parquet"
"""


class Cluster(NamedTuple):
    address: str
    node: subprocess.Popen[bytes]
    """The machine that has CPUs."""


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bucket]:
    pytest.importorskip("obstore")
    folder = tmp_path_factory.mktemp("store")
    (folder / "bucket").mkdir()
    with own_process(folder) as server:
        yield Bucket("own", "bucket", server.url, server.options)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, bucket: Bucket) -> Path:
    draw, folder = np.random.default_rng(0), tmp_path_factory.mktemp("job")
    for part in range(2):
        lists = [
            [None] if i % 97 == 5 else [*map(int, draw.integers(0, 99, n))]
            for i, n in enumerate(draw.integers(0, 40, 800))
        ]
        table = pa.table({"tokens": pa.array(lists, pa.list_(pa.int32())), "label": np.arange(800)})
        pq.write_table(table, folder / "in.parquet", row_group_size=50)
        bucket.put(f"in/{part}.parquet", folder / "in.parquet")
    (folder / "prepare.txt").write_text("a = wait_for_rows(tokens.values)\nreturn a, tokens.lengths, label\n")
    return folder


@pytest.fixture(scope="module")
def cluster(folder: Path, bucket: Bucket) -> Iterator[Cluster]:
    """A cluster of a machine without CPUs, on which drivers run, and of another one whose /tmp is empty."""
    pytest.importorskip("ray")
    short = Path(tempfile.mkdtemp(prefix="ray", dir="/tmp"))
    own = environment(bucket.options, folder) | {"RAY_memory_monitor_refresh_ms": "0", "WAIT": "0.02"}
    small = ["--object-store-memory=100000000"]
    nodes: list[subprocess.Popen[bytes]] = []

    said = folder / "nodes.txt"

    def start(command: list[str]) -> None:
        with open(said, "ab") as file:
            nodes.append(subprocess.Popen(command, env=own, stdout=file, stderr=file))

    try:
        for _ in range(3):  # another cluster may have taken one of the ports that Ray has found free
            port = free_port()
            head = ["--head", f"--port={port}", "--num-cpus=0", "--include-dashboard=false"]
            start(ray_command(*head, f"--temp-dir={short}", *small))
            end = time.monotonic() + 120
            while nodes[0].poll() is None and not listens(port):
                assert time.monotonic() < end
                time.sleep(0.2)
            if nodes[0].poll() is None:
                break
            nodes.clear()
        assert nodes, said.read_text()
        start(elsewhere(*ray_command(f"--address=127.0.0.1:{port}", "--num-cpus=2", *small)))
        subprocess.run([sys.executable, "-c", WAIT, f"127.0.0.1:{port}"], env=own, check=True)
        yield Cluster(f"127.0.0.1:{port}", nodes[1])
    finally:
        for node in reversed(nodes):
            node.terminate()
            node.wait()
        shutil.rmtree(short, ignore_errors=True)


WAIT = """
import sys, time
from seqflow.workers.ray import import_ray
ray = import_ray()
ray.init(address=sys.argv[1], log_to_driver=False, logging_level="ERROR")
while ray.cluster_resources().get("CPU", 0) < 2:
    time.sleep(0.2)
"""


def listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def start(
    folder: Path, bucket: Bucket, output: str, *arguments: str, batch: str = PACKED
) -> subprocess.Popen[str]:
    more = 'sort_by = "-label"' if batch == SORTED else ""
    (folder / f"{Path(output).name}.toml").write_text(JOB.format(output=output, more=more, batch=batch))
    return subprocess.Popen(
        [sys.executable, "-m", "seqflow", "run", f"{Path(output).name}.toml", "--quiet", *arguments],
        cwd=folder, env=environment(bucket.options, folder), stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def done(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate()
    assert process.returncode == 0, errors


def parts(bucket: Bucket, prefix: str) -> dict[str, bytes]:
    """The parts of an output. Of the log one object is left, and nothing of workers."""
    keys = bucket.keys(prefix)
    assert [".progress/" in key for key in keys if "/." in key] == [True]
    return {key.partition("/")[2]: bucket.get(key) for key in keys if "part-" in key}


def of_one_process(folder: Path, bucket: Bucket, batch: str = PACKED) -> dict[str, bytes]:
    done(start(folder, bucket, str(folder / "expected"), batch=batch))
    (folder / "bad.parquet").rename(folder / "bad_expected.parquet")
    (folder / "lengths.arrow").rename(folder / "lengths_expected.arrow")
    found = {path.name: path.read_bytes() for path in (folder / "expected").glob("part-*")}
    assert found
    return found


def num_parts(bucket: Bucket) -> int:
    return sum("part-" in key for key in bucket.keys("out"))


def clear(bucket: Bucket, folder: Path) -> None:
    bucket.delete(*bucket.keys("out"))
    shutil.rmtree(folder / "expected", ignore_errors=True)
    for path in [*folder.glob("*bad*.parquet"), *folder.glob("lengths*.arrow")]:
        path.unlink()


def same_bad_rows(folder: Path) -> bool:
    """Whether the bad rows are those of one process, in a file that belongs to another output."""
    found, expected = (pq.read_table(folder / f"{name}.parquet") for name in ("bad", "bad_expected"))
    return found.equals(expected) and found.schema.metadata != expected.schema.metadata


@pytest.mark.parametrize("batch", thorough(PACKED, SORTED), ids=["parts", "sorted"])
def test_a_job_needs_no_shared_folder(folder: Path, bucket: Bucket, cluster: Cluster, batch: str) -> None:
    clear(bucket, folder)
    expected = of_one_process(folder, bucket, batch)
    done(
        start(folder, bucket, "s3://bucket/out", "--engine", "ray", "--address", cluster.address, batch=batch)
    )
    assert parts(bucket, "out") == expected
    assert (folder / "lengths.arrow").read_bytes() == (folder / "lengths_expected.arrow").read_bytes()
    assert same_bad_rows(folder)


def test_workers_and_drivers_are_killed(folder: Path, bucket: Bucket, cluster: Cluster) -> None:
    clear(bucket, folder)
    expected, draw = of_one_process(folder, bucket), random.Random(5)
    ray = ["--engine", "ray", "--address", cluster.address]
    process = start(folder, bucket, "s3://bucket/out", *ray)
    for number in range(1, 6):
        while num_parts(bucket) < number * len(expected) // 6:
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        if number in (2, 4):
            process.send_signal(draw.choice([signal.SIGKILL, signal.SIGTERM]))
            process.communicate()
            process = start(folder, bucket, "s3://bucket/out", *ray, "--resume")
        elif some := workers_of(cluster.node):
            os.kill(draw.choice(some), signal.SIGKILL)
    done(process)
    assert parts(bucket, "out") == expected
    assert same_bad_rows(folder)
