"""Claims of ops are read when the op is declared, and refused where they speak of what it does not have."""

import pytest

from seqflow import OpError
from seqflow.registry import get
from seqflow.signature import parse
from seqflow.signature.language import Name, OpCall
from seqflow.signature.op_properties import read_claims

SIGNATURE = parse("data[N, *d], bool mask[N] -> rows[K, *d], int64 positions[K]")


def claims(**given):
    return read_claims("mine", SIGNATURE, look_up=get, **given)


def test_claims_are_kept_as_data():
    read = claims(rows={"K": "select(N, mask)"}, depends={"positions": "mask"})
    assert read.rows == {"K": OpCall("select", (Name("N"), Name("mask")))}
    assert read.depends == {"positions": ("mask",)}
    assert str(read.rows["K"]) == "select(N, mask)"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"depends": {"nope": "mask"}}, "mine: depends speaks of 'nope', which is not among"),
        ({"depends": {"positions": "nope"}}, "mine: depends names 'nope', expected inputs"),
        ({"moves": "nope"}, "mine: moves names 'nope', expected inputs"),
        ({"rows": {"K": "shuffled(N)"}}, "mine: rows are 'shuffled.N.', expected one of"),
        ({"rows": {"Q": "select(N, mask)"}}, "mine: rows speaks of 'Q'"),
        ({"describes": {"data": "N"}}, "mine: describes speaks of 'data'"),
    ],
)
def test_claims_about_what_an_op_does_not_have_are_refused(given, message):
    with pytest.raises(OpError, match=message):
        claims(**given)
