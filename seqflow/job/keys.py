"""`python -m seqflow.job.keys` writes `docs/jobs.md`: every key of a job file, from the sections' dataclasses."""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from itertools import pairwise
from pathlib import Path
from typing import Any

from seqflow.job.sections import BATCH_KINDS, NetSection, OrderSection, OutputSection, SourceSection
from seqflow.loader import BadRows

PAGE = Path(__file__).parents[2] / "docs" / "jobs.md"

HEAD = """# Job files

A job is one TOML file: source, order, prepare, batch, net, output. `seqflow run JOB` runs it, `seqflow check JOB`
infers every tensor without reading rows, and `--set section.key=value` replaces any setting. Paths are relative to
the file. This page is written from the code: `python -m seqflow.job.keys`.

`imports` lists modules to import first, such as those with the user's own ops; they may lie beside the job.
`[constants]` has tensors that the nets read, each by name and file: `.npy` files are memory-mapped, `.json` and
`.txt` files are their bytes, and `.arrow` files are vocabularies.
"""

SECTIONS: dict[str, tuple[type, ...]] = {
    "source": (SourceSection,),
    "order": (OrderSection,),
    "prepare": (NetSection,),
    "batch": (),
    "net": (NetSection,),
    "output": (OutputSection,),
    "bad_rows": (BadRows,),
}


TAIL = """
## The columns of the output

The outputs of a net are the columns of one table: where they hold other rows than each other, such as `x` beside the
distinct values of `x`, a selection or a constant, `check` and `run` refuse them, whatever their sizes. Of what a
Python function returns (`Loader(net=function)`) only the sizes can be compared.

## The order of the output

Without `sort_by` and `partition_by` rows are written in the order of the batches, and a part holds whole windows.

With `sort_by` **all rows of the output are sorted**, over all files: a row of part-00001 never comes before one of
part-00000. Rows that are equal in all its columns stay in the order of the batches. NaN comes after all other numbers
and null after everything, whichever the direction. It takes columns with one value a row: numbers, bools, dates and
times, text.

With `partition_by` each row goes into the folder of its values, `lang=python/year=2024/part-00003.parquet`, as Hive
writes them: integers, bools, dates or text, escaped where Hive escapes (`a/b` is `a%2Fb`, other letters stay), and
`__HIVE_DEFAULT_PARTITION__` for null; this text itself is an error. In names of columns a first `_` or `.` is
escaped, too, since readers pass over such folders. The files don't have these columns. `sf.open(path)` gives them
back with their types, which are in the manifest; `pyarrow.dataset.dataset(path, partitioning="hive")`,
`pyarrow.parquet.read_table(path)` and Spark take integers for integers and choose a type for all else, unless they
are told one; Spark reads no empty text. Inside a folder rows are sorted by `sort_by`, or stay in the order of the
batches. A job without rows writes one empty file with all columns.

Both need memory for a few runs of 32 MiB for each writing thread, whatever the size of the output: rows are written
in sorted runs, which are merged at the end, at most 64 at a time. Until then runs take the place of parts on the
disk, and while they are merged there is room needed for both. `part_bytes` and `rows_per_file` are those of the
parts, which no longer hold whole windows; `--resume` goes on behind the runs that were noted, or merges again.

## What a job is

A job is everything that decides its output, and its manifest and progress file record it:

* the settings, and the format of what seqflow writes, which rises when a seed or a plan comes to mean something
  else;
* the nets as they are printed: comments, spaces and, where `return` names the outputs, the order of statements make
  no other net, and neither does the file that holds it;
* the content of `[constants]`, and of tokenizers and other files that nets name, wherever they lie;
* the text of the modules in `imports`, of a package all its files, and of the user's own modules that they import;
  the code of the ops that the nets use, and the values that this code reads;
* the input: relative paths, sizes, rows and columns, and a digest of each file's head and tail, of the footer of a
  Parquet or Arrow file, and of eight places between; a file up to 64 KiB is read whole. Times are no part of it, so
  that a copy is the same input.

Where one of these is another one, `run` refuses what is there and says what it was and is. `--overwrite` begins
anew. A run that has not ended goes on with `--resume --accept-changes` (`run(job, resume=True,
accept_changes=True)`): what is finished stays, what follows is made by the new code, and `changes` in the manifest
has each difference with the part and the row from which on it holds. Nets, constants, tokenizers and modules may be
others; the input, the order and the batches may not, since they decide which rows come next, nor may the columns of
the output. `prepare` may even make other rows: it goes on where a window ends. Sorted and partitioned output is
made anew.

What cannot be noticed: other bytes in a large file that changes neither its size nor one of the places that are
read; what code reads while it runs, from the environment, the network or files of its own; another version of an
installed package. What the code of an op refers to and cannot be looked into, such as a model of another library,
is listed in the record as `not covered`.

The digest of a file from 64 MB on is kept in `seqflow/digests` of the user's cache folder (`XDG_CACHE_HOME`, by
default `~/.cache`), with path, size, time of change and inode: memory-mapped constants are read for it once. Where
that folder cannot be written, they are read at each start; it may be removed at any time.

## What is guaranteed

* A file has its final name when the whole run has succeeded, and a folder has a manifest when all of its files are
  there.
* A part counts when it is noted in the progress file, at the end of a window. Its content, its name and the bad rows
  of its windows are synchronised to the disk (`fsync`) before the note is, and the files that get their names at the
  end before the note goes. So what was noted survives `kill -9`, a crash of the system and a power failure, as far as
  the disk keeps what it has confirmed. What came after it is made again by `--resume`, and the output is byte for
  byte that of an undisturbed run.
* What was committed is verified before it counts: progress file and manifest have the size and the SHA-256 of each
  part, and the batches that it holds. `--resume` reads each part once; those that are gone or have another content
  are named, and made again, just these (output that is sorted, partitioned or has accepted changes: anew). Where
  an output is complete, a run reads its parts, too: up to 2 GiB together all of them, of more the first and last
  64 KiB of each. A damaged one is an error that names it; `--resume` makes it again. A single file that was
  changed is only replaced by `--overwrite`. The quarantine file of a complete output is not verified: it may be
  moved or removed.
* What is written is a new file, never what a link leads to: a link, or a file of other content, in the place of the
  lock or of a partition's folder is an error. What the job reads (source, constants, nets, vocabularies) is never
  where it writes, by whatever names and links, nor has it a hidden name beside a single file that begins as its own.
* A full disk, Ctrl-C and SIGTERM end a run between two such notes; nothing half-written has a final name.

## Bad rows

With `policy = "skip"` or `"quarantine"` a row that cannot be read, converted, prepared or planned with is left out,
and so is one that `net` refuses: where a net fails on a batch, the batch is halved until the rows are found that fail
alone, and made again without them. Of a packed row only the pieces are left out that fail alone; a row that was cut
into pieces is bad once, and its other pieces stay. In the quarantine file the statement of the net stands for the
column. Where no row fails alone, as in an op that joins rows, or every row does and a batch without rows too, it is
an error of the net, which names the batch, whatever the policy. With `policy = "raise"` the error names file, block
and row.
"""


