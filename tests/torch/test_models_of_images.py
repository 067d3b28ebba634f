"""Packed rows of text with images through tiny models of transformers: as if each document was alone."""

import functools

import numpy as np
import pytest

import seqflow.torch as st_torch
from seqflow import ops

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

IMAGE, VIDEO, BEGIN, END = 90, 91, 92, 93
TEXT = {
    "vocab_size": 100, "hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2,
    "num_key_value_heads": 2, "max_position_embeddings": 512, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
VISION = {"depth": 2, "num_heads": 2, "patch_size": 4, "temporal_patch_size": 2, "spatial_merge_size": 2}
KINDS = {
    "Qwen2VL": ({}, {"embed_dim": 16, "hidden_size": 32, "mlp_ratio": 2}),
    "Qwen2_5_VL": (
        {},
        {"hidden_size": 16, "out_hidden_size": 32, "intermediate_size": 32, "window_size": 16, "fullatt_block_indexes": [1]},
    ),
    "Qwen3VL": (
        {"head_dim": 16, "mrope_interleaved": True},
        {"hidden_size": 16, "out_hidden_size": 32, "intermediate_size": 32, "num_position_embeddings": 16, "deepstack_visual_indexes": [0]},
    ),
}  # fmt: skip


def of_config(config, attention):
    torch.manual_seed(0)
    model = transformers.AutoModelForImageTextToText.from_config(config, attn_implementation=attention)
    return model.eval()


@functools.cache
def model_of(kind, attention="sdpa"):
    more, vision = KINDS[kind]
    interleaved = {name: more[name] for name in more if name.startswith("mrope")}
    rope = {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3], **interleaved}
    config = getattr(transformers, f"{kind}Config")(
        text_config={**TEXT, **more, "rope_parameters": rope}, vision_config=VISION | vision,
        image_token_id=IMAGE, video_token_id=VIDEO, vision_start_token_id=BEGIN, vision_end_token_id=END,
    )  # fmt: skip
    return of_config(config, attention)


def documents():
    """Ids of texts with one placeholder for each image, and the images of each text; one has none."""
    rng = np.random.default_rng(3)
    sizes = [[(16, 24), (24, 16)], [], [(8, 8)], [(24, 16), (16, 24), (8, 16)]]
    texts = [
        [*rng.integers(3, 80, 4).tolist(), *(one for _ in of_text for one in (BEGIN, IMAGE, END, 5))]
        for of_text in sizes
    ]
    return texts, [[rng.integers(0, 256, (*size, 3), np.uint8) for size in of_text] for of_text in sizes]


def inputs_of(images):
    """The patches and grids of images, in the order in which they lie in the rows; nothing if there are none."""
    if not images:
        return {}
    sizes = np.array([image.shape[:2] for image in images])
    pixels = np.concatenate([image.reshape(-1, 3) for image in images])
    patches, _, grids = ops.patchify(pixels, sizes, sizes.prod(1), patch=4)
    return {
        "pixel_values": torch.from_numpy(patches).float() / 127.5 - 1,
        "image_grid_thw": torch.from_numpy(grids),
    }


