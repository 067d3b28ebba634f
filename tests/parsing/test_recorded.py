"""Trees of all small languages, and places of errors, are those that were recorded."""

import pytest
from recorded_texts import PARSERS, recorded, texts

RECORDED = texts()


def test_all_languages_are_recorded() -> None:
    assert RECORDED.keys() == PARSERS.keys()


@pytest.mark.parametrize("kind", PARSERS)
def test_trees_and_places_of_errors_are_those_that_were_recorded(kind: str) -> None:
    found = {text: recorded(kind, text) for text in RECORDED[kind]}
    assert [one for one in found.items() if one[1] != RECORDED[kind][one[0]]] == []
