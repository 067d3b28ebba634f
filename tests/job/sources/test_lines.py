"""Jobs over files of lines that are killed and go on write what an undisturbed one does."""

import gzip
import json
from pathlib import Path

import pytest
from killed_jobs import write_dying_job, written_though_killed

ROWS = 1000


def write_json(path: Path) -> None:
    path.write_text("".join(json.dumps({"day": n, "ids": [n] * (n % 4)}) + "\n" for n in range(ROWS)))


def write_csv(path: Path) -> None:
    lines = [f"{n},{' '.join([str(n)] * (n % 4))}\n" for n in range(ROWS)]
    path.write_bytes(gzip.compress("".join(["day,ids\n", *lines]).encode()))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("write", "name", "options"),
    [
        (write_json, "a.jsonl", "[source.jsonl]"),
        (write_csv, "a.csv.gz", 'fill = {ids = []}\n[source.csv]\nlist_delimiter = " "'),
    ],
    ids=["json", "csv"],
)
def test_a_job_that_is_killed_at_five_points_writes_what_an_undisturbed_one_does(
    tmp_path: Path, write: object, name: str, options: str
) -> None:
    write(tmp_path / name)  # type: ignore[operator]
    schema = 'schema = {day = "int64", ids = "list<int64>"}'
    write_dying_job(tmp_path, f'[source]\npaths = "{name}"\n{options}\n{schema}\nbatch_bytes = 1024')
    assert sorted(written_though_killed(tmp_path)) == list(range(ROWS))
