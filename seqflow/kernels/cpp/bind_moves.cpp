#include "processor.h"
#include "python.h"
#include "threads.h"

namespace seqflow {
namespace {

nb::object gather(nb::handle data, nb::handle indices, bool wrap, nb::handle ignore_index, nb::object out) {
  const Buffer rows(data), picks(indices);
  rows.check_movable();
  const Ignored ignored(ignore_index);
  Gather job = {};
  job.data = rows.data();
  job.num_rows = rows.extent(0);
  job.row_bytes = rows.row_bytes();
  if (job.row_bytes == 0) not_plain();
  job.indices = picks.integers();
  job.wrap = wrap;
  job.ignores = ignored.any;
  job.ignored = ignored.index;
  const int64_t bytes = product(job.indices.size, job.row_bytes);
  if (out.is_none()) {
    if (picks.rank() != 1) not_plain();
    out = empty_array({job.indices.size}, rows, 1, dtype_of(data));
  }
  Buffer result(out, true);
  result.check_bytes(bytes);
  job.out = result.data();
  const Unlocked unlocked(bytes);
  parallel_ranges(job.indices.size, bytes,
                  [&](int64_t begin, int64_t end) { kernels().gather(job, begin, end); });
  if (job.fault)
    blame_index(job.indices, wrap ? -job.num_rows : 0, job.num_rows, job.ignores, job.ignored, "indices");
  return out;
}

void move_slices(nb::handle source, nb::handle source_starts, nb::handle sizes, nb::handle target,
                 nb::handle target_starts) {
  const Buffer from(source), from_starts(source_starts), counts(sizes), to_starts(target_starts);
  from.check_movable();
  Buffer to(target, true);
  Slices job = {};
  job.source = from.data();
  job.target = to.data();
  job.source_rows = from.extent(0);
  job.target_rows = to.extent(0);
  job.row_bytes = from.row_bytes();
  if (job.row_bytes == 0 || !from.has_rows_like(to) || from.shares_memory(to)) not_plain();
  job.source_starts = from_starts.counts();
  job.sizes = counts.counts();
  job.target_starts = to_starts.counts();
  if (job.source_starts.size != job.sizes.size || job.target_starts.size != job.sizes.size) not_plain();
  if (from_starts.shares_memory(to) || counts.shares_memory(to) || to_starts.shares_memory(to)) not_plain();
  const Unlocked unlocked(to.bytes());
  check_slices(job);
  const auto move = [&](int64_t begin, int64_t end) { kernels().move_slices(job, begin, end); };
  if (are_apart(job))
    parallel_ranges(job.sizes.size, to.bytes(), move);
  else
    move(0, job.sizes.size);
}

}  // namespace

void bind_moves(nb::module_ &module) {
  module.def("gather", gather, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none());
  module.def("move_slices", move_slices);
}

}  // namespace seqflow
