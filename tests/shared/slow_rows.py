"""An op that takes its time, for jobs whose workers are killed; installed on all machines, as the modules of a job are."""

import os
import time

from seqflow import op


@op("x[N] -> y[N]")
def wait_for_rows(x):
    """The same, after the seconds that WAIT says."""
    time.sleep(float(os.environ.get("WAIT", 0)))
    return x
