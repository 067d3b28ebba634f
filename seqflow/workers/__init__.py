"""Engines run the tasks of a job: in processes of this machine, or on a Ray cluster."""

from seqflow.workers.engine import Engine, EngineSettings, in_order
from seqflow.workers.opening import open_engine
from seqflow.workers.worker import Setup

__all__ = ["Engine", "EngineSettings", "Setup", "in_order", "open_engine"]
