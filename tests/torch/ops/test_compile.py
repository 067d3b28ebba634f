"""torch.compile and torch.export: no graph break, one program for all ragged shapes, our errors from inside."""

import pytest
from marks import one_in, thorough
from torch_calls import compiled, marked_by_torch

from seqflow.errors import LodError
from seqflow.torch import mark_ragged, ops

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


def centred(x, n):
    return x - ops.expand(ops.lengths_mean(x, n), n)


def expanded_first(x, n):
    return x * ops.expand(torch.tanh(ops.lengths_max(x, n)), n)


def padded(x, n):
    p, mask = ops.pad(x, n)
    return ops.unpad(torch.where(mask[:, :, None], torch.tanh(p), 0.0), n)


def truncated(x, n):
    t = ops.truncate(x, n, max_length=3)
    return ops.lengths_sum(ops.softmax_within(t.values, t.lengths) * t.values, t.lengths)


def attention(x, n):
    a = ops.softmax_within(x.sum(-1), n)
    return ops.lengths_sum(x * a[:, None], n)


def masked(x, n):
    m = ops.mask_sequences(x, x.sum(-1) > 0, n)
    return ops.lengths_max(m.values, m.lengths)


FUNCTIONS = (centred, expanded_first, padded, truncated, attention, masked)


def batches(count, least=0):
    torch.manual_seed(0)
    for i in range(count):
        n = torch.randint(0, 5, (i % 7 + least,))
        yield torch.randn(int(n.sum()), 3, requires_grad=True), n


def check_equal(made, function, x, n):
    found, expected = made(x, n), function(x, n)
    torch.testing.assert_close(found, expected)
    (gradient,) = torch.autograd.grad(found.sum(), x)
    (known,) = torch.autograd.grad(expected.sum(), x)
    torch.testing.assert_close(gradient, known)


@pytest.mark.slow
@pytest.mark.parametrize("function", one_in(3, FUNCTIONS, first=1))
def test_one_program_fits_all_marked_batches(function):
    made, counter = compiled(function)
    for x, n in batches(20):
        mark_ragged([x, n])
        check_equal(made, function, x, n)
    assert counter.frame_count == 1


@pytest.mark.slow
@pytest.mark.parametrize("function", one_in(3, FUNCTIONS))
def test_unmarked_batches_take_three_programs_at_most(function):
    made, counter = compiled(function)
    for x, n in batches(20, least=2):
        if len(x) > 1:
            check_equal(made, function, x, n)
    assert counter.frame_count <= 3


def test_functions_of_expressions_compile():
    made, counter = compiled(
        lambda x, n: ops.expression(x, n.sum(), expr="where(x > 0, sqrt(abs(x)) / y, 2 * x)")
    )
    for x, n in batches(3, least=2):
        mark_ragged([x, n])
        torch.testing.assert_close(made(x, n), torch.where(x > 0, x.abs().sqrt() / n.sum(), 2 * x).double())
    assert counter.frame_count == 1


def test_a_small_function_compiles():
    made, counter = compiled(centred)
    for x, n in batches(4):
        mark_ragged({"x": x, "n": n})
        check_equal(made, centred, x, n)
    assert counter.frame_count == 1


@pytest.mark.slow
def test_inductor_compiles_them_too():
    made, counter = compiled(truncated, "inductor")
    for x, n in batches(6):
        mark_ragged([x, n])
        check_equal(made, truncated, x, n)
    assert counter.frame_count == 1


def test_errors_come_out_of_compiled_graphs_as_they_are():
    made, _ = compiled(lambda x, n: ops.lengths_sum(x, n) * 2)
    x, n = torch.ones(6), torch.tensor([4, 4])
    mark_ragged([x, n])
    message = r"lengths_sum: sum\(lengths\) is 8 but data has 6 rows"
    with pytest.raises(LodError, match=message):
        made(x, n)
    with pytest.raises(LodError, match=message):
        ops.lengths_sum(x, n)


def checked(x, n, m):
    ops.same_lengths(n, m)
    return x * 2


def test_an_op_that_only_checks_is_not_left_out():
    made, _ = compiled(checked)
    x, n = torch.ones(3, requires_grad=True), torch.tensor([1, 2])
    made(x, n, n.clone()).sum().backward()
    with pytest.raises(LodError, match=r"lengths\[0\] is 1 but other\[0\] is 2"):
        made(x, n, n.flip(0))


def test_sizes_of_meta_tensors_are_inferred():
    x, n = torch.empty(7, 3, device="meta"), torch.empty(4, dtype=torch.int64, device="meta")
    assert ops.lengths_sum(x, n).shape == (4, 3)
    assert ops.softmax_within(x, n).device.type == "meta"


def test_marks_are_those_of_torch():
    x, y = torch.ones(3), marked_by_torch(torch.ones(3))
    assert mark_ragged(x) is x
    assert x.__dict__ == y.__dict__
    assert mark_ragged({"scalar": torch.tensor(1.0), "name": "text"})["name"] == "text"


def test_batches_of_a_loader_are_marked_when_asked(tmp_path):
    import pyarrow as pa

    import seqflow as sf

    lists = [[float(k) for k in range(i % 4)] for i in range(20)]
    loader = sf.Loader(pa.table({"x": pa.array(lists, pa.list_(pa.float64()))}), batch=3)
    made, counter = compiled(lambda batch: ops.lengths_sum(batch["x.values"], batch["x.lengths"]))
    sums = [made(batch) for batch in loader.to("torch", ragged=True)]
    assert torch.cat(sums).tolist() == [sum(one) for one in lists]
    assert counter.frame_count == 1


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_a_sparse_gradient_does_not_break_the_graph_and_is_right(dtype):
    table = torch.randn(9, 2).to(dtype).requires_grad_()

    def function(table, indices, n):
        pooled = ops.sparse_lengths_mean(table, indices, n, ignore_index=2, sparse=True)
        return 2 * torch.tanh(pooled)

    made, counter = compiled(function, "aot_eager")
    for k in (2, 3, 4):
        indices, n = torch.arange(k + 1) % 3, torch.tensor([k, 1])
        mark_ragged([indices, n])
        found, expected = (
            torch.autograd.grad(one(table, indices, n).sum(), table)[0] for one in (made, function)
        )
        assert found.is_sparse
        torch.testing.assert_close(found.to_dense(), expected.to_dense())
    assert counter.frame_count == 1


SIZES_OF_DATA = {
    "expand": lambda x, n: ops.expand(n.float(), n).flip(0),
    "truncate": lambda x, n: ops.lengths_sum(*ops.truncate(x, n, max_length=2)),
    "pad": lambda x, n: ops.pad(x, n)[0].sum(1),
    "mask_sequences": lambda x, n: ops.mask_sequences(x, x.sum(-1) > 0, n).values * 2,
    "unsorted_segment_sum": lambda x, n: ops.unsorted_segment_sum(x, torch.arange(len(x)) % 3) + 1,
}


@pytest.mark.parametrize("dynamic", [None, True])
@pytest.mark.parametrize("name", ["pad", *thorough(*(one for one in SIZES_OF_DATA if one != "pad"))])
def test_sizes_of_data_break_the_graph_of_a_plain_compile(name, dynamic):
    torch.compiler.reset()
    function = SIZES_OF_DATA[name]
    made = torch.compile(function, dynamic=dynamic, backend="eager")
    for more in (0, 1, 2):
        x, n = torch.randn(8 + more, 4), torch.tensor([3, 5 + more])
        torch.testing.assert_close(made(x, n), function(x, n))
