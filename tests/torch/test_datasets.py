"""Loaders in PyTorch's DataLoader, and training that is stopped and resumed."""

import copy
import itertools
import json
import pickle
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marks import slow
from refused_passes import refusal_of

import seqflow as sf
import seqflow.torch as st_torch
from seqflow.torch import iterable

torch = pytest.importorskip("torch")
DataLoader = torch.utils.data.DataLoader


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """60 documents of up to 9 tokens below 20; token n is followed by n + 1."""
    folder = tmp_path_factory.mktemp("train")
    rng = np.random.default_rng(3)
    lists = [((np.arange(n) + rng.integers(20)) % 20).tolist() for n in rng.integers(2, 10, 60)]
    table = pa.table({"tokens": pa.array(lists, pa.list_(pa.int32())), "id": np.arange(60)})
    pq.write_table(table, folder / "x.parquet", row_group_size=10)
    return folder / "x.parquet"


def loader_of(path, **options):
    return sf.Loader(
        path, shuffle=sf.Shuffle(2), batch=7, pad={"tokens": sf.Pad(dtype="int64")}, window=700, **options
    )


def ids(batches):
    return [batch["id"].tolist() for batch in batches]


@pytest.mark.slow
@pytest.mark.each_choice
@pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker")
@pytest.mark.parametrize("workers", [0, 2, 3])
def test_any_number_of_workers_gives_the_one_sequence(path, workers):
    expected = ids(loader_of(path))
    data = DataLoader(
        iterable(loader_of(path)),
        batch_size=None,
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
    )
    assert ids(data) == expected
    ranks = [
        DataLoader(
            iterable(loader_of(path, rank=rank, world_size=2)), batch_size=None, num_workers=workers,
            multiprocessing_context="fork" if workers else None,
        )
        for rank in range(2)
    ]  # fmt: skip
    dealt = [ids(rank) for rank in ranks]
    assert [batch for step in zip(*dealt, strict=True) for batch in step] == expected[
        : len(expected) // 2 * 2
    ]


def workers_of(count, **options):
    context = "fork" if count else None
    return {"batch_size": None, "num_workers": count, "multiprocessing_context": context, **options}


def refuses_a_state(dataset):
    """Outside of the test, whose frame knows the workers: see `refusal_of`."""
    with pytest.raises(sf.OpError, match="StatefulDataLoader"):
        dataset.state_dict()


def numbers(**options):
    """Twelve batches of one row."""
    return sf.Loader(pa.table({"id": list(range(12))}), batch=1, **options)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("collate_fn", [None, st_torch.collate])
def test_the_default_batch_size_adds_no_axis(path, workers, collate_fn):
    options = workers_of(workers) | {"batch_size": 1, "collate_fn": collate_fn}
    assert ids(DataLoader(iterable(loader_of(path)), **options)) == ids(loader_of(path))


@pytest.mark.parametrize("collate_fn", [None, st_torch.collate])
def test_a_larger_batch_size_is_refused(path, collate_fn):
    data = DataLoader(iterable(loader_of(path)), batch_size=2, collate_fn=collate_fn)
    with pytest.raises(sf.OpError, match="found 2 batches, expected 1"):
        next(iter(data))


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [False, True])
def test_epochs_that_are_set_reach_the_workers(path, persistent):
    loader = loader_of(path)
    expected = [ids(loader) for _ in range(3)]
    dataset = iterable(loader_of(path))
    data = DataLoader(dataset, **workers_of(2, persistent_workers=persistent))
    found = []
    for epoch in (0, 1, 0, 2):
        dataset.set_epoch(epoch)
        found.append(ids(data))
    assert found == [expected[0], expected[1], expected[0], expected[2]]


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize(
    "options", [{"shuffle": True}, {"net": "y, _ = dropout(id * 1.0, ratio=0.5, seed=1)\nreturn id, y"}]
)
def test_a_second_pass_in_the_order_of_the_first_is_refused(persistent, options):
    dataset = iterable(numbers(**options))
    data = DataLoader(dataset, **workers_of(2, persistent_workers=persistent))
    assert sorted(ids(data)) == [[n] for n in range(12)]
    assert "call set_epoch(n)" in refusal_of(data)


@pytest.mark.slow
@pytest.mark.parametrize("persistent", [False, True])
def test_a_second_pass_is_whole_where_epochs_do_not_differ(persistent):
    """Also behind a first one that went on from a state."""
    loader, whole = numbers(window=40), [[n] for n in range(12)]
    batches = iter(loader)
    for _ in range(5):
        next(batches)
    resumed = numbers(window=40)
    resumed.load_state_dict(loader.state_dict())
    data = DataLoader(iterable(resumed), **workers_of(2, persistent_workers=persistent))
    assert [ids(data) for _ in range(3)] == [whole[5:], whole, whole]


