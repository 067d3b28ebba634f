"""Which of how many ranks a process is: as it is told, or by the environment that a launcher has made."""

from __future__ import annotations

import operator
import os
from typing import Any

from seqflow.errors import OpError, OpTypeError, nearest
from seqflow.loader.schedule.dealing import TAILS, Deal

_NODES = ("NNODES", "SLURM_NNODES"), ("NODE_RANK", "GROUP_RANK")
"""Variables that are above 1, or above 0, where there are several nodes."""


def deal_of(rank: int | None, world_size: int | None, tail: str) -> Deal:
    """Which batches a rank gets; rank and world size are by default those of the environment."""
    where = "rank, world_size"
    if rank is not None and world_size is not None:
        number, count = _given("rank", rank), _given("world_size", world_size)
    elif rank is None and world_size is None:
        number, count, where = _environment()
    elif world_size is None:
        number, count = _given("rank", rank), _other("rank", "world_size", "WORLD_SIZE")
    else:
        count = _given("world_size", world_size)
        number = 0 if count <= 1 else _other("world_size", "rank", "RANK")
    if count < 1:
        raise OpError(f"Loader: world_size is {count}, expected 1 or more{_source(where)}")
    if not 0 <= number < count:
        raise OpError(
            f"Loader: rank is {number}, expected 0 or more and less than world_size = {count}{_source(where)}"
        )
    if tail not in TAILS:
        raise OpError(
            f"Loader: tail is {tail!r}{nearest(str(tail), TAILS)}, expected one of {', '.join(TAILS)}"
        )
    return Deal(number, count, tail)


def _environment() -> tuple[int, int, str]:
    """Rank, world size, and the variables that say so. Those of one node count where it is the only one."""
    rank, world_size = _variable("RANK"), _variable("WORLD_SIZE")
    if rank is not None and world_size is not None:
        return rank, world_size, "RANK, WORLD_SIZE"
    local_rank, local_size = _variable("LOCAL_RANK"), _variable("LOCAL_WORLD_SIZE")
    if local_rank is not None and local_rank < 0:  # some trainers say so that there are no ranks
        local_rank = None
    agree = rank in (None, local_rank) and world_size in (None, local_size)
    if local_rank is not None and local_size is not None and agree and _is_one_node():
        return local_rank, local_size, "LOCAL_RANK, LOCAL_WORLD_SIZE"
    if rank is None and world_size in (None, 1) and local_rank is None and local_size in (None, 1):
        return 0, 1, "WORLD_SIZE"
    raise _half(RANK=rank, WORLD_SIZE=world_size, LOCAL_RANK=local_rank, LOCAL_WORLD_SIZE=local_size)


def _is_one_node() -> bool:
    counts, numbers = ([_variable(name) for name in names] for names in _NODES)
    return all(count in (None, 1) for count in counts) and all(number in (None, 0) for number in numbers)


def _half(**variables: int | None) -> OpError:
    """The error for an environment that has some of the variables that tell a process which rank it is."""
    found = ", ".join(f"{name} = {value}" for name, value in variables.items() if value is not None)
    missing = [name for name in ("RANK", "WORLD_SIZE") if variables[name] is None]
    lacks = f"not {' and '.join(missing)}" if missing else "they do not agree"
    return OpError(
        f"Loader: the environment has {found}, {lacks}: expected both RANK and WORLD_SIZE, or neither\n"
        "  set both, or give rank= and world_size="
    )


def _other(given: str, option: str, variable: str) -> int:
    """The variable that goes with the only option that is given."""
    found = _variable(variable)
    if found is None:
        raise OpError(
            f"Loader: {given} is given without {option}, and the environment has no {variable}\n"
            "  give rank= and world_size="
        )
    return found


def _given(option: str, value: Any) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise OpTypeError(f"Loader: {option} is {value!r}, expected an integer") from None


def _variable(name: str) -> int | None:
    """The integer that an environment variable has; None where there is none."""
    text = os.environ.get(name)
    try:
        return None if text is None else int(text)
    except ValueError:
        raise OpError(f"Loader: the environment variable {name} is {text!r}, expected an integer") from None


def _source(variables: str) -> str:
    return f" (by {variables} of the environment)" if variables.isupper() else ""
