"""Jobs: a source, what is done to it and where it goes, in one TOML file."""

from seqflow.job.running import Report, run
from seqflow.job.sections import Job, Order, Output, Source, Transform

__all__ = ["Job", "Order", "Output", "Report", "Source", "Transform", "run"]