@pytest.mark.slow
def test_an_epoch_that_would_forget_a_loaded_state_is_refused(path):
    loader = loader_of(path)
    loader.set_epoch(2)
    expected = ids(loader)
    loader.set_epoch(2)
    batches = iter(loader)
    next(batches)
    resumed = loader_of(path)
    resumed.load_state_dict(loader.state_dict())
    dataset = iterable(resumed)
    with pytest.raises(sf.OpError, match="a state of epoch 2 was loaded, and would be lost"):
        dataset.set_epoch(0)
    dataset.set_epoch(2)
    data = DataLoader(dataset, **workers_of(2))
    assert ids(data) == expected[1:]
    dataset.set_epoch(0)
    assert ids(data) == ids(loader_of(path))


@pytest.mark.each_choice
@pytest.mark.filterwarnings("ignore:This DataLoader will create 3 worker")
@pytest.mark.parametrize("workers", [0, 2, 3])
@pytest.mark.parametrize("world_size", [1, 2])
@pytest.mark.parametrize("batch", [2, sf.TokenBudget(9, lengths="tokens.lengths")])
def test_workers_share_the_batches_of_a_mix(path, workers, world_size, batch):
    def mix(rank):
        return sf.Mix({path: 1.0}, batch=batch, window=700, rank=rank, world_size=world_size, shuffle=True)

    for rank in range(world_size):
        assert ids(DataLoader(iterable(mix(rank)), **workers_of(workers))) == ids(mix(rank))


def test_a_loader_is_dealt_as_before_when_a_pass_has_ended(path):
    loader = loader_of(path, rank=1, world_size=2)
    assert ids(iterable(loader)) == ids(loader_of(path, rank=1, world_size=2))
    assert (loader.rank, loader.world_size, loader.assignment.workers) == (1, 2, 1)


@pytest.mark.slow
def test_spawned_workers_give_it_too(path):
    data = DataLoader(
        iterable(loader_of(path)), batch_size=None, num_workers=2, multiprocessing_context="spawn"
    )
    assert ids(data) == ids(loader_of(path))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_stateful_data_loader_resumes_to_the_batch(path, workers):
    stateful = pytest.importorskip("torchdata.stateful_dataloader").StatefulDataLoader
    options = {"batch_size": None, "num_workers": workers}
    if workers:
        options["multiprocessing_context"] = "fork"
    expected = ids(loader_of(path))
    for steps in (1, 4):
        data = stateful(iterable(loader_of(path)), **options)
        batches = iter(data)
        for _ in range(steps):
            next(batches)
        state = data.state_dict()
        del batches
        resumed = stateful(iterable(loader_of(path)), **options)
        resumed.load_state_dict(state)
        assert ids(resumed) == expected[steps:]


@pytest.mark.parametrize("persistent", [False, True])
def test_no_state_of_batches_that_workers_hand_out(persistent):
    loader = numbers()
    dataset = iterable(loader)
    begin = loader.state_dict()
    data = DataLoader(dataset, **workers_of(1, persistent_workers=persistent))
    batches = iter(data)
    next(batches)

    def no_state():
        for one in (loader, loader.to("torch"), dataset):
            with pytest.raises(sf.OpError, match=r"use torchdata's StatefulDataLoader .* or num_workers=0"):
                one.state_dict()

    no_state()
    assert len(list(batches)) == 11
    no_state()  # also when the workers have ended
    loader.take(1)
    no_state()
    dataset.set_epoch(1)
    assert loader.state_dict() == {**begin, "epoch": 1}
    assert len(list(data)) == 12
    no_state()
    loader.load_state_dict(begin)
    assert loader.state_dict() == begin
    next(iter(loader))  # in this process
    assert loader.state_dict()["batch"] == dataset.state_dict()["loader"]["batch"] == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copied_dataset_does_not_take_the_place_of_its_workers_for_its_own(copied):
    dataset = copied(iterable(numbers()))
    batches = iter(DataLoader(dataset, **workers_of(1)))
    next(batches)
    for one in (dataset, dataset.loader):
        refuses_a_state(one)
    assert "batches handed out by the workers of a DataLoader" in repr(dataset.loader)


def state_after(n):
    loader = numbers()
    batches = iter(loader)
    for _ in range(n):
        next(batches)
    return loader.state_dict()


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("to_dataset", [False, True])
@pytest.mark.parametrize("used", [2, 12])
def test_a_state_that_is_loaded_after_a_pass_reaches_the_workers_or_is_an_error(persistent, to_dataset, used):
    dataset = iterable(numbers())
    data = DataLoader(dataset, **workers_of(1, persistent_workers=persistent))
    assert len(list(itertools.islice(data, used))) == used
    state = {"loader": state_after(5), "workers": 1} if to_dataset else state_after(5)
    (dataset if to_dataset else dataset.loader).load_state_dict(state)
    assert (dataset if to_dataset else dataset.loader).state_dict() == state
    if persistent:
        assert "make a new DataLoader" in refusal_of(data)
        data = DataLoader(dataset, **workers_of(1))
    assert ids(data) == [[n] for n in range(5, 12)]
    refuses_a_state(dataset)


