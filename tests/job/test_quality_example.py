"""The job examples/quality.toml: its figures are those of the published rules, computed in plain Python."""

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from seqflow.job import Job, Report, run

JOB = Path(__file__).parents[2] / "examples" / "quality.toml"
MODULES = (
    "bisect",
    "heapq",
    "textwrap",
    "this",
    "colorsys",
    "cmd",
    "opcode",
    "token",
    "keyword",
    "shlex",
    "sched",
)
STOP_WORDS = {"the", "be", "to", "of", "and", "that", "have", "with"}
PROSE = "It is said that the first of all rules is to have a rule, and to be content with it. Was that so? Yes, it was. "
MADE = {
    "empty": "",
    "blank": " \n\n \t\n",
    "one word": "word",
    "two words": "be be",
    "prose": PROSE + "\n".join(f"Number {n} and its square {n * n} have to be kept with care." for n in range(9)),
    "same lines": f"{PROSE}\n" * 5,
    "same paragraphs": "\n\n".join([PROSE, PROSE, "A line that stands here alone, and ends without a mark"] * 2),
    "bullets": "\n".join(f"  • the item {n} of the list\n- and that one, too..." for n in range(40)),
    "ellipses": "\n".join(f"to be continued with {n}…\n\n\nand to have more..." for n in range(40)),
    "numbers": " ".join(f"{n} the 0x{n:x} ## of" for n in range(99)),
    "long words": "donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft of the " * 30,
    "letters": "é ü 日本語 ǅ ª ٣ ½ the of\u00a0that\u2003with " * 20,
    "lorem": f"{PROSE}\nLorem ipsum dolor sit amet, and that is to be the end of it.\nPlease enable JavaScript, to see more of it.",
    "curly": f"{PROSE}\nThe set {{1, 2, 3}} of numbers has to have an end, and that is it.",
    "windows": f"{PROSE}\r\n{PROSE}\r\n",
}  # fmt: skip


def stood_before(pieces: Sequence[Any]) -> list[bool]:
    """Whether each piece stood before."""
    seen: set[Any] = set()
    found = []
    for piece in pieces:
        found.append(piece in seen)
        seen.add(piece)
    return found


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def figures_of(text: str) -> dict[str, float]:
    """The figures of Gopher (Rae et al. 2021) and C4 (Raffel et al. 2020), as the papers define them."""
    text = text.strip()
    words, lines, chars = text.split(), re.split("\n+", text), max(len(text), 1)
    found: dict[str, float] = {
        "num_words": len(words),
        "mean_word_length": mean([len(word) for word in words]),
        "hash_marks": text.count("#") / max(len(words), 1),
        "ellipses": len(re.findall(r"\.{3}|…", text)) / max(len(words), 1),
        "bullet_lines": mean([line.lstrip().startswith(("•", "-")) for line in lines]),
        "ellipsis_lines": mean([line.rstrip().endswith(("...", "…")) for line in lines]),
        "words_with_letter": mean([any(map(str.isalpha, word)) for word in words]),
        "stop_words": len(STOP_WORDS & set(words)),
    }
    for name, pieces in (("line", lines), ("paragraph", re.split("\n{2,}", text))):
        repeated = [piece for piece, was in zip(pieces, stood_before(pieces), strict=True) if was]
        found[f"duplicate_{name}s"] = len(repeated) / len(pieces) if text else 0.0
        found[f"duplicate_{name}_chars"] = len("".join(repeated)) / chars
    for n in (2, 3, 4):
        grams = [" ".join(words[i : i + n]) for i in range(len(words) - n + 1)]
        gram, times = Counter(grams).most_common(1)[0] if grams else ("", 0)
        found[f"top_{n}grams"] = len(gram) * times / chars
    for n in range(5, 11):
        grams = [tuple(words[i : i + n]) for i in range(len(words) - n + 1)]
        inside = {i + k for i, was in enumerate(stood_before(grams)) if was for k in range(n)}
        found[f"duplicate_{n}grams"] = sum(len(words[i]) for i in inside) / chars
    clean = clean_of(lines)
    found["sentences"] = len(re.findall(r"""[.!?]+["')]*(?:[ \t\n\r\f\v]|$)""", clean))
    found["curly_brackets"] = clean.count("{")
    found["lorem_ipsum"] = clean.lower().count("lorem ipsum")
    return found


def clean_of(lines: Sequence[str]) -> str:
    """The lines that C4 keeps."""
    stripped = [line.strip() for line in lines]
    return "\n".join(
        line
        for line in stripped
        if line.endswith((".", "!", "?", '"')) and not line.endswith("...")
        if len(line.split()) >= 5 and "javascript" not in line.lower()
    )


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Texts by path: modules of the standard library, and made ones for each rule."""
    folder = tmp_path_factory.mktemp("texts")
    for module in MODULES:
        shutil.copy(str(find_spec(module).origin), folder / f"{module}.txt")
    for name, text in MADE.items():
        (folder / f"{name}.txt").write_bytes(text.encode())
    return {str(path): path.read_bytes().decode() for path in sorted(folder.glob("*.txt"))}


def run_on(texts: dict[str, str], output: Path, **overrides: Any) -> tuple[Report, dict[str, list[Any]]]:
    paths = {"source.paths": list(texts), "source.exclude": [], "output.path": str(output)}
    report = run(Job.read(JOB, {**paths, **overrides}))
    return report, pq.read_table(output).to_pydict()


def test_the_figures_are_those_of_the_published_rules(texts: dict[str, str], tmp_path: Path) -> None:
    _, rows = run_on(texts, tmp_path / "out.parquet", keep=[])
    assert rows["path"] == list(texts)
    for i, text in enumerate(texts.values()):
        expected = figures_of(text)
        assert {name: rows[name][i] for name in expected} == pytest.approx(expected), rows["path"][i]
        assert rows["text"][i] == text.strip()
        assert rows["clean"][i] == clean_of(re.split("\n+", text.strip())), rows["path"][i]


def test_rows_are_left_out_and_counted_by_the_first_rule_that_they_break(
    texts: dict[str, str], tmp_path: Path
) -> None:
    report, rows = run_on(texts, tmp_path / "out.parquet")
    rules, broken, kept = Job.read(JOB).keep, Counter[str](), []
    for path, text in texts.items():
        figures = figures_of(text)
        first = next((rule for rule in rules if not eval(rule, {}, figures)), None)
        if first is None:
            kept.append(path)
        else:
            broken[first] += 1
    assert rows["path"] == kept != []
    assert report.filtered_by_condition == broken
    assert report.filtered == report.filtered_by["keep"] == broken.total()
    assert len(broken) > 8
