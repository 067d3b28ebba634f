"""The verdict names planted bottlenecks. They are larger than all other work by factors, so any machine shows them."""

import hashlib
import html
import json
import threading
import time

import numpy as np
import pyarrow as pa
import pytest
from marks import thorough

import seqflow as sf
from seqflow.loader.run.simulation import Work, simulate
from seqflow.loader.verdicts import LIMITS
from seqflow.providers import Block

ROOM = 200 * 8
"""Bytes of a window: a block of two batches."""


class Blocks:
    """Blocks of 200 rows; reading one takes a sleep, or computing that releases the lock."""

    schema = pa.schema([("id", pa.int64())])
    version = "1"

    def __init__(self, blocks=12, sleep=0.0, decode=0.0):
        self.count, self.sleep, self.decode = blocks, sleep, decode

    def blocks(self):
        return [Block("blocks", index, 200, ROOM) for index in range(self.count)]

    def read(self, block, columns):
        time.sleep(self.sleep)
        end, data = time.thread_time() + self.decode, b"x" * (1 << 20)
        while time.thread_time() < end:
            hashlib.sha256(data).digest()
        return {"id": np.arange(200) + 200 * block.index}


def loader(source, **options):
    return sf.Loader(source, **{"batch": 100, "window": ROOM, "threads": 1, **options})


def watched(batches, own=0.0):
    for _ in batches:
        if own:  # a sleep of nothing gives the processor away
            time.sleep(own)
    return batches.verdict()


def waiting(record):
    time.sleep(0.1)
    return dict(record.items())


def spinning(record):
    end = time.thread_time() + 0.05
    while time.thread_time() < end:
        pass
    return dict(record.items())


def slow_function(record):
    time.sleep(0.05)
    return dict(record.items())


SINES = (
    "\n".join(f"x{i} = sin({'id * 1.0' if i == 0 else f'x{i - 1}'})" for i in range(300)) + "\nreturn x299"
)
PLANTS = {
    "slow store": ("store", lambda: loader(Blocks(sleep=0.1)), 0.005),
    "slow store, three threads": ("store", lambda: loader(Blocks(24, sleep=0.2), threads=3, memory=8 * ROOM), 0.002),
    "slow decoding": ("decode", lambda: loader(Blocks(decode=0.05)), 0.001),
    "prepare waits for a service": ("prepare", lambda: loader(Blocks(), prepare=waiting, version="1"), 0.005),
    "prepare holds the lock": ("lock", lambda: loader(Blocks(), prepare=spinning, version="1"), 0.001),
    "prepare holds the lock, three threads": (
        "lock", lambda: loader(Blocks(), prepare=spinning, version="1", threads=3), 0.001,
    ),
    "Python function net": ("function", lambda: loader(Blocks(), net=slow_function, version="1"), 0.01),
    "slow consumer": ("consumer", lambda: loader(Blocks()), 0.08),
    "slow consumer, little memory": ("consumer", lambda: loader(Blocks(), memory=ROOM, threads=2), 0.08),
    "memory of one window": ("memory", lambda: loader(Blocks(sleep=0.1), threads=3, memory=ROOM), 0.02),
    "memory of two windows": ("memory", lambda: loader(Blocks(sleep=0.15), threads=3, memory=2 * ROOM), 0.02),
    "no threads": ("threads", lambda: loader(Blocks(sleep=0.1), threads=0), 0.02),
    "giant first window": ("first window", lambda: loader(Blocks(sleep=0.1), window=1 << 30), 0.04),
    "a mix with one slow source": (
        "store",
        lambda: sf.Mix({"fast": loader(Blocks()), "slow": loader(Blocks(sleep=0.2))}, weights={"fast": 1, "slow": 1}),
        0.005,
    ),
    "a mix of rows in tiny batches": ("plan", lambda: sf.Mix(
        {name: pa.table({"id": np.arange(2000)}) for name in "ab"}, weights={"a": 1, "b": 1}, batch=4), 0.0),
}  # fmt: skip


ALIKE = (
    "slow store, three threads", "prepare holds the lock, three threads", "slow consumer, little memory",
    "memory of two windows",
)  # fmt: skip
"""Plants that differ from another one by a number."""


