"""Ranks: rank of this process and number of ranks, from arguments, Ray Train, or the environment of a launcher."""

import operator
import os
import sys
from dataclasses import dataclass
from typing import Any, Literal

from seqflow.errors import OpError, OpTypeError

Tail = Literal["drop", "pad", "repeat"]
_NODES = ("NNODES", "SLURM_NNODES"), ("NODE_RANK", "GROUP_RANK")
"""Environment variables that are above 1, or above 0, if there are several nodes."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """Rank of this process and number of ranks: batch k goes to rank `k mod world_size`.

        sf.Loader(path, ranks=sf.Ranks(rank, world_size, tail="pad"))

    Fields that are not given come from the context of Ray Train in its workers. In other processes they come
    from the environment variables RANK and WORLD_SIZE, or from LOCAL_RANK and LOCAL_WORLD_SIZE if there is
    one node; without any of these there is one rank. All ranks get the same number of batches: `tail` says
    what happens to an incomplete last round: "drop" it, "pad" it with empty batches, or "repeat" the epoch's
    first batches.

    Args:
        rank: Rank of this process, from 0; None takes that of Ray Train or of the environment.
        world_size: Number of ranks; None takes that of Ray Train or of the environment, else 1.
        tail: Treatment of an incomplete last round: omitted, filled with empty batches, or with the first
            batches of the epoch.

    Raise OpError when the rank is not below `world_size`, when the environment has only some of the
    variables, or when it contradicts Ray Train; raise OpTypeError when a value is not an integer.

    >>> Ranks(1, 4)
    Ranks(rank=1, world_size=4, tail='drop')
    """

    rank: int = None  # type: ignore[assignment]
    world_size: int = None  # type: ignore[assignment]
    tail: Tail = "drop"

    def __post_init__(self) -> None:
        rank, world_size, where = _resolved(self.rank, self.world_size)
        by = f" (by {where})" if where else ""
        if world_size < 1:
            raise OpError(f"Ranks: world_size is {world_size}, expected 1 or more{by}")
        if not 0 <= rank < world_size:
            raise OpError(
                f"Ranks: rank is {rank}, expected 0 or more and less than world_size = {world_size}{by}"
            )
        object.__setattr__(self, "rank", rank)
        object.__setattr__(self, "world_size", world_size)

    def rounds(self, batches: int) -> int:
        """Return the number of batches that each rank gets."""
        return batches // self.world_size if self.tail == "drop" else -(-batches // self.world_size)


def _resolved(rank: Any, world_size: Any) -> tuple[int, int, str]:
    """Return rank and world size, and their origin, when they are not given."""
    if rank is None and world_size is None:
        told = _ray_train()
        return _environment() if told is None else (*told, "the context of Ray Train")
    if world_size is None:
        return _given("rank", rank), _other("rank", "world_size", "WORLD_SIZE"), ""
    count = _given("world_size", world_size)
    if rank is None:
        return 0 if count <= 1 else _other("world_size", "rank", "RANK"), count, ""
    return _given("rank", rank), count, ""


def _ray_train() -> tuple[int, int] | None:
    """Return rank and world size of a worker of Ray Train; None in any other process.

    Raise OpError when RANK or WORLD_SIZE of the environment differs.
    """
    # not imported: a worker of Ray Train has imported it already
    train = sys.modules.get("ray.train")
    if not hasattr(train, "UserCallback"):  # its first version has a context in any process
        return None
    try:
        context = train.get_context()  # type: ignore[union-attr]
    except (RuntimeError, DeprecationWarning):  # no worker of Ray Train; a trial of Ray Tune
        return None
    rank, world_size = context.get_world_rank(), context.get_world_size()
    for variable, told in {"RANK": rank, "WORLD_SIZE": world_size}.items():
        if (found := _variable(variable)) not in (None, told):
            raise OpError(
                f"Ranks: the environment has {variable} = {found}, but this is worker {rank} of {world_size} of "
                "Ray Train\n  unset RANK and WORLD_SIZE where the trainer is started, or give rank= and world_size="
            )
    return rank, world_size


def _environment() -> tuple[int, int, str]:
    """Return rank, world size, and the variables they come from. The local variables count if there is only one
    node.
    """
    rank, world_size = _variable("RANK"), _variable("WORLD_SIZE")
    # first, since torchrun sets the local variables too, and these count one node
    if rank is not None and world_size is not None:
        return rank, world_size, "RANK, WORLD_SIZE of the environment"
    local_rank, local_size = _variable("LOCAL_RANK"), _variable("LOCAL_WORLD_SIZE")
    if local_rank is not None and local_rank < 0:  # Hugging Face's trainers say so that there are no ranks
        local_rank = None
    agree = rank in (None, local_rank) and world_size in (None, local_size)
    if local_rank is not None and local_size is not None and agree and _is_one_node():
        return local_rank, local_size, "LOCAL_RANK, LOCAL_WORLD_SIZE of the environment"
    if rank is None and world_size in (None, 1) and local_rank is None and local_size in (None, 1):
        return 0, 1, ""
    raise _half(RANK=rank, WORLD_SIZE=world_size, LOCAL_RANK=local_rank, LOCAL_WORLD_SIZE=local_size)


def _is_one_node() -> bool:
    counts, numbers = ([_variable(name) for name in names] for names in _NODES)
    return all(count in (None, 1) for count in counts) and all(number in (None, 0) for number in numbers)


def _half(**variables: int | None) -> OpError:
    """Return the error for an environment that has only some of the variables of a rank."""
    found = ", ".join(f"{name} = {value}" for name, value in variables.items() if value is not None)
    missing = [name for name in ("RANK", "WORLD_SIZE") if variables[name] is None]
    lacks = f"not {' and '.join(missing)}" if missing else "they do not agree"
    return OpError(
        f"Ranks: the environment has {found}, {lacks}: expected both RANK and WORLD_SIZE, or neither\n"
        "  set both, or give rank= and world_size="
    )


def _other(given: str, option: str, variable: str) -> int:
    """Return the missing one of rank and world size, from Ray Train or the variable."""
    told = _ray_train()
    if told is not None:
        return told[option == "world_size"]
    found = _variable(variable)
    if found is None:
        raise OpError(
            f"Ranks: {given} is given without {option}, and the environment has no {variable}\n"
            "  give rank= and world_size="
        )
    return found


def _given(option: str, value: Any) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError
        return operator.index(value)
    except TypeError:
        raise OpTypeError(f"Ranks: {option} is {value!r}, expected an integer") from None


def _variable(name: str) -> int | None:
    """Return the integer that an environment variable has; None where there is none."""
    text = os.environ.get(name)
    try:
        return None if text is None else int(text)
    except ValueError:
        raise OpError(f"Ranks: the environment variable {name} is {text!r}, expected an integer") from None
