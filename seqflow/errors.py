"""The errors that seqflow raises.

The first line of a message names the op or place, the argument, the value found, the expected value and its origin; a
second line may give advice. Control characters in names are escaped.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import Any, Literal, Self, TypeVar, cast

from seqflow.hidden import hidden
from seqflow.printable import printable

F = TypeVar("F", bound=Callable[..., Any])
Asker = Literal["python", "job", "command"]
"""Reader of advice: the caller of a function, the author of a job, or the user of a command for files."""
_ASKERS: tuple[Asker, ...] = ("python", "job", "command")
with Path(__file__).with_name("spelled.txt").open(encoding="utf-8") as _lines:
    _SPELLED = dict(line.rstrip("\n").split("\t", 1) for line in _lines)
"""Options that advice names, as %(name)s, spelled for each who may ask; a command without one is told the first."""
_SPELLINGS = {
    asker: {name: [*of.split("\t"), of.partition("\t")[0]][at] for name, of in _SPELLED.items()}
    for at, asker in enumerate(_ASKERS)
}


def spelled(advice: str, asker: Asker) -> str:
    """Return advice with its options, %(name)s, as this asker writes them."""
    return advice % _SPELLINGS[asker] if "%(" in advice else advice


class SeqflowError(Exception):
    """Base class of all errors of seqflow."""

    argument: str = ""
    """Argument, option or setting that is wrong; empty for other errors."""
    ops: tuple[str, ...] = ()
    """Ops in which the error was raised, outermost first; the message starts with their names."""
    inputs: str = ""
    """Inputs of the innermost of these ops, from its signature; they end the first line of the message."""
    is_of_type: bool = False
    """Whether an argument did not have its annotated type: the outermost function that received it names it."""
    statement: str = ""
    """Statement of a net that failed."""
    asker: Asker | None = None
    """Reader of its advice; None is the caller of a function."""
    fault: tuple[int, str, str] | None = None
    """Fault in a malformed text: its position, a description, and advice, which may be empty."""

    def __init__(self, *args: object, advice: str = "") -> None:
        args = tuple(hidden(one) if isinstance(one, str) else one for one in args)
        super().__init__(*args)
        # not a property: torch calls exceptions of a class with a `message` in another way
        self.message = "\n".join(map(str, args))
        """Description of the error, without the names of ops and without advice."""
        self.advice = advice
        """Advice that ends the text."""

    @classmethod
    def of(cls, name: str, message: str, advice: str = "") -> Self:
        """Make an error about a function, or about its argument, `Packed.rows`; `message` follows the name."""
        owner, dot, argument = name.partition(".")
        error = cls(argument + " " * len(dot) + message, advice=advice)
        error.argument = argument
        return error.in_op(owner)

    @property
    def text(self) -> str:
        """Description and advice, without the names of ops."""
        return self.told(self.asker or "python")

    def told(self, asker: Asker) -> str:
        """Return `text` with its advice as this asker writes options."""
        advice = spelled(self.advice, asker)
        return f"{self.message}\n  {advice}" if advice else self.message

    def in_op(self, name: str, inputs: str = "") -> Self:
        """Add the op in which the error was raised, and its inputs, to the message."""
        if self.ops[:1] != (name,):
            self.ops = (name, *self.ops)
        self.inputs = self.inputs or inputs
        return self

    def __str__(self) -> str:  # KeyError would show the repr of the message
        first, newline, rest = self.text.partition("\n")
        inputs = f" ({self.inputs})" if self.inputs else ""
        return printable("".join(f"{name}: " for name in self.ops) + first + inputs + newline + rest)


def asked_by(asker: Asker) -> Callable[[F], F]:
    """Return a decorator: advice in errors of the function spells options for this asker."""

    def decorate(function: F) -> F:
        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except SeqflowError as error:
                error.asker = error.asker or asker
                raise

        return cast(F, call)

    return decorate


class ShapeError(SeqflowError, ValueError):
    """Shapes or dimensions that do not agree."""


class LodError(SeqflowError, ValueError):
    """Lengths that are malformed, or do not describe their values."""


class OpError(SeqflowError, ValueError):
    """An op was called with an argument that it does not accept."""


class OpTypeError(OpError, TypeError):
    """An op was called with an argument of a type or dtype that it does not accept."""


class OpIndexError(OpError, IndexError):
    """An op was called with an index outside its rows."""


class OpMemoryError(OpError, MemoryError):
    """An op was asked for a result that needs more memory than is available."""


class OpResultError(OpError):
    """A user's own op has returned another result than its signature declares: the op is wrong, not its input."""


class UnknownOpError(OpError, KeyError):
    """There is no registered op of that name."""


class ExpressionError(SeqflowError, ValueError):
    """A malformed expression, or operands that it does not accept."""


class NetError(SeqflowError, ValueError):
    """A malformed net, or a net that does not fit its inputs."""


class GradientError(NetError, OpError):
    """A gradient of something that has none, or a malformed formula of a derivative."""


class ProviderError(SeqflowError, ValueError):
    """A source of records that is missing, damaged, or has unexpected content."""


LEAVE_OUT = "%(bad_files)s leaves out damaged files and counts them"


class DamagedFileError(ProviderError):
    """A file, or a part of it, that is damaged or gone. `bad_files=` covers it, but not other errors of reading."""

    def __init__(self, *args: object, advice: str = "") -> None:
        has_own = advice or any("\n" in str(one).strip() for one in args)
        super().__init__(*(str(one).strip() for one in args), advice=advice if has_own else LEAVE_OUT)


class StoreError(ProviderError):
    """An object store that does not answer, refuses a request, or sends something else than was asked for."""


class MissingSourceError(ProviderError, FileNotFoundError):
    """A path that does not exist, or a pattern that matches nothing."""


class ProviderOptionError(ProviderError):
    """An option that a source does not have, or a value that the option does not accept."""


class FilterError(ProviderOptionError, ExpressionError):
    """A filter of rows (`where`) that cannot be understood, or does not fit the columns."""


class BatchPlanError(LodError, OpError):
    """A batch plan on lengths that the records do not have."""


class ProviderTypeError(ProviderError, TypeError):
    """An object that is neither a record nor a source."""


class UnknownColumnError(ProviderError, KeyError):
    """A column the source does not have."""


class WriteError(SeqflowError, OSError):
    """A file that cannot be written: the disk is full, or its folder is not writable."""


class JobError(SeqflowError, ValueError):
    """A job file, or an override of it, that cannot be understood."""


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return `" (did you mean 'x'?)"` for the known name closest to `name`, or an empty string.

    A name that is less alike than `cutoff`, from 0 to 1, is not suggested.
    """
    from difflib import get_close_matches

    close = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f" (did you mean {close[0]!r}?)" if close else ""
