"""`seqflow info`."""

import json

import pyarrow as pa
from command import seqflow

import seqflow as sf


def test_info_says_which_kernels_are_in_use() -> None:
    facts = json.loads(seqflow("info", "--json").stdout)
    assert facts["kernels"] == sf.info()["kernels"]
    assert facts["pyarrow"] == pa.__version__
    assert "kernels" in seqflow("info").stdout
