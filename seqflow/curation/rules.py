"""The rules of curation, as sections of a job."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Literal

import numpy as np

from seqflow.arguments import PathText, at_least_one, checked
from seqflow.errors import OpError
from seqflow.kernels import MOST_BINS

COMPARISON = 2
"""Number of the way in which rows are compared: it rises when other rows become equal or alike."""
_MOST = 1 << 16
"""Most numbers of a signature."""


@checked()
@dataclass(frozen=True, slots=True, kw_only=True)
class Decontaminate:
    """Leave out rows that share n-grams with evaluation sets. Texts are compared word by word, in lower case; scripts
    without blanks, such as Chinese and Thai, letter by letter."""

    column: str
    """Column, or field of structs (`doc.text`), of texts, of lists of tokens, or of lists of words; the evaluation
    sets have it, too."""
    against: PathText | tuple[PathText, ...]
    """Files, folders, globs and URIs of the evaluation sets."""
    ngram: int = 13
    """Number of words or tokens that are compared together."""
    max_share: float = 0.0
    """Largest share of a row's n-grams that may be in an evaluation set."""

    name = "decontaminate"

    def __post_init__(self) -> None:
        at_least_one("Decontaminate", ngram=self.ngram)
        if not 0 <= self.max_share < 1:
            raise OpError.of(
                "Decontaminate.max_share", f"is {self.max_share}, expected a share from 0 to below 1"
            )

    @property
    def columns_by_argument(self) -> dict[str, tuple[str, ...]]:
        """Columns and fields of the source that it reads, by the argument that names them."""
        return {"column": (self.column,)}


@checked()
@dataclass(frozen=True, slots=True, kw_only=True)
class Deduplicate:
    """Keep one of the rows that are equal in some columns, over all files, whatever the widths, units and scales of
    their types are. Nulls are equal to each other."""

    columns: tuple[str, ...]
    """Columns, or fields of them (`messages.role`), that are compared, by hashes of 126 bits."""
    keep: str = "first"
    """Row that stays: "first" or "last" in the order of the source, or "highest:COLUMN", the first of those with the
    largest number or time in a column; nulls and NaN are less than any."""
    against: PathText | tuple[PathText, ...] = ()
    """Files, folders, globs and URIs whose rows leave out those of the source that are equal to them."""

    name = "deduplicate"

    def __post_init__(self) -> None:
        if not self.columns:
            raise OpError.of("Deduplicate.columns", "is empty, expected at least one column")
        if self.keep not in ("first", "last") and not self.score:
            raise OpError.of(
                "Deduplicate.keep", f"is {self.keep!r}, expected 'first', 'last' or 'highest:COLUMN'"
            )

    @property
    def score(self) -> str:
        """Column whose largest number stays; empty without one."""
        kind, _, column = self.keep.partition(":")
        return column if kind == "highest" else ""

    @property
    def columns_by_argument(self) -> dict[str, tuple[str, ...]]:
        """Columns and fields of the source that it reads, by the argument that names them."""
        return {"columns": self.columns, **({"keep": (self.score,)} if self.score else {})}


@checked()
@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicates:
    """Keep the first of rows that are alike, by MinHash of their n-grams in bands (Leskovec et al., 2014).

    Rows whose sets of n-grams have the Jaccard index s are found alike with the probability 1 - (1 - s**rows)**bands;
    rows that are alike through others make one cluster. A row without n-grams is like no other.
    """

    column: str
    """Column, or field of structs, of texts, of lists of tokens, or of lists of words. Texts are compared word by
    word, in lower case; scripts without blanks, such as Chinese and Thai, letter by letter."""
    ngram: int = 5
    """Number of words or tokens of an n-gram."""
    bands: int | None = None
    """Number of bands of a signature; two rows are alike if one band is equal (default: 16, or of `threshold`)."""
    rows: int | None = None
    """Numbers of a band (default: 8, or of `threshold`)."""
    threshold: float | None = None
    """Jaccard index from which on rows are to be found alike, in place of `bands` and `rows`: of those with at most
    128 numbers, the ones with the least chance of pairs that are found below it or missed above it."""
    seed: int = 1
    """Seed of the signatures."""
    sketch: Literal["minhash", "one_permutation"] = field(default="minhash", metadata={"later": True})
    """Op that makes the signatures: `minhash`, or `one_permutation_minhash`, which takes a fraction of the time for
    long texts, and whose estimates vary more for texts with fewer n-grams than numbers."""

    name = "near_duplicates"

    def __post_init__(self) -> None:
        at_least_one("NearDuplicates", ngram=self.ngram, bands=self.bands, rows=self.rows)
        bands, rows = self.shape
        if bands * rows > _MOST:
            raise OpError.of(
                "NearDuplicates.bands", f"times rows is {bands * rows}, expected at most {_MOST}"
            )
        if self.sketch == "one_permutation" and bands * rows > MOST_BINS:
            raise OpError.of(
                "NearDuplicates.bands",
                f"times rows is {bands * rows}, expected at most {MOST_BINS} for sketch = 'one_permutation'",
            )
        if not 0 <= self.seed < 2**64:
            raise OpError.of(
                "NearDuplicates.seed", f"is {self.seed}, expected a number from 0 to below 2**64"
            )

    @property
    def shape(self) -> tuple[int, int]:
        """Number of bands, and numbers of a band."""
        if self.threshold is None:
            return (16 if self.bands is None else self.bands, 8 if self.rows is None else self.rows)
        if self.bands is not None or self.rows is not None:
            raise OpError.of("NearDuplicates.threshold", "is given with bands or rows, expected one of both")
        if not 0 < self.threshold < 1:
            raise OpError.of(
                "NearDuplicates.threshold", f"is {self.threshold}, expected a number between 0 and 1"
            )
        return _bands_of(self.threshold)

    @property
    def columns_by_argument(self) -> dict[str, tuple[str, ...]]:
        """Columns and fields of the source that it reads, by the argument that names them."""
        return {"column": (self.column,)}


@cache
def _bands_of(threshold: float) -> tuple[int, int]:
    """Return bands and rows of at most 128 numbers by the areas of wrong answers on both sides of a threshold."""
    index = (np.arange(1000) + 0.5) / 1000

    def wrong(shape: tuple[int, int]) -> float:
        found = 1 - (1 - index ** shape[1]) ** shape[0]
        return float(np.where(index < threshold, found, 1 - found).sum())

    return min(((bands, rows) for rows in range(1, 129) for bands in range(1, 128 // rows + 1)), key=wrong)


Rule = Decontaminate | Deduplicate | NearDuplicates
RULES: tuple[type[Decontaminate], type[Deduplicate], type[NearDuplicates]]
RULES = (Decontaminate, Deduplicate, NearDuplicates)
"""In the order in which they are applied: each one to the rows that those before have left."""


def columns_of(rules: Iterable[Rule]) -> tuple[str, ...]:
    """Return the columns and fields of the source that rules read, each once."""
    return (
        *dict.fromkeys(
            name for rule in rules for names in rule.columns_by_argument.values() for name in names
        ),
    )


def identity(rule: Rule) -> dict[str, Any]:
    """Return what decides which rows a rule leaves out: its fields, and the way in which rows are compared.

    Fields that are newer than records of runs are left out if they have their default.
    """
    known = (
        one.name
        for one in fields(rule)
        if "later" not in one.metadata or getattr(rule, one.name) != one.default
    )
    return {**{name: getattr(rule, name) for name in known}, "comparison": COMPARISON}
