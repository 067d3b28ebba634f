"""The command `seqflow` and its subcommands, the most used ones first."""

import gc
import warnings
from typing import Any

import typer

from seqflow.cli import (
    bench,
    build_vocabulary,
    check,
    find,
    index,
    info,
    init,
    inspect,
    ledger,
    ops,
    report,
    run,
    serve,
    trace,
    train_tokenizer,
)
from seqflow.cli.exit_codes import BAD_USAGE, exit_cleanly
from seqflow.cli.help import Command, Commands, wants_colours
from seqflow.cli.printing import say
from seqflow.deprecated_names import OldNameWarning
from seqflow.version import __version__

app = typer.Typer(
    name="seqflow",
    cls=Commands,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"max_content_width": 100},
)
for _command in (
    inspect.inspect,
    report.report,
    init.init,
    check.check,
    run.run,
    serve.serve,
    bench.bench,
    index.index,
    trace.trace,
    find.find,
    ledger.ledger,
    train_tokenizer.train_tokenizer,
    build_vocabulary.build_vocabulary,
    ops.ops,
    info.info,
):
    app.command(cls=Command)(_command)


def _print_version(requested: bool) -> None:
    if requested:
        say(f"seqflow {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def seqflow(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Print the version."
    ),
) -> None:
    """Variable-length data as flat values and explicit lengths: Arrow in, model-ready tensors out."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), color=context.color)
        raise typer.Exit(BAD_USAGE)


_MANY = 50_000
"""Number of new objects after which Python collects garbage. Importing makes many objects and almost no garbage."""


def _show_old_names() -> None:
    """Print warnings of old names in jobs, which Python shows only for lines of the main module."""
    show = warnings.showwarning

    def shown(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if category is OldNameWarning:
            say(f"seqflow: {message}", err=True)
        else:
            show(message, category, *place)

    warnings.simplefilter("default", OldNameWarning)
    warnings.showwarning = shown  # type: ignore[assignment]


def main() -> None:
    """Run the command; exit code 0, 1 (bad data), 2 (bad usage or job) or 128 + the signal that stopped it."""
    gc.set_threshold(_MANY)
    try:
        with warnings.catch_warnings(), exit_cleanly():
            _show_old_names()
            # the standalone mode of click would print usage errors in its own form
            code = app(standalone_mode=False, color=wants_colours())
    finally:
        gc.freeze()  # a process that ends need not collect garbage: that takes as long as a small command
    raise SystemExit(code)
