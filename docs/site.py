"""Hooks of the site: the reference, the ops in the menu, and details that GitHub and MkDocs show differently.

The pages of the reference lie nowhere: each names objects, whose docstrings mkdocstrings shows.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from griffe import Class, Extension, Function, Object
from mkdocs.structure.files import File

REFERENCE = {
    "Loader": "seqflow.Loader",
    "Mix": "seqflow.Mix seqflow.Schedule",
    "Batch plans": "seqflow.Rows seqflow.TokenBudget seqflow.Buckets seqflow.Packed seqflow.Balance seqflow.Along",
    "Verdict": "seqflow.verdict",
    "Serving": "seqflow.serve seqflow.served",
    "Padding": "seqflow.Pad",
    "Ranks, order, prefetching": "seqflow.Ranks seqflow.Shuffle seqflow.Prefetch",
    "Bad rows and files": "seqflow.BadRows seqflow.BadFiles",
    "open": "seqflow.open",
    "Formats of files": (
        "seqflow.Arrow seqflow.Csv seqflow.JsonLines seqflow.Megatron "
        "seqflow.Numpy seqflow.Parquet seqflow.Tar seqflow.Text"
    ),
    "Sequence and LoD": "seqflow.Sequence seqflow.LoD",
    "Record and Arrow": "seqflow.record.Record seqflow.from_arrow seqflow.from_rows seqflow.to_arrow",
    "Nets": "seqflow.Net seqflow.Expression seqflow.run seqflow.arrow_function",
    "Shapes": "seqflow.TensorSpec seqflow.PartialShape seqflow.Dimension seqflow.TensorSlice",
    "Features": "seqflow.Vocabulary seqflow.features seqflow.pool_features",
    "Declaring ops": "seqflow.op seqflow.set_num_threads seqflow.info",
    "Classes of errors": (
        "seqflow.SeqflowError seqflow.OpError seqflow.LodError seqflow.ShapeError seqflow.ExpressionError "
        "seqflow.NetError seqflow.ProviderError seqflow.JobError"
    ),
    "Jobs from Python": "seqflow.job.Job seqflow.job.run seqflow.job.Report",
    "seqflow.torch": (
        "seqflow.torch.to_tensors seqflow.torch.from_tensors seqflow.torch.iterable seqflow.torch.data_loader "
        "seqflow.torch.collate seqflow.torch.module seqflow.torch.mark_ragged seqflow.torch.to_nested "
        "seqflow.torch.from_nested seqflow.torch.to_packed_sequence seqflow.torch.from_packed_sequence"
    ),
    "seqflow.torch: attention": (
        "seqflow.torch.block_diagonal_mask seqflow.torch.flex_block_mask seqflow.torch.cu_seqlens "
        "seqflow.torch.cu_seqlens_padded seqflow.torch.position_ids seqflow.torch.check_isolation"
    ),
    "seqflow.ray": "seqflow.ray.dataset seqflow.ray.stats",
}
"""The objects on each page of the reference, by its title."""
INHERITING = ("Loader", "Mix")
"""Pages whose classes have a part of their interface from a parent."""


def _pages() -> Iterator[tuple[str, str, str]]:
    """Title, path and text of each page of the reference; a search finds them first."""
    for title, names in REFERENCE.items():
        path = f"reference/{re.sub(r'[^a-z]+', '-', title.lower())}.md"
        is_own = title == names.rpartition(".")[2]
        options = (
            f"{{heading_level: {1 if is_own else 2}, inherited_members: {str(title in INHERITING).lower()}}}"
        )
        objects = "\n\n".join(f"::: {name}\n    options: {options}" for name in names.split())
        text = objects if is_own else f"# {title}\n\n{objects}"
        yield title, path, f"---\nsearch: {{boost: 4}}\n---\n\n{text}"


def on_config(config: Any) -> None:
    """Add the reference and the families of ops to the menu."""
    families = sorted(path.name for path in Path(config.docs_dir, "ops").glob("*.md"))
    found = {
        "Reference": [{title: path} for title, path, _ in _pages()],
        "Ops": [f"ops/{name}" for name in families if name != "README.md"],
    }
    for section in config.nav:
        for name, entries in section.items() if isinstance(section, dict) else ():
            entries += found.get(name, [])


def on_files(files: Any, config: Any) -> None:
    """Add the pages of the reference."""
    for _, path, text in _pages():
        files.append(File.generated(config, path, content=text))


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return the page with its sessions of Python as `pycon`, whose prompts are neither marked nor copied, and with
    pictures in both themes.
    """
    markdown = re.sub(r"```python\n(?=>>> )", "```pycon\n", markdown)
    both = r"\1-light\2#only-light)\n\1-dark\2#only-dark)"
    return re.sub(r"(!\[[^\]]*\]\([\w/.]+)-light(\.\w+)\)", both, markdown)


def on_page_content(html: str, **_: object) -> str:
    """Return the page with plain pipes in its short pieces of code: GitHub shows `\\|` as a pipe, MkDocs does not."""
    return re.sub(r"<code>[^<]*</code>", lambda code: code[0].replace("\\|", "|"), html)


class Docstrings(Extension):
    """Brings docstrings into the form of the reference: code in blocks of Markdown, fields as parameters."""

    def on_class(self, *, cls: Class, **_: object) -> None:
        """List the fields of a dataclass, which have docstrings of their own, as its parameters."""
        if "dataclass" not in cls.labels or cls.docstring is None:
            return
        fields = [
            one for one in cls.attributes.values() if one.docstring is not None and one.name in cls.parameters
        ]
        if fields:
            lines = [
                f"    {one.name}: {' '.join(one.docstring.value.split())}" for one in fields if one.docstring
            ]
            cls.docstring.value += "\n\n" + "\n".join(["Args:", *lines])
        for one in fields:
            one.docstring = None

    def on_function(self, *, func: Function, **_: object) -> None:
        """Drop the parameters that `unpack_typeddict` adds to a docstring, which lists them with their meanings."""
        if func.docstring is not None:
            vars(func.docstring).pop("parsed", None)
            func.docstring = func.docstring if func.docstring.value else None

    def on_object(self, *, obj: Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _CODE.sub(_fenced, obj.docstring.value)


_CODE = re.compile(r"(?<=\n\n)(>>> .*?|    (?=\S).*?)(?=\n\n(?!    )|\Z)", re.DOTALL)


def _fenced(code: re.Match[str]) -> str:
    lines = [line.removeprefix("    ") if code[0].startswith(" ") else line for line in code[0].splitlines()]
    return "\n".join(["```pycon" if ">>> " in code[0] else "```python", *lines, "```"])
