"""Open the engine that a job asks for."""

from contextlib import AbstractContextManager

from seqflow.workers.engine import Engine, EngineSettings
from seqflow.workers.worker import Setup


def open_engine(settings: EngineSettings, setup: Setup) -> AbstractContextManager[Engine]:
    """Return the engine of these settings; raise JobError when it is not available."""
    if settings.kind == "ray":
        from seqflow.workers.ray import RayEngine

        return RayEngine(settings, setup)
    from seqflow.workers.local import ProcessEngine

    assert settings.workers is not None
    return ProcessEngine(settings.workers, setup)
