"""The page of all keys of a job file is current."""

from seqflow.job import keys
from seqflow.job.reading import _READERS


def test_the_page_is_current():
    assert keys.PAGE.read_text(encoding="utf-8") == keys.page(), "run `python -m seqflow.job.keys`"


def test_every_section_is_on_it():
    text = keys.page()
    for name in keys.SECTIONS:
        assert f"## [{name}]" in text
    assert set(keys.SECTIONS) | {"constants", "imports"} == set(_READERS)
