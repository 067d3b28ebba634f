"""Makes the site: `python docs/site.py FOLDER`.

Zensical builds it from copies of the pages, with the reference, the ops in the menu, and details that GitHub and
Python-Markdown show differently. The pages of the reference lie nowhere: each names objects, whose docstrings
mkdocstrings shows.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, STDOUT
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from griffe import Class, Function, Object, UnpackTypedDictExtension

DOCS = Path(__file__).resolve().parent

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
        "seqflow.torch.cu_seqlens_padded seqflow.torch.position_ids"
    ),
    "seqflow.ray": "seqflow.ray.dataset seqflow.ray.stats",
}
"""The objects on each page of the reference, by its title."""
NOT_SHOWN = ("*.json", "*.py", "*.yml", "requirements.txt", "__pycache__")
INHERITING = ("Loader", "Mix")
"""Pages whose classes have a part of their interface from a parent."""


def _pages() -> Iterator[tuple[str, str, str]]:
    """Title, path and text of each page of the reference."""
    for title, names in REFERENCE.items():
        path = f"reference/{re.sub(r'[^a-z]+', '-', title.lower())}.md"
        is_own = title == names.rpartition(".")[2]
        options = (
            f"{{heading_level: {1 if is_own else 2}, inherited_members: {str(title in INHERITING).lower()}}}"
        )
        objects = "\n\n".join(f"::: {name}\n    options: {options}" for name in names.split())
        yield title, path, objects if is_own else f"# {title}\n\n{objects}"


def build(folder: Path) -> None:
    """Write the site; any warning is an error."""
    with TemporaryDirectory() as name:
        place = Path(name)
        pages = place / "pages"
        shutil.copytree(DOCS, pages, ignore=shutil.ignore_patterns(*NOT_SHOWN))
        for page in pages.rglob("*.md"):
            page.write_text(_as_shown(page.read_text("utf-8")), "utf-8")
        (pages / "reference").mkdir()
        for _, path, text in _pages():
            (pages / path).write_text(text, "utf-8")
        (place / "site.yml").write_text(json.dumps(_config()), "utf-8")  # JSON is YAML
        command = ["build", "--strict", "--config-file", "site.yml"]
        built = subprocess.run(
            [sys.executable, "-m", "zensical", *command], cwd=place, text=True, stdout=PIPE, stderr=STDOUT
        )
        warnings = [line for line in built.stdout.splitlines() if line.startswith("griffe: ")]
        if built.returncode or warnings:  # strict building takes no notice of what griffe says
            sys.exit(built.stdout)
        shutil.copytree(place / "site", folder, dirs_exist_ok=True)


def _config() -> dict[str, Any]:
    """Return the settings, with the reference and the families of ops in the menu."""
    config = yaml.safe_load((DOCS / "site.yml").read_text("utf-8"))
    families = sorted(path.name for path in (DOCS / "ops").glob("*.md"))
    found = {
        "Reference": [{title: path} for title, path, _ in _pages()],
        "Ops": [f"ops/{name}" for name in families if name != "README.md"],
    }
    for section in config["nav"]:
        for name, entries in section.items() if isinstance(section, dict) else ():
            entries += found.get(name, [])
    python = config["plugins"][-1]["mkdocstrings"]["handlers"]["python"]
    python["paths"] = [str(DOCS.parent)]
    python["options"]["extensions"] = [f"{__file__}:Docstrings"]
    return config


def _as_shown(markdown: str) -> str:
    """Return a page as the site shows it.

    Its sessions of Python are `pycon`, whose prompts are neither marked nor copied; pictures are there in both
    themes; pipes in the code of tables are plain, for GitHub shows `\\|` as a pipe, and Python-Markdown does not.
    """
    markdown = re.sub(r"```python\n(?=>>> )", "```pycon\n", markdown)
    both = r"\1-light\2#only-light)\n\1-dark\2#only-dark)"
    markdown = re.sub(r"(!\[[^\]]*\]\([\w/.-]+)-light(\.\w+)\)", both, markdown)
    return re.sub(r"(?<=^\|).*", _with_plain_pipes, markdown, flags=re.MULTILINE)


def _with_plain_pipes(row: re.Match[str]) -> str:
    return re.sub("`[^`]*`", lambda code: code[0].replace("\\|", "|"), row[0])


class Docstrings(UnpackTypedDictExtension):
    """Brings docstrings into the form of the reference: code in blocks of Markdown, fields as parameters.

    `on_class` of the parent is not called: it takes the fields of a TypedDict away before its heirs have them.
    """

    def on_class(self, *, cls: Class, **_: Any) -> None:
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

    def on_function(self, *, func: Function, **kwargs: Any) -> None:
        """Name the options in the signature, not in the docstring, which lists them with their meanings."""
        docstring, func.docstring = func.docstring, None
        super().on_function(func=func, **kwargs)
        func.docstring = docstring

    def on_object(self, *, obj: Object, **_: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _CODE.sub(_fenced, obj.docstring.value)


_CODE = re.compile(r"(?<=\n\n)(>>> .*?|    (?=\S).*?)(?=\n\n(?!    )|\Z)", re.DOTALL)


def _fenced(code: re.Match[str]) -> str:
    lines = [line.removeprefix("    ") if code[0].startswith(" ") else line for line in code[0].splitlines()]
    return "\n".join(["```pycon" if ">>> " in code[0] else "```python", *lines, "```"])


if __name__ == "__main__":
    build(Path(sys.argv[1]))
