"""Open the engine that a job asks for."""

from __future__ import annotations

from contextlib import AbstractContextManager

from seqflow.engine.engine import Engine, EngineSettings
from seqflow.engine.local import ProcessEngine
from seqflow.engine.worker import Setup


def open_engine(settings: EngineSettings, setup: Setup) -> AbstractContextManager[Engine]:
    """The engine of these settings; JobError where it cannot be had."""
    if settings.kind == "ray":
        from seqflow.engine.ray import RayEngine

        return RayEngine(settings, setup)
    assert settings.workers is not None
    return ProcessEngine(settings.workers, setup)
