"""Servers that are wrong, foreign, slow or gone; tickets that no client writes; who is let in, and what it costs."""

import json
import logging
import random
import re
import socket
import subprocess
import sys
import threading
import time

import numpy as np
import pyarrow as pa
import pyarrow.flight as fl
import pytest
from marks import slow, thorough

import seqflow as sf
from seqflow.errors import OpError, ProviderError
from seqflow.serving.batches import Batches
from seqflow.serving.tickets import Ticket, spans_of
from seqflow.serving.wire import local_error


def connected(server):
    return fl.connect(f"grpc://{server.address}")


def is_refused(error):
    """An error of ours: without the traceback and the paths of code that Flight sends of other exceptions."""
    text = str(error)
    return bool(error.extra_info) and not any(one in text for one in ("Traceback", ".py", "File "))


# Errors


def test_an_error_of_a_net_is_that_of_a_loader(loader_of, serve):
    options = {
        "net": "y = gather(table, id)\nreturn y",
        "constants": {"table": np.zeros(550)},
        "plan": "rows",
    }
    errors = []
    for make in (lambda: loader_of(**options), lambda: sf.served(serve(loader_of(**options)).url)):
        numbers = []
        with pytest.raises(sf.SeqflowError) as raised:
            numbers.extend(batch.number for batch in make())
        errors.append((type(raised.value), str(raised.value), raised.value.__notes__, numbers))
    assert errors[0] == errors[1]


def test_an_error_of_a_function_arrives_without_a_traceback(loader_of, serve):
    def fails(batch):
        raise ValueError("no such thing")

    served = sf.served(serve(loader_of(net=fails, version=1)).url)
    with pytest.raises(OpError, match=r"^ValueError: no such thing") as raised:
        next(iter(served))
    assert "File" not in str(raised.value)


@pytest.mark.parametrize("what", ["data", "plan", "version"])
def test_another_server_is_named_with_its_difference(loader_of, serve, what, monkeypatch):
    server = serve(loader_of())
    state = sf.served(server.url).state_dict()
    if what == "version":
        monkeypatch.setattr("seqflow.serving.client.__version__", "0.0.1")
        with pytest.raises(OpError, match=r"the servers have seqflow .*, this process 0\.0\.1"):
            sf.served(server.url)
        return
    options = {"batch": sf.Packed(128, ("tokens",), rows=2)} if what == "plan" else {"where": "id < 300"}
    other = sf.served(serve(loader_of(index=False, **options)).url)
    with pytest.raises(OpError, match=r"capacity|where"):
        other.load_state_dict(state)


def test_a_foreign_server_is_passed_over_and_refuses_alone(loader_of, serve, content, caplog):
    server, foreign = serve(loader_of()), serve(loader_of(where="id < 300", index=False))
    served = sf.served([server.url, foreign.url])
    if served.pipeline.info["identity"] != server.identity:  # the first that answers tells the job
        server, foreign = foreign, server
    with caplog.at_level(logging.WARNING, "seqflow"):
        found = [content(batch) for batch in served]
    assert found == [content(batch) for batch in server._batches.loader]
    alone = sf.served(server.url)
    alone.pipeline.servers.addresses = [(foreign.address, "127.0.0.1")]
    alone.pipeline.servers.look_up = lambda: None
    with pytest.raises(
        OpError, match=r"(?s)all refuse.*another job, other data or another version.*: where .*id < 300"
    ) as raised:
        list(alone)
    assert foreign.address in str(raised.value)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"where": "id < 400"}, r"source a: where .*id < 400"),
        ({"weights": {"a": 1, "b": 1}}, r"history\S* was .* and is"),
        ({"stop": "all"}, "stop was 'first' and is 'all' now"),
    ],
)
def test_a_foreign_server_of_a_mix_is_named_with_the_source_that_differs(loader_of, serve, change, text):
    path = loader_of().source.files[0].rpartition("/")[0]
    options = {"batch": sf.Rows(7), "weights": {"a": 3, "b": 1}, "rank": 0, "world_size": 1}
    sources = {"a": f"{path}/[01].parquet", "b": f"{path}/[23].parquet"}
    server, foreign = (serve(sf.Mix(sources, **{**options, **one})) for one in ({}, change))
    served = sf.served(server.url)
    assert re.search(text, _difference(served, foreign))
    assert _difference(served, serve(sf.Mix({"a": sources["a"], "c": sources["b"]}, **{**options, "weights": {"a": 3, "c": 1}}))) == ": the sources are ['a', 'c'], expected ['a', 'b']"  # fmt: skip
    assert _difference(served, serve(loader_of())) == ": the sources are one, expected ['a', 'b']"


