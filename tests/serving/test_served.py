"""`sf.served` gives the same as a local loader: batches, totals, states, traces, lengths."""

import json
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marks import slow

import seqflow as sf
from seqflow.errors import OpError

CASES = {
    "packed": {},
    "streams": {"streams": 4},
    "rows": {"plan": "rows"},
    "balance": {"plan": "balance"},
    "no index": {"index": False},
    "skip": {"skip": [(3, 7), (20, 41)]},
    "skip without index": {"index": False, "skip": [(3, 7), (20, 41)]},
    "totals": {"totals": {"n": "tokens.lengths", "x": "tokens.values * 0.1"}, "steps_of": 2},
    "totals of a balance": {"plan": "balance", "totals": {"n": "tokens.lengths"}},
    "mix": {"mix": True, "plan": "budget"},
    "mix of all": {"mix": True, "plan": "budget", "stop": "all"},
    "mix of rows": {"mix": True, "plan": "rows", "totals": {"n": "tokens.lengths"}},
    "function": {"net": lambda batch: batch, "version": 1},
    "shared": {"plan": "rows", "share": {"tokens": None}},
    "shared in a mix of groups": {
        "plan": "rows",
        "mix": True,
        "share": {"tokens": "id"},
        "shuffle": sf.Shuffle(5, by="id"),
    },
    "pad": {"plan": "rows", "pad": {"tokens": sf.Pad(0, multiple_of=8)}},
}


SLOW = ("streams", "skip without index", "totals of a balance", "mix of all", "mix of rows", "shared")


@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("case", slow(*SLOW) + [case for case in CASES if case not in SLOW])
@pytest.mark.parametrize("world_size", [1, 2, 4])
@pytest.mark.parametrize("tail", ["drop", "pad", "repeat"])
@pytest.mark.filterwarnings(
    "ignore:totals. n of step",
    "ignore:totals. x of step",
    "ignore:Balance. world_size = 4 does not divide group = 2",
)
def test_batches_and_states_are_those_of_a_loader(loader_of, serve, content, case, world_size, tail):
    options = CASES[case]
    if tail == "repeat" and "totals" in options:
        tail = "pad"
    first, second = (serve(loader_of(**options)) for _ in range(2))
    for rank in range(world_size):
        ranks = {"rank": rank, "world_size": world_size, "tail": tail}
        local, served = loader_of(**options, **ranks), sf.served([first.url, second.url], **ranks)
        assert served.state_dict() == local.state_dict()
        count, halfway = 0, None
        for one, other in zip(local, served, strict=True):
            assert content(one) == content(other)
            # in an incomplete last round, a mix that ends with its last source counts passes that do not come
            if case != "mix of all" or not local.state_dict()["ended"] or world_size == 1:
                assert served.state_dict() == local.state_dict()
            assert served.at_window_end == local.at_window_end or options.get("mix")
            count += 1
            if count == 8:
                halfway = json.loads(json.dumps(served.state_dict()))
        assert (served.epoch, served.state_dict()) == (1, local.state_dict())
        assert served.stats().failures == 0
        if rank == 0:
            for made in (loader_of(**options, tail=tail), sf.served(first.url, tail=tail)):
                made.load_state_dict(halfway)
                if world_size == 1:
                    rest = [content(batch) for batch in made]
                    assert len(rest) == count - 8
                else:
                    assert made.state_dict()["batch"] == halfway["batch"]


@pytest.mark.parametrize("case", ["packed", "no index", "mix"])
def test_a_state_goes_on_on_any_number_of_ranks_here_or_there(loader_of, serve, content, case):
    options = CASES[case]
    url = serve(loader_of(**options)).url
    whole = [content(batch) for batch in loader_of(**options)]
    served = sf.served(url, rank=1, world_size=3)
    batches = iter(served)
    for _ in range(5):
        next(batches)
    state = json.loads(json.dumps(served.state_dict()))
    batches.close()
    local = loader_of(**options)
    local.load_state_dict(state)
    assert [content(batch) for batch in local] == whole[15:]
    for rank in range(2):
        other = sf.served(url, rank=rank, world_size=2, tail="pad")
        other.load_state_dict(state)
        found = [content(batch) for batch in other if batch.num_rows]
        assert found == whole[15 + rank :: 2]


