"""Errors of stores: which ones pass while a request is repeated, and words for those that do not."""

import random
import re
import threading
import time
from collections.abc import Callable
from typing import NamedTuple, TypeVar

from seqflow.errors import DamagedFileError, ProviderError, StoreError

T = TypeVar("T")
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 4.0
"""Seconds between attempts. They are repeated for a time, not for a number of attempts."""
_STATUS, _CODE = re.compile(r"(?:status code:|HTTP Error) (\d{3})"), re.compile(r"<Code>(\w+)</Code>")
_HOST = re.compile(r"https?://([^/\s:]+)")
_BRIEFLY = 10.0
"""Seconds after which an answer that may pass, but rarely does, is final."""
_PASSING = {"RequestTimeout", "SlowDown", "InternalError", "ServiceUnavailable", "OperationAborted"}
_REASONS = {
    "ConnectionRefused": "connection refused",
    "dns error": "the host is not known",
    "TimedOut": "no answer in time",
    "ConnectionReset": "the connection was reset",
    "UnexpectedEof": "the connection was cut",
    "IncompleteMessage": "the connection was cut",
    "ncomplete": "the connection was cut",
    "BrokenPipe": "the connection was cut",
}
"""Words for causes, by a part of the client's text."""


_OF_CREDENTIALS = (
    "/latest/api/token",
    "/latest/meta-data",
    "metadata.google.internal",
    "/metadata/identity",
    "Missing",
)
"""Parts of the addresses where machines of clouds find credentials: the client asks there if it was given none."""


class ShortError(Exception):
    """Fewer or more bytes have come than were asked for."""


class WholeFileError(Exception):
    """A server has sent something else than the range that was asked for; the text is its type."""


class ChangedError(Exception):
    """The object has another version now."""


class Verdict(NamedTuple):
    """Meaning of an error of a store: how long to try again, and the error if that does not help."""

    seconds: float
    """Seconds for which another attempt may help; 0 if none does, infinity for as long as is allowed."""
    reason: str
    error: ProviderError | None = None
    """Error to raise at once, or after these seconds; None to say for how long there was no answer."""


class RequestPlace(NamedTuple):
    """The object, or the part of one, that a request is about, as messages show it."""

    root: str
    path: str
    span: str = ""
    version: str = ""
    region: str = ""
    access_key: str = ""

    def __str__(self) -> str:
        return f"{self.path}{self.span}"


def judge(place: RequestPlace, error: Exception) -> Verdict:
    """Return what the error of a request means."""
    forever, text = float("inf"), str(error)
    first = " ".join(text.partition("\n\nDebug source")[0].split())
    status = int(found[1]) if (found := _STATUS.search(first)) else None
    code = found[1] if (found := _CODE.search(first)) else ""
    if isinstance(error, ShortError):
        return Verdict(forever, text, StoreError(f"{place}: {text}"))
    if isinstance(error, WholeFileError) or "non-partial response" in text:
        kind = f" ({text})" if isinstance(error, WholeFileError) and text else ""
        why = "the server sends whole files only (it ignores ranges), or something between answers for it"
        return Verdict(_BRIEFLY, why, StoreError(f"{place}: {why}{kind}"))
    # 416: nothing is asked for beyond the end, so the end has changed
    is_changed = (
        isinstance(error, ChangedError) or type(error).__name__ == "PreconditionError" or status == 416
    )
    if is_changed:
        return Verdict(0, "", changed(place))
    if code in _PASSING:
        return Verdict(forever, code)
    if (refused := _refused(place, error, first, status, code)) is not None:
        return Verdict(0, "", refused)
    if status is not None and (status in (408, 409, 429) or status >= 500):
        return Verdict(forever, f"status {status}")
    if status is not None:
        return Verdict(0, "", StoreError(f"{place}: the store answers {status} {code}".rstrip()))
    reason = next((words for part, words in _REASONS.items() if part in text), first[-200:])
    if "dns error" in text:
        host = found[1] if (found := _HOST.search(first)) else place.root
        unknown = StoreError(
            f"the host of {place.root}, {host!r}, is not known: check region and endpoint",
            advice="%(endpoint_url)s names another",
        )
        return Verdict(_BRIEFLY, reason, unknown)
    return Verdict(forever, reason)


def is_below_file(error: BaseException) -> bool:
    """Return whether something was requested below a file of this machine, where there is nothing."""
    return isinstance(error, NotADirectoryError) or "Not a directory (os error" in str(error)


def changed(place: RequestPlace) -> DamagedFileError:
    """Return the error for an object that was replaced after it was opened."""
    was = f": its version was {place.version}, and the store has another now" if place.version else ""
    return DamagedFileError(
        f"{place.path} is another object than when it was opened{was}", advice="open it again"
    )


def missing(place: RequestPlace) -> DamagedFileError:
    """Return the error for an object that is not there, or not any more."""
    return DamagedFileError(f"{place.path} does not exist (any more)")


def _refused(
    place: RequestPlace, error: Exception, first: str, status: int | None, code: str
) -> ProviderError | None:
    """Return the error for a request that no other attempt can make succeed; None for others."""
    if (
        code == "NoSuchBucket"
        or "incorrectly configured region" in first
        or code in ("PermanentRedirect", "AuthorizationHeaderMalformed")
    ):
        region = f" than {place.region}" if place.region else ""
        return StoreError(f"{place.root} does not exist, or lies in another region{region}")
    if (
        isinstance(error, FileNotFoundError)
        or is_below_file(error)
        or type(error).__name__ == "NotFoundError"
        or status == 404
    ):
        return missing(place)
    if any(part in first for part in _OF_CREDENTIALS):
        return StoreError(
            f"no credentials for {place.root}: neither options, environment nor this machine have any",
            advice="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (or the variables of another cloud), or pass "
            "%(skip_signature)s for a public bucket",
        )
    if status in (401, 403) or type(error).__name__ in ("PermissionDeniedError", "UnauthenticatedError"):
        skewed = code in ("SignatureDoesNotMatch", "RequestTimeTooSkewed")
        key = f" to key {place.access_key!r}" if place.access_key else ""
        advice = (
            "check the credentials of storage_options, environment or machine, and what they allow to read"
        )
        if skewed:
            advice = "the secret is another, or the clock of this machine is off by more than 15 minutes"
        if place.root.startswith("hf:"):
            advice = (
                'set HF_TOKEN, or pass storage_options={"token": …}; the hub refuses unknown names as well'
            )
        return StoreError(f"{place.path}: access denied{key}{f': {code}' if code else ''}", advice=advice)
    return None


def again(place: RequestPlace, do: Callable[[], T], seconds: float) -> T:
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


def _no_answer(place: RequestPlace, seconds: float, attempts: int, reason: str) -> StoreError:
    return StoreError(
        f"{place}: no answer in {seconds:.0f} s, after {attempts} attempt{'s' * (attempts != 1)}; the last: {reason}",
        advice="%(retry_seconds)s waits for longer",
    )