def _difference(served, server):
    served.pipeline.servers.addresses = [(server.address, "127.0.0.1")]
    return served.pipeline.servers.difference(server.address)


@pytest.mark.each_choice
@pytest.mark.parametrize(("index", "streams"), [("limits", 1), (False, 1), ("limits", 3)])
@pytest.mark.parametrize("policy", [{"max": 5}, {"max_share": 0.05}, {"max_share": 0.9, "max": 300}])
def test_limits_on_bad_rows_are_those_of_each_server(loader_of, serve, policy, index, streams):
    options = {
        "bad_rows": sf.BadRows("skip", **policy),
        "require": "id % 10 != 3 or id < 200",
        "index": index,
        "streams": streams,
    }
    numbers, local = [], loader_of(**options)
    server = serve(loader_of(**options), memory=1)
    for batches in (local, sf.served(server.url), sf.served(server.url, rank=1, world_size=2)):
        numbers.append([])
        if policy.get("max") == 300:
            numbers[-1] = [one.number for one in batches]
            continue
        with pytest.raises(
            ProviderError, match=r"bad_rows: \d+ of \d+ are bad, expected at most (5|0.05 of them)"
        ):
            numbers[-1].extend(batch.number for batch in batches)
    if policy.get("max") == 300:
        assert numbers[0] == numbers[1]
        assert sf.served(server.url).stats().servers[server.address]["bad_rows"] >= 40
    else:
        assert len(numbers[1]) > 0 or "max_share" in policy


def test_rows_that_a_server_reads_again_count_once(loader_of, serve):
    options = {"bad_rows": sf.BadRows("skip", max=60), "require": "id % 10 != 3", "index": "again"}
    server = serve(loader_of(**options), memory=1)
    for _ in range(2):
        assert [one.number for one in sf.served(server.url)] == [one.number for one in loader_of(**options)]
    assert server.counts()["bad_rows"] > 60


@pytest.mark.parametrize("index", ["no rows", False])
def test_a_source_without_a_usable_row_is_the_error_of_a_loader(loader_of, serve, index):
    options = {"bad_rows": sf.BadRows("skip"), "require": "id < 0", "index": index}
    for act in (lambda: list(loader_of(**options)), lambda: list(sf.served(serve(loader_of(**options)).url))):
        with pytest.raises(ProviderError, match="'skip' leaves out all 600 rows of a source"):
            act()


def free_port():
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]


def test_a_server_that_is_refused_for_an_argument_has_ended(loader_of):
    port = free_port()
    with pytest.raises(OpError, match="insecure is 1, expected True or False"):
        sf.serve(loader_of(), port=port, insecure=1)
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", port))


def test_no_server_is_an_error_with_the_addresses(loader_of, serve):
    started, (one, other) = time.monotonic(), (free_port(), free_port())
    with pytest.raises(
        OpError, match=rf"127\.0\.0\.1:{one}, localhost:{other}: none answers for 0\.5 seconds\n"
    ):
        sf.served(f"flight://127.0.0.1:{one},localhost:{other}", timeout=0.5)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("url", ["", "127.0.0.1:8815", "http://a:1", "flight://a", "flight://a:b", "flight://a:1/x", "flight://u:p@a:1"])  # fmt: skip
def test_what_is_no_address_is_an_error(url):
    with pytest.raises(OpError, match="is not a server, expected flight://host:port"):
        sf.served(url)


def test_arguments_of_a_client_are_checked(loader_of, serve):
    server = serve(loader_of())
    for options, text in (
        ({"timeout": 0}, "timeout is 0"),
        ({"timeout": 86_401}, "timeout is 86401, expected seconds above 0, at most 86,400"),
        ({"ahead": "x"}, "served: ahead"),
        ({"rank": 3, "world_size": 2}, "rank is 3"),
        ({"ranks": sf.Ranks(0, 2), "rank": 1}, "in addition to ranks"),
        ({"skip": [(3, 1)]}, "a first batch before the end"),
    ):
        with pytest.raises(sf.SeqflowError, match=text):
            sf.served(server.url, **options)


