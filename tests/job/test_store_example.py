"""The example job from a bucket to a bucket, run as its first lines say, with its options from the environment."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow

JOB = Path(__file__).parents[2] / "examples" / "pack_store.toml"


def test_the_example_packs_a_bucket_into_a_prefix_of_it(
    own: Any, bucket: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", bucket.options["aws_access_key_id"])
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", bucket.options["aws_secret_access_key"])
    monkeypatch.setenv("AWS_ENDPOINT_URL", own.url)
    lengths = np.random.default_rng(0).integers(1, 3000, 60)
    tokens = [np.arange(length, dtype=np.int32) for length in lengths]
    pq.write_table(pa.table({"tokens": tokens}), tmp_path / "a.parquet")
    bucket.put("tokens/a.parquet", tmp_path / "a.parquet")
    cache = f"source.cache={tmp_path / 'cache'}"
    done = seqflow(
        "run", str(JOB), "--input", f"{bucket.uri}/tokens/*.parquet", "--output", f"{bucket.uri}/packed",
        "--set", cache, "--quiet",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "packed/_manifest.json" in bucket.keys("packed")
    written = pq.read_table(pa.BufferReader(bucket.get("packed/part-00000.parquet")))
    # every token is in one row of 8,192, and documents begin at position 0
    assert {len(row) for row in written["tokens"].to_pylist()} == {8192}
    segments = np.array(written["segment_ids"].to_pylist())
    positions = np.array(written["position_ids"].to_pylist())
    assert (segments > 0).sum() == lengths.sum()
    assert ((positions == 0) & (segments > 0)).sum() == len(lengths)
