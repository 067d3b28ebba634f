"""Jobs and batches that tests write."""

from pathlib import Path

import numpy as np

from seqflow.output import open_output
from seqflow.record import Record


def record(start: int, rows: int) -> Record:
    return Record({"x": np.arange(start, start + rows)}, {"x": None}, rows, None)


def write(path: Path, batches: list[Record], **settings: object) -> list[Path]:
    with open_output(path, **settings) as output:  # type: ignore[arg-type]
        for batch in batches:
            output.write(batch)
        return [file.path for file in output.finish()]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write_job(folder: Path, text: str) -> Path:
    path = folder / "job.toml"
    path.write_text(text)
    return path