def test_totals_with_repeated_batches_are_an_error_as_in_a_loader(loader_of, serve):
    server = serve(loader_of(totals={"n": "tokens.lengths"}))
    with pytest.raises(OpError, match="totals with tail='repeat'"):
        sf.served(server.url, rank=0, world_size=2, tail="repeat")


# Failures


def test_clients_move_on_when_a_server_stops(loader_of, serve, content):
    first, second = serve(loader_of()), serve(loader_of())
    served = sf.served([first.url, second.url], ahead="20 kB")
    found = []
    for batch in served:
        found.append(content(batch))
        if len(found) == 5:
            assert first.close()
    assert found == [content(batch) for batch in loader_of()]
    assert served.stats().failures > 0
    assert "error" in served.stats().servers[first.address]


def test_a_client_waits_for_a_server_that_comes_later(loader_of, serve, content):
    server = serve(loader_of())
    port = server.port
    served = sf.served(server.url, timeout=30, ahead=1)
    batches = iter(served)
    found = [content(next(batches)) for _ in range(4)]
    server.close()
    threading.Timer(0.3, lambda: serve(loader_of(), port=port)).start()
    found += [content(batch) for batch in batches]
    assert found == [content(batch) for batch in loader_of()]


def test_servers_that_all_end_within_a_stream_are_told_with_the_cause(loader_of, serve):
    servers = [serve(loader_of()) for _ in range(2)]
    served = sf.served([one.url for one in servers], timeout=1, ahead=1)
    batches = iter(served)
    for _ in range(3):
        next(batches)
    for server in servers:
        server.close()
    started = time.monotonic()
    with pytest.raises(OpError, match=r"(?s): none answers for 1 seconds\n.*Connection refused"):
        list(batches)
    assert time.monotonic() - started < 2.9  # 3 × timeout is for servers that are slow


def test_a_server_that_is_lost_is_told_once(loader_of, serve, content, caplog):
    first, second = serve(loader_of()), serve(loader_of())
    served = sf.served([first.url, second.url], ahead=1)
    found = []
    for batch in served:
        found.append(content(batch))
        if len(found) == 3:
            first.close()
    assert found == [content(batch) for batch in loader_of()]
    (warning,) = [one.getMessage() for one in caplog.records if one.levelname == "WARNING"]
    assert warning.startswith(f"served: {first.address}: ")
    assert warning.endswith("; the other servers are asked")
    second.close()
    with pytest.raises(OpError, match="none answers"):
        sum(1 for _ in sf.served([first.url, second.url], timeout=0.2))
    served.pipeline.servers.lose(second.address, "gone")
    assert caplog.messages[-1].endswith(": gone; no other server is left: all are asked again")


def test_a_slow_server_is_left_for_the_next_one(loader_of, serve, content, monkeypatch):
    slow, fast = serve(loader_of()), serve(loader_of())
    get = slow._batches.get
    ended = threading.Event()
    monkeypatch.setattr(slow._batches, "get", lambda ticket, number: ended.wait(5) or get(ticket, number))
    served = sf.served([slow.url, fast.url], timeout=0.3)
    started = time.monotonic()
    assert [content(batch) for batch in served] == [content(batch) for batch in loader_of()]
    assert time.monotonic() - started < 4.5
    ended.set()


# Who is let in


def test_a_token_is_needed_and_never_shown(loader_of, serve):
    server = serve(loader_of(), token="a-secret-token")
    for token in (None, "another", "a-secret-tokem"):
        with pytest.raises(OpError, match="there is no token, or another one") as raised:
            sf.served(server.url, token=token, timeout=5)
        assert "secret" not in str(raised.value)
    served = sf.served(server.url, token="a-secret-token")
    assert sum(1 for _ in served) == len(loader_of())
    assert "secret" not in repr(served) + repr(vars(served.pipeline.servers).get("names"))


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    path = tmp_path_factory.mktemp("tls")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", path / "key.pem", "-out", path / "cert.pem",
         "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"],
        check=True, capture_output=True,
    )  # fmt: skip
    return {"tls_cert": path / "cert.pem", "tls_key": path / "key.pem"}


