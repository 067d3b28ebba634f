"""Write the keys of jobs into `docs/job-keys.md` from the dataclasses of sections: `python -m seqflow.job.keys`."""

import inspect
import re
from dataclasses import MISSING, Field
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from seqflow.job.reading import SECTIONS
from seqflow.job.sections import BATCH_KINDS, keys_of
from seqflow.loader import Balance, Loader
from seqflow.providers.formats.options import FORMATS, Format
from seqflow.providers.opening import file_kinds

PAGE = Path(__file__).parents[2] / "docs" / "job-keys.md"

_BEGIN = "<!-- The keys: written by `python -m seqflow.job.keys`, not by hand. -->\n"
_END = "\n<!-- The end of the keys. -->\n"


def page() -> str:
    """Return the text of the page with the keys between its two marks written again."""
    text = PAGE.read_text(encoding="utf-8")
    return text.partition(_BEGIN)[0] + _BEGIN + _keys() + _END + text.partition(_END)[2]


def _keys() -> str:
    parts = []
    for name, classes in SECTIONS.items():
        parts.append(f"\n## [{name}]\n")
        if name == "batch":
            kinds = ", ".join(f'`"{kind}"`' for kind in BATCH_KINDS)
            parts.append(
                f'`kind` is one of {kinds}; the other keys are the arguments of its plan. `"module:Name"` is a '
                "[BatchPlan of your own](extending.md#a-batch-plan), in a module of the job's folder or an installed "
                "one; the other keys are its fields. Without this section batches have "
                f"{inspect.signature(Loader).parameters['batch'].default} rows.\n"
            )
            for kind, plan in BATCH_KINDS.items():
                parts.append(f'\n### kind = "{kind}": {plan.__name__}\n\n{_summary(plan)}\n')
                parts.append(_table(plan))
            parts.append(f"\n### [batch.balance]: Balance\n\n{_summary(Balance)}\n")
            parts.append(_table(Balance))
        for section in classes:
            parts.append(f"{_summary(section)}\n")
            parts.append(_table(section))
        if name == "source":
            names = ", ".join(f"`[source.{kind}]`" for kind in file_kinds())
            parts.append(f"Options of the files' format are a section of one of {names}:\n")
            parts.append(_table(*(FORMATS[kind] for kind in file_kinds())))
    return "\n" + "\n".join(part.strip("\n") + "\n" for part in parts)


def _summary(section: type) -> str:
    return inspect.cleandoc(section.__doc__ or "").split("\n\n")[0].replace("\n", " ")


def _table(*sections: type) -> str:
    """Return the table of keys of a section, or of several formats, each with the name of its own section."""
    rows = [
        f"| `{f'{section.kind}.' if issubclass(section, Format) else ''}{field.name}` | "
        f"`{_kind(get_type_hints(section)[field.name])}` | {_default(field)} | {meanings_of(section)[field.name]} |"
        for section in sections
        for field in keys_of(section)
    ]
    return "\n".join(["", "| key | takes | default | meaning |", "| --- | --- | --- | --- |", *rows, ""])


def _kind(hint: Any) -> str:
    is_union = get_origin(hint) in (Union, UnionType)
    members = map(inspect.formatannotation, get_args(hint) if is_union else (hint,))
    text = re.sub(r"\b[a-z_.]+\.(?=[A-Z])", "", " | ".join(members).replace("NoneType", "None"))
    # TOML has no objects of pyarrow
    return text.replace("Schema | Mapping[str, str | DataType]", "dict[str, str]").replace("|", "\\|")


def _default(field: Field[Any]) -> str:
    if field.default is not MISSING:
        return f"`{field.default!r}`"
    if field.default_factory is not MISSING:
        return f"`{field.default_factory()!r}`"
    return "required"


def meanings_of(section: type) -> dict[str, str]:
    """Return the docstring below each field in the source of the class."""
    pattern = re.compile(r'^    (\w+): [^\n]*\n    """(.+?)"""$', re.MULTILINE | re.DOTALL)
    found = pattern.findall(inspect.getsource(section))
    return {name: " ".join(text.split()).replace("|", "\\|") for name, text in found}


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
