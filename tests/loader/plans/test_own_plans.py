"""A batch plan of the user's own, that of docs/extending.md, goes where the others go."""

import itertools
import json
import sys
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pages import code_of

import seqflow as sf
from seqflow.errors import BatchPlanError, JobError
from seqflow.job import Job, run
from seqflow.job.planning import plan
from seqflow.loader import BatchPlan, Layout

CODE = code_of("docs/extending.md", "# alike_lengths.py")
LOADER = code_of("docs/extending.md", 'sf.Loader("docs/*.parquet", batch=AlikeLengths')
SECTIONS = code_of("docs/extending.md", '[source]\npaths = "docs/*.parquet"\n[batch]')
MODULE = sys.modules["alike_lengths"] = ModuleType("alike_lengths")
exec(CODE, vars(MODULE))
AlikeLengths = MODULE.AlikeLengths


@pytest.fixture
def documents(tmp_path):
    """A file of 400 documents of different lengths, in blocks of 50."""
    lengths = np.random.default_rng(3).integers(1, 40, 400)
    table = pa.table({"id": range(400), "tokens": pa.array([[1] * size for size in lengths.tolist()])})
    pq.write_table(table, tmp_path / "documents.parquet", row_group_size=50)
    return tmp_path / "documents.parquet"


def loader_of(path, plan=None, **options):
    options = {"rank": 0, "world_size": 1, "shuffle": True, "window": "40 KiB", "threads": 0} | options
    return sf.Loader(path, batch=plan or AlikeLengths(100), **options)


def ids_of(batches):
    return [batch["id"].tolist() for batch in batches]


def test_a_plan_needs_only_a_layout(documents):
    batches = list(loader_of(documents))
    assert sorted(itertools.chain(*ids_of(batches))) == list(range(400))
    for batch in batches:
        lengths = batch["tokens.lengths"]
        assert lengths.sum() <= 100
        assert lengths.max() <= 2 * lengths.min()


def test_an_index_counts_its_batches(documents, tmp_path):
    expected = len(list(loader_of(documents, index=tmp_path / "lengths.arrow")))
    again = loader_of(documents, index=tmp_path / "lengths.arrow")
    assert len(again) == expected
    assert ids_of([again.batch_at(7)]) == ids_of(again)[7:8]
    assert again.stats().rows == 400


def test_a_run_goes_on_with_another_number_of_ranks(documents):
    loader = loader_of(documents)
    expected, iterator = ids_of(loader_of(documents)), iter(loader)
    found = ids_of(next(iterator) for _ in range(6))
    state = json.loads(json.dumps(loader.state_dict()))
    ranks = [loader_of(documents, rank=rank, world_size=3, tail="pad") for rank in range(3)]
    for one in ranks:
        one.load_state_dict(state)
    rounds = itertools.chain(*zip(*ranks, strict=True))
    assert found + ids_of(batch for batch in rounds if batch.num_rows) == expected


def test_a_state_has_its_fields_and_refuses_others(documents):
    loader = loader_of(documents, AlikeLengths(100, balance=sf.Balance(2, linear=9)))
    next(iter(loader))
    state = json.loads(json.dumps(loader.state_dict()))
    assert state["settings"]["batch"] == {
        "name": "AlikeLengths",
        "tokens": 100,
        "factor": 2.0,
        "lengths": None,
        "balance": {"name": "Balance", "group": 2, "steps_of": 1, "pool": 1, "linear": 9, "cost": None},
    }
    message = r"batch\.factor was 2\.0 and is 3 now"
    with pytest.raises(sf.OpError, match=message):
        loader_of(documents, AlikeLengths(100, factor=3)).load_state_dict(state)


def test_it_may_say_itself_what_states_hold(documents):
    @dataclass(frozen=True)
    class Versioned(AlikeLengths):
        def to_dict(self):
            return {"name": "Versioned", "version": 2}

    loader = loader_of(documents, Versioned(100))
    next(iter(loader))
    assert loader.state_dict()["settings"]["batch"] == {"name": "Versioned", "version": 2}
    loader_of(documents, Versioned(100, factor=2.5)).load_state_dict(loader.state_dict())


def test_whole_batches_are_dealt(documents):
    balanced = AlikeLengths(100, balance=sf.Balance(group=4, pool="window", linear=10))
    loader = loader_of(documents, balanced)
    assert sorted(ids_of(loader)) == sorted(ids_of(loader_of(documents)))
    costs = loader.stats().costs
    assert costs.imbalance < costs.imbalance_undealt


