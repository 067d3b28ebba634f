"""Words that a shell can complete: names of ops, settings of jobs, kinds of files."""


def op_names(incomplete: str) -> list[str]:
    """Return the ops whose names begin with the text."""
    from seqflow import registry

    return [name for name in registry.names() if name.startswith(incomplete)]


def settings(incomplete: str) -> list[str]:
    """Return the keys of jobs that begin with the text, for `--set`."""
    from seqflow.job.keys import SECTIONS
    from seqflow.job.sections import BATCH_KINDS, keys_of
    from seqflow.providers.formats.options import FORMATS

    classes = {**SECTIONS, "batch": tuple(BATCH_KINDS.values())}
    classes |= {f"source.{kind}": (options,) for kind, options in FORMATS.items()}
    keys = [f"{name}.{field.name}=" for name, of in classes.items() for one in of for field in keys_of(one)]
    return [key for key in dict.fromkeys([*keys, "batch.kind="]) if key.startswith(incomplete)]


def kinds(incomplete: str) -> list[str]:
    """Return the kinds of files that begin with the text."""
    from seqflow.providers.opening import file_kinds

    return [kind for kind in file_kinds() if kind.startswith(incomplete)]
