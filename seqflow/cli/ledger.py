"""`seqflow ledger JOB`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from seqflow.cli.job_options import AsJson, JobInput, JobPath, JobSettings, overrides_of, read_job
from seqflow.cli.printing import print_json, say


def ledger(
    job: JobPath,
    state: Annotated[
        Path | None, typer.Option(help="A state of its loader (JSON): what was seen before it.")
    ] = None,
    upto: Annotated[
        int | None, typer.Option(min=0, help="The batch of the epoch before which everything counts.")
    ] = None,
    by: Annotated[
        Literal["source", "file"], typer.Option(help="Print lines by source, or by file.")
    ] = "source",
    input: JobInput = None,
    set_: JobSettings = None,
    json: AsJson = False,
) -> None:
    """Print the rows, tokens and epochs that were seen."""
    from dataclasses import asdict

    from seqflow.job.row_traces import open_traceable

    loader = open_traceable(read_job(job, overrides_of(set_, input)))
    if state is not None:
        loader.load_state_dict(_state_in(state))
    elif upto is None:
        loader.set_epoch(1)  # all of epoch 0 is before it
    found = loader.ledger(upto)
    if json:
        lists = {name: [one._asdict() for one in getattr(found, name)] for name in ("by_source", "by_file")}
        print_json({**asdict(found), **lists})
        return
    say(str(found))
    for one in found.by_file if by == "file" else ():
        say(f"  {one}")


def _state_in(file: Path) -> Any:
    """Return the state in a file; raise JobError if it cannot be read, or is not JSON."""
    from json import loads

    from seqflow.errors import JobError

    try:
        return loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise JobError(f"--state: cannot read {str(file)!r}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        what = f"is not JSON: {error}" if file.stat().st_size else "is empty"
        raise JobError(f"--state: {str(file)!r} {what}, expected what state_dict() gave") from None