@pytest.mark.parametrize("options", [{}, {"mix": True}], ids=["loader", "mix"])
def test_a_changed_prepare_is_accepted_where_a_loader_accepts_it(loader_of, serve, options):
    options = {**options, "index": False}
    before, url = loader_of(**options), serve(loader_of(**options, require="id >= 0")).url
    batches = iter(before)
    for count in range(3):
        state = before.state_dict()
        errors = []
        for after in (loader_of(**options, require="id >= 0"), sf.served(url)):
            try:
                after.load_state_dict(state, changes="accept")
            except OpError as error:
                errors.append(str(error))
        assert len(errors) == (0 if count == 0 else 2)
        assert not errors or errors[0] == errors[1]
        next(batches)


def test_the_rest_of_a_loader(loader_of, serve, content):
    local = loader_of()
    served = sf.served(serve(loader_of()).url)
    assert len(served) == len(local)
    assert [content(one) for one in served.take(3)] == [content(one) for one in local.take(3)]
    assert content(served.batch_at(4, epoch=2)) == content(local.batch_at(4, epoch=2))
    assert served.trace(4, row=0, element=3) == local.trace(4, row=0, element=3)
    assert [content(one) for one in served.batches_at(3, 9, step=2)] == [content(one) for one in local.batches_at(3, 9, step=2)]  # fmt: skip
    served.set_epoch(1)
    local.set_epoch(1)
    assert [content(one) for one in served] == [content(one) for one in local]
    (counts,) = served.stats().servers.values()
    assert counts["rows_read"] >= 600
    stats, own = served.stats(), local.stats()
    assert (stats.rows, stats.tokens, stats.cells, stats.batches) == (
        own.rows,
        own.tokens,
        own.cells,
        own.batches,
    )
    with pytest.raises(OpError, match="expected less than 73, the batches of epoch 0"):
        served.batch_at(10_000)
    assert "127.0.0.1" in repr(served)


@pytest.mark.parametrize("name", ["reweigh", "add", "remove", "choose"])
def test_the_history_of_a_mix_belongs_to_the_job_of_the_servers(loader_of, serve, name):
    served = sf.served(serve(loader_of(mix=True)).url)
    with pytest.raises(OpError, match="a mix's history belongs to the servers' job"):
        getattr(served, name)({"a": 1, "b": 1}, at=8)


@pytest.mark.parametrize("ask", [lambda one: one.ledger(upto=3), lambda one: one.find("0.parquet", 1)])
def test_a_ledger_of_rows_is_asked_of_the_job_of_the_servers(loader_of, serve, ask):
    with pytest.raises(OpError, match="known to their servers\n  ask a loader of their job"):
        ask(sf.served(serve(loader_of()).url))


def test_len_without_an_index_is_the_error_of_a_loader(loader_of, serve):
    served = sf.served(serve(loader_of(index=False)).url)
    with pytest.raises(TypeError, match="not known before reading"):
        len(served)


def test_tensors_are_writable_and_torch_shares_them(loader_of, serve):
    torch = pytest.importorskip("torch")
    served = sf.served(serve(loader_of(net="return tokens, segment_ids, position_ids")).url)
    for batch in served.take(3):
        for name, tensor in batch.items():
            assert tensor.flags.writeable
            assert torch.from_numpy(tensor).data_ptr() == tensor.ctypes.data, name
    expected = [batch["tokens"].tolist() for batch in served.take(5)]
    found = [batch["tokens"].tolist() for batch in served.to("torch")]
    assert found[:5] == expected


