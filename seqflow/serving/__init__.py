"""A service of batches over Arrow Flight: servers that make batches, and clients that take them as from a loader."""

from seqflow.serving.client import ServedLoader, served
from seqflow.serving.server import BatchServer, serve

__all__ = ["BatchServer", "ServedLoader", "serve", "served"]
