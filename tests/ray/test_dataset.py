"""A loader or a job as a dataset of Ray Data: the same rows, planned once, refused by name where it cannot be."""

import pickle
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marks import one_in, thorough
from ray_session import ray_session

import seqflow as sf
from seqflow.errors import OpError, OpTypeError, ProviderError
from seqflow.job import Job
from seqflow.job.opening import open_loader
from seqflow.ray.planning import plan_epoch
from seqflow.ray.sending import setup_of_job, setup_of_loader

PLANS = {
    "packed": {"batch": sf.Packed(64), "columns": ["a"]},
    "packed trees": {"batch": sf.Packed(64, ["a"], share="prefix", min_shared=2)},
    "rows": {"batch": sf.Rows(7)},
    "rows beyond a window": {"batch": sf.Rows(150)},
    "budget": {"batch": sf.TokenBudget(90)},
    "filtered": {"batch": sf.Rows(7), "where": "a.lengths > 3"},
    "prepared": {"batch": sf.Rows(6), "prepare": "t, n = truncate(a.values, a.lengths, max_length=3)\nreturn x, t, n"},
    "of fixed size": {"batch": sf.Rows(8), "net": "t, m = pad(a.values, a.lengths, max_length=32)\nreturn x, t"},
    "dictionary": {"batch": sf.Rows(9), "columns": ["d", "x"]},
    "by a vocabulary": {"batch": sf.Rows(9), "net": "y = gather(table, x)\nreturn x, y"},
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four files of five row groups; what a dictionary column counts differs from file to file."""
    folder = tmp_path_factory.mktemp("rows")
    random = np.random.default_rng(0)
    for file in range(4):
        rows = [list(range(n)) for n in random.integers(0, 30, 100)]
        names = pa.array([f"{file}-{i % 3}" for i in range(100)]).dictionary_encode()
        columns = {"x": np.arange(100) + 100 * file, "a": pa.array(rows, pa.list_(pa.int32())), "d": names}
        pq.write_table(pa.table(columns), folder / f"{file}.parquet", row_group_size=20)
    np.save(folder / "table.npy", np.arange(400) * 3)
    return folder


def loader_of(folder: Path, name: str, **options: object) -> sf.Loader:
    options = {"columns": ["x", "a"], **PLANS[name], **options}
    if name == "by a vocabulary":
        options["constants"] = {"table": np.load(folder / "table.npy", mmap_mode="r")}
    options = {"window": 3000, "threads": 0, "rank": 0, "world_size": 1, **options}
    return sf.Loader(str(folder / "*.parquet"), **options)  # type: ignore[arg-type]


def rows_of(loader: sf.Loader, epoch: int = 0) -> list[object]:
    loader.set_epoch(epoch)
    return [row for batch in loader for row in sf.to_arrow(batch).to_pylist()]


def job_of(folder: Path, **sections: object) -> Job:
    (folder / "ray_ops_of_a_job.py").write_text(
        'import numpy as np\n\nimport seqflow as sf\n\n\n@sf.op("x[B, *d] -> y[B, *d]")\n'
        'def ray_double(x):\n    """Twice as much."""\n    return x * 2\n'
    )
    tables = {
        "source": {"paths": "*.parquet", "columns": ["x", "a"]},
        "order": {"window": 3000, "shuffle": True},
        "batch": {"kind": "rows", "n": 9},
        "imports": ["ray_ops_of_a_job"],
        "net": {"net": "y = ray_double(x)\nz = gather(table, x)\nreturn y, z"},
        "constants": {"table": "table.npy"},
        "output": {"path": "out.parquet"},
    }
    return Job.from_dict(tables | sections, folder)


# Without Ray: the plan, what is sent, and what a task makes of it


def made(setup: object, plan: object, most: int, **options: bool) -> list[object]:
    """The rows of the tasks, each made by what was sent, as another process has it."""
    read = pickle.loads(setup.prepare)()
    tasks = [pickle.loads(pickle.dumps(task)) for task in plan.tasks(most, **options)]
    assert len(tasks) <= most
    blocks = [block for task in reversed(tasks) for block in reversed(list(read(task)))]
    return [row for block in reversed(blocks) for row in block.to_pylist()]


@pytest.mark.slow
@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("most", [1, 3, 1000])
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("name", PLANS)
def test_tasks_make_the_rows_of_the_epoch(folder: Path, name: str, shuffle: bool, most: int) -> None:
    loader = loader_of(folder, name, shuffle=shuffle)
    schema = sf.to_arrow(loader.empty_batch()).schema
    setup, plan = setup_of_loader(loader, schema, pickle.dumps), plan_epoch(loader, 1)
    assert loader.epoch == 0
    assert made(setup, plan, most) == rows_of(loader_of(folder, name, shuffle=shuffle), 1)


@pytest.mark.slow
@pytest.mark.each_choice(pairs=False)
@pytest.mark.parametrize("name", ["rows", "rows beyond a window", "budget", "packed"])
@pytest.mark.parametrize(
    "balance", [None, sf.Balance(group=2, linear=3, pool=2), sf.Balance(group=2, linear=3, pool="window")]
)
@pytest.mark.parametrize("skip", [[], [(2, 5), (7, 9, 1), (30, 10**12)]])
def test_tasks_skip_and_keep_the_order_of_the_loader(
    folder: Path, name: str, balance: object, skip: object
) -> None:
    plan = replace(PLANS[name]["batch"], balance=balance)
    for epoch in (0, 1):
        loader = loader_of(folder, name, batch=plan, skip=skip, shuffle=True)
        setup = setup_of_loader(loader, sf.to_arrow(loader.empty_batch()).schema, pickle.dumps)
        expected = rows_of(loader_of(folder, name, batch=plan, skip=skip, shuffle=True), epoch)
        assert made(setup, plan_epoch(loader, epoch), 5, in_order=True) == expected
        found = made(setup, plan_epoch(loader, epoch), 5)
        assert sorted(map(str, found)) == sorted(map(str, expected))
        assert balance or found == expected


def test_tasks_make_the_rows_of_a_job(folder: Path) -> None:
    job = job_of(folder)
    loader = open_loader(job)
    setup = setup_of_job(job, loader, sf.to_arrow(loader.empty_batch()).schema, pickle.dumps)
    assert made(setup, plan_epoch(loader, 0), 4) == rows_of(loader)


def test_tasks_have_about_as_many_bytes(folder: Path) -> None:
    plan = plan_epoch(loader_of(folder, "budget"), 0)
    sizes = [sum(window.nbytes for window in task.part.windows) for task in plan.tasks(4)]
    assert len(sizes) == 4
    assert sum(sizes) == plan.nbytes
    assert max(sizes) < 2 * min(sizes)


def test_what_travels_is_small(folder: Path) -> None:
    """Neither rows nor the values of mapped arrays nor the metadata of other files."""
    loader = loader_of(folder, "by a vocabulary")
    setup = setup_of_loader(loader, sf.to_arrow(loader.empty_batch()).schema, pickle.dumps)
    assert len(setup.prepare) < 4000
    assert b"1.parquet" not in setup.prepare


def test_a_file_that_has_changed_is_an_error_of_the_task(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    loader = loader_of(tmp_path, "rows")
    setup = setup_of_loader(loader, sf.to_arrow(loader.empty_batch()).schema, pickle.dumps)
    tasks = list(plan_epoch(loader, 0).tasks(4))
    read = pickle.loads(setup.prepare)()
    shutil.copyfile(tmp_path / "1.parquet", tmp_path / "0.parquet")
    with pytest.raises(ProviderError, match=r"0\.parquet changed while it was read") as caught:
        list(read(tasks[0]))
    assert "need a file system that all share" in caught.value.__notes__[0]
    (tmp_path / "0.parquet").unlink()
    with pytest.raises(ProviderError, match=r"0\.parquet changed while it was read: it is gone"):
        list(read(tasks[0]))


def test_a_task_without_batches_makes_an_empty_table(folder: Path) -> None:
    loader = loader_of(folder, "rows", where="a.lengths > 100")
    schema = sf.to_arrow(loader.empty_batch()).schema
    read = pickle.loads(setup_of_loader(loader, schema, pickle.dumps).prepare)()
    first, *_ = plan_epoch(loader, 0).tasks(4)
    assert list(read(first)) == [schema.empty_table()]


def own(record: object) -> object:
    return {"y": record["x"]}


def stream(folder: Path) -> sf.Loader:
    return sf.Loader(pa.table({"x": [1]}).to_reader(), batch=1)


REFUSED = {
    "is a stream of this process, which no other can read": stream,
    "the loader is rank 1 of 2, and Ray Data deals rows itself": lambda f: loader_of(f, "rows", rank=1, world_size=2),
    "the loader has 2 streams": lambda f: loader_of(f, "rows", streams=2),
    "steps_per_epoch counts batches": lambda f: loader_of(f, "rows", steps_per_epoch=2),
    r"bad rows would go to 'bad\.parquet'": lambda f: loader_of(f, "rows", bad_rows=sf.BadRows("quarantine", "bad.parquet")),
    "the result of own is unknown": lambda f: loader_of(f, "rows", net=own),
    r"axis 1 of a is a\.shape\[1\], which depends on the data": lambda f: loader_of(f, "rows", pad=0),
    r"axis 1 of t is max\(a\.lengths\), which depends": lambda f: loader_of(f, "rows", net="t, m = pad(a.values, a.lengths)"),
}  # fmt: skip


@pytest.mark.parametrize("message", REFUSED)
def test_what_tasks_cannot_make_is_refused(folder: Path, message: str) -> None:
    with pytest.raises(OpError, match=message):
        sf.ray.dataset(REFUSED[message](folder))


def test_a_job_whose_bad_rows_go_to_a_file_is_refused(folder: Path) -> None:
    job = job_of(folder, bad_rows={"policy": "quarantine", "path": "bad.arrow"})
    with pytest.raises(OpError, match=r"bad rows would go to .*bad\.arrow.*\n.*or run it as a job"):
        sf.ray.dataset(job)


def test_sources_are_loaders_and_jobs(folder: Path) -> None:
    with pytest.raises(OpTypeError, match=r"source is dict, expected a Loader, a Job, or a job's file$"):
        sf.ray.dataset({"x": [1]})
    mix = sf.Mix({"a": loader_of(folder, "rows")}, weights={"a": 1})
    with pytest.raises(OpTypeError, match=r"source is Mix, .*\n  make a dataset of each of its loaders"):
        sf.ray.dataset(mix)
    with pytest.raises(OpTypeError, match=r"schema is dict, expected a pyarrow\.Schema"):
        sf.ray.dataset(loader_of(folder, "rows"), schema={"x": "int64"})


def test_counts_are_those_of_our_datasets() -> None:
    with pytest.raises(OpTypeError, match=r"stats: dataset is int, expected one that seqflow\.ray\.dataset"):
        sf.ray.stats(3)


def test_what_cannot_be_pickled_is_named(folder: Path) -> None:
    loader = loader_of(folder, "rows", net=lambda record: record)
    with pytest.raises(OpError, match=r"the loader cannot be sent to other processes: .*pickle"):
        setup_of_loader(loader, pa.schema([]), pickle.dumps)


def test_ops_of_the_main_program_are_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = job_of(folder)
    loader = open_loader(job)
    assert setup_of_loader(loader, pa.schema([]), pickle.dumps).prepare.count(b"ray_ops_of_a_job")
    monkeypatch.setattr(sf.registry.get("ray_double").function, "__module__", "__main__")
    with pytest.raises(OpError, match="the op 'ray_double' is defined in the main program"):
        setup_of_loader(loader, pa.schema([]), pickle.dumps)


def test_a_missing_ray_is_an_error_that_says_how_to_get_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ray", "ray.data"):
        monkeypatch.setitem(sys.modules, name, None)  # as where it is not installed
    with pytest.raises(
        OpError, match=r"Ray Data cannot be imported: .*\n  pip install \'\.\[ray\]\' in a clone"
    ):
        sf.ray.dataset(loader_of(folder, "rows"))


# With Ray

with_ray = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]


@pytest.fixture(scope="module")
def data():
    """Ray Data on two CPUs, which keeps the order of blocks."""
    pytest.importorskip("ray.data", exc_type=ImportError)
    with ray_session(2) as ray:
        context = ray.data.DataContext.get_current()
        context.execution_options.preserve_order, context.enable_progress_bars = True, False
        yield ray.data


class TestWithRay:
    pytestmark = with_ray

    @pytest.mark.parametrize("name", one_in(4, PLANS))
    def test_the_dataset_has_the_rows_of_the_epoch(self, data, folder, name):
        dataset = sf.ray.dataset(loader_of(folder, name, shuffle=True), epoch=1)
        loader = loader_of(folder, name, shuffle=True)
        assert dataset.schema().base_schema == sf.to_arrow(loader.empty_batch()).schema
        assert dataset.size_bytes() > 0
        assert dataset.take_all() == rows_of(loader, 1)
        assert dataset.limit(3).count() == 3

    @pytest.mark.parametrize("blocks", [3, *thorough(1, 50)])
    def test_its_tasks_are_as_many_as_asked_for(self, data, folder, blocks):
        dataset = sf.ray.dataset(loader_of(folder, "rows"), override_num_blocks=blocks)
        assert dataset.take_all() == rows_of(loader_of(folder, "rows"))

    def test_a_job_or_its_file_is_a_dataset(self, data, folder):
        (folder / "job.toml").write_text(
            '[source]\npaths = "*.parquet"\ncolumns = ["a"]\n[batch]\nkind = "packed"\ncapacity = 64\n'
            '[output]\npath = "out.parquet"\n'
        )
        rows = rows_of(open_loader(Job.read(folder / "job.toml")))
        assert sf.ray.dataset(folder / "job.toml").take_all() == rows
        assert not (folder / "out.parquet").exists()
        assert sf.ray.dataset(job_of(folder)).take_all() == rows_of(open_loader(job_of(folder)))

    def test_nothing_is_read_before_the_rows_are_asked_for(self, data, folder, tmp_path):
        shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
        dataset = sf.ray.dataset(loader_of(tmp_path, "rows"))
        shutil.copyfile(tmp_path / "1.parquet", tmp_path / "0.parquet")
        assert dataset.schema().names == ["x", "a"]
        with pytest.raises(ProviderError, match=r"0\.parquet changed while it was read"):
            dataset.take_all()

    def test_bad_rows_are_errors_or_left_out(self, data, tmp_path):
        pq.write_table(pa.table({"x": [1, None, 3]}), tmp_path / "in.parquet")
        with pytest.raises(ProviderError, match=r"in\.parquet, block 0, row 1, column 'x': null value"):
            sf.ray.dataset(sf.Loader(tmp_path / "in.parquet")).take_all()
        left = sf.ray.dataset(sf.Loader(tmp_path / "in.parquet", bad_rows="skip"))
        for _ in range(2):
            assert left.take_all() == [{"x": 1}, {"x": 3}]
            assert (sf.ray.stats(left).bad_rows, sf.ray.stats(left).rows) == (1, 2)

    def test_bad_rows_of_all_tasks_are_counted(self, data, tmp_path):
        for number in range(4):
            pq.write_table(pa.table({"x": [number, None, None]}), tmp_path / f"{number}.parquet")
        loader = sf.Loader(str(tmp_path / "*.parquet"), bad_rows="skip", window=1)
        dataset = sf.ray.dataset(loader, override_num_blocks=4)
        assert dataset.count() == 4
        stats = sf.ray.stats(dataset)
        assert (stats.bad_rows, stats.rows, stats.reasons.total()) == (8, 4, 8)
        few = sf.Loader(str(tmp_path / "*.parquet"), bad_rows=sf.BadRows("skip", max=5), window=1)
        with pytest.raises(ProviderError, match=r"bad_rows: \d of \d+ are bad, expected at most 5 \(max\)"):
            sf.ray.dataset(few, override_num_blocks=4).take_all()

    def test_functions_need_a_schema(self, data, folder):
        loader = loader_of(folder, "rows", net=lambda record: {"y": record["x"] + 1})
        dataset = sf.ray.dataset(loader, schema=pa.schema({"y": pa.int64()}))
        assert dataset.take(3) == [{"y": 1}, {"y": 2}, {"y": 3}]
        with pytest.raises(ProviderError, match="the columns are y: int64, expected z: int64"):
            sf.ray.dataset(loader, schema=pa.schema({"z": pa.int64()})).take_all()

    def test_no_rows(self, data):
        dataset = sf.ray.dataset(sf.Loader(pa.table({"x": pa.array([], pa.int64())})))
        assert (dataset.schema().names, dataset.count()) == (["x"], 0)

    def test_other_processes_may_read_it(self, data, folder):
        import ray

        dataset = sf.ray.dataset(loader_of(folder, "rows"))
        count = ray.remote(num_cpus=0)(lambda one: one.count())
        assert ray.get(count.remote(dataset)) == 400
