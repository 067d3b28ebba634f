"""Wrong inputs on a device without data are our errors, as on the CPU: for every op that runs there."""

import pytest

import seqflow as sf

torch = pytest.importorskip("torch")

from seqflow.torch.device import IMPLEMENTATIONS  # noqa: E402

META = {"device": "meta"}


def tensor(argument, rank):
    is_int = argument.is_lengths or argument.dtype.word in ("int", "index", "position", "offset")
    return torch.zeros([2] * rank, dtype=torch.int64 if is_int else torch.float32, **META)


@pytest.mark.parametrize("name", IMPLEMENTATIONS)
def test_scalars_and_lists_are_refused(name):
    call = IMPLEMENTATIONS[name]
    signature = call.op.signature
    given = {one.name: 1 for one in call.op.attributes if one.required and one.kind == "int"}
    for wrong in signature.input_arguments:
        for bad in (tensor(wrong, 0), [tensor(wrong, 1)] * 2):
            inputs = [tensor(one, len(one.dims)) for one in signature.input_arguments]
            listed = [[one] if a.name in signature.listed else one
                      for a, one in zip(signature.input_arguments, inputs, strict=True)]  # fmt: skip
            listed[signature.input_arguments.index(wrong)] = bad
            if wrong.name not in signature.listed and (isinstance(bad, list) or wrong.rank):
                with pytest.raises(sf.SeqflowError):
                    call(*listed, **given)
