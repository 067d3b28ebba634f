"""Inside workers of Ray Train a loader gets the batches of its worker."""

import json
import os
import subprocess
import sys

import pytest
from marks import thorough
from ray_session import ray_session

VARIABLES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE")
IN_TRAINING = """
import json, os, sys
import ray.train
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
import seqflow as sf

def ranks_in(environment, options):
    os.environ.update(environment)
    try:
        ranks = sf.Ranks(**options)
        return [ranks.rank, ranks.world_size]
    except sf.OpError as error:
        return str(error)
    finally:
        for name in environment:
            del os.environ[name]

def loop():
    found.extend(ranks_in(*case) for case in cases)

cases = json.loads(sys.argv[1])
found = [ranks_in({"RANK": "2", "WORLD_SIZE": "4"}, {})]
DataParallelTrainer(loop, scaling_config=ray.train.ScalingConfig(num_workers=0)).fit()
print(json.dumps(found))
"""
RANKS = [
    ({}, {}, [0, 1]),
    ({"RANK": "0", "WORLD_SIZE": "1"}, {}, [0, 1]),
    ({"LOCAL_RANK": "0"}, {}, [0, 1]),
    ({"RANK": "1", "WORLD_SIZE": "2"}, {"rank": 3, "world_size": 4}, [3, 4]),
    ({}, {"rank": 0}, [0, 1]),
    ({}, {"world_size": 4}, [0, 4]),
]
ERRORS = [
    ({"RANK": "1", "WORLD_SIZE": "2"}, {}, "has RANK = 1, but this is worker 0 of 1 of Ray Train"),
    ({"WORLD_SIZE": "2"}, {}, "has WORLD_SIZE = 2, but this is worker 0 of 1 of Ray Train"),
    ({"WORLD_SIZE": "2"}, {"rank": 0}, "has WORLD_SIZE = 2, but this is worker 0 of 1 of Ray Train"),
    ({"RANK": "one"}, {}, "RANK is 'one', expected an integer"),
]


def run(code, *arguments):
    environment = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def found():
    """Ranks of a process that has imported Ray Train, outside of a trainer, and then as its only worker."""
    pytest.importorskip("ray.train", exc_type=ImportError)
    return run(IN_TRAINING, json.dumps([case[:2] for case in RANKS + ERRORS]))


@pytest.mark.slow
def test_outside_of_workers_the_environment_says_the_rank(found):
    assert found[0] == [2, 4]


@pytest.mark.slow
def test_in_workers_the_context_says_it_where_arguments_do_not(found):
    assert found[1 : 1 + len(RANKS)] == [expected for _, _, expected in RANKS]


@pytest.mark.slow
def test_an_environment_that_contradicts_the_context_is_an_error(found):
    for message, (_, _, expected) in zip(found[1 + len(RANKS) :], ERRORS, strict=True):
        assert expected in message


@pytest.mark.slow
def test_ray_is_not_imported_to_ask():
    code = "import sys, pyarrow as pa, seqflow as sf; sf.Loader(pa.table({'x': [1]})); print(len({'ray'} & set(sys.modules)))"
    assert run(code) == 0


def train(trainer, folder, **environment):
    """What each of two workers of a trainer saw."""
    from ray.train import RunConfig, ScalingConfig

    rows = {"x": list(range(20))}

    def loop(config):
        import json
        import os

        import pyarrow as pa

        import seqflow as sf

        os.environ.update(config["environment"])
        table = pa.table(config["rows"])
        loader = sf.Loader(table, batch=2)
        mix = sf.Mix(
            {"a": sf.Loader(table, batch=2), "b": sf.Loader(table, batch=2)}, weights={"a": 1, "b": 1}
        )
        seen = {"rank": loader.rank, "mix": [mix.rank, mix.world_size]}
        seen["x"] = [x for batch in loader for x in batch["x"].tolist()]
        if config["torch"]:
            import seqflow.torch

            seen["torch"] = [
                x for batch in seqflow.torch.iterable(sf.Loader(table, batch=2)) for x in batch["x"].tolist()
            ]
        with open(f"{config['folder']}/{loader.rank}.json", "w") as file:
            json.dump(seen, file)

    config = {
        "rows": rows,
        "folder": str(folder),
        "environment": environment,
        "torch": "Torch" in trainer.__name__,
    }
    run = RunConfig(storage_path=str(folder / "runs"))
    trainer(loop, train_loop_config=config, scaling_config=ScalingConfig(num_workers=2), run_config=run).fit()
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in (0, 1)]


EXPECTED = [[x for batch in range(rank, 10, 2) for x in (2 * batch, 2 * batch + 1)] for rank in (0, 1)]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("kind", thorough("data parallel", "torch"))
def test_two_workers_get_the_batches_in_turn(tmp_path, kind):
    """A trainer that sets no variables, and that of torch, which does, and which an example has, too."""
    pytest.importorskip("ray.train", exc_type=ImportError)
    pytest.importorskip("torch")
    if kind == "torch":
        from ray.train.torch import TorchTrainer as Trainer
    else:
        from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer as Trainer

    with ray_session(3):  # one CPU is the controller's
        seen = train(Trainer, tmp_path)
    assert [one["rank"] for one in seen] == [0, 1]
    assert [one["mix"] for one in seen] == [[0, 2], [1, 2]]
    assert [one["x"] for one in seen] == EXPECTED
    if kind == "torch":
        assert [one["torch"] for one in seen] == EXPECTED
