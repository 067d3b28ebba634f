"""Places of words and tokens in text, and labels of spans brought to tokens."""

from unicodedata import combining, normalize

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError
from seqflow.kernels.arrays import Array, int64_integers
from seqflow.kernels.memory import check_memory
from seqflow.ops.shared.slices import int64, starts_of
from seqflow.ops.shared.strings import (
    LARGEST_GROWTH,
    SPACES,
    Errors,
    NormalForm,
    check_escapes,
    find_words,
    from_strings,
    join,
    to_strings,
)
from seqflow.ops.shared.tokenizers import check_special_tokens, encoder_of, offsets_of
from seqflow.registry import op
from seqflow.shape import InferenceContext
from seqflow.signature import File


def _bound_places(ctx: InferenceContext) -> None:
    """Infer bounds: each word has at least one byte."""
    ctx.limit(ctx.max_of("counts"), ctx.max_of("lengths"))
    ctx.limit(ctx.sum_of("counts"), ctx.sum_of("lengths"))
    for name in ("starts", "ends"):
        ctx.limit(ctx.max_of(name), ctx.max_of("lengths"))


@op(
    "uint8 data[sum(lengths)], lengths[B] -> int64 starts[sum(counts)], int64 ends[sum(counts)], int64 counts[B]",
    shape=_bound_places,
)
def word_offsets(
    data: Array,
    lengths: Array,
    *,
    pattern: str | None = None,
    characters: bool = False,
    errors: Errors = "strict",
) -> tuple[Array, Array, Array]:
    """Return where each word of a UTF-8 text starts and ends, in bytes of its own text.

    Words are what is between white space, as in Python's `str.split`, or between matches of `pattern`, a regular
    expression (RE2, as in `split_text`); a match of nothing does not cut. `characters` counts characters instead
    of bytes. An empty text has none. Bytes that are not UTF-8 are an error that names sequence and byte;
    `errors="replace"` puts U+FFFD in their place.

    >>> word_offsets(np.frombuffer(b"to be", np.uint8), np.array([5]))
    WordOffsetsResult(starts=array([0, 3]), ends=array([2, 5]), counts=array([2]))
    """
    strings = to_strings(data, lengths, errors)
    check_escapes(pattern=pattern)
    starts, ends, counts = find_words(strings, f"[{SPACES}]+" if pattern is None else pattern)
    text, sizes = from_strings(strings)
    first = kernels.expand(starts_of(sizes), counts)
    if characters:  # those that start before each byte: bytes that go on one are 0b10……
        before = np.append(0, np.cumsum((text & 0xC0) != 0x80))
        starts, ends, first = before[starts], before[ends], before[first]
    return starts - first, ends - first, counts


def _flat(spans: list[list[tuple[int, int]]]) -> tuple[Array, Array, Array]:
    places = np.array([one for of_text in spans for one in of_text], np.int64).reshape(-1, 2)
    return places[:, 0].copy(), places[:, 1].copy(), np.array([len(one) for one in spans], np.int64)


def _as_bytes(texts: list[str], starts: Array, ends: Array, counts: Array) -> tuple[Array, Array]:
    """Turn places in characters into places in bytes."""
    flat = np.frombuffer("".join(texts).encode("utf-32-le"), np.uint32)
    widths = 1 + (flat > 0x7F).astype(np.int64) + (flat > 0x7FF) + (flat > 0xFFFF)
    at = np.concatenate([[0], np.cumsum(widths)])
    sizes = np.array([len(text) for text in texts], np.int64)
    base = kernels.expand(starts_of(sizes), counts)
    return at[starts + base] - at[base], at[ends + base] - at[base]


def _bound_normal(ctx: InferenceContext) -> None:
    growth = LARGEST_GROWTH[ctx.attr("form")]
    ctx.limit(ctx.max_of("lengths'"), growth * ctx.max_of("lengths"))
    ctx.limit(ctx.sum_of("lengths'"), growth * ctx.sum_of("lengths"))


@op(
    "uint8 data[sum(lengths)], lengths[B] -> int64 values[sum(lengths')], int64 lengths'[B]",
    shape=_bound_normal,
)
def normalize_offsets(data: Array, lengths: Array, *, form: NormalForm = "NFC") -> tuple[Array, Array]:
    """Return for each byte of `normalize(data, lengths)` where it comes from, in bytes of its own text.

    It comes from the first byte of the shortest part of the text that has a normal form of its own: a character with
    the marks, letters or vowels that may join it. So bytes i to j of the normal text are bytes `values[i]` to
    `values[j]` of the text as it was, or to its end. An empty text has none. Bytes that are not UTF-8 are an error
    that names sequence and byte.

    >>> normalize_offsets(np.frombuffer("e\u0301a".encode(), np.uint8), np.array([4])).values
    array([0, 0, 3])
    """
    parts = [_normal_parts(text, form) for text in to_strings(data, lengths).to_pylist()]
    flat = [part for of_text in parts for part in of_text]
    counts = np.array([len(of_text) for of_text in parts], np.int64)
    before, after = (join(texts)[1] for texts in (flat, [normalize(form, part) for part in flat]))
    starts = starts_of(before) - kernels.expand(starts_of(int64(lengths)), counts)
    return kernels.expand(starts, after), kernels.segment_reduce("sum", after, counts)


