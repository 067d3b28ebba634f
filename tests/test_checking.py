"""Checking a job from its source's schema alone."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from seqflow import LodError
from seqflow.job import Job
from seqflow.job.checking import check


@pytest.fixture
def source(tmp_path):
    lists = pa.array([[1, 2], [3]], pa.list_(pa.int32()))
    pq.write_table(pa.table({"tokens": lists, "labels": lists, "id": [0, 1]}), tmp_path / "x.parquet")
    return {"paths": [str(tmp_path / "x.parquet")]}


def test_every_tensor_is_known_before_any_row_is_read(source):
    found = check(Job.from_dict({
        "source": source,
        "prepare": {"net": "ids, n = truncate(tokens.values, tokens.lengths, max_length=512)\nreturn ids, n, id"},
        "batch": {"kind": "rows", "n": 32},
        "net": {"net": "x, mask = pad(ids, n, max_length=512)\nreturn x, mask, id"},
    }))  # fmt: skip
    assert str(found.source["tokens.values"]) == "int32{sum(tokens.lengths)}"
    assert str(found.batch["n"]) == "int64{batch:0..32}"
    assert str(found.net.specs["x"]) == "int32{batch:0..32,512}"
    assert found.net.specs["x"].byte_bound == 32 * 512 * 4
    assert "[prepare]" in str(found)


def test_packed_batches_have_rows_of_the_capacity(source):
    found = check(
        Job.from_dict(
            {"source": {**source, "columns": ["tokens"]}, "batch": {"kind": "packed", "capacity": 8}}
        )
    )
    assert str(found.batch["tokens"]) == "int32{rows,8}"


def test_values_of_one_column_with_lengths_of_another_fail_before_reading(source):
    net = {"net": "y = lengths_sum(tokens.values, labels.lengths)\nreturn y"}
    with pytest.raises(LodError, match=r"tokens.lengths describes, but lengths is labels.lengths"):
        check(Job.from_dict({"source": source, "net": net}))
    net["net"] = "same_lengths(tokens.lengths, labels.lengths)\n" + net["net"]
    check(Job.from_dict({"source": source, "net": net}))
