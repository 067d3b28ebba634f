"""The cache of ranges, and ranges that are fetched ahead."""

import os
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from store_server import Faults

import seqflow as sf
from seqflow.files.ahead import BUDGET, LARGEST, Ahead, split_spans
from seqflow.files.cache import Cache
from seqflow.files.interface import Entry
from seqflow.files.store import StoreFiles

CONTENT = os.urandom(1 << 20)


@pytest.fixture
def cached(bucket, tmp_path):
    """Make files that share a cache, as processes do."""
    return lambda **options: StoreFiles({**bucket.options, **options}, cache=Cache(str(tmp_path / "cache")))


def test_a_second_reader_makes_no_request(own, bucket, cached):
    uri = bucket.put("a", CONTENT)
    assert cached().read(uri, 10, 5000).to_pybytes() == CONTENT[10:5000]
    own.clear()
    assert cached().read(uri, 10, 5000).to_pybytes() == CONTENT[10:5000]
    assert own.counts["GET"] == 0


def test_a_replaced_object_is_a_miss(own, bucket, cached):
    uri = bucket.put("a", CONTENT)
    cached().read(uri, 0, 100)
    bucket.put("a", CONTENT[::-1])
    assert cached().read(uri, 0, 100).to_pybytes() == CONTENT[::-1][:100]


@pytest.mark.parametrize(
    "damage",
    [lambda data: b"", lambda data: data[:-1], lambda data: b"x" + data[1:], lambda data: data + b"x"],
)
def test_a_damaged_entry_is_a_miss(own, bucket, cached, tmp_path, damage):
    uri = bucket.put("a", CONTENT)
    cached().read(uri, 0, 1000)
    (entry,) = [
        path for path in (tmp_path / "cache").rglob("*") if path.is_file() and path.stat().st_size == 1004
    ]
    entry.write_bytes(damage(entry.read_bytes()))
    assert cached().read(uri, 0, 1000).to_pybytes() == CONTENT[:1000]
    own.clear()
    assert cached().read(uri, 0, 1000).to_pybytes() == CONTENT[:1000]
    assert own.counts["GET"] == 0


def test_a_folder_that_cannot_be_written_is_one_warning(own, bucket, tmp_path, caplog):
    uri = bucket.put("a", CONTENT)
    (tmp_path / "file").write_bytes(b"")
    files = StoreFiles(bucket.options, cache=Cache(str(tmp_path / "file" / "cache")))
    for start in range(0, 5000, 1000):
        assert files.read(uri, start, start + 1000).to_pybytes() == CONTENT[start : start + 1000]
    assert [
        record.getMessage() for record in caplog.records if "cannot be written" in record.getMessage()
    ] == [f"the cache {tmp_path / 'file' / 'cache'} cannot be written: Not a directory; going on without"]


def test_readers_at_once_fetch_a_range_once(own, bucket, cached):
    uri = bucket.put("a", CONTENT)
    own.faults = Faults(latency=0.1)
    found = []
    threads = [
        threading.Thread(target=lambda: found.append(cached().read(uri, 0, 1 << 20).to_pybytes()))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [CONTENT] * 8
    assert own.counts["GET"] == 1


@pytest.mark.slow
def test_processes_share_a_cache(own, bucket, cached, tmp_path):
    uri = bucket.put("a", CONTENT)
    own.faults = Faults(latency=0.05)
    program = f"""
from seqflow.files.cache import Cache
from seqflow.files.store import StoreFiles
files = StoreFiles({bucket.options!r}, cache=Cache({str(tmp_path / "cache")!r}))
for start in range(0, 1 << 20, 1 << 16):
    files.read({uri!r}, start, start + (1 << 16))
"""
    running = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(4)]
    assert [process.wait() for process in running] == [0] * 4
    assert own.counts["GET"] < 2 * 16  # each for itself: 64