def test_a_loaders_own_state_resumes_under_any_number_of_workers(path):
    loader = loader_of(path)
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    state = loader.state_dict()
    rest = ids(batches)
    for workers in (0, 2):
        resumed = loader_of(path)
        resumed.load_state_dict(state)
        context = "fork" if workers else None
        data = DataLoader(
            iterable(resumed), batch_size=None, num_workers=workers, multiprocessing_context=context
        )
        assert ids(data) == rest


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.table = torch.nn.Embedding(20, 8)
        self.lstm = torch.nn.LSTM(8, 16, batch_first=True)
        self.out = torch.nn.Linear(16, 20)

    def forward(self, tokens):
        return self.out(self.lstm(self.table(tokens))[0])


def train(model, optimizer, batches, losses):
    for batch in batches:
        tokens, mask = batch["tokens"], batch["tokens.mask"][:, 1:]
        logits = model(tokens[:, :-1])
        loss = torch.nn.functional.cross_entropy(logits[mask], tokens[:, 1:][mask])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        yield


@pytest.mark.parametrize("workers", [None, *slow(2)])
def test_training_that_is_resumed_has_the_same_losses_to_the_bit(path, workers):
    def data_of(loader):
        if workers is None:
            return loader.to("torch")
        return DataLoader(
            iterable(loader), batch_size=None, num_workers=workers, multiprocessing_context="fork"
        )

    undisturbed, model = [], Model()
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    for epoch in range(4):
        loader = loader_of(path)
        loader.set_epoch(epoch)
        list(train(model, optimizer, data_of(loader), undisturbed))
    assert undisturbed[-1] < undisturbed[0] / 2

    losses, model = [], Model()
    optimizer = torch.optim.Adam(model.parameters(), 0.02)
    loader, stopped = loader_of(path), None
    for epoch in range(4):
        loader.set_epoch(epoch)
        if epoch == 2:
            steps = train(model, optimizer, loader.to("torch"), losses)
            for _ in range(3):
                next(steps)
            stopped = json.loads(json.dumps(loader.state_dict()))
            steps.close()
            loader = loader_of(path)
            loader.load_state_dict(stopped)
        list(train(model, optimizer, data_of(loader), losses))
    assert losses == undisturbed


GLOO = """
import os, sys, json, torch, torch.distributed as dist
import seqflow as sf
path, rank, out, start, store = sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4], sys.argv[5]
dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
loader = sf.Loader(path, shuffle=sf.Shuffle(2), batch=7, pad={"tokens": sf.Pad(dtype="int64")}, window=700,
                   rank=rank, world_size=2)
weight = torch.zeros(20, requires_grad=True)
losses = []
if start != "0":
    saved = torch.load(start, weights_only=False)
    loader.load_state_dict(saved["loader"])
    weight = saved["weight"].requires_grad_()
for step, batch in enumerate(loader.to("torch")):
    loss = (weight[batch["tokens"]] - batch["tokens"] * 1.0).pow(2).mean()
    grad, = torch.autograd.grad(loss, weight)
    dist.all_reduce(grad)
    weight = (weight - 0.1 * grad).detach().requires_grad_()
    total = loss.detach().clone()
    dist.all_reduce(total)
    losses.append(total.item())
    if start == "0" and step == 1 and rank == 0:
        torch.save({"loader": loader.state_dict(), "weight": weight.detach()}, out + ".saved")
with open(f"{out}.{rank}", "w") as file:
    json.dump(losses, file)
dist.barrier()
dist.destroy_process_group()
os._exit(0)  # gloo's own threads may end a process that leaves the usual way
"""


@pytest.mark.slow
def test_two_ranks_that_are_resumed_have_the_same_losses_to_the_bit(path, tmp_path):
    def run(out, start):
        store = tmp_path / f"{out}-store"
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", GLOO, str(path), str(rank), str(tmp_path / out), start, str(store)]
            )
            for rank in range(2)
        ]
        assert [process.wait() for process in processes] == [0, 0]
        return [json.loads((tmp_path / f"{out}.{rank}").read_text()) for rank in range(2)]

    whole = run("whole", "0")
    rest = run("rest", str(tmp_path / "whole.saved"))
    assert whole[0] == whole[1]
    assert len(whole[0]) == 4
    assert rest == [losses[2:] for losses in whole]
