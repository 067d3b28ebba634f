"""Text that contains a pattern, and text with parts replaced: functions of Arrow on the same bytes."""

from typing import Any

import numpy as np

from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.strings import Errors, check_escapes, from_strings, join, to_strings
from seqflow.ops.text import bound_bytes, bound_lower
from seqflow.registry import op
from seqflow.shape import InferenceContext


def _with_pattern(function: str, strings: Any, pattern: str | None, regex: str | None, **options: Any) -> Any:
    """Call a function of Arrow by pattern or by regular expression; raise OpError unless exactly one is usable."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if (pattern is None) == (regex is None):
        raise OpError(
            f"pattern and regex are {'missing' if regex is None else 'both given'}, expected one of them"
        )
    given, text = ("pattern", pattern) if regex is None else ("regex", regex)
    if not text:
        raise OpError(f"{given} is empty, expected at least one character")
    if regex is not None:
        by = options.get("replacement", "")
        check_escapes(regex=regex, by="" if "\\" in by else by)  # next to escapes, they may be marks
        function += "_regex"
    try:
        return getattr(pc, function)(strings, pattern=text, **options)
    except pa.ArrowInvalid as error:
        raise OpError(f"regex is {regex!r}: {error}") from None


@op("uint8 data[sum(lengths)], lengths[B] -> int64 counts[B] <= lengths")
def count_text(
    data: Array,
    lengths: Array,
    *,
    pattern: str | None = None,
    regex: str | None = None,
    ignore_case: bool = False,
    errors: Errors = "strict",
) -> Array:
    """Count how often a text occurs in each UTF-8 text, from the left and without overlaps; an empty one has 0.

    `pattern` is the text, or `regex` a regular expression (RE2). An empty pattern is an error, like bytes that
    are not UTF-8; `errors="replace"` puts U+FFFD in their place.

    Words are `regex=r"\\S+"`, characters `regex="(?s)."`; symbols to words are a quotient of two counts.

    >>> count_text(np.frombuffer(b"abcabaaa", np.uint8), np.array([5, 0, 3]), pattern="a")
    array([2, 0, 3])
    """
    strings = to_strings(data, lengths, errors)
    found = _with_pattern("count_substring", strings, pattern, regex, ignore_case=ignore_case)
    # an empty match of a regular expression counts, also after the last byte
    counts: Array = np.minimum(
        found.to_numpy(zero_copy_only=False).astype(np.int64), lengths.astype(np.int64)
    )
    return counts


@op("uint8 data[sum(lengths)], lengths[B] -> bool found[B]")
def contains_text(
    data: Array,
    lengths: Array,
    *,
    pattern: str | None = None,
    regex: str | None = None,
    ignore_case: bool = False,
    errors: Errors = "strict",
) -> Array:
    """Return whether a text, or a match of a regular expression, occurs in each UTF-8 text.

    The arguments are those of `count_text`. An empty text contains nothing but an empty match.

    A regular expression also finds classes of characters: `\\p{L}` is a letter of any script, `\\p{Nd}` a digit,
    `\\p{P}` a mark, `\\p{Pd}` a dash, `\\p{Lu}` a capital; `^[0-9]+$` is a text of digits alone.

    >>> contains_text(np.frombuffer(b"code {text", np.uint8), np.array([6, 4]), pattern="{")
    array([ True, False])
    """
    strings = to_strings(data, lengths, errors)
    return _as_bools(_with_pattern("match_substring", strings, pattern, regex, ignore_case=ignore_case))


@op("uint8 data[sum(lengths)], lengths[B] -> bool found[B]")
def starts_with(data: Array, lengths: Array, *, pattern: str, errors: Errors = "strict") -> Array:
    """Return whether each UTF-8 text starts with a text; an empty one does not. An empty pattern is an error.

    >>> starts_with(np.frombuffer(b"foobarfoo", np.uint8), np.array([6, 3]), pattern="foob")
    array([ True, False])
    """
    return _as_bools(_with_pattern("starts_with", to_strings(data, lengths, errors), pattern, None))


@op("uint8 data[sum(lengths)], lengths[B] -> bool found[B]")
def ends_with(data: Array, lengths: Array, *, pattern: str, errors: Errors = "strict") -> Array:
    """Return whether each UTF-8 text ends with a text; an empty one does not. An empty pattern is an error.

    >>> ends_with(np.frombuffer(b"foobarfoo", np.uint8), np.array([6, 3]), pattern="bar")
    array([ True, False])
    """
    return _as_bools(_with_pattern("ends_with", to_strings(data, lengths, errors), pattern, None))


def _as_bools(found: Any) -> Array:
    return np.asarray(found.to_numpy(zero_copy_only=False), bool)


def _bound_replaced(ctx: InferenceContext) -> None:
    """Infer bounds: each byte, and with a regular expression each place, may become a replacement."""
    growth = max(1, len(ctx.attr("by").encode())) + 1
    longest, total = ctx.max_of("lengths"), ctx.sum_of("lengths")
    each = 3 * growth if ctx.attr("errors") == "replace" else growth
    ctx.limit(ctx.max_of("lengths'"), each * longest + growth)
    ctx.limit(ctx.sum_of("lengths'"), each * total + growth * ctx.dim(ctx.input("lengths"), 0))


@op(
    "uint8 data[sum(lengths)], lengths[B] -> uint8 values[sum(lengths')], int64 lengths'[B]",
    shape=_bound_replaced,
)
def replace_text(
    data: Array,
    lengths: Array,
    *,
    pattern: str | None = None,
    regex: str | None = None,
    by: str = "",
    errors: Errors = "strict",
) -> tuple[Array, Array]:
    """Replace each occurrence of a text, or match of a regular expression, by another text; an empty one stays empty.

    `pattern`, `regex` and `errors` are as in `count_text`. In `by`, with `regex`, `\\1` is what the first group
    matched: `regex=r"^([^.]*\\.[^.]*)\\..*$", by=r"\\1"` keeps the text before the second dot,
    `regex="(?s)^.{0,2}(.{0,3}).*$"` three characters from the third on, and `regex=r"(?m)^.*[^.!?\\n]$\\n?"` without
    `by` only the lines that end in a mark.

    >>> replace_text(np.frombuffer(b"a-b-", np.uint8), np.array([4]), pattern="-", by=", ").values.tobytes()
    b'a, b, '
    """
    strings = to_strings(data, lengths, errors)
    return from_strings(_with_pattern("replace_substring", strings, pattern, regex, replacement=by))


@op(
    "uint8 data[sum(lengths)], lengths[B] -> uint8 values[sum(lengths')], int64 lengths'[B]",
    shape=lambda ctx: bound_bytes(ctx, 1),
)
def strip(
    data: Array, lengths: Array, *, characters: str | None = None, errors: Errors = "strict"
) -> tuple[Array, Array]:
    """Remove white space (Unicode's), or these characters, from both ends of each UTF-8 text.

    An empty text stays empty. Bytes that are not UTF-8 are an error; `errors="replace"` puts U+FFFD in their place.

    >>> strip(np.frombuffer(b" a b ", np.uint8), np.array([5])).values.tobytes()
    b'a b'
    """
    import pyarrow.compute as pc

    strings = to_strings(data, lengths, errors)
    trimmed = (
        pc.utf8_trim_whitespace(strings)
        if characters is None
        else pc.utf8_trim(strings, characters=characters)
    )
    return from_strings(trimmed)


@op(
    "uint8 data[sum(lengths)], lengths[B] -> uint8 values[sum(lengths')], int64 lengths'[B]",
    shape=bound_lower,
)
def upper(data: Array, lengths: Array, *, errors: Errors = "strict") -> tuple[Array, Array]:
    """Convert UTF-8 text to upper case, character by character (ß stays); lengths may change.

    An empty text stays empty. Bytes that are not UTF-8 are an error; `errors="replace"` puts U+FFFD in their place.

    >>> upper(np.frombuffer("aéB".encode(), np.uint8), np.array([3, 1])).values.tobytes().decode()
    'AÉB'
    """
    import pyarrow.compute as pc

    return from_strings(pc.utf8_upper(to_strings(data, lengths, errors)))


@op(
    "uint8 data[sum(lengths)], lengths[B] -> uint8 values[sum(lengths')], int64 lengths'[B]",
    shape=lambda ctx: bound_bytes(ctx, 3),
)
def casefold(data: Array, lengths: Array, *, errors: Errors = "strict") -> tuple[Array, Array]:
    """Convert UTF-8 text to a form in which texts that differ only in case are equal: Python's full case folding.

    An empty text stays empty. Bytes that are not UTF-8 are an error; `errors="replace"` puts U+FFFD in their place.

    >>> casefold(np.frombuffer("Straße".encode(), np.uint8), np.array([7])).values.tobytes().decode()
    'strasse'
    """
    import pyarrow.compute as pc

    strings = to_strings(data, lengths, errors)
    if not (data >= 128).any():
        return from_strings(pc.utf8_lower(strings))
    return join([text.casefold() for text in strings.to_pylist()])
