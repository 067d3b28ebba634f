"""Where records come from: files, Arrow streams and memory, all read block by block."""

if __name__ != "seqflow.providers":
    raise ImportError("import seqflow.providers; the name 'providers' alone is a folder of the repository")

from seqflow.providers.opening import open
from seqflow.providers.own_sources import OwnSource
from seqflow.providers.provider import Block, Provider, Source

__all__ = ["Block", "OwnSource", "Provider", "Source", "open"]
