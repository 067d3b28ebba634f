"""Plans from the text that states have of them: that of `repr(plan)`, read without running anything."""

from __future__ import annotations

import ast
from typing import Any

from seqflow.errors import OpError
from seqflow.loader.plans.balance import Balance
from seqflow.loader.plans.packed import Packed
from seqflow.loader.plans.plan import BatchPlan
from seqflow.loader.plans.row_plans import Buckets, Rows, TokenBudget
from seqflow.renamed import with_new_names

_PLANS = {plan.__name__: plan for plan in (Buckets, Packed, Rows, TokenBudget)}


def plan_of_text(text: str) -> BatchPlan:
    """The plan whose text this is; OpError where it is none."""
    try:
        plan = _value(ast.parse(with_new_names(text), mode="eval").body)
    except (SyntaxError, ValueError, TypeError, KeyError, RecursionError, MemoryError) as error:
        raise OpError(
            f"load_state_dict: the state has the plan {text!r}, which cannot be read: {error}"
        ) from None
    if type(plan).__name__ not in _PLANS:
        raise OpError(
            f"load_state_dict: the state has the plan {text!r}, expected one of {', '.join(_PLANS)}"
        )
    return plan  # type: ignore[no-any-return]


def _value(node: ast.expr) -> Any:
    if not isinstance(node, ast.Call):
        return ast.literal_eval(node)
    if not isinstance(node.func, ast.Name) or node.args:
        raise ValueError("it is no call of a plan with named arguments")
    of = Balance if node.func.id == Balance.__name__ else _PLANS[node.func.id]
    return of(**{one.arg or "": _value(one.value) for one in node.keywords})
