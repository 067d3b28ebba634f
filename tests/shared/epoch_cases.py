"""Epochs drawn at random, and what a run of each gives, as JSON: `python tests/shared/epoch_cases.py` records them again.

Batches are recorded by their numbers and a checksum of their rows, for every rank and worker; so are states, ends of
windows, lengths, counts, totals, traces, and what a run gives that goes on from a state with other ranks.
"""

import json
import random
import tempfile
import warnings
import zlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa

import seqflow as sf

GOLDEN = Path(__file__).parents[1] / "loader" / "epoch" / "golden.json"
PLANS = {
    "rows": lambda balance: sf.Rows(4, balance=balance),
    "rows, short dropped": lambda balance: sf.Rows(4, drop_last=True, balance=balance),
    "rows across windows": lambda balance: sf.Rows(19, balance=balance),
    "rows, filtered": lambda balance: sf.Rows(4, max_length=6, balance=balance),
    "tokens": lambda balance: sf.TokenBudget(20, balance=balance),
    "tokens, filtered": lambda balance: sf.TokenBudget(20, max_length=6, balance=balance),
    "tokens, split": lambda balance: sf.TokenBudget(12, oversize="split", drop_last=True, balance=balance),
    "tokens, padded": lambda balance: sf.TokenBudget(24, padded=True, max_rows=3, balance=balance),
    "tokens, best fit": lambda balance: sf.TokenBudget(20, strategy="best_fit", balance=balance),
    "buckets": lambda balance: sf.Buckets((3, 6), sf.Rows(4), balance=balance),
    "buckets of tokens": lambda balance: sf.Buckets(3, sf.TokenBudget(20), balance=balance),
    "packed": lambda balance: sf.Packed(12, ("tokens",), rows=2, balance=balance),
    "packed, concat": lambda balance: sf.Packed(
        8, ("tokens",), rows=3, strategy="concat", drop_last=True, balance=balance
    ),
}
COUNTED = ("rows", "rows, short dropped", "rows across windows")
"""Plans whose batches are counted without an index."""
MIXES = {
    "quotas": ("rows", [3, 1], [97, 41]),
    "batches": ("tokens", [0.7, 0.3], [97, 41]),
    "three": ("packed", [2, 1, 1], [60, 41, 60]),
    "rare": ("tokens", [0.95, 0.05], [41, 97]),
    "steps": ("rows", [{0: 0.8, 4: 0.5}, {0: 0.2, 4: 0.5}], [60, 41]),
    "falls": ("tokens", [1, {0: 1, 6: 0}], [41, 60]),
}
SKIPS = [[], [], [(2, 5)], [(0, 1), (4, 9)], [(0, 3)], [(7, 8), (8, 12), (20, 25)], [(3, 60)]]
BALANCES = [None, None, (2, 1, 1), (4, 1, 4), (2, 2, 4), (2, 1, "window"), (3, 1, 2)]


