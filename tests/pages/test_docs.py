"""The pages run as they stand, and all their links lead somewhere."""

import doctest
import re
from pathlib import Path

import pytest

from tools import docs

ROOT = Path(__file__).parents[2]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*sorted(ROOT.glob("*.md")), *DOCS]
each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def links_of(page):
    """The file and the heading of each link that leads to a place in the tree."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" not in target:
            name, _, heading = target.partition("#")
            yield (page.parent / name).resolve() if name else page, heading


def headings_of(page):
    """The names that headings have in links."""
    titles = re.findall(r"^#+ (.*)", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", title).lower().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", DOCS, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_examples_of_a_page_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # examples write files
    text = page.read_text(encoding="utf-8")
    for name in ("torch", "transformers", "tokenizers"):
        if re.search(rf"^>>> (import .*\b{name}\b|from {name}\b)", text, re.MULTILINE):
            pytest.importorskip(name)
    failed, _ = doctest.testfile(str(page), module_relative=False, verbose=False)
    assert failed == 0


@each_page
def test_each_link_of_a_page_leads_to_a_file_and_heading(page):
    for file, heading in links_of(page):
        assert file.exists(), file
        assert not heading or heading in headings_of(file), heading


def test_each_page_is_reached_from_the_first():
    reached, found = set(), {ROOT / "README.md"}
    while found - reached:
        page = (found - reached).pop()
        reached.add(page)
        found |= {file for file, _ in links_of(page) if file.suffix == ".md"}
    assert reached == set(PAGES)


@pytest.mark.skipif(not (ROOT / ".ci").exists(), reason="a source distribution has no .ci")
def test_each_place_that_contributing_names_exists():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    places = re.findall(r"(?<![\w/])((?:tests|docs|\.ci)/[\w./]*\w)", text)
    assert len(places) > 5
    assert [place for place in places if not (ROOT / place).exists()] == []


def test_the_pages_of_the_ops_are_current():
    found = {path: path.read_text(encoding="utf-8") for path in docs.FOLDER.glob("*.md")}
    assert found == docs.pages(), "run `python -m tools.docs`"


def is_written_by_a_program(page):
    return re.search("^<!-- Written by", page.read_text(encoding="utf-8"), re.MULTILINE) is not None


def test_no_page_that_is_written_by_hand_is_endless():
    lengths = {page.name: len(page.read_text("utf-8").splitlines()) for page in PAGES}
    by_hand = {page.name for page in PAGES if not is_written_by_a_program(page)}
    assert {name: lines for name, lines in lengths.items() if lines > 350 and name in by_hand} == {}


def test_a_page_begins_with_what_one_can_do_after_reading_it():
    begun = re.compile(r"# .*\n+(?:<!-- .* -->\n+)?After this page you (can|know)\b")
    by_hand = [page for page in DOCS if page.name != "README.md" and not is_written_by_a_program(page)]
    assert [page.name for page in by_hand if not begun.match(page.read_text("utf-8"))] == []


def test_no_example_stands_outside_a_block():
    """Markdown takes its prompts for quotes in quotes."""
    outside = re.compile(r"^```.*?^```|^(\s*>>> .*)", re.MULTILINE | re.DOTALL)
    found = {page.name: [hit for hit in outside.findall(page.read_text("utf-8")) if hit] for page in PAGES}
    assert {name: hits for name, hits in found.items() if hits} == {}


@pytest.mark.skipif(not (ROOT / "docs" / "site.yml").exists(), reason="a source distribution has no site")
def test_the_site_has_every_page():
    named = re.findall(
        r"^ +- (\S+\.md)$", (ROOT / "docs" / "site.yml").read_text(encoding="utf-8"), re.MULTILINE
    )
    of_ops = {path for path in DOCS if path.parent.name == "ops" and path.name != "README.md"}
    assert sorted(named) == sorted(str(path.relative_to(ROOT / "docs")) for path in {*DOCS} - of_ops)
