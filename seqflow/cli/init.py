"""`seqflow init PATHS`."""

from pathlib import Path
from typing import Annotated

import typer

from seqflow.cli.job_options import Kind, StorageOption, import_kind, storage_options
from seqflow.cli.printing import say


def init(
    paths: Annotated[list[str], typer.Argument(metavar="PATHS", help="Files, folders or globs to read.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The job file to write.")] = Path("job.toml"),
    kind: Kind = None,
    storage_option: StorageOption = None,
) -> None:
    """Write a job for given files, with comments.

    The job runs without changes: it makes tokens and labels of conversations, or packs the first list of integers, or
    the bytes of the first long text; without these, it counts rows. For conversations it also writes tokenizer.json
    if there is none: bytes and the markers of ChatML, to be replaced by the tokenizer of your model.
    """
    from seqflow.errors import JobError, SeqflowError
    from seqflow.job import Job
    from seqflow.job.first_job.chat import MARKERS
    from seqflow.job.first_job.starting import starting_job
    from seqflow.ops.shared.tokenizers import learn
    from seqflow.output.durable_files import write_bytes, writing

    import_kind(kind)
    start = starting_job(paths, output, kind, storage_options(storage_option))
    if output.exists():
        raise JobError(f"init: {output} exists already; give another --output")
    if start.tokenizer is not None and not start.tokenizer.exists():
        write_bytes(start.tokenizer, learn([], 256 + len(MARKERS), 2, MARKERS))
        say(
            f"{start.tokenizer.name}: 256 bytes and the markers of ChatML; replace it with that of your model"
        )
    with writing(output):
        output.write_text(start.text, encoding="utf-8")
    if start.seen.inferred:
        say(start.seen.inferred)
    if start.roles:
        say(start.roles)
    try:
        say(start.seen.refused_by(Job.read(output)))
    except SeqflowError as error:  # of a tokenizer that was there
        say(f"{output} does not run yet: {error}")
    say(f"{output}: now `seqflow check {output}`, then `seqflow run {output}`")
