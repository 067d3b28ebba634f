"""Finds ops by their names, their names in other libraries, and their descriptions."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from seqflow.registry.definition import OpDef

_NAME, _PEER, _SUMMARY = 4.0, 3.0, 1.0
_WHOLE = 100.0
"""Score of a query that has exactly the words of a name: more than any number of shared words."""


_SEQUENCE = "sequence"
"""Stands for all words for one sequence. Ops work on each, so that an op need not have the word."""


class Hit(NamedTuple):
    """An op found by a search."""

    name: str
    score: float
    known_as: str
    """Name in another library that it was found by; "" if it was found by its own name or summary."""

    @property
    def is_exact(self) -> bool:
        """Whether the query has exactly the words of a name."""
        return self.score >= _WHOLE


def names_elsewhere(op: OpDef) -> tuple[str, ...]:
    """Return the names of an op in other libraries, Caffe2's names first."""
    known_as = op.known_as or _table().get(op.name, "")
    own, others = ((text or "").split(by) for text, by in ((op.caffe2, ", "), (known_as, "; ")))
    return (*(f"Caffe2 {name}" for name in own if name), *filter(None, others))


@cache
def _table() -> Mapping[str, str]:
    """Return what our own ops are known as. A line of `known_as.txt` has an op and its names, separated by a tab."""
    rows = Path(__file__).with_name("known_as.txt").read_text(encoding="utf-8").splitlines()
    return dict(row.split("\t") for row in rows)


def search(query: str, ops: Iterable[OpDef]) -> list[Hit]:
    """Return the ops that a query may mean, best first; none if no op has all that the query asks for.

    An op is found if it has every word of the query in its name, its names in other libraries, or the first line of
    its description; "list" may have another word for a sequence there. It is also found if the query has every word
    of one of its names, of two words or more. A word counts by the best place where the op has it; the larger the
    share of a name that the query is, the better. Words are compared without their endings ("truncation" is
    "truncate"). Libraries and modules of a call (`torch.nn.functional.pad` is `pad`) and words such as "of" and "the"
    do not count.
    """
    words = _telling(query)
    found = [hit for op in ops if (hit := _hit(op, query.strip().lower(), words)).score > 0]
    return sorted(found, key=lambda hit: (-hit.score, hit.name))


def ops_for(name: str) -> str:
    """Return a sentence that names the ops which a name may mean, or the method `sum` of a tensor, `x.sum`; empty if
    there is none.
    """
    from seqflow.registry import lookup

    owner, _, method = name.rpartition(".")
    hits = search(name if set(_words(owner)) <= _PATHS else method, map(lookup.get, lookup.names()))[
        :_NEAREST
    ]
    return "ops of seqflow.ops: " + ", ".join(hit.name for hit in hits) if hits else ""


def nearest(query: str, ops: Iterable[OpDef]) -> list[str]:
    """Return the ops whose names, own or in other libraries, are spelled most like a query."""
    spelled: dict[str, str] = {}
    for op in ops:
        for name in (*names_elsewhere(op), op.name):
            spelled["".join(_telling(name))] = op.name
    close = get_close_matches("".join(_telling(query)), spelled, n=_NEAREST)
    return list(dict.fromkeys(spelled[word] for word in close))


_NEAREST = 3
"""Number of similar names to suggest if nothing is found."""


@lru_cache(maxsize=1 << 10)  # an op is declared once
def _places(
    name: str, elsewhere: tuple[str, ...], summary: str
) -> Mapping[str, tuple[Sequence[str], Mapping[str, float]]]:
    """Return for each name of an op its words, and the scores of these and of the op's own name and summary."""
    own, described = dict.fromkeys(_words(name), _NAME), dict.fromkeys(_words(summary), _SUMMARY)
    # names one by one: words from several of them would make a question that none of them answers
    return {
        one: (words, described | dict.fromkeys(words, _PEER) | own)
        for one, words in [("", _telling(name)), *((one, _telling(one)) for one in elsewhere)]
    }


def _hit(op: OpDef, query: str, words: Sequence[str]) -> Hit:
    names = _places(op.name, names_elsewhere(op), op.doc.partition("\n")[0])
    scores = {name: _score(words, *of_name) for name, of_name in names.items()}
    best = max(scores, key=lambda name: scores[name])
    # what is spelled exactly so comes before what has the same words, and an op's own name before both
    spelled = [name.removeprefix("Caffe2 ").lower() for name in names if name]
    exact = (query == op.name) * 3 * _WHOLE + (query in spelled) * _WHOLE
    exact += (_without_modules(query) in map(_without_modules, spelled)) * _WHOLE / 2
    return Hit(op.name, scores[best] + exact, best)


def _score(words: Sequence[str], name: Sequence[str], places: Mapping[str, float]) -> float:
    """Score one name of an op; `places` has its words and those of the op's own name and summary."""
    asked = set(words)
    if asked.isdisjoint(places):
        return 0.0
    named = set(name)
    found = sum(places.get(word, 0.0) for word in words)
    if asked == named:
        return found + _WHOLE
    if asked <= named:
        return found + len(asked) / len(named)
    if found and all(word in places or word == _SEQUENCE for word in words):
        return found
    # a longer question with a name inside it; a name of one word says too little ("dropout schedule")
    return found * len(named) / len(asked) if len(named) > 1 and named < asked else 0.0


@lru_cache(maxsize=1 << 14)  # each search splits the same names of all ops
def _words(text: str) -> tuple[str, ...]:
    """Return lower-case words without their endings; camel case is split, acronyms such as MoE are not."""
    apart = re.sub(r"(?<=[a-z0-9])(?=[A-Z][a-z0-9])", " ", text)
    return tuple(_stem(word) for word in re.split(r"[^a-z0-9]+", apart.lower()) if word)


def _stem(word: str) -> str:
    """Return a word without the ending of a plural, a verb or its noun: pads, padding, padded are pad."""
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    if word in ("group", "list", "row", "segment", _SEQUENCE):
        return _SEQUENCE
    stem = re.sub(r"(?:(?<=iz)ation|ion|ing|ed)$", "", word)
    if len(stem) < 3 or not re.search("[aeiouy]", stem):  # string, need, ring
        return word
    if stem != word and stem[-1] == stem[-2] and stem[-1] not in "lsz":  # padd, but not pass
        return stem[:-1]
    return re.sub("e$", "", stem) if len(stem) > 4 else stem


@lru_cache(maxsize=1 << 14)
def _without_modules(text: str) -> str:
    """Return a call without the libraries and modules before its dots: `np.pad` is `pad`."""
    return re.sub(
        r"\b[a-zA-Z]\w*\.(?=\w)", lambda part: "" if set(_words(part[0])) <= _PATHS else part[0], text
    )


@lru_cache(maxsize=1 << 14)
def _telling(text: str) -> Sequence[str]:
    """Return the words without libraries, modules before a dot, and joining words; all words if none is left."""
    words = _words(_without_modules(text))
    return [word for word in words if word not in _LIBRARIES and word not in _JOINING] or words


_LIBRARIES = frozenset(
    _words(
        "ak awkward caffe2 df duckdb fbgemm fluid jax jnp keras np numpy paddle pandas pc pd polars pyarrow "
        "spark tensorflow tf torch torchrec"
    )
)
"""Words that name a library."""
_PATHS = _LIBRARIES | set(_words("datasets functional layers math nn scatter static str strings utils"))
"""Words that name a library or a module, if a dot follows."""
_JOINING = frozenset(
    _words("a an and at by do each every for from how i in is my of on or per the their to with")
)
"""Joining words, which most descriptions have."""