def expanded():
    """Tokens with as many placeholders as each image has, positions of three dimensions, lengths."""
    texts, images = documents()
    counts = np.array([len(one) for one in images])
    sizes = np.array([image.shape[:2] for of_text in images for image in of_text])
    grids = np.insert(sizes // 4, 0, 1, axis=1)
    tokens, lengths = np.concatenate(texts), np.array([len(one) for one in texts])
    merged = grids.prod(1) // 4
    tokens, lengths, _ = ops.expand_placeholders(tokens, merged, counts, lengths, placeholder=IMAGE)
    starts, _ = ops.image_spans(tokens, merged, counts, lengths, placeholder=IMAGE)
    return tokens, ops.mrope_positions(starts, grids, counts, lengths, after="side"), lengths


@functools.cache
def logits_alone(kind):
    """The logits of each document by itself, with positions of the model's own."""
    tokens, _, lengths = expanded()
    found = []
    for ids, images in zip(np.split(tokens, np.cumsum(lengths)[:-1]), documents()[1], strict=True):
        ids = torch.from_numpy(ids)[None]
        types = (ids == IMAGE).int()
        with torch.no_grad():
            out = model_of(kind)(input_ids=ids, mm_token_type_ids=types, use_cache=False, **inputs_of(images))
        found.append(out.logits[0])
    return found


def packed_batch():
    """All documents in two rows, and their images in the order of the rows."""
    tokens, places, lengths = expanded()
    packed = ops.pack_rows(tokens, lengths, capacity=48)
    assert (len(packed.pieces), len(packed.sources)) == (2, 4)
    batch = packed._asdict() | {"mrope": ops.pack_rows(places, lengths, capacity=48).packed}
    return batch, [image for source in packed.sources for image in documents()[1][source]]


def largest_difference(kind, batch, images, attention="sdpa", **given):
    """Between the logits of packed documents and those of each alone."""
    with torch.no_grad():
        ids = torch.from_numpy(batch["packed"])
        out = model_of(kind, attention)(input_ids=ids, use_cache=False, **inputs_of(images), **given)
    segments = torch.from_numpy(batch["segment_ids"])
    pieces = [(row, k + 1) for row, count in enumerate(batch["pieces"]) for k in range(count)]
    alone = logits_alone(kind)
    return max(
        float((out.logits[row][segments[row] == k] - alone[source]).abs().max())
        for (row, k), source in zip(pieces, batch["sources"], strict=True)
    )


@pytest.mark.parametrize("kind", KINDS)
def test_packed_documents_have_the_logits_of_each_alone(kind):
    batch, images = packed_batch()
    places = st_torch.position_ids(batch, mrope="mrope")
    assert largest_difference(kind, batch, images, position_ids=places) < 1e-6
    images[0], images[1] = images[1], images[0]  # as large, and turned: nothing raises
    assert largest_difference(kind, batch, images, position_ids=places) > 0.01


@pytest.mark.parametrize("kind", KINDS)
def test_eager_attention_keeps_documents_apart_by_a_mask_of_floats(kind):
    batch, images = packed_batch()
    mask = st_torch.block_diagonal_mask(batch, dtype=torch.float32)
    given = {"position_ids": st_torch.position_ids(batch, mrope="mrope")[1:], "attention": "eager"}
    assert largest_difference(kind, batch, images, attention_mask=mask, **given) < 1e-6
    assert largest_difference(kind, batch, images, attention_mask=mask == 0, **given) > 0.01


def test_documents_see_each_other_without_an_error_where_the_page_says_so():
    batch, images = packed_batch()
    places, ones = st_torch.position_ids(batch, mrope="mrope"), torch.ones(batch["packed"].shape, dtype=int)
    for leaking in (
        {"position_ids": places[1:]},
        {"position_ids": places, "attention_mask": ones},
        {"position_ids": st_torch.position_ids(batch)},
    ):
        assert largest_difference("Qwen2VL", batch, images, **leaking) > 0.01


@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_gemma_3_takes_a_mask_that_looks_both_ways_inside_an_image(attention):
    vision = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    model = of_config(
        transformers.Gemma3Config(
            text_config={**TEXT, "head_dim": 16, "sliding_window": 64, "query_pre_attn_scalar": 16},
            vision_config={**vision, "image_size": 16, "patch_size": 4},
            mm_tokens_per_image=4, image_token_id=IMAGE, boi_token_index=BEGIN, eoi_token_index=END,
        ),
        attention,
    )  # fmt: skip
    rng, images = np.random.default_rng(0), torch.randn(3, 3, 16, 16)
    counts = np.array([2, 0, 1])
    texts = [
        [*rng.integers(3, 80, 1 + 3 * k).tolist(), *[BEGIN, *[IMAGE] * 4, END, 5] * count]
        for k, count in enumerate(counts)
    ]
    tokens, lengths = np.concatenate(texts), np.array([len(one) for one in texts])
    spans = ops.image_spans(tokens, np.full(3, 4), counts, lengths, placeholder=IMAGE)
    numbers = ops.image_ids(*spans, counts, lengths)
    packed = ops.pack_rows(tokens, lengths, capacity=int(lengths.sum()), strategy="concat")
    batch = packed._asdict() | {"images": numbers[None]}

    def logits(ids, pixels, **given):
        given |= {"pixel_values": pixels} if len(pixels) else {}
        with torch.no_grad():
            return model(input_ids=ids, token_type_ids=(ids == IMAGE).int(), use_cache=False, **given).logits[
                0
            ]

    parts = zip(texts, images.split(counts.tolist()), strict=True)
    alone = torch.cat([logits(torch.tensor([text]), pixels) for text, pixels in parts])

    def difference(**given):
        found = logits(torch.from_numpy(batch["packed"]), images, **given)
        return float((found - alone).abs().max())

    places = st_torch.position_ids(batch)
    mask = st_torch.block_diagonal_mask(batch, image_ids="images", dtype=torch.float32)
    assert difference(position_ids=places, attention_mask=mask) < 1e-6
    assert difference(position_ids=places) > 0.01
    one_way = st_torch.block_diagonal_mask(batch, dtype=torch.float32)
    assert difference(position_ids=places, attention_mask=one_way) > 0.01
