"""The examples of docs/elsewhere.md, each in the engine that it is for."""

import os
import re
import site
import subprocess
import sys

import pytest
from pages import codes_of

SHARED, *EXAMPLES = codes_of("docs/elsewhere.md")


def package_of(example):
    return re.search(r"^(?:import|from) (\w+)", example, re.MULTILINE).group(1)


def test_each_engine_has_an_example():
    assert [package_of(example) for example in EXAMPLES] == [
        "polars", "duckdb", "duckdb", "pyarrow", "polars", "duckdb", "datasets", "ray", "ray", "ray", "pyspark"
    ]  # fmt: skip


OF_RAY = [example for example in EXAMPLES if package_of(example) == "ray"]
OTHERS = [example for example in EXAMPLES if example not in OF_RAY]


def ran(examples, folder):
    """Run examples one after another in one process, where their packages are installed."""
    for name in re.findall(r"^(?:import|from) ([\w.]+)", "".join(examples), re.MULTILINE):
        pytest.importorskip(name, exc_type=ImportError)
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"HOME": str(folder), "PYTHONUSERBASE": site.getuserbase()}  # Ray Train writes there
    environment |= {"HF_HOME": str(folder), "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SHARED + "".join(examples)],
        capture_output=True,
        text=True,
        env=environment,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("example", OTHERS, ids=[f"{package_of(e)}{i}" for i, e in enumerate(OTHERS)])
def test_the_example_runs(example, tmp_path):
    ran([example], tmp_path)


@pytest.mark.slow
def test_the_examples_for_ray_run_on_one_cluster(tmp_path):
    """On that which the last of them starts."""
    ran(OF_RAY[::-1], tmp_path)
