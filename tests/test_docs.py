"""The pages in docs/ run as they stand."""

import doctest
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parents[1] / "docs").glob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_examples_of_a_page_run(page):
    failed, _ = doctest.testfile(str(page), module_relative=False, verbose=False)
    assert failed == 0