def test_entries_used_longest_ago_go_first(bucket, tmp_path):
    uri = bucket.put("a", CONTENT)
    cache = Cache(str(tmp_path / "cache"), 400_000)
    files = StoreFiles(bucket.options, cache=cache)
    for start in range(0, 1_000_000, 100_000):
        StoreFiles(bucket.options, cache=Cache(cache.folder, cache.max_bytes)).read(
            uri, start, start + 100_000
        )
    sizes = [path.stat().st_size for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert sum(sizes) <= 500_100
    assert files.read(uri, 0, 10).to_pybytes() == CONTENT[:10]


class Source:
    """Fetches from bytes, and notes what is fetched."""

    def __init__(self, content):
        self.content, self.requests, self.lock = content, [], threading.Lock()

    def __call__(self, path, members):
        start, stop = members[0][0], max(stop for _, stop in members)
        with self.lock:
            self.requests.append((path, start, stop))
        return [(start, stop, pa.py_buffer(self.content[start:stop]))]


def test_near_ranges_are_one_request_and_distant_ones_are_not():
    source = Source(CONTENT)
    ahead = Ahead(source)
    ranges = [("a", 0, 1000), ("a", 2000, 3000), ("a", 500_000, 500_100), ("b", 500_100, 500_200)]
    ahead.plan(ranges, owner := object())
    assert [bytes(ahead.take(*one)) for one in ranges] == [CONTENT[start:stop] for _, start, stop in ranges]
    assert sorted(source.requests) == [("a", 0, 3000), ("a", 500_000, 500_100), ("b", 500_100, 500_200)]
    assert ahead.take("a", 0, 1000) is None
    ahead.drop(owner)
    assert ahead.bytes_held == 0


def test_what_is_dropped_is_not_held():
    ahead = Ahead(Source(CONTENT))
    ahead.plan([("a", 0, 1000), ("a", 500_000, 600_000)], owner := object())
    ahead.take("a", 0, 10)
    ahead.drop(owner)
    ahead.plan([], object())  # what was dropped is forgotten with the next plan
    assert ahead.take("a", 500_000, 600_000) is None
    assert ahead.bytes_held == 0


def test_bytes_ahead_are_bounded():
    source = Source(bytes(BUDGET * 2))
    ahead = Ahead(source)
    ranges = [(str(number), 0, LARGEST) for number in range(3 * BUDGET // LARGEST)]
    ahead.plan(ranges, object())
    most = 0
    for one in ranges:
        most = max(most, ahead.bytes_held)
        assert ahead.take(*one).size == LARGEST
    assert most <= BUDGET
    assert ahead.bytes_held == 0


def test_an_error_is_that_of_the_range_that_failed():
    def fail(path, members):
        raise OSError(path)

    ahead = Ahead(fail)
    ahead.plan([("a", 0, 10), ("b", 0, 10)], object())
    for path in ("b", "a"):
        with pytest.raises(OSError, match=path):
            ahead.take(path, 0, 10)
    assert ahead.bytes_held == 0


def test_spans_of_one_reader_are_merged_and_cut():
    assert split_spans([(100, 200), (0, 100), (300, 400)]) == [(0, 400)]
    assert split_spans([(0, 10), (1 << 20, (1 << 20) + 5)]) == [(0, 10), (1 << 20, (1 << 20) + 5)]
    assert split_spans([(0, 2 * LARGEST + 5)]) == [
        (0, LARGEST),
        (LARGEST, 2 * LARGEST),
        (2 * LARGEST, 2 * LARGEST + 5),
    ]


@pytest.mark.slow
def test_what_was_planned_for_samples_that_nobody_needed_is_forgotten(own, bucket):
    for number in range(40):
        bucket.put(f"lines/{number:02}.jsonl", b'{"x": 1}\n' * 20_000)
    source = sf.open(f"{bucket.uri}/lines/", storage_options=bucket.options)
    assert source.store.bytes_ahead == 0


def test_a_batch_of_several_requests_is_fetched_once(own, bucket, tmp_path):
    table = pa.table({"x": np.random.default_rng(0).integers(0, 1 << 60, 3 << 20)})
    with pa.ipc.new_file(tmp_path / "a.arrow", table.schema) as writer:
        writer.write_table(table)
    uri = bucket.put("a.arrow", tmp_path / "a.arrow")
    source = sf.open(uri, storage_options=bucket.options)
    own.clear()
    (batch,) = sf.Loader(source, batch=len(table), window="64 MiB")
    assert (batch["x"] == table["x"].to_numpy()).all()
    assert own.counts["GET"] == 4  # of 8 MiB at most


@pytest.mark.parametrize(
    "damage",
    [lambda data: b"", lambda data: data[:-1], lambda data: b"x" + data[1:], lambda data: data + b"x", None],
    ids=["empty", "short", "changed", "long", "gone"],
)
@pytest.mark.parametrize("is_same", [True, False], ids=["same", "later"])
def test_a_damaged_copy_is_fetched_again(own, bucket, cached, damage, is_same):
    uri = bucket.put("a.db", CONTENT)
    files = cached()
    copy = files.local_copy(uri)
    if damage is None:
        os.unlink(copy)
    else:
        with open(copy, "wb") as file:
            file.write(damage(CONTENT))
    again = files if is_same else cached()
    with open(again.local_copy(uri), "rb") as file:
        assert file.read() == CONTENT
    with open(copy, "rb") as file:
        assert file.read() == CONTENT


def test_a_copy_is_on_the_disk_before_it_has_its_name(own, bucket, cached, monkeypatch):
    uri, done = bucket.put("a.db", CONTENT), []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *given, name=name, real=real: [done.append(name), real(*given)])
    cached().local_copy(uri)
    assert done.index("fsync") < [at for at, name in enumerate(done) if name == "replace"][-2] < len(done)


def test_a_copy_whose_check_is_gone_is_fetched_again(own, bucket, cached, tmp_path):
    uri = bucket.put("a.db", CONTENT)
    copy = cached().local_copy(uri)
    for entry in (tmp_path / "cache").rglob("*"):
        if entry.is_file() and str(entry) != copy:
            entry.unlink()
    own.clear()
    with open(cached().local_copy(uri), "rb") as file:
        assert file.read() == CONTENT


@pytest.mark.parametrize(("age", "is_taken"), [(-1e6, True), (-3600, True), (0, False), (3600, True)])
def test_a_claim_counts_for_ten_seconds_of_the_past(tmp_path, age, is_taken):
    cache = Cache(str(tmp_path))
    place = cache.place(Entry("s3://b/k", 9, "v"), 0, 9)
    assert cache.claim(place)
    os.utime(f"{place}.claim", (time.time() - age,) * 2)
    assert cache.claim(place) is is_taken


@pytest.mark.parametrize("field", range(5))
def test_entries_differ_in_system_version_size_and_range(field):
    one = ["s3://b/k", 9, "v", 0, 9]
    other = [*one[:field], {0: "s3://b/l", 1: 8, 2: "w", 3: 1, 4: 8}[field], *one[field + 1 :]]
    names = {Cache("").place(Entry(*some[:3]), *some[3:]) for some in (one, other)}
    assert len(names) == 2
