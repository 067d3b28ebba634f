"""Text as sequences of bytes: uint8 values and lengths."""

import unicodedata

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.scalars import cast_scalar
from seqflow.ops.shared.slices import int64, move_sequences, surround
from seqflow.ops.shared.strings import (
    LARGEST_GROWTH,
    Errors,
    NormalForm,
    check_escapes,
    find_words,
    from_strings,
    join,
    to_strings,
)
from seqflow.registry import op
from seqflow.shape import InferenceContext
from seqflow.signature import NonNegative


@op("uint8 data[sum(lengths)], lengths[B] -> str text[B]")
def as_text(data: Array, lengths: Array, *, errors: Errors = "strict") -> Array:
    """Convert UTF-8 bytes to NumPy strings, one for each sequence; a job writes them as a column of text.

    NumPy's strings are all as wide as the longest one, with four bytes for each character: long texts of very
    different lengths take much memory. Bytes that are not UTF-8 are an error that names sequence and byte;
    `errors="replace"` puts U+FFFD in their place. A text that ends with the character NUL, which NumPy would cut off,
    is an error. An empty sequence gives an empty text.

    Its code points, 0 after the end: `as_text(data, lengths).view(np.uint32).reshape(len(lengths), -1)`.

    >>> as_text(np.frombuffer(b"lowlower", np.uint8), np.array([3, 0, 5]))
    array(['low', '', 'lower'], dtype='<U5')
    """
    texts = to_strings(data, lengths, errors).to_pylist()
    width = max(map(len, texts), default=0)
    check_memory((len(texts), max(width, 1)), np.dtype("U1"))
    cut = next((i for i, text in enumerate(texts) if text.endswith("\0")), None)
    if cut is not None:
        raise OpError(f"sequence {cut} ends with the character NUL, which NumPy's strings cannot keep")
    return np.array(texts, f"U{max(width, 1)}")


@op(
    "uint8 data[sum(lengths)], lengths[B]"
    " -> int32 values[sum(lengths')], int64 lengths'[B] := lengths + (len(begin) + len(end))",
)
def bytes_to_tokens(
    data: Array,
    lengths: Array,
    *,
    offset: NonNegative = 0,
    begin: NonNegative | None = None,
    end: NonNegative | None = None,
) -> tuple[Array, Array]:
    """Convert each byte to a token id, plus `offset`, with special tokens before and after each sequence.

    With `offset=0` bytes keep their values, and ids from 256 on are free for special tokens; ByT5 puts its special
    tokens first (`offset=3, end=1`). `begin` and `end` are the ids of the tokens to add, also to empty sequences.

    >>> bytes_to_tokens(np.frombuffer(b"abc", np.uint8), np.array([2, 1]), end=256)
    BytesToTokensResult(values=array([ 97,  98, 256,  99, 256], dtype=int32), lengths=array([3, 2]))
    """
    _check_offset(offset)
    begin, end = (
        None if t is None else cast_scalar(n, t, np.dtype(np.int32))
        for n, t in (("begin", begin), ("end", end))
    )
    tokens = data.astype(np.int32)
    if offset:
        tokens += np.int32(offset)
    return surround(tokens, int64(lengths), begin, end)


def _check_offset(offset: int) -> None:
    most = np.iinfo(np.int32).max - 255
    if offset > most:
        raise OpError(f"offset is {offset}, expected at most {most}: ids are int32")


@op(
    "int tokens[sum(lengths)], lengths[B] -> uint8 values[sum(lengths')], int64 lengths'[B] <= lengths",
    inverse="bytes_to_tokens unless begin, end",
)
def tokens_to_bytes(tokens: Array, lengths: Array, *, offset: NonNegative = 0) -> tuple[Array, Array]:
    """Convert ids back to bytes: the inverse of `bytes_to_tokens` with the same `offset`.

    Ids below `offset` and from `offset + 256` on are special tokens, not bytes, and are dropped. An empty sequence
    stays empty.

    >>> tokens_to_bytes(np.array([97, 98, 256, 99, 256]), np.array([3, 2]))
    TokensToBytesResult(values=array([97, 98, 99], dtype=uint8), lengths=array([2, 1]))
    """
    _check_offset(offset)
    is_byte = (tokens >= offset) & (tokens < offset + 256)
    data = (tokens[is_byte].astype(np.int64) - offset).astype(np.uint8)
    return data, kernels.segment_reduce("sum", is_byte, lengths)


