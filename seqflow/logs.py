"""The log of the package, without credentials; not in `seqflow.hidden`, which each first call of an op imports."""

import logging

from seqflow.hidden import hidden


def hide_in_logs(record: logging.LogRecord) -> bool:
    """Take the credentials out of a line of a log; a filter for loggers."""
    record.msg, record.args = hidden(record.getMessage()), None
    return True


log = logging.getLogger("seqflow")
log.addFilter(hide_in_logs)