def page() -> str:
    """The text of the page."""
    parts = [HEAD]
    for name, classes in SECTIONS.items():
        parts.append(f"\n## [{name}]\n")
        if name == "batch":
            kinds = ", ".join(f'`"{kind}"`' for kind in BATCH_KINDS)
            parts.append(f"`kind` is one of {kinds}; the other keys are the arguments of its plan.\n")
            for kind, plan in BATCH_KINDS.items():
                parts.append(f'\n### kind = "{kind}": {plan.__name__}\n\n{_summary(plan)}\n')
                parts.append(_table(plan))
        for section in classes:
            parts.append(f"{_summary(section)}\n")
            parts.append(_table(section))
    parts.append(TAIL)
    return "\n".join(part.strip("\n") + "\n" for part in parts)


def _summary(section: type) -> str:
    return inspect.cleandoc(section.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def _table(section: type) -> str:
    meanings = _attribute_docs(section)
    rows = [
        f"| `{field.name}` | `{_kind(field)}` | {_default(field)} | {meanings.get(field.name, '')} |"
        for field in fields(section)
    ]
    return "\n".join(["", "| key | takes | default | meaning |", "| --- | --- | --- | --- |", *rows, ""])


def _kind(field: Field[Any]) -> str:
    return str(field.type).replace("|", "\\|")


def _default(field: Field[Any]) -> str:
    if field.default is not MISSING:
        return f"`{field.default!r}`"
    if field.default_factory is not MISSING:
        return f"`{field.default_factory()!r}`"
    return "required"


def _attribute_docs(section: type) -> dict[str, str]:
    """The text below each field in the source of the class."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(section))).body[0]
    assert isinstance(tree, ast.ClassDef)
    return dict(_documented(tree.body))


def _documented(body: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for statement, following in pairwise(body):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(following, ast.Expr)
            and isinstance(following.value, ast.Constant)
        ):
            yield statement.target.id, " ".join(str(following.value.value).split()).replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
