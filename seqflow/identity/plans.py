"""The text of a batch plan, from its entry in states and records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seqflow.deprecated_names import with_new_names


def plan_text(plan: Any) -> str:
    """Return the text of a plan from its `to_dict()`: its name and fields, in the form of a dataclass."""
    return earlier_plan_text(plan) if isinstance(plan, str) else _shown(plan)


def _shown(value: Any) -> str:
    if isinstance(value, Mapping) and isinstance(value.get("name"), str):
        shown = ", ".join(f"{name}={_shown(of)}" for name, of in value.items() if name != "name")
        return f"{value['name']}({shown})"
    return repr(tuple(value) if isinstance(value, list) else value)


def earlier_plan_text(text: str) -> str:  # remove in 0.5
    """Return the text of states of versions before 0.3, with the present names of arguments."""
    return with_new_names(text)
