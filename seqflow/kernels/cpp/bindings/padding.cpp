// Binds padding.h: pad, unpad, and rows by time step.
#include <cstring>

#include "moves/padding.h"
#include "shared/processor.h"
#include "bindings/python.h"
#include "shared/threads.h"

namespace seqflow {
namespace {

// Outputs of at least this many bytes, too large for the caches, are written past them. A fresh output is not: the
// system has just cleared its pages, so they are in the caches.
constexpr int64_t STREAMED = 1 << 24;

bool is_left(const char *side) {
  if (std::strcmp(side, "left") == 0) return true;
  if (std::strcmp(side, "right") != 0) decline();
  return false;
}

nb::object pad(nb::object data, nb::handle lengths, Index width, nb::handle value, const char *side, bool truncate,
               nb::handle out, nb::handle mask) {
  Buffer rows(data, ANY);
  const Buffer counts(lengths);
  Padding job = {};
  job.flat = rows.data();
  job.row_bytes = rows.row_bytes();
  if (job.row_bytes == 0 || width < 0) decline();
  job.width = width;
  job.left = is_left(side);
  const nb::object dtype = dtype_of(data);
  const Fill fill(value, dtype, rows.is_described());
  job.pattern = fill.pattern();
  const int64_t num_sequences = counts.counts().size;
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_sum(offsets[num_sequences], rows.extent(0), "lengths", "data");
  if (!truncate) check_room(offsets, width, "lengths");
  job.offsets = offsets.data();
  const int64_t bytes = product(product(num_sequences, width), job.row_bytes);
  job.streams = bytes >= STREAMED && !out.is_none();
  nb::object padded = output(out, {num_sequences, width}, rows, 1, dtype);
  nb::object marks = output(mask, {num_sequences, width}, counts, 1, bool_dtype(), "mask");
  Buffer to(padded, ANY, true), kept(marks, NUMERIC, true);
  if (to.shares_memory(rows) || kept.shares_memory(rows))
    return pad(copy_of(data), lengths, width, value, side, truncate, out, mask);
  job.padded = to.data();
  job.mask = kept.data();
  {
    const Unlocked unlocked(bytes);
    const auto run = SEQFLOW_SELECTED(padding_kernels).pad;
    parallel_ranges(num_sequences, bytes, [&](int64_t begin, int64_t end) { run(job, begin, end); });
  }
  return nb::make_tuple(padded, marks);
}

nb::object unpad(nb::object padded, nb::handle lengths, const char *side, nb::handle out) {
  Buffer rows(padded, ANY);
  const Buffer counts(lengths);
  if (rows.rank() < 2) decline();
  Padding job = {};
  job.padded = rows.data();
  job.row_bytes = rows.row_bytes(2);
  if (job.row_bytes == 0 || counts.counts().size != rows.extent(0)) decline();
  job.width = rows.extent(1);
  job.left = is_left(side);
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_room(offsets, job.width, "lengths");
  job.offsets = offsets.data();
  const int64_t num_sequences = offsets.size - 1, total = offsets[num_sequences];
  const int64_t bytes = product(total, job.row_bytes);
  job.streams = bytes >= STREAMED && !out.is_none();
  nb::object data = output(out, {total}, rows, 2, dtype_of(padded));
  Buffer flat(data, ANY, true);
  if (flat.shares_memory(rows)) return unpad(copy_of(padded), lengths, side, out);
  job.flat = flat.data();
  const Unlocked unlocked(bytes);
  const auto run = SEQFLOW_SELECTED(padding_kernels).unpad;
  parallel_ranges(num_sequences, bytes, [&](int64_t begin, int64_t end) { run(job, begin, end); });
  return data;
}

// Steps are split between threads in whole tiles, for any number of rows.
template <class F>
void each_steps(int64_t num_steps, int64_t bytes, F &&body) {
  if (bytes == 0) return;  // there may be 2**62 steps of no sequences
  constexpr int64_t STEPS = 128;
  parallel_for((num_steps + STEPS - 1) / STEPS, bytes, [&](int64_t task) {
    const int64_t begin = task * STEPS, end = begin + STEPS;
    body(begin, end < num_steps ? end : num_steps);
  });
}

nb::object pack_by_time(nb::object data, nb::handle lengths, Index num_steps, nb::handle value, nb::handle out) {
  Buffer rows(data, ANY);
  const Buffer counts(lengths);
  ByTime job = {};
  job.flat = rows.data();
  job.row_bytes = rows.row_bytes();
  if (job.row_bytes == 0 || num_steps < 0) decline();
  const nb::object dtype = dtype_of(data);
  const Fill fill(value, dtype, rows.is_described());
  job.pattern = fill.pattern();
  job.num_sequences = counts.counts().size;
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_sum(offsets[job.num_sequences], rows.extent(0), "lengths", "data");
  check_room(offsets, num_steps, "lengths");
  job.offsets = offsets.data();
  const int64_t bytes = product(product(num_steps, job.num_sequences), job.row_bytes);
  job.streams = bytes >= STREAMED && job.pattern.repeats && !out.is_none();
  nb::object packed = output(out, {num_steps, job.num_sequences}, rows, 1, dtype);
  Buffer to(packed, ANY, true);
  if (to.shares_memory(rows)) return pack_by_time(copy_of(data), lengths, num_steps, value, out);
  job.packed = to.data();
  const Unlocked unlocked(bytes);
  const auto run = SEQFLOW_SELECTED(padding_kernels).pack_by_time;
  each_steps(num_steps, bytes, [&](int64_t begin, int64_t end) { run(job, begin, end); });
  return packed;
}

nb::object unpack_by_time(nb::object packed, nb::handle lengths, nb::handle out) {
  Buffer rows(packed, ANY);
  const Buffer counts(lengths);
  if (rows.rank() < 2) decline();
  ByTime job = {};
  job.packed = rows.data();
  job.row_bytes = rows.row_bytes(2);
  job.num_sequences = rows.extent(1);
  if (job.row_bytes == 0 || counts.counts().size != job.num_sequences) decline();
  const int64_t num_steps = rows.extent(0);
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_room(offsets, num_steps, "lengths");
  job.offsets = offsets.data();
  const int64_t total = offsets[job.num_sequences], bytes = product(total, job.row_bytes);
  nb::object data = output(out, {total}, rows, 2, dtype_of(packed));
  Buffer flat(data, ANY, true);
  if (flat.shares_memory(rows)) return unpack_by_time(copy_of(packed), lengths, out);
  job.flat = flat.data();
  const Unlocked unlocked(bytes);
  const auto run = SEQFLOW_SELECTED(padding_kernels).unpack_by_time;
  each_steps(num_steps, bytes, [&](int64_t begin, int64_t end) { run(job, begin, end); });
  return data;
}

}  // namespace

void bind_padding(nb::module_ &module) {
  bind_kernel(module, "pad", pad);
  bind_kernel(module, "unpad", unpad);
  bind_kernel(module, "pack_by_time", pack_by_time);
  bind_kernel(module, "unpack_by_time", unpack_by_time);
}

}  // namespace seqflow
