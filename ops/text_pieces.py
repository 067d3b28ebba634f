"""Texts cut at delimiters, and texts joined."""

import re
from typing import Annotated

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.slices import int64, move_sequences, starts_of
from seqflow.ops.shared.strings import (
    SPACES,
    Errors,
    check_escapes,
    cut_at,
    find_matches,
    from_strings,
    to_strings,
)
from seqflow.registry import op
from seqflow.shape import Dimension, InferenceContext
from seqflow.signature import NonNegative, Texts

Widths = Annotated[tuple[int, ...], 1]
"""One integer or a list of them, each 1 or more."""


def _bound_joined(ctx: InferenceContext) -> None:
    size: int | Dimension = len(ctx.attr("separator").encode())
    if ctx.has("separator_lengths"):
        size = ctx.max_of("separator_lengths")
    ctx.limit(ctx.sum_of("lengths'"), ctx.sum_of("lengths") + size * ctx.sum_of("counts"))
    ctx.limit(ctx.max_of("lengths'"), ctx.sum_of("lengths") + size * ctx.max_of("counts"))


@op(
    "uint8 data[sum(lengths)], lens lengths[sum(counts)], counts[B],"
    " uint8 separators[sum(separator_lengths)]?, lens separator_lengths[B]?"
    " -> uint8 values[sum(lengths')], int64 lengths'[B]",
    shape=_bound_joined,
)
def join_texts(
    data: Array,
    lengths: Array,
    counts: Array,
    separators: Array | None,
    separator_lengths: Array | None,
    *,
    separator: str = "",
) -> tuple[Array, Array]:
    """Join the texts of each row, with a separator between them.

    The separator is `separator` in every row, or `separators` has one for each row. A row without texts gives an
    empty text, and one text gives itself.

    >>> words, lengths = np.frombuffer(b"abcd", np.uint8), np.array([2, 1, 1])
    >>> join_texts(words, lengths, np.array([2, 1]), separator="-").values.tobytes()
    b'ab-cd'
    """
    sizes, rows = int64(lengths), int64(counts)
    if separators is None and separator_lengths is None:
        return _joined(data, sizes, rows, *_separator(separator, len(rows)))
    if separators is None or separator_lengths is None:
        missing = "separators" if separators is None else "separator_lengths"
        raise OpError(f"{missing} is missing, expected both separators and separator_lengths")
    if separator:
        raise OpError(f"separator is {separator!r} and separators are given, expected one of them")
    between = int64(separator_lengths)
    return _joined(data, sizes, rows, separators, starts_of(between), between)


def _separator(text: str, count: int) -> tuple[Array, Array, Array]:
    """Return the bytes of a text, and the start and size of it for each of `count` rows."""
    between = np.frombuffer(text.encode(), np.uint8)
    return between, np.zeros(count, np.int64), np.full(count, len(between))


def _joined(
    data: Array, lengths: Array, counts: Array, separators: Array, starts: Array, sizes: Array
) -> tuple[Array, Array]:
    """Join the texts of each row by the slice of `separators` at its start, of its size."""
    rows = kernels.lengths_to_segment_ids(counts)
    last = np.zeros(len(lengths), bool)
    last[(starts_of(counts) + counts - 1)[counts > 0]] = True
    between = np.where(last, 0, sizes[rows])
    room = lengths + between
    ends = kernels.lengths_to_offsets(room)
    values = np.empty(int(ends[-1]), np.uint8)
    kernels.move_slices(data, starts_of(lengths), lengths, values, ends[:-1])
    kernels.move_slices(separators, starts[rows], between, values, ends[:-1] + lengths)
    return values, kernels.segment_reduce("sum", room, counts)


def _bound_grams(ctx: InferenceContext) -> None:
    widths, size = ctx.attr("n"), len(ctx.attr("separator").encode())
    grams, longest = sum(widths), max(widths, default=0)
    ctx.limit(ctx.sum_of("lengths'"), grams * ctx.sum_of("lengths") + grams * size * ctx.sum_of("counts"))
    ctx.limit(ctx.max_of("lengths'"), longest * ctx.max_of("lengths") + longest * size)
    for most in (ctx.sum_of, ctx.max_of):
        ctx.limit(most("counts'"), len(widths) * most("counts"))


@op(
    "uint8 data[sum(lengths)], lens lengths[sum(counts)], counts[B]"
    " -> uint8 values[sum(lengths')], int64 lengths'[sum(counts')], int64 counts'[B]",
    shape=_bound_grams,
    depends={"counts": "counts"},
)
def ngram_texts(
    data: Array, lengths: Array, counts: Array, *, n: Widths, separator: str = " ", partial: bool = False
) -> tuple[Array, Array, Array]:
    """Join each run of `n` texts of a row, with a separator between them.

    A row with fewer texts has none; with `partial`, runs at the end of a row may be shorter. An empty row stays
    empty. Several `n` give the runs of the first one, then those of the next: [1, 2] is each word, then each pair.

    >>> words, lengths = np.frombuffer(b"abc", np.uint8), np.array([1, 1, 1])
    >>> ngram_texts(words, lengths, np.array([3]), n=2, separator="|").values.tobytes()
    b'a|bb|c'
    """
    sizes, rows = int64(lengths), int64(counts)
    longest = max(kernels.max_length(rows), 1) + 1
    widths = np.array([min(width, longest) for width in n], np.int64)
    grams = np.maximum(rows[:, None] - (widths - 1) * (not partial), 0)
    each, starts = grams.ravel(), np.repeat(starts_of(rows), len(n))
    first = kernels.lengths_to_positions(each) + kernels.expand(starts, each)
    ends = kernels.expand(starts + np.repeat(rows, len(n)), each)
    of_each = np.minimum(ends - first, kernels.expand(np.tile(widths, len(rows)), each))
    texts = move_sequences(np.arange(len(sizes)), first, of_each)
    moved = move_sequences(data, starts_of(sizes)[texts], sizes[texts])
    return *_joined(moved, sizes[texts], of_each, *_separator(separator, len(of_each))), grams.sum(axis=1)


