"""The table of docs/devices.md: ops that run on any device, and the values that the host waits for.

`python -m seqflow.torch.device.page` writes it.
"""

from pathlib import Path

from seqflow.torch.device import IMPLEMENTATIONS

PAGE = Path(__file__).parents[3] / "docs" / "devices.md"
BEGIN = "<!-- The table is written by `python -m seqflow.torch.device.page`. -->\n"


def table() -> str:
    """Return the table with one row for each op, by family."""
    rows = sorted((one.op.family or "", name, one.syncs) for name, one in IMPLEMENTATIONS.items())
    lines = [f"| `{name}` | {family} | {syncs or 'nothing'} |" for family, name, syncs in rows]
    return "\n".join(["| op | family | the host waits for |", "| --- | --- | --- |", *lines, ""])


def page() -> str:
    """Return the whole page: the text written by hand, then the table."""
    return PAGE.read_text(encoding="utf-8").partition(BEGIN)[0] + BEGIN + "\n" + table()


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
