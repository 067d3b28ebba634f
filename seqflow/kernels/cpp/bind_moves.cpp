#include "processor.h"
#include "python.h"
#include "threads.h"

namespace seqflow {
namespace {

// From so many bytes on an output is written around the caches, which could not hold it anyway.
constexpr int64_t STREAMED = 1 << 24;

void check_bytes(const Buffer &out, int64_t bytes) {
  if (out.bytes() != bytes) throw nb::value_error("the output has another size than the result");
}

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
  check_bytes(result, bytes);
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

nb::object pad(nb::handle data, nb::handle lengths, int64_t width, nb::handle value, bool left, bool truncate,
               nb::object out, nb::object mask) {
  Buffer rows(data);
  const Buffer counts(lengths);
  rows.check_movable();
  Padding job = {};
  job.flat = rows.data();
  job.row_bytes = rows.row_bytes();
  if (job.row_bytes == 0) not_plain();
  job.width = width;
  job.left = left;
  job.pattern = pattern_of(value, job.row_bytes);
  const int64_t num_sequences = counts.counts().size;
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_sum(offsets[num_sequences], rows.extent(0), "lengths", "data");
  if (!truncate) check_room(offsets, width, "lengths");
  job.offsets = offsets.data();
  const int64_t cells = product(num_sequences, width), bytes = product(cells, job.row_bytes);
  if (out.is_none()) out = empty_array({num_sequences, width}, rows, 1, dtype_of(data));
  if (mask.is_none()) mask = empty_array({num_sequences, width}, counts, 1, bool_dtype());
  Buffer padded(out, true), marks(mask, true);
  check_bytes(padded, bytes);
  check_bytes(marks, cells);
  job.padded = padded.data();
  job.mask = marks.data();
  job.streams = bytes >= STREAMED;
  {
    const Unlocked unlocked(bytes);
    parallel_ranges(num_sequences, bytes, [&](int64_t begin, int64_t end) { kernels().pad(job, begin, end); });
  }
  return nb::make_tuple(out, mask);
}

nb::object unpad(nb::handle padded, nb::handle lengths, bool left, nb::object out) {
  Buffer rows(padded);
  const Buffer counts(lengths);
  rows.check_movable();
  if (rows.rank() < 2) not_plain();
  Padding job = {};
  job.padded = rows.data();
  job.row_bytes = rows.row_bytes(2);
  if (job.row_bytes == 0 || counts.counts().size != rows.extent(0)) not_plain();
  job.width = rows.extent(1);
  job.left = left;
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_room(offsets, job.width, "lengths");
  job.offsets = offsets.data();
  const int64_t num_sequences = offsets.size - 1, total = offsets[num_sequences];
  if (out.is_none()) out = empty_array({total}, rows, 2, dtype_of(padded));
  Buffer flat(out, true);
  const int64_t bytes = product(total, job.row_bytes);
  check_bytes(flat, bytes);
  job.flat = flat.data();
  job.streams = bytes >= STREAMED;
  const Unlocked unlocked(bytes);
  parallel_ranges(num_sequences, bytes, [&](int64_t begin, int64_t end) { kernels().unpad(job, begin, end); });
  return out;
}

}  // namespace

void bind_moves(nb::module_ &module) {
  module.def("gather", gather, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none());
  module.def("move_slices", move_slices);
  module.def("pad", pad, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(),
             nb::arg().none(), nb::arg().none());
  module.def("unpad", unpad, nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
}

}  // namespace seqflow
