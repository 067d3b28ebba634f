"""Tokens and labels of conversations: lists of turns, each with a role and its text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqflow import kernels
from seqflow.errors import OpError, nearest
from seqflow.kernels.arrays import Array
from seqflow.ops.shared.slices import int64, starts_of, surround
from seqflow.ops.shared.strings import Errors, to_strings
from seqflow.ops.shared.tokenizers import encode, encoder_of, special_id, special_tokens
from seqflow.registry import op
from seqflow.signature import File, Texts

_NO_LABEL = -100
"""The label of tokens that a loss leaves out: PyTorch's `ignore_index`."""


def _check_template(attributes: Mapping[str, Any]) -> None:
    """Raise OpError unless the tokenizer of these attributes exists and has the special tokens that they name."""
    _Template.of(**{name: attributes[name] for name in attributes if name != "errors"})


@op(
    "uint8 content[sum(content_lengths)], uint8 role[sum(role_lengths)],"
    " lens content_lengths[sum(lengths)], lens role_lengths[sum(lengths)], lengths[B]"
    " -> int32 values[sum(lengths')], int64 lengths'[B], int32 labels[sum(lengths')]",
    files=_check_template,
)
def tokenize_chat(
    content: Array,
    role: Array,
    content_lengths: Array,
    role_lengths: Array,
    lengths: Array,
    *,
    tokenizer: File,
    roles: Texts = ("system", "user", "assistant"),
    trained: Texts = ("assistant",),
    turn_start: Texts = ("<|im_start|>{role}\n",),
    turn_end: Texts = ("<|im_end|>\n",),
    begin: str | None = None,
    end: str | None = None,
    errors: Errors = "strict",
) -> tuple[Array, Array, Array]:
    """Convert conversations to the ids of a Hugging Face tokenizer, and to the labels to train a model on.

    A conversation is a list of turns, each with a role and its content, both UTF-8 text. `lengths` counts turns, the
    other lengths count bytes. For a column `chat` of such lists the inputs are `chat.values.content.values`,
    `chat.values.role.values`, `chat.values.content.lengths`, `chat.values.role.lengths` and `chat.lengths`.

    A turn becomes `turn_start`, the content and `turn_end`. `turn_start` and `turn_end` are one text for all roles,
    or one for each of `roles`; they contain a special token of the tokenizer, and `{role}` stands for the role. Some
    of one of the two may be empty.
    `begin` and `end` name special tokens around a whole conversation. In the content, the name of a special token is
    plain text, so no turn can pretend to be another. A role that is not in `roles` is an error that names row and
    turn.

    The label of a token is its id in the content and the `turn_end` of `trained` roles, and in an `end` after such a
    turn; it is -100 everywhere else. `tokenizer` and `errors` are as in `tokenize`. An empty conversation has only
    the ids of `begin` and `end`.

    >>> text, roles = np.frombuffer(b"hi!hey", np.uint8), np.frombuffer(b"userassistant", np.uint8)
    >>> names = ["<|im_start|>", "<|im_end|>"]
    >>> tokenizer = train_tokenizer(text, np.array([6]), vocabulary_size=258, special_tokens=names)
    >>> chat = tokenize_chat(
    ...     text, roles, np.array([3, 3]), np.array([4, 9]), np.array([2]), tokenizer=tokenizer,
    ...     turn_start="<|im_start|>", turn_end="<|im_end|>",
    ... )
    >>> decode(chat.values, chat.lengths, tokenizer=tokenizer, special_tokens=True).values.tobytes()
    b'<|im_start|>hi!<|im_end|><|im_start|>hey<|im_end|>'
    >>> chat.labels.tolist()
    [-100, -100, -100, -100, -100, -100, 73, 70, 90, 1]
    """
    template = _Template.of(tokenizer, roles, trained, turn_start, turn_end, begin, end)
    turns = int64(lengths)
    which = _indices_of_roles(role, role_lengths, turns, roles)

    strings = to_strings(content, content_lengths, errors, lambda turn: _place(turn, turns))
    texts, sizes = encode(encoder_of(tokenizer, literal=True), strings, special_tokens=False)
    values, labels, turn_sizes = template.fill(texts, sizes, which)

    conversations = kernels.segment_reduce("sum", turn_sizes, turns)
    values, longer = surround(values, conversations, template.begin, template.end)
    before, after = (None if token is None else _NO_LABEL for token in (template.begin, template.end))
    labels, _ = surround(labels, conversations, before, after)
    if template.end is not None:  # its token is learned if the last turn is: it was labelled -100 above
        ends = np.cumsum(turns)
        has_turns = turns > 0
        learned = np.zeros(len(turns), np.bool_)
        learned[has_turns] = template.trained[which[ends[has_turns] - 1]]
        labels[np.cumsum(longer)[learned] - 1] = template.end
    return values, longer, labels


