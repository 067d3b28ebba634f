"""A column of conversations: found in a schema, and the net of a first job that makes tokens and labels of it."""

import json
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

import pyarrow as pa

from seqflow.printable import printable_line

MARKERS = ("<|im_start|>", "<|im_end|>")
"""Special tokens of ChatML."""
_FIELDS = (("role", "content"), ("from", "value"))
"""Usual names of the role and the content of a turn."""
_USUAL = ("messages", "conversations", "conversation", "chat")
_NAMES = {"human": "user", "gpt": "assistant", "model": "assistant", "bot": "assistant"}
"""Other names of roles, and their names in ChatML."""
_CHATML = ("system", "user", "assistant", "tool")
"""Usual roles."""
_SHOWN, _SHOWN_LETTERS = 10, 40
"""Most roles that are told, and letters of their names."""

PARTS = dict(
    part.split("\n", 1) for part in Path(__file__).with_name("parts.toml").read_text("utf-8").split("#: ")[1:]
)
"""Templates of the sections of a first job, by name."""


class Chat(NamedTuple):
    """A column of lists of turns, and the fields of a turn."""

    column: str
    role: str
    content: str

    @property
    def columns(self) -> list[str]:
        """Fields that are read."""
        return [f"{self.column}.{self.role}", f"{self.column}.{self.content}"]

    def net(self, seen: Mapping[str, int], tokenizer: str) -> str:
        """Return the sections of a job that make tokens and labels, for roles that are `seen` in the data, with the
        number of their turns.
        """
        usual = _CHATML if self.role == "role" else ("system", "human", "gpt", "tool")
        # other roles are names of a TOML literal in three single quotes
        further = {one for one in seen if one.isprintable() and "'" not in one}
        roles = [*usual, *sorted(further - {*usual})]
        of_assistant = [one for one in roles if _NAMES.get(one, one) == "assistant"]
        names = [_NAMES.get(one, one) for one in roles]
        starts = [f"<|im_start|>{one}\n" for one in names] if names != roles else "<|im_start|>{role}\n"
        return PARTS["chat"].format(
            tokenizer=json.dumps(tokenizer),
            trained=json.dumps(of_assistant[0] if len(of_assistant) == 1 else of_assistant),
            roles=json.dumps(roles),
            starts=json.dumps(starts).replace('", "', '",\n        "'),
            told="".join(f"# {line}\n" for line in wrap(told_roles(seen), 110)),
            **self._asdict(),
        )


def told_roles(seen: Mapping[str, int]) -> str:
    """Return a sentence about the roles and the number of their turns; empty if all roles are usual ones."""
    usual = {*_CHATML, *_NAMES}
    if usual.issuperset(seen):
        return ""
    roles = sorted(seen, key=lambda one: (one not in usual, -seen[one]))
    found = [
        f"{printable_line(one[:_SHOWN_LETTERS])} {seen[one]:,} turns"
        + ": not one of the usual" * (one not in usual)
        for one in roles[:_SHOWN]
    ]
    more = [f"{len(roles) - _SHOWN:,} more"] if len(roles) > _SHOWN else []
    return f"roles found: {', '.join([*found, *more])}"


def find_chat(schema: pa.Schema) -> Chat | None:
    """Return the column of conversations of a schema, the usual names first; None if it has none."""
    found = [
        Chat(field.name, *names)
        for field in schema
        if field.name.isidentifier() and (pa.types.is_list(field.type) or pa.types.is_large_list(field.type))
        for names in _FIELDS
        if pa.types.is_struct(field.type.value_type)
        and all(_is_text(field.type.value_type, one) for one in names)
    ]
    usual = [one for name in _USUAL for one in found if one.column == name]
    return next(iter([*usual, *found]), None)


def _is_text(turn: pa.StructType, name: str) -> bool:
    at = turn.get_field_index(name)
    return at >= 0 and bool(
        pa.types.is_string(turn.field(at).type) or pa.types.is_large_string(turn.field(at).type)
    )
