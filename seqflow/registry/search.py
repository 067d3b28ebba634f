"""Finds ops by their names, by what they are called elsewhere, and by what they do."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple

from seqflow.registry.definition import OpDef

_NAME, _PEER, _SUMMARY = 4.0, 3.0, 1.0
_WHOLE = 100.0
"""A query that is a name as a whole comes before all that share words with it."""


class Hit(NamedTuple):
    """An op that a search has found."""

    name: str
    score: float
    known_as: str
    """The peer's name that it was found by; empty where it was its own name or summary."""


def names_elsewhere(op: OpDef) -> tuple[str, ...]:
    """What an op is called elsewhere, Caffe2's name first."""
    own, others = ((text or "").split(by) for text, by in ((op.caffe2, ", "), (op.known_as, "; ")))
    return (*(f"Caffe2 {name}" for name in own if name), *filter(None, others))


def search(query: str, ops: Iterable[OpDef]) -> list[Hit]:
    """Return the ops that a query may mean, best first: a word counts by the best place that has it.

    Places are the name of an op, its names elsewhere, and the first line of its description. An op counts by the
    share of the query's words that it has, too. The libraries in a call do not count: `torch.nn.functional.pad` is
    `pad`; nor do "of", "the" and the like.
    """
    words = _telling(_words(query))
    found = [hit for op in ops if (hit := _hit(op, query.strip().lower(), words)).score > 0]
    return sorted(found, key=lambda hit: (-hit.score, hit.name))


def nearest(query: str, ops: Iterable[OpDef]) -> list[str]:
    """Return the names of ops that are spelled most like a query; an op by its own name or by one that it has elsewhere."""
    spelled: dict[str, str] = {}
    for op in ops:
        for name in (*names_elsewhere(op), op.name):
            spelled["".join(_telling(_words(name)))] = op.name
    close = get_close_matches("".join(_telling(_words(query))), spelled, n=_NEAREST)
    return list(dict.fromkeys(spelled[word] for word in close))


_NEAREST = 3
"""So many names are said to be near where nothing is found."""


def _hit(op: OpDef, query: str, words: Sequence[str]) -> Hit:
    own = dict.fromkeys(_words(op.name), _NAME)
    summary = dict.fromkeys(_words(op.doc.partition("\n")[0]), _SUMMARY) | own
    best, known_as = _score(words, summary), ""
    for name in names_elsewhere(op):
        of_name = dict.fromkeys(_telling(_words(name)), _PEER)
        score = _score(words, summary | of_name | own)
        caffe2 = name.removeprefix("Caffe2 ").lower()
        if query in (name.lower(), caffe2):
            score += _WHOLE
        elif _score(words, of_name) == len(words) * _PEER:
            score += len(words) / max(1, len(of_name))
        if score > best:
            best, known_as = score, name
    if query == op.name:
        return Hit(op.name, best + 2 * _WHOLE, "")
    return Hit(op.name, best, known_as)


def _score(words: Sequence[str], places: dict[str, float]) -> float:
    found = [places.get(word, 0.0) for word in words]
    return sum(found) * sum(one > 0 for one in found) / len(found) if found else 0.0


@lru_cache(maxsize=1 << 14)  # a search looks at the same names of all ops
def _words(text: str) -> tuple[str, ...]:
    """Lower-case words without the s of a plural; names in camel case are several."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    words = [word for word in re.split(r"[^a-z0-9]+", apart.lower()) if word]
    return tuple(
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in words
    )


def _telling(words: Sequence[str]) -> Sequence[str]:
    """Words but those that only say in which library a call is, or join others, where others are left."""
    return [word for word in words if word not in _LIBRARIES and word not in _JOINING] or words


_LIBRARIES = frozenset(
    _words(
        "ak awkward caffe2 datasets df fbgemm fluid functional jax jnp keras layers math nn np numpy paddle pandas "
        "pc pd pyarrow scatter static strings tensorflow tf torch torchrec utils"
    )
)
"""Words of calls that say in which library, or in which part of one, they are."""
_JOINING = frozenset(_words("a an and at by every for from how in my of on or per the their to with"))
"""Words that most descriptions have."""
