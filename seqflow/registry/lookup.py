"""The ops by name."""

from importlib import import_module

from seqflow.arguments import checked
from seqflow.errors import OpError, UnknownOpError, nearest
from seqflow.registry.definition import OpDef

_ops: dict[str, OpDef] = {}
_modules: list[str] = []


def load_on_first_look(module: str) -> None:
    """Import a module that declares ops when an op is first looked up or registered."""
    _modules.append(module)


def names() -> list[str]:
    """Return the names of all registered ops, sorted."""
    _load()
    return sorted(_ops)


@checked(late=True)
def get(name: str) -> OpDef:
    """Return the op of that name; raise UnknownOpError, with the nearest name, when there is none."""
    if name not in _ops:  # for a known op the others need not be imported
        _load()
    if name not in _ops:
        raise UnknownOpError(
            f"no op is named {name!r}{nearest(name, _ops)}",
            advice=f"`seqflow ops --search {name}` finds ops by their names elsewhere; import your own first",
        )
    return _ops[name]


@checked()
def register(definition: OpDef) -> None:
    """Make an op known by its name; raise OpError when the name is taken."""
    _load()  # first: an op of a user must not take a name that an op of this package will have
    earlier = _ops.get(definition.name)
    if earlier is not None:
        advice = (
            f"to declare it again, as a cell that runs twice does: sf.registry.unregister({definition.name!r})"
            if earlier.family is None
            else "it is one of seqflow's own: take another name"
        )
        raise OpError(f"{definition.name}: an op of that name is registered already\n  {advice}")
    _ops[definition.name] = definition


def unregister(name: str) -> OpDef:
    """Return an op and forget it, so that it can be declared again; raise UnknownOpError when it is unknown."""
    definition = get(name)
    del _ops[name]
    return definition


def _load() -> None:
    """Import the modules that declare ops, once; removed first, since their imports call this function."""
    while _modules:
        import_module(_modules.pop())