def rows_of(count, seed, base=0):
    """A table of small blocks; some of them have long rows alone, and so no batches where these are filtered."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 10, count)
    lengths[21:35] = 9
    lists = pa.array([np.full(n, at % 100, np.int32) for at, n in enumerate(lengths)], pa.list_(pa.int32()))
    table = pa.table({"id": np.arange(base, base + count), "tokens": lists})
    starts, sizes = [0], (7, 5, 8, 3)
    while starts[-1] < count:
        starts.append(starts[-1] + sizes[len(starts) % 4])
    return pa.concat_tables([table.slice(one, sizes[(at + 1) % 4]) for at, one in enumerate(starts[:-1])])


def drawn(rng, kind):
    """The settings of a case as JSON."""
    case = {
        "kind": kind, "window": rng.choice([400, 400, 700, 1 << 20]), "ranks": rng.choice([1, 2, 3, 8]),
        "tail": rng.choice(["drop", "pad", "repeat"]), "skip": rng.choice(SKIPS),
        "shuffle": rng.choice([None, 0, 7]), "balance": rng.choice(BALANCES), "streams": 1, "index": False,
        "epoch": rng.choice([0, 0, 1]), "workers": rng.choice([1, 1, 1, 2]), "random": rng.random() < 0.3,
    }  # fmt: skip
    if kind in MIXES:
        case |= {"stop": rng.choice(["first", "all"]), "seed": rng.choice([0, 5]), "random": False}
        return case
    case |= {"rows": rng.choice([97, 97, 13, 40]), "skips_bad": rng.random() < 0.15, "once": False}
    is_counted = kind in COUNTED and not case["skips_bad"]
    case["index"] = not is_counted and rng.random() < 0.5
    if case["window"] < 1 << 20 and (is_counted or case["index"]):
        case["streams"] = rng.choice([1, 1, 2, 3])
    if not case["index"] and case["streams"] == 1 and case["ranks"] == 1 and case["shuffle"] is None:
        case["once"] = rng.random() < 0.5
    case["totals"] = case["streams"] == 1 and case["tail"] != "repeat" and case["balance"] is None
    return case


def made(case, folder, rank=0, ranks=None, tail=None, worker=0):
    """The loader or mix of a case, for one rank and worker."""
    balance = case["balance"] and sf.Balance(
        group=case["balance"][0], steps_of=case["balance"][1], pool=case["balance"][2], linear=10
    )
    options = {
        "window": case["window"], "shuffle": None if case["shuffle"] is None else sf.Shuffle(case["shuffle"]),
        "threads": 0, "rank": rank, "world_size": ranks or case["ranks"], "tail": tail or case["tail"],
        "skip": [(*span, case["epoch"]) for span in case["skip"]] or None,
    }  # fmt: skip
    if case["kind"] in MIXES:
        plan, weights, sizes = MIXES[case["kind"]]
        sources = {f"s{at}": rows_of(size, at + 2, 1000 * at) for at, size in enumerate(sizes)}
        named = {
            name: sf.Schedule(weight) if isinstance(weight, dict) else weight
            for name, weight in zip(sources, weights, strict=True)
        }
        batch = sf.Rows(8, balance=balance) if plan == "rows" else PLANS[plan](balance)
        loader = sf.Mix(sources, weights=named, seed=case["seed"], stop=case["stop"], batch=batch, **options)
    else:
        table = rows_of(case["rows"], 1)
        loader = sf.Loader(
            (lambda: table.to_reader()) if case["once"] else table,
            batch=PLANS[case["kind"]](balance),
            streams=case["streams"],
            index=folder / "lengths.arrow" if case["index"] else None,
            bad_rows="skip" if case["skips_bad"] else "raise",
            totals={"n": "tokens.lengths"} if case["totals"] else None,
            net="drawn, mask = dropout(id * 1.0, ratio=0.5, seed=3)\nreturn id, drawn"
            if case["random"]
            else None,
            **options,
        )
        if case["index"]:
            loader.lengths_index()
    if case["workers"] > 1:
        loader.assignment = replace(loader.assignment, worker=worker, workers=case["workers"])
    loader.set_epoch(case["epoch"])
    return loader


def mark(batch):
    """The number of a batch, and a checksum of its rows."""
    rows = np.concatenate([np.asarray(batch[name], np.int64) for name in ("id", "drawn") if name in batch])
    total = f" {batch['step.n']}" if "step.n" in batch else ""
    return f"{batch.number}:{zlib.crc32(rows.tobytes()) & 0xFFFFFF:06x}{total}"


def place(loader):
    """What a state says of the place."""
    state = loader.state_dict()
    names = ("epoch", "batch", "ranks", "windows", "ended", "members")
    return [{name: state[name] for name in names if name in state}, loader.at_window_end]


COUNTS = (
    "rows",
    "rows_read",
    "rows_left",
    "tokens",
    "cells",
    "batches",
    "bad_rows",
    "dropped",
    "skipped",
    "repeated",
)


def record(case, folder):
    """What a case gives."""
    rng, found = random.Random(json.dumps(case)), {}
    stop = rng.randrange(6)
    states = {}
    for rank in range(case["ranks"]):
        for worker in range(case["workers"]):
            loader = made(case, folder, rank, worker=worker)
            marks = []
            for at, batch in enumerate(loader):
                marks.append(mark(batch))
                if at == stop:
                    states[rank, worker] = loader.state_dict()
                    found[f"place of {rank}, {worker}"] = place(loader)
            found[f"batches of {rank}, {worker}"] = " ".join(marks)
            stats = loader.stats()
            found[f"counts of {rank}, {worker}"] = [getattr(stats, name) for name in COUNTS]
    loader = made(case, folder)
    try:
        found["len"] = len(loader)
    except TypeError:
        found["len"] = None
    first = found["batches of 0, 0"].split(" ")[0].partition(":")[0]
    if first not in ("", "None"):
        found["batch_at"] = mark(loader.batch_at(int(first), case["epoch"]))
        found["trace"] = [str(one) for one in loader.trace(int(first), epoch=case["epoch"])[:2]]
    if states and case["workers"] == 1:
        ranks, tail = rng.choice([1, 2, 3, 5]), rng.choice(["drop", "pad", "repeat"])
        for rank in range(ranks if case["epoch"] == 0 else 1):
            loader = made(case, folder, rank, ranks, tail)
            loader.load_state_dict(json.loads(json.dumps(states[0, 0])))
            found[f"resumed on {ranks}, {tail}, {rank}"] = " ".join(map(mark, loader))
    return found


def cases(count):
    """Cases of every plan and mix."""
    rng = random.Random(7)
    kinds = [*PLANS, *MIXES]
    return [drawn(rng, kinds[at % len(kinds)]) for at in range(count)]


def main(count=260):
    warnings.simplefilter("ignore")
    found = []
    for case in cases(count):
        with tempfile.TemporaryDirectory() as folder:
            try:
                found.append({"case": case, "found": record(case, Path(folder))})
            except sf.SeqflowError as error:
                found.append({"case": case, "error": str(error).splitlines()[0]})
    GOLDEN.parent.mkdir(exist_ok=True)
    lines = ",\n".join(json.dumps(one, separators=(",", ":")) for one in found)
    GOLDEN.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    print(len(found), sum("error" in one for one in found), GOLDEN.stat().st_size)


if __name__ == "__main__":
    main()
