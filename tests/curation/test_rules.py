"""Rules of curation refuse settings that they cannot have."""

import pytest

from seqflow.curation import Decontaminate, Deduplicate, NearDuplicates
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
    assert Deduplicate(columns=("a", "b"), keep="highest:score").reads == ("a", "b", "score")
    assert Deduplicate(columns=("a",), keep="highest:a").reads == ("a",)
    assert NearDuplicates(column="text").reads == ("text",)