def test_workers_of_a_data_loader_read_from_servers(loader_of, serve):
    pytest.importorskip("torch")
    import seqflow.torch

    served = sf.served(serve(loader_of(plan="rows")).url)
    expected = [batch["id"].tolist() for batch in loader_of(plan="rows")]
    assert [batch["id"].tolist() for batch in seqflow.torch.data_loader(served)] == expected


@pytest.mark.slow
def test_spawned_workers_of_a_data_loader_read_from_servers(loader_of, serve):
    pytest.importorskip("torch")
    import seqflow.torch

    served = sf.served(serve(loader_of(plan="rows")).url)
    expected = [batch["id"].tolist() for batch in loader_of(plan="rows")]
    assert [batch["id"].tolist() for batch in seqflow.torch.data_loader(served, 2)] == expected


@pytest.fixture(scope="module")
def many_windows(tmp_path_factory):
    """A file of 3,600 rows in about 120 windows."""
    path, rng = tmp_path_factory.mktemp("windows"), np.random.default_rng(1)
    tokens = [rng.integers(0, 9, n, np.int32) for n in rng.integers(1, 60, 3600)]
    pq.write_table(pa.table({"tokens": tokens}), path / "rows.parquet", row_group_size=10)
    return path


@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("num_servers", [2, 3])
@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
@pytest.mark.parametrize("plan", ["windows", "streams", "balance"])
def test_each_window_is_read_and_each_batch_made_about_once(
    many_windows, serve, num_servers, world_size, plan
):
    balance = sf.Balance(group=world_size, pool=4, linear=2000)
    options = {
        "batch": sf.TokenBudget(600, lengths="tokens", balance=balance if plan == "balance" else None),
        "index": many_windows / f"{plan} {world_size}.arrow",
        "streams": 6 if plan == "streams" else 1,
        "shuffle": sf.Shuffle(5), "window": "4 kB", "rank": 0, "world_size": 1,
    }  # fmt: skip
    servers = [serve(sf.Loader(many_windows / "rows.parquet", **options)) for _ in range(num_servers)]
    before = [one.counts()["rows_read"] for one in servers]
    urls = [one.url for one in servers]
    clients = [
        sf.served(urls, rank=rank, world_size=world_size, tail="pad", ahead="64 kB")
        for rank in range(world_size)
    ]
    batches = [batch for round_ in zip(*clients, strict=True) for batch in round_]
    counts = [one.counts() for one in servers]
    assert sum(batch.num_rows for batch in batches) == 3600
    assert all(one["made"] for one in counts)
    made = sum(one["made"] for one in counts) / sum(batch.number is not None for batch in batches)
    read = (sum(one["rows_read"] for one in counts) - sum(before)) / 3600
    assert made <= 1.02
    assert read <= 1.2


def test_a_second_job_reads_and_prepares_nothing_again(loader_of, serve):
    server = serve(loader_of())
    for _ in zip(sf.served(server.url), sf.served(server.url), strict=True):
        pass
    counts = server.counts()
    assert counts["sent"] == 2 * counts["made"]
    assert counts["rows_read"] == 600


def test_a_small_memory_changes_no_batch(loader_of, serve, content):
    server = serve(loader_of(), memory=1)
    clients = [sf.served(server.url, rank=rank, world_size=2) for rank in range(2)]
    found = [content(batch) for round_ in zip(*clients, strict=True) for batch in round_]
    whole = [content(batch) for batch in loader_of()]
    assert found == whole[: len(found)]
    assert len(whole) - len(found) < 2
    assert server.counts()["kept_bytes"] < 50_000


NETS = {
    "no net": None,
    "a net that passes ids on": "return tokens, segment_ids, position_ids",
    "a net of tokens": "tokens_2 = cast(tokens, dtype='int32')\nreturn tokens_2, segment_ids, position_ids, pieces",
}


