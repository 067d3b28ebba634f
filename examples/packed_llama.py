"""A tiny Llama and packed batches for it: the parts that the four programs `train_*.py` for trainers share.

Hugging Face's models shift labels by themselves: the label of a token is the token, -100 at the start of each
document (`first_fills`) and in padding. `net` selects the inputs of the model, by the names of its arguments.
No mask is passed: this model separates the documents of a row by their `position_ids`. Run alone, the program changes
the first document of each row, and looks at the logits of the others.
"""

import numpy as np
import pyarrow as pa
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import seqflow as sf

rng = np.random.default_rng(0)
lengths = np.minimum(rng.lognormal(2.5, 0.8, 200).astype(int) + 2, 64)
docs = pa.table({"input_ids": [(np.arange(n) * 7 + rng.integers(97)) % 97 for n in lengths]})

PREPARE = "labels = int64(input_ids.values)\nreturn input_ids.values, input_ids.lengths, labels"


def loader_of(table=docs, net="return input_ids, labels, position_ids", **options):
    """Return a loader of four packed rows a batch."""
    batch = sf.Packed(
        64, ("input_ids", "labels"), fills={"labels": -100}, first_fills={"labels": -100}, rows=4
    )
    return sf.Loader(table, prepare=PREPARE, batch=batch, net=net, **options)


def fresh():
    """Return the model with the same random weights each time."""
    torch.manual_seed(0)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=97,
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=1,
            num_attention_heads=2,
            max_position_embeddings=64,
            use_cache=False,
        )
    )


if __name__ == "__main__":
    model = fresh().eval()
    batch = next(iter(loader_of(net=None).to("torch", int64=True)))
    ids, first = batch["input_ids"], batch["segment_ids"] == 1
    with torch.no_grad():
        before, after = (
            model(input_ids=of, position_ids=batch["position_ids"]).logits
            for of in (ids, torch.where(first, (ids + 1) % 97, ids))
        )
    moved = (after - before).abs().amax(dim=2)
    print("documents are apart" if moved[~first].max() < 1e-3 < moved[first].max() else "documents leak")
