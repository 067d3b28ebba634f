"""Finds ops by their names, their names in other libraries, and their descriptions."""

import re
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import NamedTuple

from seqflow.registry.definition import OpDef

_NAME, _PEER, _SUMMARY = 4.0, 3.0, 1.0
_WHOLE = 100.0
"""Score of a query that is a whole name: more than any number of shared words."""


class Hit(NamedTuple):
    """An op found by a search."""

    name: str
    score: float
    known_as: str
    """Name in another library that it was found by; "" if it was found by its own name or summary."""


def names_elsewhere(op: OpDef) -> tuple[str, ...]:
    """Return the names of an op in other libraries, Caffe2's names first."""
    own, others = ((text or "").split(by) for text, by in ((op.caffe2, ", "), (op.known_as, "; ")))
    return (*(f"Caffe2 {name}" for name in own if name), *filter(None, others))


def search(query: str, ops: Iterable[OpDef]) -> list[Hit]:
    """Return the ops that a query may mean, best first.

    A word counts by the best place where an op has it: its name, its names in other libraries, or the first line of
    its description. The sum is multiplied by the share of the query's words that the op has. Names of libraries in a
    call (`torch.nn.functional.pad` is `pad`) and words such as "of" and "the" do not count.
    """
    words = _telling(_words(query))
    found = [hit for op in ops if (hit := _hit(op, query.strip().lower(), words)).score > 0]
    return sorted(found, key=lambda hit: (-hit.score, hit.name))


def nearest(query: str, ops: Iterable[OpDef]) -> list[str]:
    """Return the ops whose names, own or in other libraries, are spelled most like a query."""
    spelled: dict[str, str] = {}
    for op in ops:
        for name in (*names_elsewhere(op), op.name):
            spelled["".join(_telling(_words(name)))] = op.name
    close = get_close_matches("".join(_telling(_words(query))), spelled, n=_NEAREST)
    return list(dict.fromkeys(spelled[word] for word in close))


_NEAREST = 3
"""Number of similar names to suggest if nothing is found."""


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
        # of names that have all words of the query, the shortest fits best
        elif _score(words, of_name) == len(words) * _PEER:
            score += len(words) / max(1, len(of_name))
        if score > best:
            best, known_as = score, name
    if query == op.name:  # comes before an op that has this name in another library
        return Hit(op.name, best + 2 * _WHOLE, "")
    return Hit(op.name, best, known_as)


def _score(words: Sequence[str], places: dict[str, float]) -> float:
    found = [places.get(word, 0.0) for word in words]
    return sum(found) * sum(one > 0 for one in found) / len(found) if found else 0.0


@lru_cache(maxsize=1 << 14)  # each search splits the same names of all ops
def _words(text: str) -> tuple[str, ...]:
    """Return lower-case words without the s of a plural; camel case is split."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    words = [word for word in re.split(r"[^a-z0-9]+", apart.lower()) if word]
    return tuple(
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in words
    )


def _telling(words: Sequence[str]) -> Sequence[str]:
    """Return the words without names of libraries and joining words; all words if nothing would be left."""
    return [word for word in words if word not in _LIBRARIES and word not in _JOINING] or words


_LIBRARIES = frozenset(
    _words(
        "ak awkward caffe2 datasets df fbgemm fluid functional jax jnp keras layers math nn np numpy paddle pandas "
        "pc pd pyarrow scatter static strings tensorflow tf torch torchrec utils"
    )
)
"""Words of calls that name a library or a part of one."""
_JOINING = frozenset(_words("a an and at by every for from how in my of on or per the their to with"))
"""Joining words, which most descriptions have."""
