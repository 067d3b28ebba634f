"""The version of seqflow."""

__version__ = "0.2.0"
