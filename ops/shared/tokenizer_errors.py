"""The errors of the package tokenizers as ours."""

from collections.abc import Iterator
from contextlib import contextmanager

from seqflow.errors import OpError


@contextmanager
def tokenizer_errors(what: str) -> Iterator[None]:
    """Raise what the package raises as an OpError: Exception itself, and panics of Rust, which are no Exception."""
    try:
        yield
    except MemoryError:
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise OpError(f"tokenizer: {what}: {error}") from error
