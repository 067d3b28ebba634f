#include "processor.h"
#include "python.h"
#include "threads.h"

namespace seqflow {
namespace {

// From so many bytes on an output is written around the caches, which could not hold it anyway. Not so a fresh
// one: the system clears each of its pages right before, and so puts it there.
constexpr int64_t STREAMED = 1 << 24;

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
  job.streams = bytes >= STREAMED && !out.is_none();
  if (out.is_none()) out = empty_array({num_sequences, width}, rows, 1, dtype_of(data));
  if (mask.is_none()) mask = empty_array({num_sequences, width}, counts, 1, bool_dtype());
  Buffer padded(out, true), marks(mask, true);
  padded.check_bytes(bytes);
  marks.check_bytes(cells);
  job.padded = padded.data();
  job.mask = marks.data();
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
  const int64_t bytes = product(total, job.row_bytes);
  job.streams = bytes >= STREAMED && !out.is_none();
  if (out.is_none()) out = empty_array({total}, rows, 2, dtype_of(padded));
  Buffer flat(out, true);
  flat.check_bytes(bytes);
  job.flat = flat.data();
  const Unlocked unlocked(bytes);
  parallel_ranges(num_sequences, bytes, [&](int64_t begin, int64_t end) { kernels().unpad(job, begin, end); });
  return out;
}

// On several threads, some steps on each: whole tiles of them, whatever the rows.
template <class F>
void each_steps(int64_t num_steps, int64_t bytes, F &&body) {
  constexpr int64_t STEPS = 128;
  parallel_for((num_steps + STEPS - 1) / STEPS, bytes, [&](int64_t task) {
    const int64_t begin = task * STEPS, end = begin + STEPS;
    body(begin, end < num_steps ? end : num_steps);
  });
}

nb::object pack_by_time(nb::handle data, nb::handle lengths, int64_t num_steps, nb::handle value, nb::object out) {
  Buffer rows(data);
  const Buffer counts(lengths);
  rows.check_movable();
  ByTime job = {};
  job.flat = rows.data();
  job.row_bytes = rows.row_bytes();
  if (job.row_bytes == 0) not_plain();
  job.pattern = pattern_of(value, job.row_bytes);
  job.num_sequences = counts.counts().size;
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_sum(offsets[job.num_sequences], rows.extent(0), "lengths", "data");
  check_room(offsets, num_steps, "lengths");
  job.offsets = offsets.data();
  const int64_t bytes = product(product(num_steps, job.num_sequences), job.row_bytes);
  job.streams = bytes >= STREAMED && job.pattern.repeats && !out.is_none();
  if (out.is_none()) out = empty_array({num_steps, job.num_sequences}, rows, 1, dtype_of(data));
  Buffer packed(out, true);
  packed.check_bytes(bytes);
  job.packed = packed.data();
  const Unlocked unlocked(bytes);
  each_steps(num_steps, bytes, [&](int64_t begin, int64_t end) { kernels().pack_by_time(job, begin, end); });
  return out;
}

nb::object unpack_by_time(nb::handle packed, nb::handle lengths, nb::object out) {
  Buffer rows(packed);
  const Buffer counts(lengths);
  rows.check_movable();
  if (rows.rank() < 2) not_plain();
  ByTime job = {};
  job.packed = rows.data();
  job.row_bytes = rows.row_bytes(2);
  job.num_sequences = rows.extent(1);
  if (job.row_bytes == 0 || counts.counts().size != job.num_sequences) not_plain();
  const int64_t num_steps = rows.extent(0);
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_room(offsets, num_steps, "lengths");
  job.offsets = offsets.data();
  const int64_t total = offsets[job.num_sequences];
  if (out.is_none()) out = empty_array({total}, rows, 2, dtype_of(packed));
  Buffer flat(out, true);
  const int64_t bytes = product(total, job.row_bytes);
  flat.check_bytes(bytes);
  job.flat = flat.data();
  const Unlocked unlocked(bytes);
  each_steps(num_steps, bytes, [&](int64_t begin, int64_t end) { kernels().unpack_by_time(job, begin, end); });
  return out;
}

}  // namespace

void bind_padding(nb::module_ &module) {
  module.def("pad", pad, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg(), nb::arg(),
             nb::arg().none(), nb::arg().none());
  module.def("unpad", unpad, nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
  module.def("pack_by_time", pack_by_time, nb::arg(), nb::arg(), nb::arg(), nb::arg().none(), nb::arg().none());
  module.def("unpack_by_time", unpack_by_time, nb::arg(), nb::arg(), nb::arg().none());
}

}  // namespace seqflow