def _bound_pieces(ctx: InferenceContext) -> None:
    growth = 3 if ctx.attr("errors") == "replace" else 1
    ctx.limit(ctx.sum_of("lengths'"), growth * ctx.sum_of("lengths"))
    ctx.limit(ctx.max_of("lengths'"), growth * ctx.max_of("lengths"))
    each = 2 * growth * ctx.max_of("lengths") + 1
    ctx.limit(ctx.max_of("counts"), each)
    ctx.limit(ctx.sum_of("counts"), 2 * growth * ctx.sum_of("lengths") + ctx.dim(ctx.input("lengths"), 0))


@op(
    "uint8 data[sum(lengths)], lengths[B]"
    " -> uint8 values[sum(lengths')], int64 lengths'[sum(counts)], int64 counts[B]",
    shape=_bound_pieces,
)
def split_text(
    data: Array,
    lengths: Array,
    *,
    delimiter: Texts | None = None,
    pattern: str | None = None,
    keep_empty: bool = True,
    keep_delimiter: bool = False,
    max_splits: NonNegative | None = None,
    errors: Errors = "strict",
) -> tuple[Array, Array, Array]:
    """Cut UTF-8 text at a delimiter, as Python's `str.split` does, which adds a level of lengths.

    `delimiter` is a text or a list of texts, "" cuts into characters, and None cuts at white space, without empty
    pieces. `pattern` is a regular expression (RE2, whose `\\w`, `\\d` and `\\s` are ASCII's; `\\pL` is a letter of
    any script); a match of nothing does not cut. Empty pieces stay, unless `keep_empty` is false, and with
    `keep_delimiter` each delimiter is a piece. There are at most `max_splits` cuts; the rest stays
    together. An empty text has one empty piece, or none. For white space alone `split_words` is faster.

    The share of lines that end in dots:

        lines, n, counts = split_text(data, lengths, delimiter="\\n")
        lengths_mean(ends_with(lines, n, pattern="..."), counts)

    The first place of a text in bytes, cut at it once: `where(counts > 1, lengths_first(n, counts), -1)`.

    >>> split_text(np.frombuffer(b"a,b,,c", np.uint8), np.array([6, 0]), delimiter=",").lengths
    array([1, 1, 0, 1, 0])
    """
    if delimiter is not None and pattern is not None:
        raise OpError("delimiter and pattern are both given, expected one of them")
    by_space, by_character = delimiter is None and pattern is None, delimiter == ("",)
    if delimiter is not None and "" in delimiter and not by_character:
        raise OpError("delimiter has an empty text next to others, expected texts of at least one character")
    strings = to_strings(data, lengths, errors)
    text, sizes = from_strings(strings)
    offsets = kernels.lengths_to_offsets(sizes)
    if by_character:
        firsts = np.flatnonzero((text & 0xC0) != 0x80)  # bytes that go on a character are 0b10……
        starts = ends = firsts[~np.isin(firsts, offsets)]
        counts = np.diff(np.searchsorted(starts, offsets))
    else:
        check_escapes(pattern=pattern)
        regex = f"[{SPACES}]+" if by_space else pattern or "|".join(map(re.escape, delimiter or ()))
        starts, ends, counts = find_matches(strings, regex)
    of_text = kernels.lengths_to_segment_ids(counts)
    leading = (starts == offsets[of_text]) & by_space  # none of the cuts that are counted
    if max_splits is not None:
        room = max_splits + kernels.segment_reduce("sum", leading, counts)
        used = leading | (kernels.lengths_to_positions(counts) < room[of_text])
        starts, ends, counts = starts[used], ends[used], kernels.segment_reduce("sum", used, counts)
    starts, ends, counts = cut_at(offsets, starts, ends, counts)
    is_delimiter = kernels.lengths_to_positions(counts) % 2 == 1
    kept = (starts < ends) | ~(is_delimiter | (not keep_empty) | by_space | by_character)
    kept &= ~is_delimiter | keep_delimiter
    if by_space:
        of_text = kernels.lengths_to_segment_ids(counts)
        kept &= ~is_delimiter | (starts > offsets[of_text]) & (ends < offsets[of_text + 1])
    sizes = (ends - starts)[kept]
    return move_sequences(text, starts[kept], sizes), sizes, kernels.segment_reduce("sum", kept, counts)
