"""A call in a forked child, which is ended after a time: a hang in native code is a failure, too."""

import os
import signal
from collections.abc import Callable

from seqflow.errors import SeqflowError

REFUSED = 3
SECONDS = 20


def outcome_in_child(call: Callable[[], object]) -> str:
    """Return "made", "refused" for an error of ours, or else how the child ended."""
    child = os.fork()
    if not child:
        signal.alarm(SECONDS)
        code = 1
        try:
            call()
            code = 0
        except SeqflowError:
            code = REFUSED
        finally:
            os._exit(code)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return {0: "made", REFUSED: "refused", 1: "foreign error"}.get(status, f"ended with {status}")
