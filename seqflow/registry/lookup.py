"""The ops by name."""

from importlib import import_module

from seqflow.arguments import checked
from seqflow.errors import OpError, UnknownOpError, nearest
from seqflow.registry.definition import OpDef
from seqflow.registry.higher_floors import OPS

_ops: dict[str, OpDef] = {}


def names() -> list[str]:
    """Return the names of all registered ops and of those that families declare, sorted."""
    return sorted({*_ops, *_families()})


@checked(late=True)
def get(name: str) -> OpDef:
    """Return the op of that name; raise UnknownOpError, with the nearest name, when there is none."""
    if name not in _ops:  # for a known op the others need not be imported
        module = _families().get(name)
        if module is not None:
            import_module(module)
    if name not in _ops:
        from seqflow.registry.search import ops_for

        private = name.startswith("_")  # asked for by tools that look at modules, and often
        guess = "" if private else nearest(name, names(), 0.8)  # a lower one leads from mean to expand
        found = "" if private or guess else ops_for(name)
        raise UnknownOpError(
            f"no op is named {name!r}{guess}",
            advice=found
            or f"`seqflow ops --search {name}` finds ops by their names elsewhere; import your own first",
        )
    return _ops[name]


@checked()
def register(definition: OpDef) -> None:
    """Make an op known by its name; raise OpError when the name is taken."""
    ours = definition.name in _families()
    if definition.name in _ops or (ours and definition.family is None):
        advice = (
            f"to declare it again, as a cell that runs twice does: sf.registry.unregister({definition.name!r})"
            if not ours
            else "it is one of seqflow's own: take another name"
        )
        raise OpError(f"{definition.name}: an op of that name is registered already\n  {advice}")
    _ops[definition.name] = definition


def unregister(name: str) -> OpDef:
    """Return an op and forget it, so that it can be declared again; raise UnknownOpError when it is unknown."""
    definition = get(name)
    del _ops[name]
    _families().pop(name, None)
    return definition


def _families() -> dict[str, str]:
    """Return the modules of ops of this package by the names of ops; each is imported when an op is looked up."""
    # a thread that comes while another one imports the module waits here
    found: dict[str, str] = import_module(OPS).FAMILIES
    return found
