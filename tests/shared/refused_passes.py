"""Passes of a DataLoader with workers that end with an error."""

import traceback
from typing import Any

import pytest

from seqflow.errors import OpError, SeqflowError


def refusal_of(data: Any, kind: type[SeqflowError] = OpError) -> str:
    """The message of the error of this kind that a pass ends with.

    The exception knows frames, which know the workers: where the garbage collector finds them together, torch waits five
    seconds for each worker, in whatever test runs then.
    """
    try:
        list(data)
    except kind as error:
        traceback.clear_frames(error.__traceback__)
        return str(error)
    pytest.fail("the pass is not refused")