@pytest.mark.parametrize("net", NETS)
def test_what_follows_from_lengths_of_packed_rows_is_not_sent(serve, content, net):
    table = pa.table({"tokens": [np.arange(n, dtype=np.int32) for n in range(300, 900)]})
    options = {"batch": sf.Packed(2048, ("tokens",), rows=8), "net": NETS[net], "rank": 0, "world_size": 1}
    server = serve(sf.Loader(table, **options))
    found, tokens = [], 0
    for batch in sf.served(server.url):
        tokens += batch["segment_ids"].nbytes
        found.append(content(batch))
    assert found == [content(batch) for batch in sf.Loader(table, **options)]
    assert tokens < server.counts()["bytes"] <= 1.05 * tokens


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("net", [None, "return tokens, tokens.mask"])
def test_masks_are_not_sent(serve, content, side, net):
    table = pa.table({"tokens": [np.arange(n, dtype=np.int32) for n in range(300, 600)]})
    options = {"pad": sf.Pad(0, side=side), "batch": 20, "net": net, "rank": 0, "world_size": 1}
    server = serve(sf.Loader(table, **options))
    found, tokens = [], 0
    for batch in sf.served(server.url):
        tokens += batch["tokens"].nbytes
        found.append(content(batch))
    assert found == [content(batch) for batch in sf.Loader(table, **options)]
    assert tokens < server.counts()["bytes"] <= 1.05 * tokens


def test_the_verdict_names_the_servers_where_the_consumer_takes_no_time(loader_of, serve):
    def slow(batch):
        time.sleep(0.01)
        return batch

    served = sf.served(serve(loader_of(net=slow, version=1)).url, ahead=1)
    assert served.verdict().limit is None
    assert sum(1 for _ in served) > 50
    assert served.verdict().limit == "servers"
    assert "begin more servers" in repr(served.verdict())


def lists(kind, value):
    rng = np.random.default_rng(0)
    return pa.array(
        [[value(int(one)) for one in rng.integers(0, 99, rng.integers(0, 6))] for _ in range(90)],
        pa.list_(kind),
    )


def test_all_dtypes_and_levels_arrive(serve, content):
    rng = np.random.default_rng(1)
    deep = [[[[0.5] * (k % 2) for k in range(j)] for j in range(i % 3)] for i in range(90)]
    table = pa.table(
        {
            "half": pa.array(rng.normal(size=90).astype("f2")), "bool": rng.random(90) < 0.5,
            "int8": pa.array(rng.integers(-9, 9, 90), pa.int8()), "uint64": pa.array(rng.integers(0, 2**63, 90), pa.uint64()),
            "time": pa.array(rng.integers(0, 10**12, 90), pa.timestamp("us")),
            "day": pa.array(rng.integers(0, 10**4, 90).astype("i4"), pa.date32()),
            "text": ["é" * (i % 5) for i in range(90)], "bools": lists(pa.bool_(), bool),
            "texts": lists(pa.string(), str), "vector": pa.array(rng.normal(size=(90, 3)).tolist(), pa.list_(pa.float32(), 3)),
            "deep": pa.array(deep, pa.list_(pa.list_(pa.list_(pa.float64())))),
            "codes": pa.array([f"k{i % 7}" for i in range(90)]).dictionary_encode(),
            "null": pa.array([1, None, 3] * 30),
        }
    )  # fmt: skip
    options = {"batch": 7, "shuffle": True, "valid": ["null"], "rank": 0, "world_size": 1}
    served = sf.served(serve(sf.Loader(table, **options)).url)
    for one, other in zip(sf.Loader(table, **options), served, strict=True):
        assert content(one) == content(other)
        assert sf.to_arrow(one).equals(sf.to_arrow(other))
        assert all(tensor.flags.writeable for tensor in other.values())


def test_writing_to_a_batch_does_not_reach_what_is_kept(loader_of, serve, content):
    server = serve(loader_of())
    first = list(sf.served(server.url))
    expected = [content(batch) for batch in loader_of()]
    for batch in first:
        for tensor in batch.values():
            tensor.fill(0)
    assert [content(batch) for batch in sf.served(server.url)] == expected
