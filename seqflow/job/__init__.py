"""Jobs: source, nets, batches and output in one TOML file."""

from seqflow.job.job import Job
from seqflow.job.opening import open_batches
from seqflow.job.running import Report, run
from seqflow.job.sections import NetSection, OrderSection, OutputSection, SourceSection

__all__ = [
    "Job",
    "OrderSection",
    "OutputSection",
    "Report",
    "SourceSection",
    "NetSection",
    "open_batches",
    "run",
]
