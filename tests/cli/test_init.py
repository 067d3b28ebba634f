"""`seqflow init`: the job that it writes runs as it stands."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from command import seqflow


@pytest.mark.parametrize(
    ("columns", "found"),
    [
        ({"name": ["a", "b"], "ids": [[1, 2], [3]]}, ["tokens", "ids"]),
        ({"text": ["one", "two"], "n": [1, 2]}, ["tokens"]),
        ({"other": ["one", None], "text": ["x", "y"]}, ["tokens"]),
        ({"n": [1, 2], "x": [0.5, 1.5]}, ["n"]),
        ({"labels": [[1], [2, 3]], "tokens": [[4, 5], [6]]}, ["tokens"]),
        ({"tokens": [[[1]], [[2], [3, 4]]]}, ["tokens"]),
        ({"tokens": [[1], None]}, ["tokens"]),
    ],
)
def test_the_job_runs_as_it_stands(tmp_path, columns, found):
    (tmp_path / "my data").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "my data" / 'a "b".parquet')
    done = seqflow("init", "my data", "-o", "jobs.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    for command in (("check", "jobs.toml"), ("run", "jobs.toml", "--dry-run"), ("run", "jobs.toml")):
        done = seqflow(*command, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "out")
    assert any(name in table.column_names for name in found)
    assert table.num_rows > 0


def test_text_files_are_packed_as_bytes(tmp_path):
    (tmp_path / "one.txt").write_text("hello")
    assert seqflow("init", "*.txt", folder=tmp_path).returncode == 0
    assert seqflow("run", "job.toml", folder=tmp_path).returncode == 0
    (row,) = pq.read_table(tmp_path / "out")["tokens"].to_pylist()
    assert row[:6] == [*b"hello", 256]


def test_a_file_that_is_there_is_kept(tmp_path):
    (tmp_path / "one.txt").write_text("hello")
    (tmp_path / "job.toml").write_text("mine")
    done = seqflow("init", "one.txt", folder=tmp_path)
    assert done.returncode == 2
    assert "job.toml exists already" in done.stderr
    assert (tmp_path / "job.toml").read_text() == "mine"


def test_files_that_are_missing_are_an_error(tmp_path):
    done = seqflow("init", "none.parquet", folder=tmp_path)
    assert done.returncode in (1, 2)
    assert "none.parquet" in done.stderr
    assert not (tmp_path / "job.toml").exists()


@pytest.mark.parametrize(
    ("name", "content", "column"),
    [
        ("x.jsonl", '{"ids": [1, 2], "text": "a"}\n{"ids": [], "text": "b"}\n', "ids"),
        ("x.csv", "id,text\n1,one\n2,two\n", "tokens"),
        ("x.md", "# A text", "tokens"),
    ],
)
def test_files_of_lines_and_texts_run_as_they_stand(tmp_path, name, content, column):
    (tmp_path / name).write_text(content)
    assert seqflow("init", name, folder=tmp_path).returncode == 0
    assert seqflow("check", "job.toml", folder=tmp_path).returncode == 0
    done = seqflow("run", "job.toml", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert pq.read_table(tmp_path / "out").column(column).to_pylist()


def test_each_setting_says_what_it_is_for_in_its_line(tmp_path):
    pq.write_table(pa.table({"tokens": [[1, 2], [3]], "labels": [[1, 1], [0]]}), tmp_path / "x.parquet")
    seqflow("init", "x.parquet", folder=tmp_path)
    lines = (tmp_path / "job.toml").read_text().splitlines()
    settings = [line for line in lines if " = " in line]
    assert len(settings) > 8
    assert [line for line in settings if "  # " not in line] == []
    assert max(map(len, lines)) <= 118
    (columns,) = [line for line in lines if line.startswith("columns")]
    assert "labels: packed too where they have equal lengths" in columns


def test_a_row_with_a_null_is_set_aside(tmp_path):
    pq.write_table(pa.table({"tokens": [[1, 2], None]}), tmp_path / "x.parquet")
    seqflow("init", "x.parquet", folder=tmp_path)
    assert seqflow("run", "job.toml", folder=tmp_path).returncode == 0
    (bad,) = pq.read_table(tmp_path / "job-bad.parquet")["bad"].to_pylist()
    assert (bad["row"], bad["column"]) == (1, "tokens")


def test_what_is_commented_out_may_be_used(tmp_path):
    pq.write_table(pa.table({"tokens": [[1, 2], None, [3]]}), tmp_path / "x.parquet")
    seqflow("init", "x.parquet", folder=tmp_path)
    job = (tmp_path / "job.toml").read_text()
    for key in ("fill", "shuffle", "part_bytes"):
        assert f"\n# {key} = " in job
        job = job.replace(f"\n# {key} = ", f"\n{key} = ")
    (tmp_path / "job.toml").write_text(job)
    assert seqflow("run", "job.toml", folder=tmp_path).returncode == 0
    assert not (tmp_path / "job-bad.parquet").exists()


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('capacity = "x"', "line 20: capacity is 'x', expected an integer"),
        ("capcity = 5", "line 20: unknown key 'capcity' in [batch]"),
        ("capacity = = 5", "(at line 20, column 12)\n  capacity = = 5"),
    ],
)
def test_a_wrong_line_of_the_job_is_named_with_its_key(tmp_path, line, says):
    pq.write_table(pa.table({"tokens": [[1, 2], [3]]}), tmp_path / "x.parquet")
    seqflow("init", "x.parquet", folder=tmp_path)
    job = (tmp_path / "job.toml").read_text().splitlines()
    at = next(n for n, one in enumerate(job) if one.startswith("capacity"))
    (tmp_path / "job.toml").write_text("\n".join([*job[:at], line, *job[at + 1 :]]))
    done = seqflow("check", "job.toml", folder=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr


TURNS = {
    "role": [("system", "Be kind."), ("user", "Hello?"), ("assistant", "Hello."), ("tool", "42")],
    "from": [("human", "Hello?"), ("gpt", "Hello.")],
}


@pytest.mark.parametrize(
    ("column", "role", "content"), [("messages", "role", "content"), ("conversations", "from", "value")]
)
def test_conversations_become_tokens_and_labels(tmp_path, column, role, content):
    tokenizers = pytest.importorskip("tokenizers")
    turns = [{role: who, content: said} for who, said in TURNS[role]]
    rows = [{"id": n, column: turns} for n in range(2000)]
    rows[1500][column] = []
    rows[1600][column] = turns[:1]
    lines = [json.dumps(row) for row in rows]
    lines[1800] = lines[1800][:20]
    (tmp_path / "chat.jsonl").write_text("\n".join(lines))
    done = seqflow("init", "chat.jsonl", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "looked at all 2,000 rows: 3 bad rows" in done.stdout
    assert "tokenizer.json: 256 bytes and the markers of ChatML" in done.stdout
    job = (tmp_path / "job.toml").read_text()
    assert f'columns = ["{column}.{role}", "{column}.{content}"]' in job
    assert max(map(len, job.splitlines())) <= 118
    for model in ("ChatML", "Llama", "Mistral", "Gemma", "Jinja are not run", "tool_calls"):
        assert model in job
    for command in (("check", "job.toml"), ("run", "job.toml", "--json")):
        done = seqflow(*command, folder=tmp_path)
        assert done.returncode == 0, done.stderr
    bad = [one["reason"] for one in pq.read_table(tmp_path / "job-bad.parquet")["bad"].to_pylist()]
    assert len(bad) == 3
    assert "require: tokens.lengths > 0 is false" in bad
    assert "require: lengths_any(labels != -100, tokens.lengths) is false" in bad
    table = pq.read_table(tmp_path / "out", columns=["tokens", "labels"])
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    labels = [one for row in table["labels"].to_pylist() for one in row if one != -100]
    assert tokenizer.decode(labels, skip_special_tokens=False) == "Hello.<|im_end|>\n" * 1997
    tokens = [one for row in table["tokens"].to_pylist() for one in row]
    shown = tokenizer.decode(tokens, skip_special_tokens=False)
    assert "<|im_start|>user\nHello?<|im_end|>\n<|im_start|>assistant\nHello.<|im_end|>\n" in shown


def test_roles_that_are_not_usual_are_told(tmp_path):
    pytest.importorskip("tokenizers")
    turns = [{"role": who, "content": "x"} for who in ("user", "robot", "robot", "a\nb", "user", "assistant")]
    (tmp_path / "c.jsonl").write_text(json.dumps({"messages": turns}) + "\n")
    done = seqflow("init", "c.jsonl", folder=tmp_path)
    told = (
        "roles found: user 2 turns, assistant 1 turns, robot 2 turns: not one of the usual, "
        r"a\nb 1 turns: not one of the usual"
    )
    assert told in done.stdout
    job = (tmp_path / "job.toml").read_text()
    assert told in job.replace("\n# ", " ")
    assert seqflow("check", "job.toml", folder=tmp_path).returncode == 0
    (tmp_path / "d.jsonl").write_text(json.dumps({"messages": turns[:1]}) + "\n")
    done = seqflow("init", "d.jsonl", "-o", "usual.toml", folder=tmp_path)
    assert "roles found" not in done.stdout + (tmp_path / "usual.toml").read_text()


def test_a_tokenizer_that_is_there_is_kept(tmp_path):
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text("mine")
    (tmp_path / "c.jsonl").write_text('{"messages": [{"role": "user", "content": "x"}]}\n')
    done = seqflow("init", "c.jsonl", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "tokenizer.json").read_text() == "mine"


@pytest.mark.parametrize(
    "columns",
    [{"id": ["a" * 40, "b" * 40], "n": [1, 2]}, {"user_id": [1, 2], "ts": ["2024-01-01", "2024-01-02"]}],
)
def test_ids_and_short_texts_are_not_packed(tmp_path, columns):
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    assert seqflow("init", "x.parquet", folder=tmp_path).returncode == 0
    job = (tmp_path / "job.toml").read_text()
    assert 'kind = "rows"' in job
    assert seqflow("run", "job.toml", folder=tmp_path).returncode == 0


def test_damaged_files_are_left_out_by_the_job_too(shards):
    done = seqflow("init", "shards", folder=shards.parent)
    assert done.returncode == 0, done.stderr
    assert "looked at all 25 rows: 2 damaged files" in done.stdout
    done = seqflow("run", "job.toml", "--json", folder=shards.parent)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 25


def test_the_output_of_another_job_is_not_in_its_way(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "one.txt").write_text("text")
    assert seqflow("init", "one.txt", folder=tmp_path).returncode == 0
    assert 'path = "out-2"' in (tmp_path / "job.toml").read_text()


def rows_of(column, role, content, asked, said):
    """Conversations with tool calls from row 200 on, and a key that only later ones have."""
    for n in range(400):
        turns = [{role: asked, content: f"q {n}"}, {role: said, content: f"a {n}"}]
        if n > 200:
            calls = {"tool_calls": [{"id": "c", "function": {"name": "f"}}]}
            turns = [turns[0], {role: said, content: None, **calls}, {role: "tool", content: "1"}, turns[1]]
        if n == 399:
            turns = [turns[0], {role: said, content: None, **calls}]
        yield {column: turns, **({"score": 1} if n > 350 else {})}


CHATS = {
    "OpenAI": ("messages", "role", "content", "user", "assistant"),
    "ShareGPT": ("conversations", "from", "value", "human", "gpt"),
}


@pytest.mark.parametrize("chat", CHATS.values(), ids=CHATS)
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_tool_calls_contents_of_null_and_late_keys_make_no_bad_rows(tmp_path, chat, kind):
    tokenizers = pytest.importorskip("tokenizers")
    rows = list(rows_of(*chat))
    if kind == "jsonl":
        # further lines, so that the first with tool calls lie behind those that the schema is made of
        lines = [json.dumps(rows[0])] * 15_000 + [json.dumps(row) for row in rows]
        (tmp_path / "c.jsonl").write_text("\n".join(lines))
    else:
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "c.parquet")
    done = seqflow("init", f"c.{kind}", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "rows: none is bad" in done.stdout
    done = seqflow("run", "job.toml", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["bad_rows"] == 0
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    packed = pq.read_table(tmp_path / "out")["tokens"].to_pylist()
    shown = tokenizer.decode([one for row in packed for one in row])
    assert [shown.count(f"a {n}\n") for n in (1, 200, 398)] == [1, 1, 1]


LATER = {
    "nulls": (pa.table({"tokens": [[1, 2], None, [3], None]}), 2),
    "null values": (pa.table({"tokens": [[1, 2], [None], [3]]}), 1),
    "texts": (pa.table({"text": ["a b c", None, "", "d"]}), 1),
    "numbers": (pa.table({"n": [1, None, 3]}), 1),
}


@pytest.mark.parametrize(("table", "count"), LATER.values(), ids=LATER)
def test_bad_rows_are_those_that_the_job_refuses(tmp_path, table, count):
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=1)
    said = seqflow("init", "x.parquet", folder=tmp_path).stdout
    run = json.loads(seqflow("run", "job.toml", "--json", folder=tmp_path).stdout)
    assert run["bad_rows"] == count
    assert f"looked at all {table.num_rows} rows: {count} bad row{'s' * (count > 1)}\n" in said
    assert "null value" in said


def test_a_tokenizer_that_the_job_cannot_use_is_named(tmp_path):
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text("mine")
    (tmp_path / "c.jsonl").write_text('{"messages": [{"role": "user", "content": "x"}]}\n')
    said = seqflow("init", "c.jsonl", folder=tmp_path).stdout
    assert "job.toml does not run yet: " in said
    assert "tokenizer" in said.partition("job.toml does not run yet: ")[2]


def test_columns_without_a_type_are_told(tmp_path):
    """The job packs another column, which would otherwise be mistaken for the one that has no type."""
    lines = [{"items": ["x"] if row == 7 else [row], "times": [10, 20]} for row in range(50)]
    (tmp_path / "clicks.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    done = seqflow("init", "clicks.jsonl", folder=tmp_path)
    assert "'items' is of several types" in done.stdout
    assert 'columns = ["times"]' in (tmp_path / "job.toml").read_text()