def test_tls_and_what_does_not_trust_it(loader_of, serve, certificate):
    server = serve(loader_of(), token="t", **certificate)
    assert server.url == f"flight+tls://127.0.0.1:{server.port}"
    named = f"flight+tls://localhost:{server.port}"
    served = sf.served(named, token="t", tls_root=certificate["tls_cert"])
    assert sum(1 for _ in served) == len(loader_of())
    for url, options in ((named, {}), (f"flight://localhost:{server.port}", {})):
        with pytest.raises(OpError, match="none answers"):
            sf.served(url, token="t", timeout=0.2, **options)


@pytest.mark.parametrize("options", [{}, {"token": "t"}, {"tls_cert": "c", "tls_key": "k"}])
def test_a_host_that_others_reach_needs_a_token_and_tls(loader_of, options):
    advice = "give token=, tls_cert= and tls_key=, or insecure=True in a network"
    with pytest.raises(
        OpError, match=f"can be reached from other machines, expected a token and TLS\n  {advice}"
    ):
        sf.serve(loader_of(), host="0.0.0.0", port=0, **options)
    with sf.serve(loader_of(), host="0.0.0.0", port=0, insecure=True) as server:
        assert len(sf.served(f"flight://127.0.0.1:{server.port}")) > 0


def test_what_cannot_be_served_is_an_error(loader_of, tmp_path):
    for loader, text in (
        (loader_of(rank=0, world_size=2), "rank 0 of 2, expected one rank"),
        (loader_of(bad_rows=sf.BadRows("quarantine", tmp_path / "bad.parquet")), "a quarantine file"),
    ):
        with pytest.raises(OpError, match=text):
            sf.serve(loader, port=0)
    for options, text in (
        ({"tls_cert": "c"}, "belong together"),
        ({"token": ""}, "token is empty"),
        ({"memory": "x"}, "serve: memory"),
    ):
        with pytest.raises(OpError, match=text):
            sf.serve(loader_of(), port=0, **options)
    with sf.serve(loader_of(), port=0) as server, pytest.raises(OpError, match=f"cannot listen at 127.0.0.1:{server.port}"):  # fmt: skip
        sf.serve(loader_of(), port=server.port)


# Tickets


def test_numbers_become_few_spans():
    rng = np.random.default_rng(0)
    for _ in range(200):
        numbers = np.unique(rng.integers(0, 60, rng.integers(0, 30)))
        spans = spans_of(numbers)
        assert list(Ticket("", 0, spans).numbers()) == numbers.tolist()
    assert spans_of(np.arange(3, 300, 4)) == [(3, 4, 75)]


def random_ticket(rng, identity):
    odd = [-1, 0, 7, 255, 10**6, 2**31, 2**53, 2**62, 2**70, 1.5, None, True, "x", [], {}]
    numbers = [*odd, *[1, 2, 3] * 30]
    if rng.random() < 0.2:
        return bytes(rng.randrange(256) for _ in range(rng.randrange(60)))
    spans = [
        [rng.choice(numbers) for _ in range(rng.choice([3, 3, 3, 2]))]
        for _ in range(rng.choice([0, 1, 1, 2, 300]))
    ]
    place = rng.choice([None, None, {}, {"epoch": 0, "batch": rng.choice(numbers), "ranks": 1, "windows": {"0": {"window": rng.choice(numbers), "first_batch": rng.choice(numbers), "batches": 2}}}])  # fmt: skip
    found = {
        "version": rng.choice([1, 1, 1, 1, 2, None]), "identity": rng.choice([identity] * 8 + ["x", None]),
        "epoch": rng.choice([0, 0, 0, 1, *numbers]), "spans": spans, "low": rng.choice([0, *numbers]),
        "size": rng.choice([1, 1, *numbers]), "place": place, "fill": rng.choice(["", "", "pad", 3]),
    }  # fmt: skip
    if rng.random() < 0.1:
        found.pop(rng.choice(list(found)))
    return json.dumps(found).encode()


@pytest.mark.parametrize("count", [300, *slow(2000), *thorough(10_000)])
@pytest.mark.parametrize("index", [True, False])
def test_random_tickets_are_answered_or_refused_at_once(loader_of, serve, count, index):
    server = serve(loader_of(index=index))
    rng, client = random.Random(count), connected(server)
    answered, errors = 0, []
    for _ in range(count):
        ticket, started = random_ticket(rng, server.identity), time.monotonic()
        try:
            client.do_get(fl.Ticket(ticket)).read_chunk()
            answered += 1
        except fl.FlightError as error:
            errors.append(error)
        except StopIteration:
            answered += 1
        assert time.monotonic() - started < 1, ticket
    assert all(map(is_refused, errors))
    assert 0 < answered < count
    for _ in range(50):
        if not server.counts()["streams"]:
            break
        time.sleep(0.1)
    assert server.counts()["streams"] == 0


