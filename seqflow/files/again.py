"""Attempts at a request, repeated while another one may help: for a time, not for a number of attempts."""

import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from seqflow.errors import ProviderError, StoreError
from seqflow.files.errors import Place, judge

T = TypeVar("T")
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 4.0


def again(place: Place, do: Callable[[], T], seconds: float) -> T:
    """Return the result of a request; repeat it for so many seconds while its errors may pass.

    Waits grow, and are drawn at random: the requests of many threads, refused together, do not come back together.
    """
    started, attempts, wait = time.monotonic(), 0, _FIRST_WAIT
    while True:
        attempts += 1
        try:
            return do()
        except (ProviderError, MemoryError):
            raise
        except Exception as error:
            verdict = judge(place, error)
            allowed = min(seconds, verdict.seconds)
            # the end of the process waits for the threads that fetch ahead
            is_ending = not threading.main_thread().is_alive()
            if is_ending or time.monotonic() - started + wait >= allowed:
                raise (verdict.error or _no_answer(place, allowed, attempts, verdict.reason)) from None
        time.sleep(wait * random.uniform(0.5, 1.0))
        wait = min(2 * wait, _LONGEST_WAIT)


def _no_answer(place: Place, seconds: float, attempts: int, reason: str) -> StoreError:
    return StoreError(
        f"{place}: no answer in {seconds:.0f} s, after {attempts} attempt{'s' * (attempts != 1)}; the last: {reason}",
        advice='storage_options={"retry_seconds": …} waits for longer',
    )
