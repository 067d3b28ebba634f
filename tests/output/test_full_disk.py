"""A file that cannot be written is our error, which names it, whatever it is for; nothing of it is left."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PROGRAM = r"""
import json, os, resource, signal
from pathlib import Path
import seqflow as sf
from seqflow.cli.report import report
from seqflow.job import Job, run
from seqflow.output.durable_files import append_bytes

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
open("log", "w").close()
vocabulary = sf.Vocabulary([str(n) for n in range(4000)])
job = Job.from_dict({"source": {"paths": "t.parquet"}, "output": {"path": "out"}})
bad_rows = sf.BadRows("quarantine", "bad.parquet")
writes = {
    "i.arrow": lambda: len(sf.Loader("t.parquet", batch=sf.TokenBudget(100, lengths="t"), index="i.arrow")),
    "bad.parquet": lambda: list(sf.Loader("nulls.parquet", batch=100, bad_rows=bad_rows)),
    "v.arrow": lambda: vocabulary.save("v.arrow"),
    "out": lambda: run(job),
    "page.html": lambda: report("t.parquet", Path("page.html")),
    "log": lambda: append_bytes("log", bytes(5000)),
    "no/such/v.arrow": lambda: vocabulary.save("no/such/v.arrow"),
}
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
found = {}
for name, write in writes.items():
    try:
        write()
    except Exception as error:
        found[name] = [[kind.__name__ for kind in type(error).__mro__], str(error), getattr(error, "errno", None)]
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(json.dumps([found, sorted(os.listdir())]))
"""


@pytest.mark.slow
def test_what_cannot_be_written_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    pq.write_table(pa.table({"t": [[row] * 3 for row in range(4000)]}), tmp_path / "t.parquet")
    pq.write_table(pa.table({"n": [*range(2000), *[None] * 2000]}), tmp_path / "nulls.parquet")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    errors, left = json.loads(done.stdout)
    for name, (classes, message, errno) in errors.items():
        assert classes[0] == "WriteError", (name, message)
        assert {"SeqflowError", "OSError"} < set(classes)
        assert message.startswith("cannot write '"), message
        assert name in message
        assert ("File too large" in message) != ("no/such" in message)
        assert errno is not None
    assert len(errors) == 7  # a job keeps what it has finished
    assert [name for name in left if name != "out"] == ["log", "nulls.parquet", "page.html", "t.parquet"]