def test_rows_of_equally_large_batches_may_be_dealt(documents):
    @dataclass(frozen=True)
    class Pairs(BatchPlan):
        balance: sf.Balance | None = None

        @property
        def deals_rows(self):
            return True

        def layout(self, sizes, key):
            return Layout(np.full(len(sizes) // 2, 2))

    batches = list(loader_of(documents, Pairs(sf.Balance(group=2, pool="window", linear=10))))
    assert {batch.num_rows for batch in batches} == {2}
    assert sorted(itertools.chain(*ids_of(batches))) == list(range(400))
    assert sorted(ids_of(batches)) != sorted(ids_of(loader_of(documents, Pairs())))


def test_its_steps_have_totals(documents):
    loader = loader_of(documents, totals={"tokens": "tokens.lengths"})
    assert all(batch.totals["tokens"] == batch["tokens.lengths"].sum() for batch in loader)


def test_its_rows_are_traced(documents):
    loader = loader_of(documents)
    traces = loader.trace(5)
    assert [50 * one.block + one.row for one in traces] == ids_of([loader.batch_at(5)])[0]
    assert loader.trace(5, row=1, element=0, column="tokens")[0].element == 0


def test_it_is_mixed(documents):
    def mix():
        return sf.Mix({loader_of(documents): 2, loader_of(documents, AlikeLengths(50)): 1}, stop="all")

    expected, begun = ids_of(mix()), mix()
    assert {*itertools.chain(*expected)} == set(range(400))
    next(iter(begun))
    again = mix()
    again.load_state_dict(json.loads(json.dumps(begun.state_dict())))
    assert ids_of(again) == expected[1:]


def refuse_seven(batch):
    if 7 in batch["id"]:
        raise sf.OpError("it is 7")
    return batch


def test_rows_that_a_net_refuses_are_left_out(documents):
    loader = loader_of(documents, net=refuse_seven, bad_rows="skip")
    batches = list(loader)
    assert sorted(itertools.chain(*ids_of(batches))) == [row for row in range(400) if row != 7]
    assert loader.stats().tokens == sum(batch["tokens.lengths"].sum() for batch in batches)


@pytest.mark.parametrize(
    ("layout", "message"),
    [
        (lambda n: Layout(np.array([n - 1])), "layout has batches of 399 rows together, of 399 or more"),
        (lambda n: Layout(np.array([n, 0])), "layout has batches of 400 rows together, of 0 or more"),
        (
            lambda n: Layout(np.array([n]), np.zeros(n, np.int64)),
            "and an order of 400, 1 different, expected each of 400 rows in one batch",
        ),
        (lambda n: Layout(np.array([n]), np.arange(n) - 1), "and an order of 400, 400 different"),
    ],
)
def test_a_layout_that_does_not_have_each_row_once_is_refused(documents, layout, message):
    @dataclass(frozen=True)
    class Wrong(BatchPlan):
        def layout(self, sizes, key):
            return layout(len(sizes))

    with pytest.raises(BatchPlanError, match=f"Wrong: .*{message}"):
        next(iter(loader_of(documents, Wrong(), window="1 MiB")))


def test_a_plan_without_a_layout_is_refused():
    @dataclass(frozen=True)
    class Nothing(BatchPlan):
        n: int = 3

    with pytest.raises(TypeError, match=r"abstract method .?layout"):
        Nothing()


def test_the_loader_of_the_page_plans_by_it(documents, monkeypatch):
    (documents.parent / "docs").mkdir()
    documents.rename(documents.parent / "docs" / "all.parquet")
    monkeypatch.chdir(documents.parent)
    found = eval(LOADER, {"sf": sf, "AlikeLengths": AlikeLengths})
    assert found.batch == AlikeLengths(4096)
    assert sum(batch.num_rows for batch in found) == 400


OWN = 'kind = "own_plans:AlikeLengths"\ntokens = 100'
JOB = f"""
{SECTIONS.replace("docs/*", "documents").replace("alike_lengths:", "own_plans:").replace("4096", "100")}
[order]
shuffle = true
window = "40 KiB"
[output]
path = "out"
part_bytes = 4096
"""


@pytest.fixture
def job_file(documents):
    """A job whose plan is that of a module next to it."""
    (documents.parent / "own_plans.py").write_text(CODE)
    (documents.parent / "job.toml").write_text(JOB)
    yield documents.parent / "job.toml"
    sys.modules.pop("own_plans", None)


@pytest.mark.parametrize("workers", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_a_job_names_it(documents, job_file, workers):
    job = Job.read(job_file, {} if workers is None else {"engine.workers": workers})
    expected = ids_of(loader_of(documents))
    assert plan(job).batches
    assert run(job).batches == len(expected)
    found = sf.open(job_file.parent / "out" / "*.parquet")["id"]
    assert found.tolist() == list(itertools.chain(*expected))
    (job_file.parent / "own_plans.py").write_text(f"{CODE}# of another day\n")
    with pytest.raises(JobError, match=r"own_plans\.py has other content"):
        run(job)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('kind = "own_plans:Alike"', "line 5: kind is 'own_plans:Alike', expected the name of a dataclass"),
        ('kind = "no_plans:Alike"', "line 5: kind: there is no module 'no_plans'"),
        ('kind = "own_plans:AlikeLengths"', "needs 'tokens'"),
        ('kind = "own_plans:AlikeLengths"\ntokens = "many"', "line 6: tokens is 'many', expected an integer"),
        ('kind = "own_plans:AlikeLengths"\ntokens = 3\nfactors = 3', "line 7: unknown key 'factors'"),
    ],
)
def test_a_job_that_names_it_wrongly_is_refused(job_file, lines, message):
    job_file.write_text(JOB.replace(OWN, lines))
    assert lines in job_file.read_text()
    with pytest.raises(JobError, match=message):
        Job.read(job_file)
