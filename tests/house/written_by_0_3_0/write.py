"""Write states, an index and outputs, by the code of 0.3.0 with its NumPy kernels: `python write.py FOLDER`."""

import json
import shutil
import sys
from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import seqflow as sf
from seqflow.job import Job, run

HERE, FOLDER = Path(__file__).parent, Path(sys.argv[1])
PLANS = {
    "rows": 8,
    "budget": sf.TokenBudget(64),
    "packed": sf.Packed(32),
    "buckets": sf.Buckets([2, 4, 8], sf.Rows(8)),
}


def stop(stats, total):
    if stats.batches == 60:
        raise InterruptedError


def state_of(loader):
    batches = iter(loader)
    for _ in range(5):
        next(batches)
    state = loader.state_dict()
    rest = [batch["tokens" if "tokens" in batch else "tokens.values"].tolist() for batch in batches]
    return {"state": state, "next": rest[:3], "left": len(rest)}


assert sf.__version__ == "0.3.0"
data = FOLDER / "d.parquet"
pq.write_table(pa.table({"tokens": [[n] * (n % 7) for n in range(1000)]}), data, row_group_size=100)
options = {"shuffle": sf.Shuffle(3), "window": "4 KiB"}
states = {name: state_of(sf.Loader(data, batch=plan, **options)) for name, plan in PLANS.items()}
states["mix"] = state_of(
    sf.Mix({"a": data, "b": data}, weights={"a": 0.7, "b": 0.3}, seed=1, batch=8, **options)
)
(FOLDER / "states.json").write_text(json.dumps(states, separators=(",", ":")))
len(sf.Loader(data, batch=sf.TokenBudget(64), window="4 KiB", index=FOLDER / "d.index"))
for name, progress in (("complete", None), ("begun", stop)):
    (FOLDER / name).mkdir()
    shutil.copy(data, FOLDER / name)
    shutil.copy(HERE / "job.toml", FOLDER / name)
    with suppress(InterruptedError):
        run(Job.read(FOLDER / name / "job.toml"), progress)
