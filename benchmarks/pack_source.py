"""The main job beside the same by hand, as fresh processes in one run.

    python benchmarks/pack_source.py [--times 5]

Prints the least seconds of each, their ratio, peak memory, and the job's peak memory on ten times the input.
"""

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).parent
JOB = HERE.parent / "examples" / "pack_source.toml"


def measure(command: list[str]) -> tuple[float, float]:
    """Seconds and peak memory in MB of a process."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{command} failed")
    return time.perf_counter() - started, usage.ru_maxrss / 1024


def job(out: Path, *extra: str) -> list[str]:
    return [
        sys.executable,
        "-m",
        "seqflow",
        "run",
        str(JOB),
        "--output",
        str(out),
        "--overwrite",
        "--quiet",
        *extra,
    ]


def plain(out: Path) -> list[str]:
    return [sys.executable, str(HERE / "pack_source_plain.py"), str(out)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--times", type=int, default=5)
    times = parser.parse_args().times
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        runs = [(measure(job(out / "job")), measure(plain(out / "plain.parquet"))) for _ in range(times)]
        ours, theirs = (min(run[i][0] for run in runs) for i in (0, 1))
        memory = [max(run[i][1] for run in runs) for i in (0, 1)]
        print(f"seqflow run       {ours:.3f} s  {memory[0]:.0f} MB")
        print(f"plain pyarrow     {theirs:.3f} s  {memory[1]:.0f} MB")
        print(f"ratio             {ours / theirs:.2f}")
        ten = out / "ten"
        stdlib = sysconfig.get_paths()["stdlib"]
        for i in range(10):
            shutil.copytree(
                stdlib, ten / str(i), ignore=shutil.ignore_patterns("site-packages", "*.pyc", "*.so")
            )
        seconds, peak = measure(job(out / "ten-times", "--input", f"{ten}/**/*.py"))
        print(f"ten times input   {seconds:.3f} s  {peak:.0f} MB")


if __name__ == "__main__":
    main()
