"""What is told of two records that differ."""

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
from seqflow.identity.sections import differences


def loader_with(value):
    """A loader whose function reads a value."""

    def prepare(record):
        assert value is not None
        return record

    return sf.Loader(pa.table({"x": [1]}), prepare=prepare)


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (np.arange(3), np.arange(4), r"was int64\[3\] and is int64\[4\] now"),
        (np.arange(3), np.arange(3) + 1, "has other content"),
        (np.arange(3), 5, r"was int64\[3\] and is .*5 now"),
        (5, np.arange(3), r"was .*5 and is int64\[3\] now"),
        (5, 6, "was .*5 and is .*6 now"),
    ],
)
def test_arrays_are_told_by_dtype_and_shape_and_numbers_by_value(before, after, told):
    state = loader_with(before).state_dict()
    with pytest.raises(sf.OpError, match=rf"value.* {told}"):
        loader_with(after).load_state_dict(state)


def test_a_section_that_no_room_contributes_is_compared_by_value():
    (found,) = differences({"colour": "red"}, {"colour": "blue"})
    assert found == ("colour", "colour was 'red' and is 'blue' now", False)


def test_a_section_of_one_of_several_sources_is_compared_as_that_of_a_source_and_does_not_change():
    plans = [{"batch of a": sf.Rows(n).to_dict()} for n in (2, 3)]
    (found,) = differences(*plans)
    assert found.text.startswith("batch of a was 'Rows(n=2, drop_last=False")
    (skip,) = differences({"skip": None}, {"skip": [[0, 1]]})
    (of_a,) = differences({"skip of a": None}, {"skip of a": [[0, 1]]})
    assert (skip.may_change, of_a.may_change) == (True, False)


def test_differences_come_in_the_order_of_the_sections_and_none_where_a_comparison_finds_none():
    then = {"b": 1, "pad": {"x": "Pad(value=1)"}, "a": 1, "gone": 1}
    now = {"b": 2, "pad": {"x": "Pad(fill=1)"}, "a": 2}  # the same by its old name
    assert [one.section for one in differences(then, now)] == ["b", "a", "gone"]


def test_another_format_is_the_only_difference():
    (found,) = differences({"format": 1, "a": 1}, {"format": 2, "a": 2})
    assert found.text == "its record has format 1 of another version of seqflow, expected 2"
