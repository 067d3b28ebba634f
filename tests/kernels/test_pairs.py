"""Lines of a label and index:value pairs, in one native pass."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqflow import kernels

pytestmark = pytest.mark.skipif(kernels.info()["isa"] is None, reason="native kernels are not in use")


def parse(text, has_qid=False, one_based=False):
    found = kernels.parse_pairs(np.frombuffer(text, np.uint8), has_qid, one_based)
    return None if found is None else [array.tolist() for array in found]


def test_a_row_is_a_label_and_pairs():
    text = np.frombuffer(b"# no row\n+1.5 0:.5 7:-2e1 # 4\r\n\n-0#\n", np.uint8)
    labels, qids, ids, values, offsets = kernels.parse_pairs(text, False, False)
    assert labels.tolist() == [1.5, 0]
    assert np.signbit(labels[1])
    assert qids.tolist() == [0, 0]
    assert (ids.tolist(), values.tolist(), offsets.tolist()) == ([0, 7], [0.5, -20], [0, 2, 2])
    assert (labels.dtype, values.dtype, offsets.dtype) == (np.float64, np.float32, np.int32)


def test_queries_and_indices_from_1():
    assert parse(b"3 qid:-7 1:2 5:1\n1 qid:8\n", True, True) == [[3, 1], [-7, 8], [0, 4], [2, 1], [0, 2, 2]]


@pytest.mark.parametrize(
    "line", [b"x", b"1 2", b"1 2:", b"1 :2", b"1 2:3:4", b"1 0:2", b"1 1:nan", b"1 qid:3", b"1 1:+-2"]
)
def test_other_lines_are_left_to_another_parser(line):
    assert parse(b"1 2:3\n" + line + b"\n1\n", one_based=True) is None


def test_no_lines_and_lines_that_are_not_whole_are_left_to_another_parser():
    assert parse(b"") is None
    assert parse(b"1 2:3") is None


WHOLE = b"+1.25 qid:12 3:.5 44:-1e-3 5:123456789012345678901234567890 # 1:2\r\n-0 qid:3 7:8e22\n"


@given(st.integers(0, len(WHOLE)), st.integers(0, len(WHOLE) - 1), st.integers(0, 255), st.booleans())
def test_lines_that_are_cut_and_changed_are_parsed_or_not(stop, at, byte, ends):
    damaged = bytearray(WHOLE)
    damaged[at] = byte
    found = parse(bytes(damaged[:stop]) + b"\n" * ends, has_qid=True)
    if found is not None:
        labels, qids, ids, values, offsets = found
        assert len(labels) == len(qids) == len(offsets) - 1
        assert len(ids) == len(values) == offsets[-1]
