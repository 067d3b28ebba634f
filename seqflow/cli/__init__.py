"""The command `seqflow` and its commands, from init and run to info."""

from __future__ import annotations

import typer

from seqflow.cli import (
    build_vocabulary,
    check,
    index,
    info,
    init,
    inspect,
    ops,
    report,
    run,
    trace,
    train_tokenizer,
)
from seqflow.cli.exit_codes import exit_cleanly
from seqflow.cli.printing import say
from seqflow.version import __version__

_HELP = """Variable-length data as flat values and explicit lengths: Arrow in, model-ready tensors out.

A first job: seqflow init "docs/*.parquet", then seqflow check job.toml and seqflow run job.toml.

What is in a file: seqflow inspect FILE, or as a page seqflow report FILE.

Which op does it: seqflow ops --search "ragged softmax".
"""

app = typer.Typer(
    name="seqflow",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    help=_HELP,
)
app.command()(init.init)
app.command()(run.run)
app.command()(check.check)
app.command()(inspect.inspect)
app.command()(report.report)
app.command()(train_tokenizer.train_tokenizer)
app.command()(build_vocabulary.build_vocabulary)
app.command()(index.index)
app.command()(trace.trace)
app.command()(ops.ops)
app.command()(info.info)


def _print_version(requested: bool) -> None:
    if requested:
        say(f"seqflow {__version__}")
        raise typer.Exit


@app.callback()
def seqflow(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Variable-length data as flat values and explicit lengths: Arrow in, model-ready tensors out."""


def main() -> None:
    """Run the command; exit code 0, 1 (bad data), 2 (bad usage or job) or 128 + the signal that stopped it."""
    with exit_cleanly():
        code = app(standalone_mode=False)  # else errors of usage would be printed as they are
    raise SystemExit(code)
