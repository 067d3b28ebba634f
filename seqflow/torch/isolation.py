"""check_isolation: test that a model keeps the documents of packed rows apart. It imports PyTorch when called."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqflow.errors import OpError, OpTypeError
from seqflow.torch.arrays import to_array

IGNORED = -100
"""Label that losses ignore."""
_TOKENS = ("tokens", "input_ids")
_MOST_DOCUMENTS = 8

_ADVICE = {
    "later documents moved": "pass position_ids and cu_seqlens, no attention mask, and use_cache=False; recurrent "
    "and convolution layers need seq_idx and kernels that read it",
    "earlier documents moved": "attention has to be causal, or masked by blocks: seqflow.torch.block_diagonal_mask",
    "not causal": "pass is_causal=True, or a causal mask",
    "other than alone": "positions must begin again with each document: pass position_ids",
    "position_ids": "pass those of the packed batch",
    "labels": 'Packed(…, first_fills={"labels": -100}) masks the first label of each document',
    "padding": 'Packed(…, fills={"labels": -100}) masks the labels of padding',
}


@dataclass(frozen=True, slots=True)
class Finding:
    """Fault of a model or a batch: its kind, its place, and the change of logits."""

    kind: str
    """Kind of fault: "later documents moved", "earlier documents moved", "not causal" or "other than alone" for a
    model; "position_ids", "labels" or "padding" for a batch."""
    where: str
    moved: float | None = None
    """Largest change of a logit."""

    def __str__(self) -> str:
        size = "" if self.moved is None else f", by up to {self.moved:.3g}"
        return f"{self.kind}: {self.where}{size}\n  {_ADVICE[self.kind]}"


@dataclass(frozen=True, slots=True)
class Isolation:
    """Result of `check_isolation`; true if it has no findings."""

    findings: tuple[Finding, ...]
    documents: int
    """Number of documents that were changed and run alone."""

    def __bool__(self) -> bool:
        return not self.findings

    def __str__(self) -> str:
        if self:
            return f"{self.documents} documents are apart"
        return "\n".join(map(str, self.findings))

    @property
    def kinds(self) -> set[str]:
        """Kinds of faults."""
        return {one.kind for one in self.findings}


@dataclass(frozen=True, slots=True)
class _Document:
    """Place of a document: its row, its first column, and the column after its last one."""

    row: int
    start: int
    stop: int

    def __str__(self) -> str:
        return f"row {self.row}, columns {self.start} to {self.stop - 1}"


def check_isolation(
    model: Callable[[dict[str, Any]], Any],
    batch: Mapping[str, Any],
    *,
    tokens: str | None = None,
    shifts_labels: bool = True,
) -> Isolation:
    """Test that documents in packed rows do not affect each other: change one, and compare the logits of all
    others.

        seqflow.torch.check_isolation(lambda b: model(input_ids=b["tokens"], position_ids=b["position_ids"]), batch)

    All tokens of a document are changed: if logits of later documents move, attention or a state crosses the
    boundary; if those of earlier ones move, the model looks ahead. The last token of a document is changed
    alone: if logits before it move, the model is not causal. Each document is also run alone, with positions
    from 0: if its logits differ, positions do not start again with each document. The batch is checked, too:
    padding must have no label, and with `shifts_labels` (the model shifts labels) the first token of a
    document must have no label, since it would be predicted from the document before.

    At most eight documents are tested; the model runs three times for each. A model with a capacity of
    experts moves the logits of other documents without a fault. Raises OpError for a model with other logits
    in a second run, as with dropout, for a batch without a row of two documents, and for a batch with only
    one kind of token. Raises OpTypeError for missing tensors.

    Args:
        model: Takes a dict of tensors like `batch` and gives logits, [R, C, …], or an object with `.logits`.
        batch: Packed batch with `segment_ids`, as from `loader.to("torch")`.
        tokens: Name of the tensor of tokens; None is "tokens" or "input_ids".
        shifts_labels: Whether the model shifts labels: the first token of a document must then have no label.
    """
    import torch

    name = _tokens_of(batch, tokens)
    given = {
        key: torch.as_tensor(value) if isinstance(value, np.ndarray) else value
        for key, value in batch.items()
    }
    segments = _numbers(given["segment_ids"])
    documents = _documents(segments)
    found = list(_of_batch(given, documents, segments, shifts_labels))
    with torch.no_grad():
        before = _logits(model, given, segments.shape)
        scale = max(1.0, float(before.abs().max()))
        # rounding may move logits, too, and more so in narrow dtypes
        limit = scale * (
            1e-9 if before.dtype == torch.float64 else 1e-3 if before.dtype == torch.float32 else 5e-2
        )
        again = _moved(before, _logits(model, given, segments.shape))
        if float(again.max()) > limit:
            raise OpError(
                f"check_isolation: the same batch gives logits that differ by {float(again.max()):.3g}\n"
                "  switch dropout off: model.eval()"
            )
        for document in documents[:_MOST_DOCUMENTS]:
            found += _of_document(model, given, name, document, before, segments, limit)
            found += _alone(model, given, document, before, limit)
    return Isolation(tuple(_first_of_kind(found)), min(len(documents), _MOST_DOCUMENTS))


def _tokens_of(batch: Mapping[str, Any], tokens: str | None) -> str:
    if "segment_ids" not in batch:
        raise OpTypeError(
            f"check_isolation: the batch has no segment_ids, expected a packed one; it has {', '.join(batch)}"
        )
    for name in _TOKENS if tokens is None else (tokens,):
        if name in batch:
            return name
    raise OpTypeError(
        f"check_isolation: the batch has no {' or '.join(_TOKENS) if tokens is None else tokens}; it has "
        f"{', '.join(batch)}\n  tokens= names the tensor of tokens"
    )


def _numbers(tensor: Any) -> Any:
    """Return the numbers of a tensor on any device: int64."""
    return to_array(tensor).astype(np.int64)


def _documents(segments: Any) -> list[_Document]:
    """Return the documents of rows that have two or more; raise OpError if there is no such row."""
    found: list[_Document] = []
    for row, ids in enumerate(segments):
        ends = np.flatnonzero(np.diff(ids)) + 1
        spans = zip([0, *ends.tolist()], [*ends.tolist(), len(ids)], strict=True)
        own = [_Document(row, start, stop) for start, stop in spans if ids[start] > 0]
        if len(own) > 1:
            middle = len(own) // 2  # first those that have documents on both sides: only a few are tested
            found += [*own[middle:], *own[:middle]]
    if not found:
        raise OpError("check_isolation: no row of the batch has two documents, expected packed rows")
    return found


def _logits(model: Callable[[dict[str, Any]], Any], batch: dict[str, Any], shape: tuple[int, ...]) -> Any:
    result = model(dict(batch))
    logits = getattr(result, "logits", result)
    if tuple(getattr(logits, "shape", ()))[:2] != shape[:2]:
        raise OpTypeError(
            f"check_isolation: the model gave {type(logits).__name__} of shape {list(getattr(logits, 'shape', ()))}, "
            f"expected logits [{shape[0]}, {shape[1]}, …]"
        )
    return logits


def _moved(before: Any, after: Any) -> Any:
    """Return the largest change of a logit of each token: [R, C]."""
    return (after - before).abs().flatten(2).amax(dim=2)


def _of_document(
    model: Any,
    batch: dict[str, Any],
    name: str,
    document: _Document,
    before: Any,
    segments: Any,
    limit: float,
) -> Iterator[Finding]:
    """Yield a finding for logits of other documents that move when this document changes."""
    row, start, stop = document.row, document.start, document.stop
    moved = _moved(before, _logits(model, _changed(batch, name, row, start, stop), segments.shape))
    real = moved.new_tensor(segments > 0)
    moved = moved * real
    others = [("later documents moved", moved[row, stop:]), ("earlier documents moved", moved[row, :start])]
    rest = [at for at in range(len(moved)) if at != row]
    if rest:
        others.append(("later documents moved", moved[rest]))
    for kind, of in others:
        if of.numel() and float(of.max()) > limit:
            yield Finding(kind, f"when that of {document} changed", float(of.max()))
    if stop - start > 1:
        last = _moved(before, _logits(model, _changed(batch, name, row, stop - 1, stop), segments.shape))
        own = last[row, start : stop - 1]
        if float(own.max()) > limit:
            yield Finding(
                "not causal", f"tokens before the last of {document} moved with it", float(own.max())
            )


def _changed(batch: dict[str, Any], name: str, row: int, start: int, stop: int) -> dict[str, Any]:
    """Return the batch with other tokens in a span of a row."""
    import torch

    tokens = batch[name].clone()
    values = tokens.unique()
    if len(values) < 2:
        raise OpError(f"check_isolation: all of {name} are {int(values[0])}, expected tokens that differ")
    span = tokens[row, start:stop].contiguous()
    # the next of the tokens that occur: any other number may be outside the model's vocabulary
    places = torch.searchsorted(values, span)
    tokens[row, start:stop] = values[(places + 1) % len(values)]
    return {**batch, name: tokens}


def _alone(
    model: Any, batch: dict[str, Any], document: _Document, before: Any, limit: float
) -> Iterator[Finding]:
    """Return whether a document by itself has the same logits."""
    import torch

    rows, capacity = batch["segment_ids"].shape
    row, start, stop = document.row, document.start, document.stop
    size, alone = stop - start, dict[str, Any]()
    for key, value in batch.items():
        shape = tuple(getattr(value, "shape", ()))
        if shape[:2] == (rows, capacity):
            value = value[row : row + 1, start:stop]
        elif shape[:1] == (rows,) and shape[-2:] == (capacity, capacity):
            value = value[row : row + 1, ..., start:stop, start:stop]
        elif key.startswith("cu_seq"):
            value = torch.tensor([0, size], dtype=value.dtype, device=value.device)
        elif key.startswith(("max_seq", "max_length")):
            value = size
        alone[key] = value
    if "position_ids" in alone:
        positions = torch.arange(size, device=before.device).to(alone["position_ids"].dtype)
        alone["position_ids"] = positions[None]
    found = _logits(model, alone, (1, size))
    moved = float((found[0] - before[row, start:stop]).abs().max())
    if moved > limit:
        yield Finding("other than alone", f"{document} by itself, with positions from 0 on", moved)


def _of_batch(
    batch: dict[str, Any], documents: list[_Document], segments: Any, shifts_labels: bool
) -> Iterator[Finding]:
    """Yield the faults of the batch itself."""
    if "position_ids" in batch:
        positions = _numbers(batch["position_ids"])
        for one in documents:
            if (positions[one.row, one.start : one.stop] != np.arange(one.stop - one.start)).any():
                yield Finding("position_ids", f"those of {one} are not 0, 1, 2 …")
                break
    if "labels" not in batch:
        return
    labels = _numbers(batch["labels"])
    if shifts_labels:
        for one in documents:
            if one.start and labels[one.row, one.start] != IGNORED and segments[one.row, one.start - 1] > 0:
                yield Finding(
                    "labels", f"the first of {one} is {labels[one.row, one.start]}, expected {IGNORED}"
                )
                break
    wrong = np.argwhere((segments == 0) & (labels != IGNORED))
    if len(wrong):
        row, at = wrong[0].tolist()
        yield Finding(
            "padding", f"row {row}, column {at} has the label {labels[row, at]}, expected {IGNORED}"
        )


def _first_of_kind(found: list[Finding]) -> list[Finding]:
    """Return the largest finding of each kind."""
    largest: dict[str, Finding] = {}
    for one in found:
        before = largest.get(one.kind)
        if before is None or (one.moved or 0) > (before.moved or 0):
            largest[one.kind] = one
    return list(largest.values())
