"""The version of seqflow."""

__version__ = "0.3.0"