@dataclass(frozen=True, slots=True, eq=False)
class _Template:
    """Ids around the content of each role's turns, and around a conversation."""

    ids: Array
    """Ids before the content of each role, then ids after it."""
    lengths: Array
    """Number of ids in each of these places, [2 · roles]."""
    trained: Array
    """Whether the turns of each role have labels, [roles]."""
    begin: int | None
    end: int | None

    @classmethod
    def of(
        cls,
        tokenizer: Any,
        roles: tuple[str, ...],
        trained: tuple[str, ...],
        turn_start: tuple[str, ...],
        turn_end: tuple[str, ...],
        begin: str | None,
        end: str | None,
    ) -> "_Template":
        """Return the template; raise OpError if roles, texts and special tokens do not fit together."""
        encoder = encoder_of(tokenizer)
        if not roles or len(set(roles)) < len(roles):
            raise OpError(f"roles is {list(roles)!r}, expected the name of each role once")
        unknown = next((name for name in trained if name not in roles), None)
        if unknown is not None:
            raise OpError(f"trained has {unknown!r}, expected {_listed(roles)}{nearest(unknown, roles)}")
        texts = _of_each_role("turn_start", turn_start, roles, encoder, may_be_empty=True)
        texts += _of_each_role("turn_end", turn_end, roles, encoder, may_be_empty="" not in texts)
        ids = [encoding.ids for encoding in encoder.encode_batch_fast(texts, add_special_tokens=False)]
        return cls(
            np.array([one for text in ids for one in text], np.int32),
            np.array([len(text) for text in ids], np.int64),
            np.array([name in trained for name in roles]),
            special_id(encoder, "begin", begin),
            special_id(encoder, "end", end),
        )

    def fill(self, tokens: Array, sizes: Array, which: Array) -> tuple[Array, Array, Array]:
        """Return the ids and labels of all turns, and the size of each turn, from the ids of their content."""
        starts, num_roles = starts_of(self.lengths), len(self.trained)
        before, after = self.lengths[which], self.lengths[which + num_roles]
        turn_sizes = before + sizes + after
        offsets = kernels.lengths_to_offsets(turn_sizes)
        first = offsets[:-1] + before
        values = np.empty(int(offsets[-1]), np.int32)
        kernels.move_slices(self.ids, starts[which], before, values, offsets[:-1])
        kernels.move_slices(tokens, starts_of(sizes), sizes, values, first)
        kernels.move_slices(self.ids, starts[which + num_roles], after, values, offsets[1:] - after)
        labels = np.full(len(values), _NO_LABEL, np.int32)
        learned = self.trained[which]
        from_here, count = first[learned], (sizes + after)[learned]
        kernels.move_slices(values, from_here, count, labels, from_here)
        return values, labels, turn_sizes


def _of_each_role(
    name: str, texts: tuple[str, ...], roles: tuple[str, ...], tokenizer: Any, *, may_be_empty: bool
) -> list[str]:
    """Return the text of each role; raise OpError for a text without a special token."""
    # without a special token a user could write the same text in the content of a turn
    if len(texts) not in (1, len(roles)):
        raise OpError(f"{name} has {len(texts)} texts, expected 1, or {len(roles)}: one for each of roles")
    known = special_tokens(tokenizer)
    each = [
        text.replace("{role}", role)
        for text, role in zip(texts * (len(roles) // len(texts)), roles, strict=True)
    ]
    checked = [text for text in each if text or not may_be_empty]
    wrong = next((text for text in checked if not any(token in text for token in known)), None)
    if wrong is not None:
        raise OpError(
            f"{name} is {wrong!r}, expected a special token of the tokenizer in it{nearest(wrong, known)}",
            advice=f"it has {', '.join(map(repr, known)) or 'none'}",
        )
    return each


def _indices_of_roles(role: Array, role_lengths: Array, turns: Array, roles: tuple[str, ...]) -> Array:
    """Return the number of each turn's role; raise OpError for a role that is not among `roles`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    offsets = kernels.lengths_to_offsets(role_lengths)
    data = np.ascontiguousarray(role)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    found = pa.Array.from_buffers(pa.large_binary(), len(role_lengths), buffers)
    names = pa.array([name.encode() for name in roles], pa.large_binary())
    which = pc.index_in(found, value_set=names)
    if which.null_count:
        turn = int(np.argmax(which.is_null().to_numpy(zero_copy_only=False)))
        name = found[turn].as_py().decode(errors="replace")
        guess = nearest(name, roles)
        raise OpError(f"{_place(turn, turns)}: the role is {name!r}, expected {_listed(roles)}{guess}")
    indices: Array = which.to_numpy(zero_copy_only=False).astype(np.int64)
    return indices


def _place(turn: int, turns: Array) -> str:
    """Return the row, and the turn within that row, of a turn counted over all rows."""
    offsets = kernels.lengths_to_offsets(turns)
    row = int(np.searchsorted(offsets, turn, "right")) - 1
    return f"row {row}, turn {turn - offsets[row]}"


def _listed(names: tuple[str, ...]) -> str:
    return " or ".join(map(repr, names))
