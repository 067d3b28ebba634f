"""Job files for tests."""

from pathlib import Path


def write_job(folder: Path, text: str) -> Path:
    path = folder / "job.toml"
    path.write_text(text)
    return path
