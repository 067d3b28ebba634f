"""The main job beside the same by hand, as fresh processes.

    python benchmarks/pack_source.py [--rounds 5]

Both read the standard library's source files and write packed rows of 2,048 tokens to a Parquet file of the same
encodings; `pack_source_plain.py` cuts the stream where a row is full, the job packs best fit.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as compute
import pyarrow.parquet as pq

from comparison import Row, main

HERE = Path(__file__).parent
JOB = HERE.parent / "examples" / "pack_source.toml"


def run(*command: str) -> None:
    """A process that finds compiled modules, as after an installation."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    subprocess.run([sys.executable, *command], check=True, stdout=subprocess.DEVNULL, env=environment)


def tokens_of(path: Path) -> int:
    """How many tokens the pieces of a file's rows have."""
    lengths = pq.read_table(path, columns=["piece_lengths"])["piece_lengths"]
    return int(compute.sum(compute.list_flatten(lengths)).as_py())


def jobs() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as name:
        out, plain = Path(name) / "job", Path(name) / "plain.parquet"
        command = ["-m", "seqflow", "run", str(JOB), "--output", str(out), "--overwrite", "--quiet"]

        def agree(*_: Any) -> None:
            assert tokens_of(out / "part-00000.parquet") == tokens_of(plain)

        yield Row(
            "seqflow run examples/pack_source.toml",
            lambda: run(*command),
            {"plain pyarrow": lambda: run(str(HERE / "pack_source_plain.py"), str(plain))},
            {"plain pyarrow": 1.2},
            why="half a second of imports; then both wait for one thread that writes Parquet",
            agree=agree,
            rounds=5,
        )


FAMILIES = [jobs]

if __name__ == "__main__":
    main(FAMILIES)
