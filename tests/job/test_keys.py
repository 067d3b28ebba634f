"""The page of all keys of a job file is current."""

import pytest

from seqflow import JobError
from seqflow.job import Job, keys


@pytest.mark.slow
def test_the_page_is_current():
    assert keys.PAGE.read_text(encoding="utf-8") == keys.page(), "run `python -m seqflow.job.keys`"


@pytest.mark.slow
def test_every_section_is_on_it():
    text = keys.page()
    with pytest.raises(JobError, match="known are ") as raised:
        Job.from_dict({"no section": {}}, "")
    known = str(raised.value).partition("known are ")[2].split(", ")
    for name in keys.SECTIONS:
        assert f"## [{name}]" in text
    assert set(keys.SECTIONS) | {
        "constants",
        "imports",
        "keep",
        "require",
        "share",
        "skip",
        "totals",
        "steps_of",
    } == set(known)
