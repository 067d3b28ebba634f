"""Conversations for examples/sft.toml: what functions and classes of source code say of themselves.

    python examples/make_conversations.py                                the standard library
    python examples/make_conversations.py conversations.parquet FOLDER   your own code

Each docstring becomes a question of the user and an answer of the assistant, a row of the column `messages`, which
is a list of structs of a role and its content.
"""

import ast
import inspect
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TURN = pa.struct({"role": pa.string(), "content": pa.string()})
DOCUMENTED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def conversations(folder: Path) -> Iterator[list[dict[str, str]]]:
    """A conversation for each docstring below the folder."""
    for path in sorted(folder.rglob("*.py")):
        if "site-packages" in path.parts:
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):  # a few tests of Python itself
            continue
        module = ".".join(path.relative_to(folder).with_suffix("").parts)
        for node in ast.walk(tree):
            if isinstance(node, DOCUMENTED) and (doc := ast.get_docstring(node)):
                yield [
                    {"role": "user", "content": f"In {module}, what is `{heading(node)}`?"},
                    {"role": "assistant", "content": inspect.cleandoc(doc)},
                ]


def heading(node: ast.AST) -> str:
    """`class Name` or `name(arguments)`."""
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
    return f"{node.name}({ast.unparse(node.args)})"


def main(output: str = "conversations.parquet", folder: str | None = None) -> None:
    found = list(conversations(Path(folder or sysconfig.get_paths()["stdlib"])))
    pq.write_table(pa.table({"messages": pa.array(found, pa.list_(TURN))}), output)
    print(f"{len(found):,} conversations in {output}")


if __name__ == "__main__":
    main(*sys.argv[1:])
