"""The text of `--help`: one screen for the command, its most used subcommands first; options and examples for each of
them.
"""

import os
import re
import sys
from pathlib import Path
from typing import Any

from typer.core import TyperCommand, TyperGroup

_HEADING = re.compile(r"^\w+:", re.MULTILINE)
_PARTS = dict(
    part.split("\n", 1) for part in Path(__file__).with_name("help.txt").read_text("utf-8").split("#: ")[1:]
)
"""The first screen, as `seqflow`, and examples of each command: commands, with their purposes below them."""


def wants_colours() -> bool:
    """Return whether headings are bold: on terminals, unless NO_COLOR is set or the terminal is dumb; FORCE_COLOR
    sets it everywhere.
    """
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")


def _with_headings(text: str) -> str:
    return _HEADING.sub(r"\033[1m\g<0>\033[0m", text) if wants_colours() else text


class Command(TyperCommand):
    """A subcommand whose help ends with examples."""

    def get_help(self, ctx: Any) -> str:
        """Return the help, its headings bold if colours are wanted."""
        return _with_headings(super().get_help(ctx))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the examples."""
        with formatter.section("Examples"):
            for line in _PARTS[str(self.name)].splitlines():
                formatter.write(f"  {line}\n")


class Commands(TyperGroup):
    """The command itself."""

    def get_help(self, ctx: Any) -> str:
        """Return one screen: the most used commands, and each command with the first sentence of its help."""
        lines = []
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            assert command is not None
            sentence = (command.help or "").partition("\n")[0]
            lines.append(f"  {name:<18}{sentence}\n")
        return _with_headings(_PARTS["seqflow"].format("".join(lines))).rstrip("\n")
