"""The schema of JSON that was saved."""

import pytest

from seqflow.json_schema import is_count, matches_schema, numbered

FORM = {"name": str, "sizes": [is_count], "pair": (int, object), "at": numbered({"window": is_count})}
VALUE = {"name": "x", "sizes": [0, 3], "pair": [-1, None], "at": {"0": {"window": 2}}, "more": 1}


def test_a_value_has_a_form():
    assert matches_schema(VALUE, FORM)
    assert matches_schema({**VALUE, "sizes": [], "at": {}}, FORM)


@pytest.mark.parametrize(
    "change",
    [
        {"name": None}, {"sizes": [-1]}, {"sizes": [True]}, {"sizes": [2**62]}, {"sizes": [1.0]}, {"sizes": 3},
        {"pair": [1]}, {"pair": ["x", 1]}, {"pair": 1}, {"at": []}, {"at": {"x": {"window": 1}}},
        {"at": {"-1": {"window": 1}}}, {"at": {"²": {"window": 1}}}, {"at": {"9" * 5000: {"window": 1}}},
        {"at": {"1": {}}}, {"at": {"1": 3}},
    ],
)  # fmt: skip
def test_a_value_of_another_form_has_it_not(change):
    assert not matches_schema({**VALUE, **change}, FORM)


def test_what_is_missing_is_seen():
    assert not matches_schema({}, FORM)
    assert not matches_schema(None, FORM)
    assert not matches_schema([VALUE], FORM)
