"""From an id for each row to rows group by group, in C++."""

from seqflow.kernels.reference.groups import group_rows

__all__ = ["group_rows"]
