"""Packs documents with images, and compares the logits of packed rows with those of each piece alone (Qwen2-VL).

`prepare` gives each image as many placeholders as it has tokens, and the positions of the model. `Packed` cuts long
documents between their images, which travel along. `net` makes patches of the images of a batch. With transformers
and torch the logits of all pieces are compared with those of each piece alone; then two images are exchanged, which
raises no error and must change them. Without these packages, only the batches are shown.
"""

from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa

import seqflow as sf

IMAGE, BEGIN, END = 90, 91, 92  # ids of the placeholder and of the tokens around an image
PREPARE = f"""
images.values.grid = image_grids(images.values.size, patch=4, merge=2, min_pixels=64, max_pixels=4096)
_, high, wide = split(images.values.grid, parts=3, axis=1)
sizes = reduce_sum(high * wide, axes=1) // 4
ids.values, ids.lengths, _ = expand_placeholders(
    tokens.values, sizes, images.lengths, tokens.lengths, placeholder={IMAGE})
images.values.start, images.values.extent = image_spans(
    ids.values, sizes, images.lengths, ids.lengths, placeholder={IMAGE})
mrope = mrope_positions(images.values.start, images.values.grid, images.lengths, ids.lengths, after="side")
labels = where(ids.values == {IMAGE}, -100, ids.values)
return ids.values, ids.lengths, mrope, labels, images.lengths, images.values.grid, images.values.size, \\
    images.values.start, images.values.extent, images.values.pixels.lengths, images.values.pixels.values
"""
NET = """
patches.values, patches.lengths, _ = patchify(
    images.values.pixels.values, images.values.size, images.values.pixels.lengths, patch=4)
return ids, mrope, labels, segment_ids, position_ids, pieces, piece_lengths, images.lengths, images.values.grid, \\
    patches.values, patches.lengths
"""


def documents(count: int = 24) -> pa.Table:
    """Texts with one placeholder for each of their images, of random pixels."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(count):
        tokens, images = rng.integers(1, 80, rng.integers(2, 20)).tolist(), []
        for _ in range(rng.choice([0, 0, 1, 2, 5])):
            height, width = rng.choice([8, 16, 24], 2).tolist()
            pixels = rng.integers(0, 256, (height * width, 3)).tolist()
            images.append({"size": [height, width], "pixels": pixels})
            tokens += [BEGIN, IMAGE, END, *rng.integers(1, 80, rng.integers(2, 20)).tolist()]
        rows.append({"tokens": tokens, "images": images})
    pixels = pa.list_(pa.list_(pa.uint8(), 3))
    image = pa.struct([("size", pa.list_(pa.int32(), 2)), ("pixels", pixels)])
    return pa.Table.from_pylist(
        rows, pa.schema([("tokens", pa.list_(pa.int64())), ("images", pa.list_(image))])
    )


def tiny_model() -> Any:
    """A Qwen2-VL with random weights."""
    import torch
    from transformers import Qwen2VLConfig, Qwen2VLForConditionalGeneration

    torch.manual_seed(0)
    text = {
        "vocab_size": 100, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2,
        "num_attention_heads": 2, "num_key_value_heads": 2, "max_position_embeddings": 512, "pad_token_id": 0,
        "bos_token_id": 1, "eos_token_id": 2,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]},
    }  # fmt: skip
    vision = {
        "depth": 2, "embed_dim": 16, "hidden_size": 32, "num_heads": 2, "mlp_ratio": 2, "patch_size": 4,
        "temporal_patch_size": 2, "spatial_merge_size": 2,
    }  # fmt: skip
    config = Qwen2VLConfig(
        text_config=text, vision_config=vision,
        image_token_id=IMAGE, vision_start_token_id=BEGIN, vision_end_token_id=END,
    )  # fmt: skip
    return Qwen2VLForConditionalGeneration(config).eval()


def logits_of(model: Any, ids: Any, position_ids: Any, grids: Any, patches: Any) -> Any:
    """The logits of rows; an encoder refuses a batch without images, which leaves them out."""
    import torch

    images = {} if not len(grids) else {"image_grid_thw": grids, "pixel_values": patches.float() / 127.5 - 1}
    with torch.no_grad():
        return model(input_ids=ids, position_ids=position_ids, use_cache=False, **images).logits


def largest_difference(model: Any, batch: Any, patches: Any) -> float:
    """Between the logits of packed rows with these patches, and those of each piece alone with its own."""
    import torch

    from seqflow.torch import position_ids

    places = position_ids(batch, mrope="mrope")
    grids = batch["images.values.grid"]
    packed = logits_of(model, batch["ids"], places, grids, patches)
    of_image = torch.split(batch["patches.values"], batch["patches.lengths"].tolist())
    pieces = [(row, k + 1) for row, count in enumerate(batch["pieces"].tolist()) for k in range(count)]
    worst, start = 0.0, 0
    for (row, segment), count in zip(pieces, batch["images.lengths"].tolist(), strict=True):
        here, own = batch["segment_ids"][row] == segment, slice(start, start + count)
        pixels = torch.cat([batch["patches.values"][:0], *of_image[own]])
        alone = logits_of(
            model, batch["ids"][row, here][None], places[:, row, here][:, None], grids[own], pixels
        )
        worst = max(worst, float((packed[row, here] - alone[0]).abs().max()))
        start += count
    return worst


def exchanged(batch: Any) -> Any:
    """The patches with two images of one size exchanged."""
    import torch

    parts = list(torch.split(batch["patches.values"], batch["patches.lengths"].tolist()))
    sizes = batch["images.values.grid"].tolist()
    i, j = next((i, j) for j in range(len(parts)) for i in range(j) if sizes[i] == sizes[j])
    parts[i], parts[j] = parts[j], parts[i]
    return torch.cat(parts)


def main() -> None:
    plan = sf.Packed(
        64,
        columns=["ids", "mrope", "labels"],
        along={"images": sf.Along("start", "extent")},
        fills={"labels": -100},
        first_fills={"labels": -100},
        rows=4,
    )
    loader = sf.Loader(documents(), prepare=PREPARE, batch=plan, net=NET, shuffle=True)
    batches = list(loader)
    for batch in batches:
        names = {"pieces": "piece_lengths", "images": "images.values.grid", "patches": "patches.values"}
        counts = ", ".join(f"{len(batch[name])} {of}" for of, name in names.items())
        print(f"{batch.num_rows} rows, {counts}")
    print(f"{loader.stats().fill:.1%} of the packed rows are tokens")
    if find_spec("torch") is None or find_spec("transformers") is None:
        print("torch and transformers are not installed: no model to compare with")
        return
    model = tiny_model()
    tensors = list(loader.to("torch", int64=True))
    worst = max(largest_difference(model, batch, batch["patches.values"]) for batch in tensors)
    wrong = largest_difference(model, tensors[0], exchanged(tensors[0]))
    print(f"packed and alone differ by {worst:.0e}, with two images exchanged by {wrong:.2f}")
    if worst > 1e-6 or wrong < 0.01:
        raise SystemExit("packed rows are not what each document is alone")


if __name__ == "__main__":
    main()