@pytest.mark.slow
@pytest.mark.parametrize("plant", [*(one for one in PLANTS if one not in ALIKE), *thorough(*ALIKE)])
def test_the_limit_is_named(plant):
    name, make, own = PLANTS[plant]
    found = watched(make(), own)
    assert found.limit == name, found
    assert LIMITS[name] in repr(found)
    assert LIMITS[name] in html.unescape(found._repr_html_())


@pytest.fixture(scope="module")
def slow_store():
    found = loader(Blocks(sleep=0.1))
    watched(found, 0.005)
    return found


def test_a_verdict_is_json_with_times_and_remedies(slow_store):
    facts = json.loads(json.dumps(slow_store.verdict().to_json()))
    assert (facts["limit"], facts["steps"], facts["threads"]) == ("store", 23, 1)
    assert facts["waiting_share"] > 0.5
    assert facts["step_seconds"] == pytest.approx(sum(facts["step"].values()))
    assert facts["work"]["store"] > 0.04
    assert facts["stages"]["read"]["calls"] == 12
    assert (facts["windows"]["opened"], facts["windows"]["largest"]) == (12, ROOM)
    changes = [one["change"] for one in facts["remedies"]]
    assert {"threads": 4} in [{"threads": one.get("threads")} for one in changes]
    steps = [one["step_seconds"] for one in facts["remedies"]]
    assert steps == sorted(steps, reverse=True)
    assert max(steps) < facts["step_seconds"]


def test_there_is_no_verdict_before_20_steps():
    found = watched(loader(Blocks(10)))
    assert found.limit is None
    assert repr(found) == "No verdict: 19 steps, expected at least 20"
    assert found.to_json()["steps"] == 19
    assert loader(Blocks()).verdict().limit is None


def test_a_verdict_of_a_running_iteration_and_of_one_that_was_left():
    found = loader(Blocks(20))
    batches = iter(found)
    for _ in range(25):
        next(batches)
        time.sleep(0.01)
    assert found.verdict().limit == "consumer"
    batches.close()
    assert found.verdict().to_json()["steps"] == 24


def test_waiting_does_not_hold_helping():
    found = loader(Blocks(sleep=0.02), threads=0)
    watched(found)
    assert found.stats().seconds_waiting == 0
    facts = found.verdict().to_json()
    assert facts["step"]["wait"] == 0
    assert facts["step"]["helped"] > 0.005


def test_a_function_in_the_iterating_thread_is_a_part_of_the_step():
    found = loader(Blocks(), net=slow_function, version="1")
    facts = watched(found).to_json()
    assert facts["step"]["function"] > 0.04
    assert facts["stages"]["function"]["calls"] == 24
    assert facts["remedies"][0]["change"] == {"without": "function"}


def test_a_net_counts_apart_from_making():
    facts = watched(loader(Blocks(), net=SINES)).to_json()
    assert facts["stages"]["net"]["calls"] == facts["stages"]["make"]["calls"] == 24
    assert facts["work"]["net"] > facts["work"]["make"]


def test_a_replay_gives_the_same_batches_from_memory_and_the_ceiling():
    found = loader(Blocks(), reuse=True)
    batches = [batch["id"].copy() for batch in found]
    before, place = found.verdict().to_json(), found.state_dict()
    replay = found.replay(steps=10)
    assert (len(replay), replay.step_seconds, found.state_dict()) == (10, None, place)
    assert "not iterated" in repr(replay)
    for batch, expected in zip(replay, batches, strict=False):
        assert batch["id"].tolist() == expected.tolist()
        time.sleep(0.01)
    assert replay.step_seconds is None or replay.step_seconds >= 0.01
    for _ in replay:
        time.sleep(0.02)
    assert replay.step_seconds >= 0.02
    after = found.verdict().to_json()
    assert after["ceiling_seconds"] == replay.step_seconds
    assert after["ceiling"] == "the same batches from memory"
    assert after["steps"] == before["steps"]
    with pytest.raises(sf.OpError, match="replay: steps is 0, expected 1 or more"):
        found.replay(0)


