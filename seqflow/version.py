"""The version of seqflow."""

__version__ = "0.4.0"
