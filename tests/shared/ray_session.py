"""A Ray of this machine for tests: started with few processes, and ended."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


@contextmanager
def ray_session(cpus: int) -> Iterator[Any]:
    """Ray with so many CPUs; the test is skipped where it is not installed."""
    pytest.importorskip("ray")
    from seqflow.workers.ray import import_ray

    ray = import_ray()
    folder = tempfile.mkdtemp(
        prefix="ray", dir="/tmp" if sys.platform != "win32" else None
    )  # paths of sockets are short
    options = {"include_dashboard": False, "log_to_driver": False, "logging_level": "ERROR"}
    ray.init(address="local", num_cpus=cpus, object_store_memory=128 << 20, _temp_dir=folder, **options)
    try:
        yield ray
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