def test_batches_of_torch_have_the_verdict_of_their_loader():
    torch = pytest.importorskip("torch")
    batches = loader(Blocks()).to("torch")
    for _ in batches:
        time.sleep(0.01)
    assert batches.verdict().limit == "consumer"
    replay = batches.replay(steps=3)
    assert [type(batch["id"]) for batch in replay] == [torch.Tensor] * 3
    assert batches.verdict().to_json()["ceiling_seconds"] == replay.step_seconds


def test_metrics_are_lines_of_json_and_openmetrics_text(tmp_path):
    found = loader(Blocks(), rank=1, world_size=2)
    found.metrics(tmp_path / "run.jsonl", every=1e-6)
    watched(found)
    lines = [json.loads(line) for line in (tmp_path / "run.jsonl").read_text().splitlines()]
    assert len(lines) > 2
    assert lines[-1]['seqflow_steps_total{rank="1"}'] == 11
    assert lines[-1]['seqflow_step_seconds{part="wait",rank="1"}'] >= 0
    text = found.open_metrics()
    assert text.endswith("# EOF\n")
    assert "# TYPE seqflow_stage_seconds counter\n" in text
    assert 'seqflow_stage_calls_total{stage="read",rank="1"} 12' in text
    assert 'seqflow_rows_total{rank="1"} 1200' in text
    with pytest.raises(sf.OpError, match="metrics: every is 0, expected seconds above 0"):
        found.metrics(tmp_path / "run.jsonl", every=0)


def ranks(slow_load, slow_own, steps=30):
    """Facts of three ranks that end each step together, as in training."""
    barrier, found = threading.Barrier(3), {}

    def run(rank):
        source = Blocks(steps, sleep=0.1 if rank == slow_load else 0.0)
        batches = loader(source, batch=200, rank=0, world_size=1)
        for _ in batches:
            time.sleep(0.06 if rank == slow_own else 0.01)
            barrier.wait()
        found[rank] = {**batches.verdict().to_json(), "rank": rank}

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(3)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    return [found[rank] for rank in range(3)]


@pytest.mark.slow
def test_a_slow_rank_is_named():
    found = ranks(slow_load=1, slow_own=None)
    joined = sf.verdict([json.dumps(found[1]), found[0], found[2]])
    facts = joined.to_json()
    assert (joined.limit, facts["rank"]) == ("rank", 1), joined
    assert "rank 1" in repr(joined)
    means = [one["wait_seconds"] for one in facts["ranks"]]
    assert facts["step"]["wait"] >= max(means) > 5 * np.mean([means[0], means[2]])


@pytest.mark.slow
def test_a_slow_consumer_on_one_rank_is_no_limit_of_the_loader():
    assert sf.verdict(ranks(slow_load=None, slow_own=1)).limit == "consumer"


@pytest.mark.parametrize(
    ("ranks", "message"),
    [
        ([], "verdict: ranks is empty"),
        ([{"steps": 30}], r"verdict: expected what verdict\(\).to_json\(\) gives on each rank"),
        ([{"limit": None, "rank": 0, "steps": 3}] * 2, r"verdict: ranks are \[0, 0\], expected each once"),
    ],
)
def test_ranks_that_cannot_be_joined(ranks, message):
    with pytest.raises(sf.OpError, match=message):
        sf.verdict(ranks)


def test_ranks_without_steps_have_no_verdict():
    facts = [{"limit": None, "rank": 0, "steps": 3}, {"limit": None, "rank": 1, "steps": 5}]
    assert sf.verdict(facts).limit is None
    assert repr(sf.verdict(facts)) == "No verdict: 3 steps, expected at least 20"


def test_the_simulation_knows_its_bounds():
    work = Work(windows=24, batches=2, tasks=1, opening=0.12, making=0.0005, own=0.01)
    assert simulate(work, 0, 8) == pytest.approx(0.06 + 0.0105, rel=0.05)  # one after another
    assert simulate(work, 8, 24) == pytest.approx(0.01, rel=0.1)  # the consumer alone
    assert simulate(work, 3, 1) > simulate(work, 3, 2) > simulate(work, 3, 4)  # memory
    assert simulate(work, 1, 8) > simulate(work, 2, 8) > simulate(work, 4, 8)  # threads
    assert simulate(work, 3, 4) >= 0.12 / 2 / 4  # no faster than all threads and the consumer