def test_long_tickets_and_other_requests_are_refused(loader_of, serve):
    server = serve(loader_of())
    client = connected(server)
    requests = [
        lambda: client.do_get(fl.Ticket(b"x" * 100_000)).read_all(),
        lambda: client.do_put(fl.FlightDescriptor.for_path("x"), pa.schema([]))[0].close(),
        lambda: list(client.list_flights()),
        lambda: client.get_flight_info(fl.FlightDescriptor.for_path("x")),
        lambda: list(client.do_action(fl.Action("shutdown", b""))),
        lambda: list(client.do_action(fl.Action("trace", b'{"number": -1}'))),
        lambda: list(client.do_action(fl.Action("epoch", b"{"))),
        lambda: list(client.list_actions()),
    ]
    for request in requests:
        with pytest.raises(fl.FlightError) as raised:
            request()
        assert is_refused(raised.value) or "not served" in str(raised.value), raised.value


# Load


def test_a_batch_that_is_made_again_counts_once_in_the_memory_of_a_server(loader_of):
    batches = Batches(loader_of("rows"), 1 << 20)
    first = batches.get(Ticket("", 0, [(0, 1, 1)]), 0)
    batches.close()
    last = batches.get(Ticket("", 0, [(2, 1, 1)]), 2)  # all from the first on are made on the way
    between = batches.get(Ticket("", 0, [(1, 1, 1)]), 1)
    assert batches.counts["made"] == 4
    assert batches.summary()["kept_bytes"] == sum(one.nbytes for one in (first, between, last))
    batches.close()


def test_an_error_of_a_class_that_is_none_of_ours_is_an_op_error():
    for kind in ("nearest", "Any", "KeyError", ""):
        sent = fl.FlightServerError(
            "no", extra_info=json.dumps({"kind": kind, "text": "no", "notes": []}).encode()
        )
        assert type(local_error(sent)) is OpError


def test_clients_that_stop_reading_cost_a_bounded_number_of_batches(serve):
    table = pa.table({"tokens": [np.arange(4096, dtype=np.int64)] * 6000})
    server = serve(
        sf.Loader(table, columns=["tokens"], batch=8, rank=0, world_size=1), streams=3, memory="8 MiB"
    )
    ticket = fl.Ticket(Ticket(server.identity, 0, [(0, 1, 750)]).to_bytes())
    clients = [connected(server) for _ in range(4)]
    readers = [client.do_get(ticket) for client in clients[:3]]
    for reader in readers:
        reader.read_chunk()
    with pytest.raises(fl.FlightError, match="all 3 streams") as raised:
        clients[3].do_get(ticket).read_chunk()
    assert is_refused(raised.value)
    sent = -1
    for _ in range(40):
        time.sleep(0.25)
        counts = server.counts()
        if counts["sent"] == sent:
            break
        sent = counts["sent"]
    else:
        pytest.fail(f"batches go on to clients that do not read: {sent} were sent")
    assert counts["streams"] == 3
    assert counts["bytes"] < 3 * 32 << 20
    assert counts["kept_bytes"] <= 8 << 20
    for reader in readers:
        reader.cancel()
    for client in clients:
        client.close()
    for _ in range(100):
        if not server.counts()["streams"]:
            break
        time.sleep(0.1)
    assert server.counts()["streams"] == 0
    assert sum(1 for _ in sf.served(server.url)) == 750


def test_a_client_reads_ahead_at_most_so_many_bytes(loader_of, serve):
    served = sf.served(serve(loader_of()).url, ahead=10_000)
    batches = iter(served)
    next(batches)
    time.sleep(0.3)
    lanes = served._run._lanes
    assert all(lane._bytes <= 10_000 for lane in lanes)
    batches.close()


def test_flight_is_imported_by_the_service_alone():
    code = "import sys, seqflow as sf; sf.Loader; sf.Mix; print('pyarrow.flight' in sys.modules)"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        == "False\n"
    )
