"""Loaders under libraries that shard and collate what they wrap: Accelerate, and the Trainer of transformers."""

import json
import os
import subprocess
import sys

import pyarrow as pa
import pytest
from marks import slow

import seqflow as sf
from seqflow.torch import collate, iterable

torch = pytest.importorskip("torch")
data_loader = pytest.importorskip("accelerate.data_loader")
DataLoader = torch.utils.data.DataLoader

ROWS = list(range(32))


def numbers(**options):
    return iterable(sf.Loader(pa.table({"x": ROWS}), batch=4, **options))


def prepared(dataset, rank=0, workers=0, **options):
    data = DataLoader(
        dataset, num_workers=workers, multiprocessing_context="fork" if workers else None, collate_fn=collate
    )
    return data_loader.prepare_data_loader(
        data, num_processes=2, process_index=rank, put_on_device=False, **options
    )


def seen(batches):
    return [value for batch in batches for value in batch["x"].tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("options", [{}, {"shuffle": True}])
def test_accelerate_shards_once(workers, options):
    """Whether the loader knows of the ranks or not."""
    for ranks in ({}, {"world_size": 2}):
        found = []
        for rank in range(2):
            dataset = numbers(**options, **(ranks | ({"rank": rank} if ranks else {})))
            data = prepared(dataset, rank, workers)
            assert len(data) == 4
            found += seen(data)
        assert sorted(found) == ROWS


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("context", ["fork", *slow("spawn")])
def test_batches_that_are_dispatched_are_refused(workers, context):
    data = DataLoader(
        numbers(),
        num_workers=workers,
        multiprocessing_context=context if workers else None,
        collate_fn=collate,
    )
    dispatched = data_loader.prepare_data_loader(
        data, num_processes=1, process_index=0, dispatch_batches=True, put_on_device=True
    )
    with pytest.raises(sf.OpError, match="dispatch_batches"):
        list(dispatched)


def test_a_collator_that_stacks_rows_is_refused():
    transformers = pytest.importorskip("transformers")
    data = DataLoader(numbers(), collate_fn=transformers.default_data_collator)
    with pytest.raises(sf.OpError, match="default_data_collator stacks rows"):
        next(iter(data))


TRAIN = """
import json, os, sys, torch, pyarrow as pa, seqflow as sf, seqflow.torch
from transformers import Trainer, TrainingArguments

seen = []


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.zeros(()))

    def forward(self, x, n, v):
        seen.extend(zip(x.tolist(), [one.tolist() for one in v.split(n.tolist())]))
        return {"loss": (self.w * x.float()).mean() + self.w**2}


table = pa.table({"x": list(range(32)), "l": [[i] * (i % 4) for i in range(32)]})
net = "v = l.values * 1\\nn = l.lengths * 1\\nreturn x, n, v"
dataset = sf.torch.iterable(sf.Loader(table, batch=4, shuffle=True, net=net))
arguments = TrainingArguments(
    output_dir=sys.argv[1], use_cpu=True, report_to=[], save_strategy="no", num_train_epochs=2,
    logging_strategy="no", disable_tqdm=True, per_device_train_batch_size=1,
    accelerator_config={"dispatch_batches": False},
)
Trainer(Model(), arguments, train_dataset=dataset, data_collator=sf.torch.collate).train()
print("ROWS", json.dumps(seen), flush=True)
os._exit(0)  # gloo's own threads may end a process that leaves the usual way
"""


@pytest.mark.slow
def test_two_processes_of_a_trainer_see_each_row_once_an_epoch(tmp_path, unused_port):
    pytest.importorskip("transformers")
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(unused_port), "WORLD_SIZE": "2"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", TRAIN, str(tmp_path)],
            env={**os.environ, **address, "RANK": rank, "LOCAL_RANK": rank},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        for rank in "01"
    ]  # fmt: skip
    rows = []
    for process in processes:
        out, error = process.communicate()
        assert process.returncode == 0, error
        rows.append(json.loads(out.split("ROWS")[1]))
    epochs = [rows[0][:16] + rows[1][:16], rows[0][16:] + rows[1][16:]]
    expected = [[i, [i] * (i % 4)] for i in ROWS]
    assert [sorted(epoch) for epoch in epochs] == [expected, expected]
    assert epochs[0] != epochs[1]


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]
