"""Each element of an op's example is traced to the element of the inputs that it is."""

import numpy as np
import pytest

from seqflow import registry
from tools.example_traces import NOWHERE, example_call, trace


def each_its_own(call, moved):
    return np.arange(sum(one.array.size for one in moved))


def all_alike(call, moved):
    return np.zeros(sum(one.array.size for one in moved), np.int64)


def sources(name, groups=each_its_own):
    return [one.tolist() for of in trace(registry.get(name), groups).sources.values() for one in of]


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("reverse_sequences", [[1, 0, 2]]),
        ("gather", [[2, 0, 2]]),
        ("pad", [[[0, 1], [NOWHERE, NOWHERE], [2, NOWHERE]]]),
        ("partition", [[0, 2], [1]]),
        ("interleave", [[0, 3, 1, 2]]),
        ("sort_within", [[1, 0, 2]]),
        ("prepend_token", [[NOWHERE, 0, 1, NOWHERE, NOWHERE, 2]]),
    ],
)
def test_elements_of_outputs_are_traced_to_those_of_inputs(op, expected):
    assert sources(op) == expected


def test_an_op_that_looks_for_values_is_traced_by_its_values():
    assert sources("erase_tokens") == [[0, 2]]


def test_of_equal_elements_the_source_is_clear_only_where_either_may_be_it():
    assert trace(registry.get("unique_within"), each_its_own) is None
    assert sources("unique_within", all_alike) == [[1, 0, 3]]


@pytest.mark.parametrize("op", ["lengths_sum", "softmax_within", "hash_indices", "lengths_to_offsets"])
def test_what_is_computed_has_no_source(op):
    assert trace(registry.get(op), all_alike) is None


def test_what_stays_in_its_order_is_still():
    assert trace(registry.get("zero_after_length"), each_its_own).is_still
    assert not trace(registry.get("reverse_sequences"), each_its_own).is_still


def test_the_call_of_an_example_has_its_inputs_attributes_and_outputs():
    call = example_call(registry.get("truncate"))
    assert {name: one[0].tolist() for name, one in call.inputs.items()} == {
        "data": [1, 2, 3, 4],
        "lengths": [3, 0, 1],
    }
    assert call.attributes == {"max_length": 2}
    assert [one[0].tolist() for one in call.outputs.values()] == [[1, 2, 4], [2, 0, 1]]
