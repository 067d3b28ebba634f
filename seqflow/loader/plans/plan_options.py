"""Fields of plans that are newer than states which name plans: the texts of these must stay as they were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any

LATER: Mapping[str, Any] = {"later": True}
"""Metadata of a field that the text of a plan leaves out where it has its default."""


def shown_plan(plan: Any) -> str:
    """The text of a plan, as dataclasses have it; it stands in states, and decides whether two plans are equal."""
    shown = [
        f"{one.name}={getattr(plan, one.name)!r}"
        for one in fields(plan)
        if "later" not in one.metadata or getattr(plan, one.name) != _default(one)
    ]
    return f"{type(plan).__name__}({', '.join(shown)})"


def _default(one: Field[Any]) -> Any:
    return one.default if one.default_factory is MISSING else one.default_factory()
