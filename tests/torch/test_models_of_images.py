"""Packed rows of text with images through tiny models of transformers: as if each document was alone."""

import functools

import numpy as np
import pyarrow as pa
import pytest

import seqflow as sf
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


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_eager_attention_keeps_documents_apart_by_a_mask_of_floats(kind):
    batch, images = packed_batch()
    mask = st_torch.block_diagonal_mask(batch, dtype=torch.float32)
    given = {"position_ids": st_torch.position_ids(batch, mrope="mrope")[1:], "attention": "eager"}
    assert largest_difference(kind, batch, images, attention_mask=mask, **given) < 1e-6
    assert largest_difference(kind, batch, images, attention_mask=mask == 0, **given) > 0.01


@pytest.mark.slow
def test_documents_see_each_other_without_an_error_where_the_page_says_so():
    batch, images = packed_batch()
    places, ones = st_torch.position_ids(batch, mrope="mrope"), torch.ones(batch["packed"].shape, dtype=int)
    for leaking in (
        {"position_ids": places[1:]},
        {"position_ids": places, "attention_mask": ones},
        {"position_ids": st_torch.position_ids(batch)},
    ):
        assert largest_difference("Qwen2VL", batch, images, **leaking) > 0.01


@pytest.mark.slow
@pytest.mark.parametrize("attention", ["eager", "sdpa"])
def test_gemma_3_takes_a_mask_that_looks_both_ways_inside_an_image(attention):
    model = gemma_3(attention)
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


SIDE = 16
PREPARE = """
images.values.grid = image_grids(images.values.size, patch=4, merge=2, min_pixels=64, max_pixels=4096)
_, high, wide = split(images.values.grid, parts=3, axis=1)
sizes = reduce_sum(high * wide, axes=1) // {merged}
ids.values, ids.lengths, _ = expand_placeholders(
    tokens.values, sizes, images.lengths, tokens.lengths, placeholder=90)
images.values.start, images.values.extent = image_spans(
    ids.values, sizes, images.lengths, ids.lengths, placeholder=90)
mrope = mrope_positions(images.values.start, images.values.grid, images.lengths, ids.lengths, after="side")
numbers = image_ids(images.values.start, images.values.extent, images.lengths, ids.lengths)
return ids.values, ids.lengths, mrope, numbers, images.lengths, images.values.grid, images.values.size, \\
    images.values.start, images.values.extent, images.values.pixels.lengths, images.values.pixels.values
"""