def bound_bytes(ctx: InferenceContext, growth: int, per: int = 1) -> None:
    """Infer that `per` bytes become at most `growth` bytes; a byte that is not UTF-8 becomes the three of U+FFFD."""
    if ctx.attr("errors") == "replace":
        growth = max(growth, 3 * per)
    ctx.limit(ctx.max_of("lengths'"), growth * ctx.max_of("lengths") // per)
    ctx.limit(ctx.sum_of("lengths'"), growth * ctx.sum_of("lengths") // per)


def bound_lower(ctx: InferenceContext) -> None:
    """Infer bounds: a few letters of two bytes, such as U+023A, have a lower case of three bytes."""
    bound_bytes(ctx, 3, per=2)


@op(
    "uint8 data[sum(lengths)], lengths[B] -> uint8 values[sum(lengths')], int64 lengths'[B]",
    shape=bound_lower,
)
def lower(data: Array, lengths: Array, *, errors: Errors = "strict") -> tuple[Array, Array]:
    """Convert UTF-8 text to lower case, character by character (a final sigma becomes σ); lengths may change.

    Bytes that are not UTF-8 are an error that names sequence and byte; `errors="replace"` puts U+FFFD in their
    place. An empty string stays empty.

    >>> lower(np.frombuffer("AÉb".encode(), np.uint8), np.array([3, 1])).values.tobytes().decode()
    'aéb'
    """
    import pyarrow.compute as pc

    return from_strings(pc.utf8_lower(to_strings(data, lengths, errors)))


def _bound_normalized(ctx: InferenceContext) -> None:
    bound_bytes(ctx, LARGEST_GROWTH[ctx.attr("form")])


@op(
    "uint8 data[sum(lengths)], lengths[B] -> uint8 values[sum(lengths')], int64 lengths'[B]",
    shape=_bound_normalized,
)
def normalize(
    data: Array,
    lengths: Array,
    *,
    form: NormalForm = "NFC",
    errors: Errors = "strict",
) -> tuple[Array, Array]:
    """Convert UTF-8 text to a Unicode normal form, string by string; lengths may change.

    Bytes that are not UTF-8 are an error that names sequence and byte; `errors="replace"` puts U+FFFD in their
    place. An empty string stays empty.

    >>> normalize(np.frombuffer("e\u0301".encode(), np.uint8), np.array([3])).values.tobytes().decode()
    'é'
    """
    texts = to_strings(data, lengths, errors)
    values, sizes = from_strings(texts)
    if values.max(initial=0) < 128:  # ASCII has all normal forms
        return values.copy(), sizes
    # not Arrow's function, which does not compose before Arrow 26
    return join([unicodedata.normalize(form, text) for text in texts.to_pylist()])


def _bound_words(ctx: InferenceContext) -> None:
    """Infer bounds: each word has at least one byte, and white space between two words has at least one."""
    bound_bytes(ctx, 1)
    longest, total = ctx.max_of("lengths"), ctx.sum_of("lengths")
    if ctx.attr("pattern") is None:
        longest, total = (longest + 1) // 2, (total + ctx.dim(ctx.input("lengths"), 0)) // 2
    ctx.limit(ctx.max_of("counts"), longest)
    ctx.limit(ctx.sum_of("counts"), ctx.sum_of("lengths"))
    ctx.limit(ctx.sum_of("counts"), total)


@op(
    "uint8 data[sum(lengths)], lengths[B]"
    " -> uint8 values[sum(lengths')], int64 lengths'[sum(counts)], int64 counts[B]",
    shape=_bound_words,
)
def split_words(
    data: Array, lengths: Array, *, pattern: str | None = None, errors: Errors = "strict"
) -> tuple[Array, Array, Array]:
    """Split UTF-8 text at white space (Unicode's), or at matches of `pattern`, which adds a level of lengths.

    `pattern` is a regular expression (RE2) for the text between words; a match of nothing cuts, too. Words are never
    empty, so a text without words has a count of 0. Bytes that are not UTF-8 are an error that names sequence and
    byte; `errors="replace"` puts U+FFFD in their place.

    The mean length of words in bytes is `lengths_mean(lengths, counts)` of its results.

    >>> split_words(np.frombuffer(b"to be  or", np.uint8), np.array([5, 4])).lengths
    array([2, 2, 2])
    """
    import pyarrow.compute as pc

    strings = to_strings(_with_room(data), lengths, errors)
    if pattern is not None:
        check_escapes(pattern=pattern)
        starts, ends, counts = find_words(strings, pattern, empty=True)
        return move_sequences(from_strings(strings)[0], starts, ends - starts), ends - starts, counts
    split = pc.utf8_split_whitespace(strings)
    words, sizes = from_strings(split.flatten())
    counts = np.diff(split.offsets.to_numpy()).astype(np.int64)
    return words, sizes[sizes > 0], kernels.segment_reduce("sum", sizes > 0, counts)


def _with_room(data: Array) -> Array:
    """Return a copy of the bytes with a readable 0 after them: Arrow reads it when text ends in white space."""
    roomy = np.zeros(len(data) + 1, np.uint8)
    roomy[:-1] = data
    return roomy[:-1]
