"""Check a job in CI, where there are no data: a file without rows has the schema, which is all that a check needs.

Names, types, nets and settings are those of the data; sizes that depend on the number of rows are those of no rows.

python examples/check_in_ci.py
"""

import json
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq

JOB = """
[source]
paths = "/data/of/the/cluster/*.parquet"
columns = ["tokens"]
[batch]
kind = "packed"
capacity = 2048
rows = 64
[output]
path = "out"
"""
with open("job.toml", "w", encoding="utf-8") as file:
    file.write(JOB)
pq.write_table(pa.schema({"tokens": pa.list_(pa.int32())}).empty_table(), "empty.parquet")
command = [sys.executable, "-m", "seqflow", "check", "job.toml", "--input", "empty.parquet", "--json"]
done = subprocess.run(command, capture_output=True, text=True, check=True)
batch = json.loads(done.stdout)["sources"][0]["batch"]
assert batch["tokens"]["type"].startswith("int32{rows")
assert {"segment_ids", "position_ids"} < batch.keys()
print(
    "\n".join(
        f"{name}: {tensor['type']}, at most {tensor['bytes']:,} bytes" for name, tensor in batch.items()
    )
)
