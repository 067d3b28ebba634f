"""Nets that are right: inference refuses none, and each gives what plain Python gives on lists.

Each is a statement of what goes with what: its name says it. `y` is compared. Of inputs without declaration, as in
a plain mapping, the rows are those they meet first; so the nets run from both.
"""

from itertools import pairwise

import numpy as np
import pytest
from two_tables import (
    FIRST,
    SECOND,
    SPECS,
    TENSORS,
    empty,
    lists,
    net_of,
    record,
    used,
)  # fmt: skip

import seqflow as sf


def flat(rows):
    return [value for row in rows for value in row]


def sums(rows):
    return [sum(row) for row in rows]


def paired(rows, others, function=lambda x, y: x * y):
    """A function of row i of one and row i of the other, flat."""
    return [
        function(x, y)
        for row, other in zip(rows, others, strict=True)
        for x, y in zip(row, other, strict=True)
    ]


def kept(rows, flags):
    return [row for row, flag in zip(rows, flags, strict=True) if flag]


def dot(x, y):
    return sum(a * b for a, b in zip(x, y, strict=True))


def softmax(x):
    powers = np.exp(np.array(x, float) - max(x, default=0))
    return (powers / powers.sum()).tolist()


def fc(x, weight, bias):
    return [dot(x, row) + b for row, b in zip(weight, bias, strict=True)]


def attention(rows):
    return [
        [dot(softmax([dot(x, other) for other in row]), column) for column in zip(*row, strict=True)]
        for row in rows
        for x in row
    ]


WEIGHT, BIAS = [[1, 0, 2, 0], [0, 1, 0, 1], [1, 1, 1, 1]], [1, 0, 2]

