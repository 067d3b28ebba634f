"""The page on performance, its pictures and the table of the README are what the file of results says."""

import json
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(
    not BENCHMARKS.exists(), reason="a source distribution may have no benchmarks"
)


@pytest.fixture
def page(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import page

    yield page
    for name in ("page", "plot", "suites"):
        sys.modules.pop(name, None)


@pytest.fixture
def found(page):
    return json.loads(page.RESULTS.read_text(encoding="utf-8"))


def test_the_page_is_made_from_the_results(page, found):
    assert page.PAGE.read_text(encoding="utf-8") == page.text(found), "run `python benchmarks/page.py`"
    assert page.TABLES.read_text(encoding="utf-8") == page.tables(found), "run `python benchmarks/page.py`"


def test_the_pictures_are_made_from_the_results(page, found):
    stored = {path.name: path.read_text(encoding="utf-8") for path in page.PICTURES.iterdir()}
    assert stored == page.pictures(found), "run `python benchmarks/page.py`"


def test_the_table_of_the_readme_is_made_from_the_results(page, found):
    readme = page.README.read_text(encoding="utf-8")
    assert readme == page.with_table(readme, found), "run `python benchmarks/page.py`"
    names = {(row["suite"], row["name"], peer) for row in found["rows"] for peer in row["peers"]}
    assert [row for row in page.IN_README if row[1:] not in names] == []


def test_each_loss_says_why(page, found):
    assert page.unexplained(found) == []


def test_everything_was_measured(page, found):
    assert found["missing"] == {}
    assert {row["suite"] for row in found["rows"]} == set(page.SUITES)
    assert len(found["series"]) == 8
