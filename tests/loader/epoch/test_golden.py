"""Recorded epochs: batches by content, states, ends of windows, counts, totals, traces, and resumes are what they were."""

import json

import pytest
from epoch_cases import GOLDEN, record

import seqflow as sf

RECORDED = json.loads(GOLDEN.read_text(encoding="utf-8"))


def _named(at):
    case = RECORDED[at]["case"]
    return f"{at} {case['kind']}"


def marks_of(at):
    """A 26th is quick, a 13th slow, the others thorough."""
    return [] if at % 26 == 0 else [pytest.mark.slow, *([pytest.mark.thorough] if at % 13 != 5 else [])]


@pytest.mark.parametrize(
    "at",
    [pytest.param(at, id=_named(at), marks=marks_of(at)) for at in range(len(RECORDED))],
)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_epoch_is_what_it_was(at, tmp_path):
    recorded = RECORDED[at]
    if "error" in recorded:
        with pytest.raises(sf.SeqflowError) as raised:
            record(recorded["case"], tmp_path)
        assert str(raised.value).splitlines()[0] == recorded["error"]
        return
    found = json.loads(json.dumps(record(recorded["case"], tmp_path)))
    assert found == recorded["found"]
