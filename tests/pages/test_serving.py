"""The blocks of the pages on serving and on shared sequences that need servers, certificates or other packages."""

import sys
from types import ModuleType, SimpleNamespace

import pyarrow as pa
import pytest
from pages import code_of
from typer.main import get_command

import seqflow as sf
from seqflow.cli import app


@pytest.fixture
def url():
    """The address of a server, in place of those of the page."""
    loader = sf.Loader(pa.table({"n": range(40)}), batch=2, rank=0, world_size=1)
    with sf.serve(loader, port=0) as server:
        yield server.url


def test_a_rank_takes_its_batches_from_servers(url):
    code = (
        code_of("docs/serving.md", "import seqflow")
        .replace("flight://a:8815,b:8815", url)
        .replace("...", "taken.append(batch)")
    )
    taken = []
    exec(code, {"sf": sf, "taken": taken})
    assert [batch.number for batch in taken] == [0, 8]  # the last round is incomplete


def test_a_client_of_other_machines_gives_its_token(url, tmp_path, monkeypatch):
    (tmp_path / "token").write_text("t\n")
    monkeypatch.chdir(tmp_path)
    code = (
        code_of("docs/serving.md", "from pathlib")
        .replace("flight+tls://batches:8815", url)
        .replace(', tls_root="ca.pem"', "")
    )
    exec(code, names := {"sf": sf})
    assert next(iter(names["batches"])).number == 0


def test_a_worker_of_ray_trains_on_batches_of_servers(url):
    pytest.importorskip("torch")
    code = (
        code_of("docs/serving.md", "def train")
        .replace("flight+tls://batches:8815", url)
        .replace("...", "taken.append(batch)")
    )
    exec(code, names := {"sf": sf, "taken": []})
    names["train"]({"epochs": 2, "token": None})
    assert len(names["taken"]) == 40


def test_the_deployment_gives_options_that_the_command_has():
    yaml = pytest.importorskip("yaml")
    deployment, service = yaml.safe_load_all(code_of("docs/serving.md", "apiVersion"))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    command, name, _, *options = container["args"]
    assert (command, name) == ("seqflow", "serve")
    known = {option for one in get_command(app).commands["serve"].params for option in one.opts}
    assert {option for option in options if option.startswith("--")} <= known
    assert container["ports"][0]["containerPort"] == service["spec"]["ports"][0]["port"] == 8815


def test_a_keyed_jagged_tensor_has_the_index_of_its_rows(monkeypatch):
    """Its constructor is the one that TorchRec documents."""
    torch = pytest.importorskip("torch")

    def made(keys, values, *, lengths, stride_per_key_per_rank, inverse_indices):
        return SimpleNamespace(**locals())

    for name in ("torchrec", "torchrec.sparse", "torchrec.sparse.jagged_tensor"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["torchrec.sparse.jagged_tensor"].KeyedJaggedTensor = made
    exec(code_of("docs/shared-sequences.md", "from torchrec"), names := {"torch": torch})
    one = torch.tensor([1, 2, 3]), torch.tensor([2, 1]), torch.tensor([0, 1, 0])
    other = torch.tensor([7]), torch.tensor([1]), torch.tensor([0, 0, 0])
    found = names["keyed"]({"a": one, "b": other})
    assert found.keys == ["a", "b"]
    assert found.values.tolist() == [1, 2, 3, 7]
    assert found.lengths.tolist() == [2, 1, 1]
    assert found.stride_per_key_per_rank == [[2], [1]]
    assert found.inverse_indices[1].tolist() == [[0, 1, 0], [0, 0, 0]]
