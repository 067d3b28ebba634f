"""Large numbers in job files are refused with an error of ours, or the job ends."""

import os
from dataclasses import fields
from typing import Any, get_args, get_type_hints

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from in_child import outcome_in_child
from marks import one_in

from seqflow.arguments import ByteSize, Count
from seqflow.errors import SeqflowError
from seqflow.job import Job, keys, run
from seqflow.job.sections import BATCH_KINDS, keys_of
from seqflow.loader import Balance

NUMBERS = [2**31, 2**53, 2**61, 2**62, 2**63 - 1, 2**63, 2**64]
USUAL: dict[str, Any] = {"source": {"paths": "a.parquet"}, "batch": {"n": 3}, "output": {"path": "out"}}
PLANS: dict[str, dict[str, Any]] = {
    "rows": {"n": 3},
    "tokens": {"kind": "tokens", "max_tokens": 9, "lengths": "t.lengths"},
    "packed": {"kind": "packed", "capacity": 8, "columns": ["t"]},
    "buckets": {"kind": "buckets", "boundaries": 2, "n": 3, "lengths": "t.lengths"},
}
NEEDED: dict[str, dict[str, Any]] = {
    "deduplicate": {"by": "id"},
    "near_duplicates": {"column": "text"},
    "decontaminate": {"column": "text", "against": "a.parquet"},
}
"""Keys that sections need."""


def is_numeric(hint: Any) -> bool:
    return hint in (int, float, ByteSize, Count) or any(map(is_numeric, get_args(hint)))


def numeric(section: Any) -> list[str]:
    hints = get_type_hints(section, include_extras=True)
    return [one.name for one in keys_of(section) if is_numeric(hints[one.name])]


def of_section(section: str, key: str, value: Any) -> dict[str, Any]:
    """A job with a value for a key."""
    if section == "mix":
        weight, own = (value, {}) if key == "weight" else (1, {key: value})
        sources = [{"paths": "a.parquet", "weight": weight}, {"name": "b", "paths": "a.parquet", "weight": 1}]
        return {**USUAL, "source": {}, "mix": {"sources": sources, **own}}
    return {**USUAL, section: {**USUAL.get(section, {}), **NEEDED.get(section, {}), key: value}}


JOBS = {
    **{
        f"{name}.{key}": (lambda n, name=name, key=key: of_section(name, key, n))
        for name, sections in keys.SECTIONS.items()
        for section in sections
        for key in numeric(section)
        if name != "engine"  # of processes, which take a second to start
    },
    **{
        f"{kind}: {key}": (lambda n, kind=kind, key=key: {**USUAL, "batch": {**PLANS[kind], key: n}})
        for kind, plan in BATCH_KINDS.items()
        for key in numeric(plan)
    },
    **{
        f"balance: {one.name}": lambda n, name=one.name: {
            **USUAL,
            "batch": {"n": 3, "lengths": "t.lengths", "balance": {"group": 2, "linear": 3, name: n}},
        }
        for one in fields(Balance)
    },
    "steps_of": lambda n: {**USUAL, "totals": {"a": "t.lengths"}, "steps_of": n},
    "skip": lambda n: {**USUAL, "skip": [[0, n]]},
    "start of skip": lambda n: {**USUAL, "skip": [[n, n + 1]]},
}


@pytest.fixture
def folder(tmp_path):
    lists = pa.array([[i] * (i % 5) for i in range(40)], pa.list_(pa.int64()))
    table = pa.table({"id": range(40), "t": lists, "text": [f"a row of words, {i}" for i in range(40)]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=10)
    return tmp_path


@pytest.mark.parametrize("plan", PLANS)
def test_the_usual_job_runs(folder, plan):
    run(Job.from_dict({**USUAL, "batch": PLANS[plan]}, folder))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("key", one_in(3, JOBS))
def test_a_large_number_of_a_job_is_refused_or_the_job_ends(folder, key):
    def draw():
        for number in NUMBERS:
            job = JOBS[key](number)
            job["output"] = {**job["output"], "path": f"out{number}"}
            try:
                run(Job.from_dict(job, folder))
            except SeqflowError:
                continue

    assert outcome_in_child(draw) == "made"
