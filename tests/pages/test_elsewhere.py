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


@pytest.mark.slow
@pytest.mark.parametrize("example", EXAMPLES, ids=[f"{package_of(e)}{i}" for i, e in enumerate(EXAMPLES)])
def test_the_example_runs(example, tmp_path):
    for name in re.findall(r"^(?:import|from) ([\w.]+)", example, re.MULTILINE):
        pytest.importorskip(name, exc_type=ImportError)
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"HOME": str(tmp_path), "PYTHONUSERBASE": site.getuserbase()}  # Ray Train writes there
    environment |= {"HF_HOME": str(tmp_path), "RAY_USAGE_STATS_ENABLED": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SHARED + example],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
