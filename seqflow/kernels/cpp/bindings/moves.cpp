// Binds moves.h: gather, move_slices and choose.
#include "moves/moves.h"
#include "shared/processor.h"
#include "bindings/python.h"
#include "shared/threads.h"

namespace seqflow {
namespace {

nb::tuple shape_of_picked(nb::handle data, nb::handle indices) {
  return nb::tuple(indices.attr("shape") + data.attr("shape")[nb::slice(nb::int_(1), nb::none(), nb::none())]);
}

nb::object gather(nb::object data, nb::handle indices, bool wrap, nb::handle ignore_index, nb::handle out) {
  const Buffer rows(data, ANY), picks(indices);
  const Ignored ignored(ignore_index);
  Gather job = {};
  job.data = rows.data();
  job.num_rows = rows.extent(0);
  job.row_bytes = rows.row_bytes();
  if (job.row_bytes == 0) decline();
  job.indices = picks.integers();
  job.wrap = wrap;
  job.ignores = ignored.any;
  job.ignored = ignored.index;
  const int64_t bytes = product(job.indices.size, job.row_bytes);
  const nb::object dtype = dtype_of(data);
  nb::object picked = picks.rank() == 1 ? output(out, {job.indices.size}, rows, 1, dtype)
                                        : output(out, shape_of_picked(data, indices), dtype);
  Buffer result(picked, ANY, true);
  if (result.shares_memory(rows)) return gather(copy_of(data), indices, wrap, ignore_index, out);
  if (result.shares_memory(picks)) return gather(data, copy_of(indices), wrap, ignore_index, out);
  job.out = result.data();
  const Unlocked unlocked(bytes);
  const auto run = SEQFLOW_SELECTED(move_kernels).gather;
  parallel_ranges(job.indices.size, bytes, [&](int64_t begin, int64_t end) { run(job, begin, end); });
  if (job.fault)
    blame_index(job.indices, wrap ? -job.num_rows : 0, job.num_rows, job.ignores, job.ignored, "indices");
  return picked;
}

// Slices may be written to `to` from `from`: the same dtype, and shape but for the first axis.
bool are_alike(nb::handle source, const Buffer &from, nb::handle target, const Buffer &to) {
  if (from.rank() != to.rank() || !dtype_of(source).equal(dtype_of(target))) return false;
  for (int axis = 1; axis < from.rank(); ++axis)
    if (from.extent(axis) != to.extent(axis)) return false;
  return true;
}

nb::object move_slices(nb::object source, nb::object source_starts, nb::object sizes, nb::object target,
                       nb::object target_starts) {
  const Buffer from(source, ANY), from_starts(source_starts), counts(sizes), to_starts(target_starts);
  Buffer to(target, ANY, true);
  const auto with = [&](const Buffer &argument, nb::object &array) {
    if (!argument.shares_memory(to)) return false;
    array = copy_of(array);
    return true;
  };
  bool again = with(from, source);
  again |= with(from_starts, source_starts);
  again |= with(counts, sizes);
  again |= with(to_starts, target_starts);
  if (again) return move_slices(source, source_starts, sizes, target, target_starts);
  Slices job = {};
  job.source = from.data();
  job.target = to.data();
  job.source_rows = from.extent(0);
  job.target_rows = to.extent(0);
  job.row_bytes = from.row_bytes();
  if (job.row_bytes == 0 || !are_alike(source, from, target, to)) decline();
  job.source_starts = from_starts.counts();
  job.sizes = counts.counts();
  job.target_starts = to_starts.counts();
  if (job.source_starts.size != job.sizes.size || job.target_starts.size != job.sizes.size) decline();
  const Unlocked unlocked(to.bytes());
  check_slices(job);
  const auto run = SEQFLOW_SELECTED(move_kernels).move_slices;
  const auto move = [&](int64_t begin, int64_t end) { run(job, begin, end); };
  if (are_apart(job))
    parallel_ranges(job.sizes.size, to.bytes(), move);
  else
    move(0, job.sizes.size);
  return nb::none();
}

nb::object choose(nb::handle condition, nb::handle x, nb::handle y, nb::object out) {
  const Buffer tests(condition, ANY), yes(x, ANY), no(y, ANY);
  Buffer result(out, ANY, true);
  const nb::object dtype = dtype_of(out);
  const auto takes = [&](const Buffer &part) {  // one element, or one in each place
    if (part.rank() != 0 && (part.rank() != result.rank() || part.size() != result.size())) return false;
    for (int axis = 0; axis < part.rank(); ++axis)
      if (part.extent(axis) != result.extent(axis)) return false;
    return !part.shares_memory(result) || (part.rank() != 0 && part.data() == result.data());
  };
  const int64_t item = result.item_bytes();
  const bool fits = item == 1 || item == 2 || item == 4 || item == 8;
  if (!fits || !dtype_of(x).equal(dtype) || !dtype_of(y).equal(dtype) || !takes(tests) || !takes(yes) || !takes(no) ||
      !dtype_of(condition).equal(bool_dtype()) || tests.rank() != result.rank())
    decline();
  Choice job = {tests.data(), yes.data(), no.data(), result.data(), result.size(), item, yes.rank() == 0, no.rank() == 0};
  if (job.out == job.condition) decline();
  const Unlocked unlocked(result.bytes());
  SEQFLOW_SELECTED(move_kernels).choose(job);
  return out;
}

}  // namespace

void bind_moves(nb::module_ &module) {
  bind_kernel(module, "choose", choose);
  bind_kernel(module, "gather", gather);
  bind_kernel(module, "move_slices", move_slices);
}

}  // namespace seqflow