def _normal_parts(text: str, form: NormalForm) -> list[str]:
    """Cut a text before each character that begins with no mark and joins nothing before it."""
    if text.isascii():
        return [*text]
    parts: list[str] = []
    for character in text:
        alone = normalize(form, character)
        if parts and (
            combining(normalize("NFD", alone)[0])
            or normalize(form, parts[-1] + character) != normalize(form, parts[-1]) + alone
        ):
            parts[-1] += character
        else:
            parts.append(character)
    return parts


@op(
    "uint8 data[sum(lengths)], lengths[B] -> int64 starts[sum(counts)], int64 ends[sum(counts)], int64 counts[B]",
    files=check_special_tokens,
)
def token_offsets(
    data: Array,
    lengths: Array,
    *,
    tokenizer: File,
    special_tokens: bool = True,
    characters: bool = False,
    errors: Errors = "strict",
) -> tuple[Array, Array, Array]:
    """Return where each token of `tokenize` starts and ends, in bytes of the text that came in.

    The arguments are those of `tokenize`; its `begin` and `end` add tokens that are not counted here. Special tokens
    have the places 0 and 0. `characters` counts characters instead of bytes. An empty text has special tokens only.

    >>> from seqflow.ops import train_tokenizer
    >>> text, lengths = np.frombuffer(b"low", np.uint8), np.array([3])
    >>> tokenizer = train_tokenizer(text, lengths, vocabulary_size=256)
    >>> token_offsets(text, lengths, tokenizer=tokenizer).ends
    array([1, 2, 3])
    """
    texts = to_strings(data, lengths, errors).to_pylist()
    starts, ends, counts = _flat(offsets_of(encoder_of(tokenizer), texts, special_tokens))
    return (starts, ends, counts) if characters else (*_as_bytes(texts, starts, ends, counts), counts)


@op(
    "int label_starts[sum(label_counts)], int label_ends[sum(label_counts)], int labels[sum(label_counts)],"
    " lens label_counts[B], int starts[sum(counts)], int ends[sum(counts)], counts[B]"
    " -> int64 values[sum(counts)]",
)
def labels_of_tokens(
    label_starts: Array,
    label_ends: Array,
    labels: Array,
    label_counts: Array,
    starts: Array,
    ends: Array,
    counts: Array,
    *,
    outside: int = 0,
    inside: int | None = None,
) -> Array:
    """Return for each token the label of the first span of its text that it overlaps by at least a byte.

    Spans and tokens are places in the same text: bytes for both, or characters for both. Tokens in no span, and
    special tokens, have `outside`. For IOB tags, `inside` is added to the label of each token of a span but its
    first. An empty text has no tokens. A start after its end is an error.

    >>> begin, end, label, one = np.array([3]), np.array([8]), np.array([5]), np.array([1])
    >>> labels_of_tokens(begin, end, label, one, np.array([0, 3, 6]), np.array([2, 6, 8]), np.array([3]), inside=1)
    array([0, 5, 6])
    """
    for name, low, high in (("label_starts", label_starts, label_ends), ("starts", starts, ends)):
        wrong = np.flatnonzero((low > high) | (low < 0))
        if len(wrong):
            i = int(wrong[0])
            raise OpError(f"{name}[{i}] is {low[i]}, expected 0 to {high[i]}, where it ends")
    spans, tokens = int64(label_counts), int64(counts)
    # each token with each span of its text, in order; the first that overlaps wins
    pairs = kernels.expand(spans, tokens)
    check_memory((int(pairs.sum()), 3), np.dtype(np.int64))
    rows = kernels.expand(np.arange(len(starts)), pairs)
    with_ = kernels.lengths_to_positions(pairs) + kernels.expand(
        kernels.expand(starts_of(spans), tokens), pairs
    )
    low, high, first, last = label_starts[with_], label_ends[with_], starts[rows], ends[rows]
    overlaps = np.flatnonzero((low < last) & (first < high) & (low < high) & (first < last))
    token, first = np.unique(rows[overlaps], return_index=True)
    span = with_[overlaps][first]
    found = np.full(len(starts), outside, np.int64)
    found[token] = int64_integers(labels, "labels")[span]
    if inside is not None:
        goes_on = np.zeros(len(token), bool)
        goes_on[1:] = span[1:] == span[:-1]
        found[token[goes_on]] += inside
    return found
