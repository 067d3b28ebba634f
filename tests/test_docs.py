"""The pages in docs/ run as they stand."""

import doctest
from pathlib import Path

import pytest

from seqflow import docs

PAGES = sorted((Path(__file__).parents[1] / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page):
    failed, _ = doctest.testfile(str(page), module_relative=False, verbose=False)
    assert failed == 0


def test_the_page_of_the_ops_is_current():
    assert docs.PAGE.read_text() == docs.page(), "run `python -m seqflow.docs`"
