"""Each kind of message of docs/errors.md is what a real call raises, and the page has all classes."""

import pickle

import pytest
from error_kinds import KINDS, PAGE, classes, page, write_files

import seqflow as sf
from seqflow.errors import DamagedFileError, JobError, MissingSourceError, OpError
from seqflow.job import Job, run
from seqflow.job.checking import check
from seqflow.job.planning import plan

CASES = [(error, kind) for error, kinds in KINDS.items() for kind in kinds]


@pytest.mark.parametrize(("error", "kind"), CASES, ids=[f"{e.__name__}: {k.message}" for e, k in CASES])
def test_the_message_is_raised(error, kind, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_files(tmp_path)
    with pytest.raises(error) as raised:
        kind.call()
    assert raised.type is error
    assert kind.describes(raised.value), str(raised.value)


def test_each_class_has_kinds():
    assert set(KINDS) == set(classes())
    assert all(KINDS.values())


def test_the_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python tests/shared/error_kinds.py`"


def test_an_error_carries_what_its_text_is_made_of():
    with pytest.raises(OpError) as raised:
        sf.Packed(capacity=10, multiple_of=4)
    error = raised.value
    assert (error.ops, error.argument) == (("Packed",), "capacity")
    assert error.message == "capacity is 10, expected a multiple of multiple_of = 4"
    assert str(error) == f"Packed: {error.message}"


def test_advice_names_options_as_who_asks_writes_them(tmp_path):
    write_files(tmp_path)
    with pytest.raises(DamagedFileError, match="  bad_files='skip' leaves out") as raised:
        sf.open(tmp_path / "cut.parquet")
    raised.value.asker = "command"
    assert "  --bad-files skip leaves out" in str(pickle.loads(pickle.dumps(raised.value)))
    job = Job.from_dict({"source": {"paths": "cut.parquet"}, "output": {"path": "out"}}, tmp_path)
    for use in (run, check, plan):
        with pytest.raises(DamagedFileError, match=r'  \[bad_files\] policy = "skip" leaves out'):
            use(job)


def test_advice_on_a_setting_of_a_job_is_toml(tmp_path):
    balance = {"group": 2**20, "steps_of": 2**20, "linear": 1}
    tables = {
        "source": {"paths": "x.parquet"},
        "batch": {"kind": "packed", "capacity": 4, "balance": balance},
        "output": {"path": "out"},
    }
    with pytest.raises(JobError, match=r'\n  \[batch.balance\] pool = "window" exchanges rows'):
        Job.from_dict(tables, tmp_path)
    with pytest.raises(OpError, match=r'\n  pool="window" exchanges rows'):
        sf.Balance(**balance)


@pytest.mark.parametrize("kind", [OpError, MissingSourceError])
def test_advice_ends_the_text_and_fields_survive_pickling(kind):
    error = kind.of("Loader.paths", "is empty, expected one", advice="name a file").in_op("outer")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) == "outer: Loader: paths is empty, expected one\n  name a file"
    assert (again.argument, again.advice, again.ops) == ("paths", "name a file", ("outer", "Loader"))
