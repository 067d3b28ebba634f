"""Job: every section of a job, read from TOML or from a dict."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from seqflow.arguments import FilePath, checked
from seqflow.curation import Decontaminate, Deduplicate, NearDuplicates, Rule
from seqflow.hidden import hides_credentials
from seqflow.job import sections
from seqflow.job.modules import import_modules
from seqflow.job.reading import read_sections, sections_from_tables
from seqflow.loader import BadRows, BatchPlan, Rows
from seqflow.providers.bad_files import RAISE, BadFiles
from seqflow.workers import EngineSettings

_UNTIL_PREPARE = (
    "imports", "source", "mix", "order", "prepare", "constants", "keep", "require", "bad_rows", "bad_files",
)  # fmt: skip


@checked()
@hides_credentials
@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """Sections of a job: source → prepare → batch → net → output.

    `Job.read` makes one from a TOML file, `Job.from_dict` from the same keys in a dict.
    """

    source: sections.SourceSection = field(default_factory=sections.SourceSection)
    """Source of the rows."""
    mix: sections.MixSection | None = None
    """Several sources in place of `source`."""
    order: sections.OrderSection = field(default_factory=sections.OrderSection)
    """Order of the rows, and how much of them is in memory."""
    prepare: sections.NetSection = field(default_factory=sections.NetSection)
    """Net that runs on blocks before batches are planned."""
    """Settings of columns, which become statements at the end of `prepare`."""
    batch: BatchPlan = field(default_factory=lambda: Rows(256))
    """Plan of the batches."""
    net: sections.NetSection = field(default_factory=sections.NetSection)
    """Net that runs on each batch."""
    constants: Mapping[str, str] = field(default_factory=dict)
    """Tensors the nets read: `.npy` files, memory-mapped, what `Vocabulary.save` wrote as `.arrow`, and the bytes of
    `.json` and `.txt` files, such as tokenizers."""
    output: sections.OutputSection = field(default_factory=sections.OutputSection)
    """Files that batches are written to."""
    bad_rows: BadRows = field(default_factory=BadRows)
    """Policy for rows that cannot be used."""
    bad_files: BadFiles = RAISE
    """Policy for damaged files."""
    engine: EngineSettings = field(default_factory=EngineSettings)
    """Workers that make the parts."""
    serve: sections.ServeSection = field(default_factory=sections.ServeSection)
    """How the batches are served."""
    decontaminate: Decontaminate | None = None
    """Which rows to leave out as part of evaluation sets, first of all."""
    deduplicate: Deduplicate | None = None
    """Which of the other rows to leave out as equal to one that stays."""
    near_duplicates: NearDuplicates | None = None
    """Which of the rows that are left to leave out as like one that stays."""
    keep: str | tuple[str, ...] = ()
    """Conditions on prepared rows, which may use constants; a row for which one is false is left out."""
    require: str | tuple[str, ...] = ()
    """Conditions on prepared rows that are kept; a row for which one is false is a bad row."""
    skip: tuple[tuple[int, ...], ...] = ()
    """Spans of batches to omit, by their numbers: `[5000, 5024]` are those from 5000 to 5023."""
    totals: Mapping[str, str] | tuple[str, ...] = ()
    """Sums over all batches of a step, by name: an expression for each, or names of tensors. The output has a
    column `step.name` for each."""
    share: Mapping[str, str | bool] = field(default_factory=dict)
    """List columns of which `net` gets each of equal lists once, by the column whose equal values share: `history =
    "session"`; true compares the lists. Several columns with one index are one name, `"ids, times" = "session"`. The
    output has the lists of each row."""
    steps_of: int | None = None
    """Number of batches of a step, of all ranks together, if the plan has no balance; None is 1."""
    imports: tuple[str, ...] = ()
    """Modules to import first, such as those with your own ops; they may be in `folder`."""
    folder: Path = Path()
    """Folder of the job file."""
    file: Path | None = None
    """Path of the job file; None if there is none."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Settings that were replaced, by their dotted names; paths among them are absolute."""
    before_rules: bool = False
    """Whether this is the job of all rows, before its rules are applied."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """Rules of curation, in the order in which they are applied; none of the job of all rows."""
        return () if self.before_rules else self.later_rules

    @property
    def later_rules(self) -> tuple[Rule, ...]:
        """Rules of curation, also of the job of all rows."""
        return tuple(filter(None, (self.decontaminate, self.deduplicate, self.near_duplicates)))

    @property
    def modules(self) -> tuple[str, ...]:
        """Modules that the job names: those to import first, and the module of its own batch plan."""
        plan = type(self.batch).__module__
        return self.imports if plan.partition(".")[0] == "seqflow" else (*self.imports, plan)

    def without_rules(self) -> Job:
        """Return the job of all rows: before the keys of its rows are known."""
        return replace(self, before_rules=True)

    def without_quarantine(self) -> Job:
        """Return the job that only counts the bad rows and damaged files that it would enter in a file."""
        rows = BadRows("skip") if self.bad_rows.policy == "quarantine" else self.bad_rows
        files = (
            replace(self.bad_files, policy="skip")
            if self.bad_files.policy == "quarantine"
            else self.bad_files
        )
        return replace(self, bad_rows=rows, bad_files=files)

    def __reduce__(self) -> tuple[Callable[..., Job], tuple[tuple[str, ...], Path, bytes]]:
        """Import the modules from the job's folder first in another process: they may define the batch plan."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return _job_of, (self.modules, self.folder, pickle.dumps(values))

    @classmethod
    def read(cls, path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None) -> Job:
        """Return the job in a TOML file. Paths in it are relative to its folder.

        `overrides` replaces values by their dotted names, `{"batch.capacity": 4096}`; paths among them are
        relative to the current folder. Raise JobError, with the line, when a setting is malformed.
        """
        return cls(**read_sections(Path(path), overrides or {}), file=Path(path))

    @classmethod
    def read_until_prepare(
        cls, path: str | os.PathLike[str], overrides: Mapping[str, Any] | None = None
    ) -> Job:
        """Return the job in a TOML file without its [batch], [net] and [output], and without constants
        whose files are not there: a vocabulary that is made of the prepared rows may be one.
        """
        return cls(**read_sections(Path(path), overrides or {}, _UNTIL_PREPARE))

    @classmethod
    def from_dict(cls, tables: Mapping[str, Any], folder: FilePath = "") -> Job:
        """Return the job that a dict describes, with the keys of a job file; paths in it are relative to `folder`."""
        return cls(**sections_from_tables(tables, Path(folder)))


def _job_of(modules: tuple[str, ...], folder: Path, values: bytes) -> Job:
    import_modules(modules, folder)
    return Job(**pickle.loads(values))
