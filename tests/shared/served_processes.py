"""A server, or a trainer, as a process that may be killed at any moment: `served_processes.py serve|train FOLDER CASE …`."""

import hashlib
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import seqflow as sf

CASES = {
    "packed": {},
    "streams": {"streams": 4},
    "no index": {"index": None},
    "streams without index": {"streams": 4, "index": None, "batch": 6},
    "balance": {
        "batch": sf.TokenBudget(600, lengths="tokens", balance=sf.Balance(group=4, pool=4, linear=2000))
    },
    "mix": {"mix": True},
}


def make_files(folder):
    rng = np.random.default_rng(2)
    for number in range(3):
        lengths = np.minimum(rng.lognormal(3.3, 1.0, 400).astype(np.int64) + 1, 400)
        tokens = [rng.integers(0, 1 << 20, n, np.int32) for n in lengths]
        pq.write_table(pa.table({"tokens": tokens}), folder / f"{number}.parquet", row_group_size=10)


def loader_of(folder, case):
    options = {
        "batch": sf.Packed(256, ("tokens",), rows=2), "index": folder / f"{case}.arrow", "window": "10 kB",
        "shuffle": sf.Shuffle(3), "threads": 1, "rank": 0, "world_size": 1, **CASES[case],
    }  # fmt: skip
    if options.pop("mix", False):
        del options["index"]
        return sf.Mix({str(folder / "[01].parquet"): 2, str(folder / "2.parquet"): 1}, **options)
    return sf.Loader(str(folder / "*.parquet"), **options)


def digest(batch):
    found = hashlib.md5()
    for name in sorted(batch):
        found.update(f"{name} {batch[name].dtype} {batch[name].shape}".encode() + batch[name].tobytes())
    return found.hexdigest()


def serve(folder, case, port):
    server = sf.serve(loader_of(folder, case), port=int(port), memory="4 MiB")
    print("ready", flush=True)
    server.wait()


def train(folder, case, urls, world_size, epochs, tail):
    """Take batches on all ranks in turn, with a checkpoint after each five steps; write what was taken to a log."""
    ranks = [
        sf.served(urls, rank=rank, world_size=int(world_size), tail=tail, ahead="100 kB", timeout=30)
        for rank in range(int(world_size))
    ]
    saved = json.loads((folder / "state.json").read_text()) if (folder / "state.json").exists() else None
    for one in ranks if saved else ():
        one.load_state_dict(saved["state"])
    with open(folder / "log.txt", "a+") as log:
        log.truncate(saved["size"] if saved else 0)

        def save():
            log.flush()
            text = json.dumps({"state": ranks[0].state_dict(), "size": log.tell()})
            (folder / "state.tmp").write_text(text)
            os.replace(folder / "state.tmp", folder / "state.json")

        while ranks[0].epoch < int(epochs):
            epoch = ranks[0].epoch
            for step, batches in enumerate(zip(*ranks, strict=True), 1):
                for batch in batches:
                    if batch.number is not None:
                        log.write(f"{epoch} {batch.number} {digest(batch)}\n")
                if step % 5 == 0:
                    save()
                time.sleep(0.005)
            save()


if __name__ == "__main__":
    {"serve": serve, "train": train}[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
