"""Rules of curation refuse settings that they cannot have."""

import pytest

from seqflow.curation import Decontaminate, Deduplicate, NearDuplicates
from seqflow.curation.rules import columns_of
from seqflow.errors import OpError


@pytest.mark.parametrize(
    ("rule", "settings", "message"),
    [
        (Deduplicate, {"columns": ()}, "columns is empty"),
        (Deduplicate, {"columns": ("a",), "keep": "best"}, "keep is 'best'"),
        (Deduplicate, {"columns": ("a",), "keep": "highest:"}, "keep is 'highest:'"),
        (Decontaminate, {"column": "a", "against": "b", "ngram": 0}, "ngram is 0"),
        (Decontaminate, {"column": "a", "against": "b", "max_share": 1.0}, "max_share is 1.0"),
        (Decontaminate, {"column": "a", "against": "b", "max_share": float("nan")}, "max_share is nan"),
        (NearDuplicates, {"column": "a", "bands": 0}, "bands is 0"),
        (NearDuplicates, {"column": "a", "rows": -1}, "rows is -1"),
        (NearDuplicates, {"column": "a", "bands": 2**15}, "bands times rows is 262144"),
        (NearDuplicates, {"column": "a", "seed": 2**64}, "seed is 18446744073709551616"),
    ],
)
def test_settings_that_cannot_be_are_refused(rule, settings, message):
    with pytest.raises(OpError, match=message):
        rule(**settings)


def test_the_column_of_the_highest_is_read_too():
    of = {"columns": ("a", "b.c"), "keep": ("score",)}
    assert Deduplicate(columns=("a", "b.c"), keep="highest:score").columns_by_argument == of
    assert columns_of([Deduplicate(columns=("a",), keep="highest:a"), NearDuplicates(column="a")]) == ("a",)
    assert NearDuplicates(column="text").columns_by_argument == {"column": ("text",)}


@pytest.mark.parametrize(
    ("threshold", "shape"), [(0.5, (25, 5)), (0.7, (14, 9)), (0.8, (9, 13)), (0.9, (5, 25))]
)
def test_a_threshold_chooses_bands_and_rows_as_datasketch_does(threshold, shape):
    """`MinHashLSH(threshold, num_perm=128)` of datasketch has these."""
    assert NearDuplicates(column="text", threshold=threshold).shape == shape


def test_without_a_threshold_bands_and_rows_are_those_that_are_given():
    assert NearDuplicates(column="text").shape == (16, 8)
    assert NearDuplicates(column="text", bands=3).shape == (3, 8)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"threshold": 0.5, "rows": 4}, "threshold is given with bands or rows"),
        ({"threshold": 1.0}, "threshold is 1.0, expected a number between 0 and 1"),
        ({"threshold": float("nan")}, "threshold is nan"),
        ({"bands": 0}, "bands is 0"),
    ],
)
def test_what_gives_no_bands_is_an_error(given, message):
    with pytest.raises(OpError, match=message):
        NearDuplicates(column="text", **given)