def table_of(seed=0, count=9, sides=(8, 16, 24)):
    """Texts with up to four images, some longer than a packed row, some without an image."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        images, tokens = [], rng.integers(3, 80, rng.integers(1, 7)).tolist()
        for _ in range(rng.integers(0, 5)):
            size = rng.choice(sides, 2).tolist()
            pixels = rng.integers(0, 256, (size[0] * size[1], 3), np.uint8)
            images.append({"size": size, "pixels": pixels.tolist()})
            tokens += [BEGIN, IMAGE, END, *rng.integers(3, 80, rng.integers(0, 5)).tolist()]
        rows.append({"tokens": tokens, "images": images})
    pixels = pa.list_(pa.list_(pa.uint8(), 3))
    images = pa.list_(pa.struct([("size", pa.list_(pa.int32(), 2)), ("pixels", pixels)]))
    return pa.Table.from_pylist(rows, pa.schema([("tokens", pa.list_(pa.int64())), ("images", images)]))


def loader_of(table, merged, **options):
    plan = sf.Packed(
        24 if merged == 4 else 40,
        columns=["ids", "mrope", "numbers"],
        along={"images": sf.Along("start", "extent")},
        rows=2,
    )
    return sf.Loader(table, prepare=PREPARE.format(merged=merged), batch=plan, shuffle=True, **options)


def pieces_of_rows(table, merged):
    """Function from a row, the first token of a piece and its number of tokens to its ids and images, by Python."""

    def piece(row, start, count):
        text, images = table["tokens"][row].as_py(), table["images"][row].as_py()
        ids, begins = [], []
        for token in text:
            if token == IMAGE:
                height, width = images[len(begins)]["size"]
                begins.append(len(ids))
                ids += [IMAGE] * (height * width // 16 // merged)
            else:
                ids.append(token)
        chosen = [of for at, of in zip(begins, images, strict=True) if start <= at < start + count]
        shaped = [np.array(of["pixels"], np.uint8).reshape(*of["size"], 3) for of in chosen]
        return torch.tensor([ids[start : start + count]]), shaped

    return piece


def batch_images(batch):
    """The images of a batch as arrays, in their order."""
    flat, sizes = batch["images.values.pixels.values"], batch["images.values.size"]
    parts = np.split(flat, np.cumsum(batch["images.values.pixels.lengths"])[:-1])
    return [part.reshape(*size, 3) for part, size in zip(parts, sizes.tolist(), strict=False) if len(part)]


def check_packed(table, merged, logits, alone):
    """Logits of all packed batches are those of each piece alone; exchanged images change them."""
    loader, of_row = loader_of(table, merged), pieces_of_rows(table, merged)
    cut = exchanged = 0
    for number, batch in enumerate(loader):
        images = batch_images(batch)
        out = logits(batch, images)
        pieces = iter(loader.trace(number))
        for row, count in enumerate(batch["pieces"].tolist()):
            for k in range(count):
                piece = next(pieces)
                cut += piece.element > 0
                of_piece = out[row][torch.from_numpy(batch["segment_ids"][row] == k + 1)]
                expected = alone(*of_row(piece.row, piece.element, piece.elements))
                assert float((of_piece - expected).abs().max()) < 1e-6
        alike = [
            (i, j)
            for i in range(len(images))
            for j in range(i)
            if images[i].shape[0] * images[i].shape[1] == images[j].shape[0] * images[j].shape[1]
        ]
        if alike:
            i, j = alike[0]
            images[i], images[j] = images[j], images[i]
            assert float((logits(batch, images) - out).abs().max()) > 0.01
            exchanged += 1
    assert cut > 1
    assert exchanged > 1


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_loaded_rows_have_the_logits_of_each_piece_alone(kind):
    model = model_of(kind)

    @torch.no_grad()
    def logits(batch, images):
        places = st_torch.position_ids(batch, mrope="mrope")
        ids = torch.from_numpy(batch["ids"])
        return model(input_ids=ids, position_ids=places, use_cache=False, **inputs_of(images)).logits

    @torch.no_grad()
    def alone(ids, images):
        types = (ids == IMAGE).int()
        return model(input_ids=ids, mm_token_type_ids=types, use_cache=False, **inputs_of(images)).logits[0]

    check_packed(table_of(), 4, logits, alone)


def llava():
    vision = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.LlavaConfig(
        text_config={**TEXT, "model_type": "llama"},
        vision_config={**vision, "model_type": "clip_vision_model", "image_size": SIDE, "patch_size": 4},
        image_token_index=IMAGE, image_seq_length=16,
    )  # fmt: skip
    return of_config(config, "sdpa")


@functools.cache
def gemma_3(attention):
    vision = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.Gemma3Config(
        text_config={**TEXT, "head_dim": 16, "sliding_window": 64, "query_pre_attn_scalar": 16},
        vision_config={**vision, "image_size": SIDE, "patch_size": 4},
        mm_tokens_per_image=4, image_token_id=IMAGE, boi_token_index=BEGIN, eoi_token_index=END,
    )  # fmt: skip
    model = of_config(config, attention)
    # from_config leaves the projection 0, with which no image has an effect
    torch.nn.init.normal_(model.model.multi_modal_projector.mm_input_projection_weight, std=0.2)
    return model


def pixel_values(images):
    """[images, 3, height, width] of images of one size; nothing if there are none."""
    if not images:
        return {}
    return {"pixel_values": torch.from_numpy(np.stack(images)).permute(0, 3, 1, 2).float() / 127.5 - 1}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["Llava", "Gemma3"])
def test_loaded_rows_of_images_of_one_size_have_the_logits_of_each_piece_alone(kind):
    model = llava() if kind == "Llava" else gemma_3("sdpa")

    @torch.no_grad()
    def logits(batch, images):
        ids = torch.from_numpy(batch["ids"])
        given = {"position_ids": st_torch.position_ids(batch)}
        if kind == "Gemma3":
            mask = st_torch.block_diagonal_mask(batch, image_ids="numbers", dtype=torch.float32)
            given |= {"attention_mask": mask, "token_type_ids": (ids == IMAGE).int()}
        return model(input_ids=ids, use_cache=False, **given, **pixel_values(images)).logits

    @torch.no_grad()
    def alone(ids, images):
        given = {"token_type_ids": (ids == IMAGE).int()} if kind == "Gemma3" else {}
        return model(input_ids=ids, use_cache=False, **given, **pixel_values(images)).logits[0]

    check_packed(table_of(sides=(SIDE,)), 1 if kind == "Llava" else 4, logits, alone)
