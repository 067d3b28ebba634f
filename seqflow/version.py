"""The version of seqflow."""

__version__ = "0.1.0"