FIRST_TABLE = {
    # Columns, levels and records
    "a column is reduced by its own lengths": (
        "y = lengths_sum(doc.values, doc.lengths)",
        lambda r: sums(r.doc),
    ),
    "an expression keeps the rows of a column": (
        "y = lengths_max(doc.values * 2 + 1, doc.lengths)",
        lambda r: [max((2 * x + 1 for x in row), default=0) for row in r.doc],
    ),
    "what two columns are reduced to has the rows of the record": (
        "y = lengths_sum(doc.values, doc.lengths) - lengths_sum(tag.values, tag.lengths)",
        lambda r: [sum(a) - sum(b) for a, b in zip(r.doc, r.tag, strict=True)],
    ),
    "levels are reduced from the inside": (
        "words = lengths_sum(text.values.values, text.values.lengths)\ny = lengths_max(words, text.lengths)",
        lambda r: [max(map(sum, row), default=0) for row in r.text],
    ),
    "collapsed lengths describe the innermost rows": (
        "n = collapse_lengths(text.values.lengths, text.lengths)\ny = lengths_sum(text.values.values, n)",
        lambda r: [sum(map(sum, row)) for row in r.text],
    ),
    "lengths are collapsed by a sum": (
        "n = lengths_sum(text.values.lengths, text.lengths)\ny = lengths_sum(text.values.values, n)",
        lambda r: [sum(map(sum, row)) for row in r.text],
    ),
    "expanding twice is expanding by collapsed lengths": (
        "twice = expand(expand(score, text.lengths), text.values.lengths)\n"
        "n = collapse_lengths(text.values.lengths, text.lengths)\n"
        "y = twice * expand(score, n) * text.values.values",
        lambda r: [s * s * x for row, s in zip(r.text, r.score, strict=True) for word in row for x in word],
    ),
    "columns of the record meet row by row": (
        "y = score * label + where(flag, score, label)",
        lambda r: [s * n + (s if f else n) for s, n, f in zip(r.score, r.label, r.flag, strict=True)],
    ),
    "a value of the record is expanded to the rows of a column": (
        "y = expand(score, doc.lengths) * doc.values",
        lambda r: [s * x for row, s in zip(r.doc, r.score, strict=True) for x in row],
    ),
    "lengths are values of the record as well": (
        "y = doc.lengths + tag.lengths * label",
        lambda r: [len(a) + len(b) * n for a, b, n in zip(r.doc, r.tag, r.label, strict=True)],
    ),
    # Selections
    "the same mask selects the same rows": (
        "s, _ = boolean_mask(score, flag)\nn, _ = boolean_mask(label, flag)\ny = s * n",
        lambda r: kept([s * n for s, n in zip(r.score, r.label, strict=True)], r.flag),
    ),
    "a mask selects rows and their lengths": (
        "m = doc.values > 2\nv, _ = boolean_mask(doc.values, m)\nn = boolean_mask_lengths(m, doc.lengths)\n"
        "y = lengths_sum(v, n)",
        lambda r: [sum(x for x in row if x > 2) for row in r.doc],
    ),
    "a mask that is computed twice is one mask": (
        "v, _ = boolean_mask(doc.values, doc.values > 2)\n"
        "w, _ = boolean_mask(doc.values * 10, doc.values > 2)\ny = v + w",
        lambda r: [11 * x for x in flat(r.doc) if x > 2],
    ),
    "a mask with its lengths is mask_sequences": (
        "m = doc.values > 2\nv, _ = boolean_mask(doc.values, m)\n_, n = mask_sequences(doc.values, m, doc.lengths)\n"
        "y = lengths_sum(v, n)",
        lambda r: [sum(x for x in row if x > 2) for row in r.doc],
    ),
    "mask_sequences of two tensors gives the same lengths": (
        "m = doc.values > 2\nv, _ = mask_sequences(doc.values, m, doc.lengths)\n"
        "_, n = mask_sequences(doc.values * 3, m, doc.lengths)\ny = lengths_sum(v, n)",
        lambda r: [sum(x for x in row if x > 2) for row in r.doc],
    ),
    "filtered sequences go with masked rows of the record": (
        "v, n = filter_sequences(doc.values, flag, doc.lengths)\ns, _ = boolean_mask(score, flag)\n"
        "y = lengths_sum(v, n) * s",
        lambda r: kept([sum(row) * s for row, s in zip(r.doc, r.score, strict=True)], r.flag),
    ),
    "two columns filtered alike have the same sequences": (
        "v, n = filter_sequences(doc.values, flag, doc.lengths)\n"
        "w, k = filter_sequences(tag.values, flag, tag.lengths)\ny = lengths_sum(v, n) + lengths_sum(w, k)",
        lambda r: kept([sum(a) + sum(b) for a, b in zip(r.doc, r.tag, strict=True)], r.flag),
    ),
    "masked lengths are those of filtered sequences": (
        "v, _ = filter_sequences(doc.values, flag, doc.lengths)\nn, _ = boolean_mask(doc.lengths, flag)\n"
        "y = lengths_sum(v, n)",
        lambda r: sums(kept(r.doc, r.flag)),
    ),
    "a mask of sequences, expanded, selects their rows": (
        "v, n = filter_sequences(doc.values, flag, doc.lengths)\ns, _ = boolean_mask(score, flag)\n"
        "y = expand(s, n) * v",
        lambda r: [s * x for row, s in zip(kept(r.doc, r.flag), kept(r.score, r.flag), strict=True) for x in row],
    ),
    "rows that were taken out are put back": (
        "s, _ = boolean_mask(score, flag)\ny = boolean_unmask([s], [flag], fill=0) + label",
        lambda r: [(s if f else 0) + n for s, f, n in zip(r.score, r.flag, r.label, strict=True)],
    ),
    "slices that are alike take the same rows": (
        "y = slice_axes(score, starts=[1], stops=[3]) * slice_axes(label, starts=[1], stops=[3])",
        lambda r: [s * n for s, n in zip(r.score[1:3], r.label[1:3], strict=True)],
    ),
    "a slice of the lengths describes no rows but is a column": (
        "y = slice_axes(doc.lengths, starts=[0], stops=[2]) + slice_axes(tag.lengths, starts=[0], stops=[2])",
        lambda r: [len(a) + len(b) for a, b in zip(r.doc[:2], r.tag[:2], strict=True)],
    ),
    "slices of sequences that are alike have the same lengths": (
        "v, _ = slice_sequences(doc.values, label, label, doc.lengths, clip=True)\n"
        "_, n = slice_sequences(doc.values * 2, label, label, doc.lengths, clip=True)\ny = lengths_sum(v, n)",
        lambda r: [sum(row[n : n + n]) for row, n in zip(r.doc, r.label, strict=True)],
    ),
    "slices that are not cut have the sizes that were asked for": (
        "n = minimum(label, doc.lengths)\nv, _ = slice_sequences(doc.values, n - n, n, doc.lengths)\n"
        "y = lengths_sum(v, n)",
        lambda r: [sum(row[:n]) for row, n in zip(r.doc, r.label, strict=True)],
    ),
    "parts of a split that are alike have the same rows": (
        "a, b = split(score, parts=2)\nc, d = split(label, parts=2)\ny = concat([a * c, b * d])",
        lambda r: [s * n for s, n in zip(r.score, r.label, strict=True)],
    ),
    "rows gathered by the same indices are the same rows": (
        "y = gather(score, label) * gather(doc.lengths, label)",
        lambda r: [r.score[n] * len(r.doc[n]) for n in r.label],
    ),
    "sequences are gathered with their rows of the record": (
        "v, n = gather_sequences(doc.values, label, doc.lengths)\ny = lengths_sum(v, n) * gather(score, label)",
        lambda r: [sum(r.doc[n]) * r.score[n] for n in r.label],
    ),
    "two columns are trimmed alike": (
        "v, n = trim_dataset(doc.values, doc.lengths, multiple_of=3)\n"
        "w, k = trim_dataset(tag.values, tag.lengths, multiple_of=3)\ny = lengths_sum(v, n) * lengths_sum(w, k)",
        lambda r: [
            sum(a) * sum(b) for a, b in zip(r.doc[: len(r.doc) // 3 * 3], r.tag[: len(r.tag) // 3 * 3], strict=True)
        ],
    ),
    # Lengths that are computed alike
    "truncated twice": (
        "v, n = truncate(doc.values, doc.lengths, max_length=2)\n"
        "w, k = truncate(doc.values * 10, doc.lengths, max_length=2)\ny = lengths_sum(v, k) + lengths_sum(w, n)",
        lambda r: [11 * sum(row[:2]) for row in r.doc],
    ),
    "truncated, and the minimum by hand": (
        "v, _ = truncate(doc.values, doc.lengths, max_length=2)\ny = lengths_sum(v, minimum(doc.lengths, 2))",
        lambda r: [sum(row[:2]) for row in r.doc],
    ),
    "truncated, and the minimum with its operands swapped": (
        "v, _ = truncate(doc.values, doc.lengths, max_length=2)\ny = lengths_sum(v, minimum(2, doc.lengths))",
        lambda r: [sum(row[:2]) for row in r.doc],
    ),
    "a token appended, and 1 added": (
        "v, _ = append_token(doc.values, doc.lengths, token=9)\ny = lengths_sum(v, doc.lengths + 1)",
        lambda r: [sum(row) + 9 for row in r.doc],
    ),
    "a token prepended, and added to 1": (
        "v, _ = prepend_token(doc.values, doc.lengths, token=9)\ny = lengths_sum(v, 1 + doc.lengths)",
        lambda r: [sum(row) + 9 for row in r.doc],
    ),
    "a token at either end": (
        "v, n = append_token(doc.values, doc.lengths, token=9)\n"
        "w, k = prepend_token(doc.values, doc.lengths, token=8)\ny = lengths_sum(v, k) - lengths_sum(w, n)",
        lambda r: [1 for _ in r.doc],
    ),
    "gathered sequences, and gathered lengths": (
        "v, _ = gather_sequences(doc.values, label, doc.lengths)\ny = lengths_sum(v, gather(doc.lengths, label))",
        lambda r: [sum(r.doc[n]) for n in r.label],
    ),
    "repeated sequences, and expanded lengths": (
        "v, _ = repeat_sequences(doc.values, label, doc.lengths)\ny = lengths_sum(v, expand(doc.lengths, label))",
        lambda r: [sum(row) for row, n in zip(r.doc, r.label, strict=True) for _ in range(n)],
    ),
    "empty sequences padded, and the maximum by hand": (
        "v, _ = pad_empty(doc.values, doc.lengths, fill=5)\ny = lengths_sum(v, maximum(doc.lengths, 1))",
        lambda r: [sum(row or [5]) for row in r.doc],
    ),
    "lengths in another integer dtype": (
        "y = lengths_sum(doc.values, cast(doc.lengths, dtype='int32'))",
        lambda r: sums(r.doc),
    ),
    "truncated with narrow lengths": (
        "n = cast(doc.lengths, dtype='int32')\nv, k = truncate(doc.values, n, max_length=2)\n"
        "_, m = truncate(doc.values, doc.lengths, max_length=2)\ny = lengths_sum(v, m) + k",
        lambda r: [sum(row[:2]) + len(row[:2]) for row in r.doc],
    ),
    "lengths from offsets": (
        "n = offsets_to_lengths(lengths_to_offsets(doc.lengths))\ny = lengths_sum(doc.values, n)",
        lambda r: sums(r.doc),
    ),
    "lengths from cu_seqlens": (
        "n = offsets_to_lengths(lengths_to_cu_seqlens(doc.lengths))\ny = lengths_sum(doc.values, n)",
        lambda r: sums(r.doc),
    ),
    "the sizes of pad_lengths": (
        "y = reduce_sum(reshape(pad_lengths(doc.values, doc.lengths, target_length=3), [-1, 3]), axes=[1])",
        lambda r: sums(r.doc),
    ),
    "padding added and removed": (
        "v, n = add_padding(doc.values, doc.lengths, before=2, after=1)\n"
        "w, k = remove_padding(v, n, before=2, after=1)\ny = lengths_sum(w, doc.lengths) + lengths_sum(doc.values, k)",
        lambda r: [2 * sum(row) for row in r.doc],
    ),
    "sequences packed by step and unpacked": (
        "v, n, order = pack_sequence(doc.values, doc.lengths)\nw, k = unpack_sequence(v * 2, order, n)\n"
        "y = lengths_sum(w, doc.lengths) + lengths_sum(doc.values, k)",
        lambda r: [3 * sum(row) for row in r.doc],
    ),
    "the order of packed sequences is an order of the rows": (
        "v, n, order = pack_sequence(doc.values, doc.lengths)\ny = gather(score, order) * gather(label, order)",
        lambda r: [r.score[i] * r.label[i] for i in sorted(range(len(r.doc)), key=lambda i: -len(r.doc[i]))],
    ),
    "time first and back": (
        "x = pack_by_time(doc.values, doc.lengths)\ny = unpack_by_time(x * 2, doc.lengths) + doc.values",
        lambda r: [3 * x for x in flat(r.doc)],
    ),
    "padded and back": (
        "x, _ = pad(doc.values, doc.lengths)\ny = unpad(x * 2, doc.lengths) * doc.values",
        lambda r: [2 * x * x for x in flat(r.doc)],
    ),
    "packed in rows and unpacked": (
        "p, _, _, sources, sizes, pieces = pack_rows(doc.values, doc.lengths, capacity=4)\n"
        "v, n = unpack_rows(p * 2, sources, sizes, pieces)\ny = lengths_sum(v, n)",
        lambda r: [2 * sum(row) for row in r.doc],
    ),
    "bytes to tokens and back": (
        "t, n = bytes_to_tokens(utf.values, utf.lengths, offset=3)\nb, k = tokens_to_bytes(t, n, offset=3)\n"
        "y = lengths_sum(b, utf.lengths) + lengths_sum(utf.values, k)",
        lambda r: [2 * sum(text.encode()) for text in r.utf],
    ),
    "bytes to tokens keep their lengths": (
        "t, n = bytes_to_tokens(utf.values, utf.lengths)\ny = lengths_sum(t * 2, n)",
        lambda r: [2 * sum(text.encode()) for text in r.utf],
    ),
    "pieces are summed to sequences": (
        "v, n, counts = split_sequences(doc.values, doc.lengths, chunk=2)\ny = lengths_sum(lengths_sum(v, n), counts)",
        lambda r: sums(r.doc),
    ),
    "pieces collapse to sequences": (
        "v, n, counts = split_sequences(doc.values, doc.lengths, chunk=2, stride=1)\n"
        "y = lengths_sum(v, collapse_lengths(n, counts))",
        lambda r: [sum(sum(row[i : i + 2]) for i in range(max(len(row) - 1, min(len(row), 1)))) for row in r.doc],
    ),
    "ops without new rows keep lengths": (
        "v = reverse_sequences(sort_within(doc.values, doc.lengths), doc.lengths)\n"
        "y = lengths_sum(shift(v, doc.lengths, by=1) * doc.values, doc.lengths)",
        lambda r: [
            sum(a * b for a, b in zip([0, *sorted(row, reverse=True)][: len(row)], row, strict=True)) for row in r.doc
        ],
    ),
    # Said to be the same
    "columns that are said to have the same lengths": (
        "same_lengths(doc.lengths, mate.lengths)\ny = lengths_sum(doc.values * mate.values, doc.lengths)",
        lambda r: [dot(a, b) for a, b in zip(r.doc, r.mate, strict=True)],
    ),
    "it may be said after it is used": (
        "y = lengths_sum(doc.values, mate.lengths)\nsame_lengths(mate.lengths, doc.lengths)",
        lambda r: sums(r.doc),
    ),
    "then what is made alike of both is the same": (
        "v, n = truncate(doc.values, doc.lengths, max_length=2)\n"
        "w, k = truncate(mate.values, mate.lengths, max_length=2)\n"
        "y = lengths_sum(v * w, n)\nsame_lengths(doc.lengths, mate.lengths)",
        lambda r: [dot(a[:2], b[:2]) for a, b in zip(r.doc, r.mate, strict=True)],
    ),
    "then selections of both are the same": (
        "m = doc.values > 2\nv, _ = boolean_mask(doc.values, m)\nw, n = mask_sequences(mate.values, m, mate.lengths)\n"
        "y = lengths_sum(v * w, n)\nsame_lengths(doc.lengths, mate.lengths)",
        lambda r: [
            sum(x * z for x, z in zip(a, b, strict=True) if x > 2) for a, b in zip(r.doc, r.mate, strict=True)
        ],
    ),
    "then their padded forms meet": (
        "x, mask = pad(doc.values, doc.lengths)\nz, _ = pad(mate.values, mate.lengths)\n"
        "y = reduce_sum(where(mask, x * z, 0), axes=[1])\nsame_lengths(doc.lengths, mate.lengths)",
        lambda r: [dot(a, b) for a, b in zip(r.doc, r.mate, strict=True)],
    ),
    "truncated lengths that are said to be the same": (
        "v, n = truncate(doc.values, doc.lengths, max_length=2)\nw, k = truncate(mate.values, mate.lengths, max_length=2)\n"
        "same_lengths(n, k)\ny = v * w",
        lambda r: paired([row[:2] for row in r.doc], [row[:2] for row in r.mate]),
    ),
    "rows that are said to be the same": (
        "same_rows(doc.values, tag.values)\ny = doc.values * tag.values",
        lambda r: [a * b for a, b in zip(flat(r.doc), flat(r.tag), strict=True)],
    ),
    "scores of padded steps are masked, and unpadded": (
        "x, _ = pad(doc.values, doc.lengths)\n"
        "y = unpad(sequence_mask(x, doc.lengths, mode='sequence', fill=0), doc.lengths) * doc.values",
        lambda r: [x * x for x in flat(r.doc)],
    ),
    "two columns dealt out by the same keys": (
        "a, b = partition(score, label, parts=2)\nc, d = partition(label, label, parts=2)\ny = concat([a * c, b + d])",
        lambda r: [
            *(s * n for s, n in zip(r.score, r.label, strict=True) if n % 2 == 0),
            *(s + n for s, n in zip(r.score, r.label, strict=True) if n % 2),
        ],
    ),
    "rows dealt out, and brought together": (
        "a, b = partition(score, label, parts=2)\ny = gather_by_key([a * 2, b * 2], label) + score",
        lambda r: [3 * s for s in r.score],
    ),
    "sequences of two columns dealt out by the same keys": (
        "same_lengths(doc.lengths, mate.lengths)\n"
        "a, b, n, m = partition_sequences(doc.values, doc.values, doc.lengths, parts=2)\n"
        "c, d, k, l = partition_sequences(mate.values, doc.values, doc.lengths, parts=2)\n"
        "y = lengths_sum(a * c, k) + lengths_sum(b * d, m)",
        lambda r: [dot(a, b) for a, b in zip(r.doc, r.mate, strict=True)],
    ),
    "lengths of joined sequences are sums": (
        "v, _ = concat_sequences([doc.values, tag.values], [doc.lengths, tag.lengths])\n"
        "w, _ = interleave([doc.values, tag.values], [doc.lengths, tag.lengths])\n"
        "y = lengths_sum(v * w, doc.lengths + tag.lengths) * 0",
        lambda r: [0 for _ in r.doc],
    ),
    "pieces without overlap are the column": (
        "v, n, counts = split_sequences(doc.values, doc.lengths, chunk=2)\ny = lengths_sum(v * doc.values, doc.lengths)",
        lambda r: [dot(row, row) for row in r.doc],
    ),
    # Groups by ids
    "groups of the same ids meet": (
        "ids = doc.values % 3\n"
        "y = unsorted_segment_sum(doc.values, ids, num_segments=3)"
        " * unsorted_segment_max(doc.values * 2, doc.values % 3, num_segments=3)",
        lambda r: [
            sum(group) * max(group, default=0) * 2 for group in ([x for x in flat(r.doc) if x % 3 == i] for i in range(3))
        ],
    ),
    "groups of a column of the record": (
        "y = unsorted_segment_sum(score, label, num_segments=3) * unsorted_segment_max(score, label, num_segments=3)",
        lambda r: [
            sum(s) * max(s, default=0)
            for s in ([s for s, n in zip(r.score, r.label, strict=True) if n == i] for i in range(3))
        ],
    ),
    "segment ids group the rows of a column": (
        "ids = lengths_to_segment_ids(doc.lengths)\nn = segment_ids_to_lengths(ids)\ny = lengths_sum(doc.values, n)",
        lambda r: sums(r.doc)[: max((i + 1 for i, row in enumerate(r.doc) if row), default=0)],
    ),
    # Joined
    "joined values go with joined lengths": (
        "v = concat([doc.values, tag.values])\nn = concat([doc.lengths, tag.lengths])\ny = lengths_sum(v, n)",
        lambda r: sums([*r.doc, *r.tag]),
    ),
    "three columns are joined in the same order": (
        "v = concat([tag.values, doc.values * 2, mate.values])\n"
        "y = lengths_sum(v, concat([tag.lengths, doc.lengths, mate.lengths]))",
        lambda r: sums([*r.tag, *([2 * x for x in row] for row in r.doc), *r.mate]),
    ),
    "joined lengths go with joined rows of the record": (
        "s = concat([score, score])\nn = concat([doc.lengths, tag.lengths])\n"
        "y = expand(s, n) * concat([doc.values, tag.values])",
        lambda r: [s * x for row, s in zip([*r.doc, *r.tag], [*r.score, *r.score], strict=True) for x in row],
    ),
    "vectors are joined side by side": (
        "x = concat([emb.values, emb.values * 2], axis=1)\ny = lengths_max(reduce_sum(x, axes=[1]), emb.lengths)",
        lambda r: [max((3 * sum(x) for x in row), default=0) for row in r.emb],
    ),
    "sequences are joined one by one": (
        "v, n = concat_sequences([doc.values, tag.values], [doc.lengths, tag.lengths])\ny = lengths_sum(v, n)",
        lambda r: [sum(a) + sum(b) for a, b in zip(r.doc, r.tag, strict=True)],
    ),
    "one tensor joined is that tensor": (
        "n = concat([doc.lengths])\ny = lengths_sum(concat([doc.values]) * doc.values, n)",
        lambda r: [sum(x * x for x in row) for row in r.doc],
    ),
    "joined in two steps": (
        "a = concat([concat([doc.values, tag.values]), mate.values])\n"
        "y = a * concat([doc.values, concat([tag.values, mate.values])])",
        lambda r: [x * x for x in flat([*r.doc, *r.tag, *r.mate])],
    ),
    "a first step joined, and taken off again": (
        "x, _ = pad(doc.values, doc.lengths)\nz = concat([expand_dims(label, axis=1), x], axis=1)\n"
        "y = unpad(slice_axes(z, starts=[1], stops=[9223372036854775807], axes=[1]), doc.lengths) * doc.values",
        lambda r: [x * x for x in flat(r.doc)],
    ),
    "joined along the steps, and cut where they were joined": (
        "x, _ = pad(doc.values, doc.lengths, max_length=3)\nz, _ = pad(tag.values, tag.lengths, max_length=3)\n"
        "a, b = split(concat([x, z], axis=1), parts=[3, 3], axis=1)\n"
        "y = concat([unpad(a, doc.lengths) * doc.values, unpad(b, tag.lengths)])",
        lambda r: [*(x * x for x in flat(r.doc)), *flat(r.tag)],
    ),
    "slices of padded steps that are alike": (
        "x, mask = pad(doc.values, doc.lengths, max_length=3)\n"
        "a = slice_axes(x, starts=[0], stops=[2], axes=[1])\nm = slice_axes(mask, starts=[0], stops=[2], axes=[1])\n"
        "y = reduce_sum(where(m, a, 0), axes=[1])",
        lambda r: [sum(row[:2]) for row in r.doc],
    ),
    "steps shifted against each other": (
        "x, _ = pad(doc.values, doc.lengths, max_length=3)\n"
        "y = slice_axes(x, starts=[0], stops=[-1], axes=[1]) - slice_axes(x, starts=[1], stops=[3], axes=[1])",
        lambda r: [[a - b for a, b in pairwise(row)] for row in ([*x, 0, 0, 0][:3] for x in r.doc)],
    ),
    "the first steps, unpadded by the lengths they have": (
        "x, _ = pad(doc.values, doc.lengths)\nn = minimum(doc.lengths, 2)\n"
        "y = lengths_sum(unpad(slice_axes(x, starts=[0], stops=[2], axes=[1]), n), n)",
        lambda r: [sum(row[:2]) for row in r.doc],
    ),
    "a token before and one behind, reduced by the lengths and two": (
        "a, n = prepend_token(doc.values, doc.lengths, token=5)\nb, _ = append_token(a, n, token=7)\n"
        "y = lengths_sum(b, doc.lengths + 2)",
        lambda r: [sum(row) + 12 for row in r.doc],
    ),
    "constants for each step": (
        "x, _ = pad(doc.values, doc.lengths, max_length=3)\ny = x * reshape([1, 2, 3], [3])",
        lambda r: [[(i + 1) * v for i, v in enumerate([*row, 0, 0, 0][:3])] for row in r.doc],
    ),
    # Padded
    "padding is masked out": (
        "x, mask = pad(doc.values, doc.lengths, fill=7)\ny = reduce_sum(where(mask, x, 0), axes=[1])",
        lambda r: sums(r.doc),
    ),
    "a mask made of the lengths is that of pad": (
        "x, _ = pad(doc.values, doc.lengths, fill=7)\n"
        "y = reduce_sum(x * lengths_to_mask(doc.lengths), axes=[1]) * label",
        lambda r: [sum(row) * n for row, n in zip(r.doc, r.label, strict=True)],
    ),
    "padded on the left, in all places": (
        "x, _ = pad(doc.values, doc.lengths, side='left', fill=7)\nmask = lengths_to_mask(doc.lengths, side='left')\n"
        "y = unpad(where(mask, x, 0), doc.lengths, side='left') * doc.values",
        lambda r: [x * x for x in flat(r.doc)],
    ),
    "the transpose of what is padded has time first": (
        "x, _ = pad(doc.values, doc.lengths)\n"
        "y = unpack_by_time(transpose(x) + pack_by_time(doc.values, doc.lengths), doc.lengths)",
        lambda r: [2 * x for x in flat(r.doc)],
    ),
    "time first is masked by the transposed mask": (
        "x = pack_by_time(doc.values, doc.lengths, fill=7)\n"
        "y = reduce_sum(where(transpose(lengths_to_mask(doc.lengths)), x, 0), axes=[0]) * score",
        lambda r: [sum(row) * s for row, s in zip(r.doc, r.score, strict=True)],
    ),
    "steps behind the end are zero": (
        "x = zero_after_length(pack_by_time(doc.values, doc.lengths, fill=7), doc.lengths)\n"
        "y = unpad(transpose(x), doc.lengths) + doc.values",
        lambda r: [2 * x for x in flat(r.doc)],
    ),
    "attention of padded sequences": (
        "x, mask = pad(emb.values, emb.lengths)\nscores = matmul(x, transpose(x, perm=[0, 2, 1]))\n"
        "weights = softmax(where(expand_dims(mask, axis=1), scores, -1e9))\n"
        "y = unpad(matmul(weights, x), emb.lengths)",
        lambda r: attention(r.emb),
    ),
    "scalars laid flat and masked": (
        "x, mask = pad(doc.values, doc.lengths)\nv, _ = boolean_mask(reshape(x, [-1]), reshape(mask, [-1]))\n"
        "y = v * doc.values",
        lambda r: [x * x for x in flat(r.doc)],
    ),
    "padded for truncated lengths": (
        "x, _ = pad(doc.values, doc.lengths, max_length=2, truncate=True)\n"
        "y = where(lengths_to_mask(minimum(doc.lengths, 2), max_length=2), x, 0)",
        lambda r: [[*row, 0, 0][:2] for row in r.doc],
    ),
    "padded for truncated lengths, masked by the whole": (
        "x, _ = pad(doc.values, doc.lengths, max_length=2, truncate=True)\n"
        "y = where(lengths_to_mask(doc.lengths, max_length=2), x, 0)",
        lambda r: [[*row, 0, 0][:2] for row in r.doc],
    ),
    "one column padded to two widths, each with its mask": (
        "x, _ = pad(doc.values, doc.lengths, max_length=8)\nz, _ = pad(doc.values, doc.lengths, fill=7)\n"
        "wide = where(lengths_to_mask(doc.lengths, max_length=8), x, 0)\n"
        "y = reduce_sum(wide, axes=[1]) + reduce_sum(where(lengths_to_mask(doc.lengths), z, 0), axes=[1])",
        lambda r: [2 * sum(row) for row in r.doc],
    ),
    "a mask of the widest and one of the longest": (
        "x, wide = pad(doc.values, doc.lengths, max_length=8)\nz, close = pad(doc.values, doc.lengths)\n"
        "y = reduce_sum(cast(wide, dtype='int64'), axes=[1]) * reduce_sum(where(close, z, 0), axes=[1])",
        lambda r: [len(row) * sum(row) for row in r.doc],
    ),
    "scores beyond the lengths are masked": (
        "x, _ = pad(doc.values, doc.lengths, fill=7)\n"
        "y = reduce_sum(sequence_mask(x, doc.lengths, mode='sequence', fill=0), axes=[1])",
        lambda r: sums(r.doc),
    ),
    "what is padded for is centred step by step": (
        "x, mask = pad(emb.values, emb.lengths)\nz = x - reduce_mean(x, axes=[2], keepdims=True)\n"
        "y = unpad(z, emb.lengths)",
        lambda r: [[v - sum(x) / 4 for v in x] for x in flat(r.emb)],
    ),
    "a value of the record meets each step": (
        "x, _ = pad(doc.values, doc.lengths)\ny = unpad(x * expand_dims(score, axis=1), doc.lengths)",
        lambda r: [s * x for row, s in zip(r.doc, r.score, strict=True) for x in row],
    ),
    "updates of sequences go to their rows": (
        "x, _ = pad(doc.values, doc.lengths, max_length=3)\n"
        "y = scatter_sequences(x, doc.values, lengths_to_positions(doc.lengths), doc.lengths)",
        lambda r: [[2 * v for v in [*row, 0, 0, 0][:3]] for row in r.doc],
    ),
    # Broadcasting
    "a mean over all rows is subtracted from each": (
        "y = point - reduce_mean(point, axes=[0])",
        lambda r: [[v - sum(c) / len(c) for v, c in zip(x, zip(*r.point, strict=True), strict=True)] for x in r.point],
    ),
    "the sum of all rows divides each": (
        "y = doc.values / (reduce_sum(doc.values) + 1)",
        lambda r: [x / (sum(flat(r.doc)) + 1) for x in flat(r.doc)],
    ),
    "each row gets its value": (
        "y = point * expand_dims(score, axis=1) - reshape(label, [-1, 1])",
        lambda r: [[v * s - n for v in x] for x, s, n in zip(r.point, r.score, r.label, strict=True)],
    ),
    "a column of one axis each": (
        "p = expand_dims(score, axis=1)\ny = squeeze(p - expand_dims(label, axis=1), axis=[1])",
        lambda r: [s - n for s, n in zip(r.score, r.label, strict=True)],
    ),
    "each row is centred": (
        "y = emb.values - expand_dims(reduce_mean(emb.values, axes=[1]), axis=1)",
        lambda r: [[v - sum(x) / 4 for v in x] for x in flat(r.emb)],
    ),
    # Weights and constants
    "a layer with bound weight and bias": (
        "y = lengths_sum(fc(emb.values, weight, bias), emb.lengths)",
        lambda r: [
            [sum(column) for column in zip([0] * 3, *(fc(x, WEIGHT, BIAS) for x in row), strict=True)] for row in r.emb
        ],
    ),
    "a layer over padded steps": (
        "x, _ = pad(emb.values, emb.lengths)\ny = unpad(fc(x, weight, bias), emb.lengths)",
        lambda r: [fc(x, WEIGHT, BIAS) for x in flat(r.emb)],
    ),
    "a recurrent network with bound weights": (
        "h, last = rnn(emb.values, emb.lengths, weight, w_hh, bias, nonlinearity='relu')\n"
        "y = last * expand_dims(score, axis=1)",
        lambda r: [[s * v for v in recurrent(row)] for row, s in zip(r.emb, r.score, strict=True)],
    ),
    "one layer for the record and for a column": (
        "y = expand(fc(point, weight, bias), emb.lengths) * fc(emb.values, weight)",
        lambda r: [
            [a * b for a, b in zip(fc(p, WEIGHT, BIAS), fc(x, WEIGHT, [0] * 3), strict=True)]
            for row, p in zip(r.emb, r.point, strict=True)
            for x in row
        ],
    ),
    "rows of a table by the ids of a column": (
        "y = lengths_sum(gather(table, doc.values), doc.lengths)",
        lambda r: [[sum(2 * x for x in row), sum(2 * x + 1 for x in row)] for row in r.doc],
    ),
    "a table is summed at the ids of a column": (
        "y = sparse_lengths_sum(table, doc.values, doc.lengths) * reshape(score, [-1, 1])",
        lambda r: [
            [s * sum(2 * x for x in row), s * sum(2 * x + 1 for x in row)]
            for row, s in zip(r.doc, r.score, strict=True)
        ],
    ),
    "constants meet every row": (
        "w = reshape([1, 10, 100, 1000], [4])\ny = point * w + 1",
        lambda r: [[v * w + 1 for v, w in zip(x, [1, 10, 100, 1000], strict=True)] for x in r.point],
    ),
    # Ops of users
    "an op that gives other lengths each time goes with itself": (
        "v, n = sampled_of_a_test(doc.values, doc.lengths)\ny = lengths_sum(v, n) - lengths_sum(v * 1, n)",
        lambda r: [0 for _ in r.doc],
    ),
    "an op of a user that gives the same each time": (
        "v, _ = halved_of_a_test(doc.values, doc.lengths)\n_, n = halved_of_a_test(doc.values, doc.lengths)\n"
        "y = lengths_sum(v, n)",
        lambda r: [sum(row[: len(row) // 2]) for row in r.doc],
    ),
    # Dtypes
    "numbers of different dtypes meet": (
        "y = cast(point, dtype='float64') * 2 + cast(reshape(label, [-1, 1]), dtype='float32')",
        lambda r: [[2 * v + n for v in x] for x, n in zip(r.point, r.label, strict=True)],
    ),
    "rows are cast to the dtype of what they join": (
        "y = concat([cast(label, dtype='float32'), score])",
        lambda r: [*r.label, *r.score],
    ),
}  # fmt: skip


def recurrent(row):
    state = [0.0] * 3
    for x in row:
        state = [
            max(0, v)
            for v in fc(x, WEIGHT, [h + b for h, b in zip([*state[1:], state[0]], BIAS, strict=True)])
        ]
    return state


OF_FOUR_ROWS = {
    "packed in rows and unpacked, all sequences counted": (
        "p, _, _, sources, sizes, pieces = pack_rows(doc.values, doc.lengths, capacity=4)\n"
        "v, n = unpack_rows(p * 2, sources, sizes, pieces, num_sequences=4)\n"
        "same_rows(n, doc.lengths)\nsame_lengths(n, doc.lengths)\n"
        "y = lengths_sum(v, doc.lengths) + lengths_sum(doc.values, n)",
        lambda r: [3 * sum(row) for row in r.doc],
    ),
    "segment ids of all sequences": (
        "n = segment_ids_to_lengths(lengths_to_segment_ids(doc.lengths), num_segments=4)\n"
        "same_rows(n, doc.lengths)\nsame_lengths(n, doc.lengths)\n"
        "y = lengths_sum(doc.values, n) * score",
        lambda r: [sum(row) * s for row, s in zip(r.doc, r.score, strict=True)],
    ),
    "constants that are said to be for each row": (
        "w = reshape([1, 2, 3, 4], [4])\nsame_rows(score, w)\ny = score * w",
        lambda r: [s * (i + 1) for i, s in enumerate(r.score)],
    ),
}

OF_KNOWN_WIDTH = {
    "a padded batch laid flat, masked by the mask laid flat, is unpadded": (
        "x, mask = pad(emb.values, emb.lengths)\n"
        "v, _ = boolean_mask(reshape(x, [-1, 4]), reshape(mask, [-1]))\ny = lengths_sum(v, emb.lengths)",
        lambda r: [[sum(column) for column in zip([0] * 4, *row, strict=True)] for row in r.emb],
    ),
}

BOTH_TABLES = {
    "each table by itself": (
        "y = concat([lengths_sum(doc.values, doc.lengths), lengths_sum(page.values, page.lengths)])",
        lambda r: [*sums(r.doc), *sums(r.page)],
    ),
    "a value of one table for all of another": (
        "y = score * reduce_sum(rating)",
        lambda r: [s * sum(r.rating) for s in r.score],
    ),
    "rows of one table looked up from another": (
        "y = gather(rating, label) * score",
        lambda r: [r.rating[n] * s for n, s in zip(r.label, r.score, strict=True)],
    ),
    "sequences of one table looked up from another": (
        "v, n = gather_sequences(page.values, label, page.lengths)\ny = lengths_sum(v, n) + label",
        lambda r: [sum(r.page[n]) + n for n in r.label],
    ),
    "columns of both tables are joined with their lengths": (
        "v = concat([doc.values, page.values])\nn = concat([doc.lengths, page.lengths])\n"
        "y = lengths_sum(v, n) * concat([score, rating])",
        lambda r: [sum(row) * s for row, s in zip([*r.doc, *r.page], [*r.score, *r.rating], strict=True)],
    ),
    "rows of both tables that are said to be the same": (
        "s, _ = boolean_mask(score, flag)\nsame_rows(s, rating)\ny = s * rating",
        lambda r: [s * q for s, q in zip(kept(r.score, r.flag), r.rating, strict=True)],
    ),
}


@pytest.fixture(autouse=True)
def two_ops(ops_of_a_user):
    """Nets may call the ops that a user wrote."""


def table(nets):
    return pytest.mark.parametrize(("text", "expected"), nets.values(), ids=nets)


@table(FIRST_TABLE | OF_KNOWN_WIDTH | OF_FOUR_ROWS | BOTH_TABLES)
def test_inference_before_data_accepts_it(text, expected):
    net = net_of(text)
    net.infer(used(net, SPECS))


@table(FIRST_TABLE | OF_KNOWN_WIDTH | OF_FOUR_ROWS)
def test_run_on_a_record(text, expected):
    check(sf.run(net_of(text), record(FIRST)), expected(lists(FIRST)))


@table(FIRST_TABLE | OF_KNOWN_WIDTH)
def test_run_on_an_empty_record(text, expected):
    check(sf.run(net_of(text), record(empty(FIRST))), expected(lists(empty(FIRST))))


@table(FIRST_TABLE | OF_KNOWN_WIDTH | OF_FOUR_ROWS | BOTH_TABLES)
def test_run_on_a_plain_mapping(text, expected):
    net = net_of(text)
    check(sf.run(net, TENSORS), expected(lists(FIRST | SECOND)))


@table(FIRST_TABLE | OF_FOUR_ROWS)
def test_run_on_tensors_that_are_called_otherwise(text, expected):
    """Nothing is known of whose rows they hold."""
    plain = {name: name.replace(".", "_of_") for name in TENSORS}
    for name in sorted(plain, key=len, reverse=True):
        text = text.replace(name, plain[name])
    net = net_of(text)
    check(
        sf.run(net, used(net, {plain[name]: array for name, array in TENSORS.items()})),
        expected(lists(FIRST)),
    )


def check(outputs, expected):
    found = outputs["y"]
    assert len(found) == len(expected)
    if len(expected):
        np.testing.assert_allclose(found, expected, rtol=1e-5)
