"""The errors that seqflow raises.

The first line of a message names the op or place, the argument, what was found, what was expected and where
it came from; a second line says what to do, where that helps. Names in it are shown with their control characters
escaped.
"""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Self

from seqflow.printable import printable


class SeqflowError(Exception):
    """Base class of all errors of seqflow."""

    argument: str = ""
    """The argument, option or setting that is wrong, where it is one."""
    ops: tuple[str, ...] = ()
    """The ops it comes from, outermost first; the message starts with their names."""
    inputs: str = ""
    """What the innermost of these ops takes, as its signature says; it ends the first line of the message."""
    is_of_type: bool = False
    """Whether an argument was not of its annotated type: the outermost function that was given it names it."""
    statement: str = ""
    """The statement of a net that failed."""
    fault: tuple[int, str, str] | None = None
    """Of a malformed text: the position, what is wrong there, and advice, which may be empty."""

    def __init__(self, *args: object, advice: str = "") -> None:
        super().__init__(*args)
        # not a property: torch calls exceptions of a class with a `message` in another way
        self.message = "\n".join(map(str, args))
        """What is wrong, without the names of ops and without advice."""
        self.advice = advice
        """What to do, which ends the text."""

    @classmethod
    def of(cls, name: str, message: str, advice: str = "") -> Self:
        """An error about a function, or about an argument of it, `Packed.rows`: `message` goes on after the name."""
        owner, dot, argument = name.partition(".")
        error = cls(argument + " " * len(dot) + message, advice=advice)
        error.argument = argument
        return error.in_op(owner)

    @property
    def text(self) -> str:
        """What is wrong and what to do, without the names of ops."""
        return f"{self.message}\n  {self.advice}" if self.advice else self.message

    def in_op(self, name: str, inputs: str = "") -> Self:
        """Add the op that the error comes from, and the inputs that it takes, to the message."""
        if self.ops[:1] != (name,):
            self.ops = (name, *self.ops)
        self.inputs = self.inputs or inputs
        return self

    def __str__(self) -> str:  # KeyError would show the repr of the message
        first, newline, rest = self.text.partition("\n")
        inputs = f" ({self.inputs})" if self.inputs else ""
        return printable("".join(f"{name}: " for name in self.ops) + first + inputs + newline + rest)


class ShapeError(SeqflowError, ValueError):
    """Shapes or dimensions that do not agree."""


class LodError(SeqflowError, ValueError):
    """Lengths that are malformed, or do not describe the values they came with."""


class OpError(SeqflowError, ValueError):
    """An op was called with an argument it does not take."""


class OpTypeError(OpError, TypeError):
    """An op was given an argument of a type or dtype it does not take."""


class OpIndexError(OpError, IndexError):
    """An op was given an index outside the rows it points into."""


class OpMemoryError(OpError, MemoryError):
    """An op was asked for a result that needs more memory than there is."""


class OpResultError(OpError):
    """An op of your own has given another result than its signature declares: the op is wrong, not its input."""


class UnknownOpError(OpError, KeyError):
    """No op of that name is registered."""


class ExpressionError(SeqflowError, ValueError):
    """A malformed expression, or operands that it does not take."""


class NetError(SeqflowError, ValueError):
    """A malformed net, or a net that does not fit its inputs."""


class GradientError(NetError, OpError):
    """A gradient is asked of what has none, or a formula of a derivative is malformed."""


class ProviderError(SeqflowError, ValueError):
    """A source of records that is missing, damaged, or holds what was not asked for."""


class MissingSourceError(ProviderError, FileNotFoundError):
    """A path that does not exist, or a pattern that matches nothing."""


class ProviderOptionError(ProviderError):
    """An option that a source does not have, or does not have with this value."""


class FilterError(ProviderOptionError, ExpressionError):
    """A filter of rows (`where`) that cannot be understood, or does not fit the columns."""


class BatchPlanError(LodError, OpError):
    """A batch is to be planned on lengths that the records do not have."""


class ProviderTypeError(ProviderError, TypeError):
    """An object that is no record and no source."""


class UnknownColumnError(ProviderError, KeyError):
    """A column the source does not have."""


class WriteError(SeqflowError, OSError):
    """A file that cannot be written: the disk is full, or its folder takes no files."""


class JobError(SeqflowError, ValueError):
    """A job file, or an override of it, that cannot be understood."""


def nearest(name: str, known: Iterable[str]) -> str:
    """`" (did you mean 'x'?)"` for the known name closest to `name`, or an empty string."""
    close = get_close_matches(name, list(known), n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
