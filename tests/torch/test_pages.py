"""Programs of the pages on PyTorch that no doctest runs."""

import pyarrow as pa
import pytest
from pages import code_of

import seqflow as sf

pytest.importorskip("torch")


def test_a_loader_gives_tensors_and_a_dataset_as_its_page_says():
    import seqflow.torch

    loader = sf.Loader(pa.table({"tokens": [[1, 2], [3]]}), batch=2, pad={"tokens": sf.Pad()})
    scope = {"loader": loader, "model": lambda tokens, mask: (tokens * mask).sum(), "seqflow": seqflow}
    exec(code_of("docs/loader.md", 'for batch in loader.to("torch"'), scope)
    assert scope["loss"].item() == 6
    loader.set_epoch(0)
    assert [batch["tokens"].shape for batch in scope["dataset"]] == [(2, 2)]
