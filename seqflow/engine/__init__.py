"""Engines run the tasks of a job: in processes of this machine, or on a Ray cluster."""

from seqflow.engine.engine import Engine, EngineSettings, in_order
from seqflow.engine.opening import open_engine
from seqflow.engine.worker import Setup

__all__ = ["Engine", "EngineSettings", "Setup", "in_order", "open_engine"]
