// Checks of lengths, and lengths.h. In NumPy: lengths.py.
#include "ids/lengths.h"
#include "shared/processor.h"
#include "bindings/python.h"
#include "shared/threads.h"

namespace seqflow {
namespace {

nb::object check_lengths(nb::handle lengths) {
  const Buffer buffer(lengths);
  return nb::int_(check_total(buffer.counts(), "lengths"));
}

// Of a plain array: a masked one, for example, is more than its integers.
nb::object quick_check_lengths(nb::handle lengths) {
  if (!is_plain_array(lengths)) decline();
  return check_lengths(lengths);
}

nb::object max_length(nb::handle lengths) {
  const Buffer buffer(lengths);
  return nb::int_(check_max(buffer.counts(), "lengths"));
}

nb::object lengths_to_offsets(nb::handle lengths) {
  const Buffer buffer(lengths);
  const Numbers offsets = checked_offsets(buffer.counts(), "lengths");
  return int64_array(offsets.data(), offsets.size);
}

using RowNumbers = void (*)(const int64_t *offsets, int64_t begin, int64_t end, int64_t *out);

// One number for each row, which depends on its segment alone.
nb::object number_rows(nb::handle lengths, RowNumbers number) {
  const Buffer buffer(lengths);
  const Numbers offsets = checked_offsets(buffer.counts(), "lengths");
  const int64_t num_segments = offsets.size - 1, total = offsets[num_segments];
  nb::object numbers = empty_array({total}, buffer, 1, dtype_named(INT64));
  Buffer out(numbers, NUMERIC, true);
  const int64_t bytes = product(total, sizeof(int64_t));
  Unlocked unlocked(bytes);
  parallel_ranges(num_segments, bytes, [&](int64_t begin, int64_t end) {
    number(offsets.data(), begin, end, reinterpret_cast<int64_t *>(out.data()));
  });
  return numbers;
}

nb::object lengths_to_segment_ids(nb::handle lengths) {
  return number_rows(lengths, SEQFLOW_SELECTED(length_kernels).segment_ids);
}

nb::object lengths_to_positions(nb::handle lengths) {
  return number_rows(lengths, SEQFLOW_SELECTED(length_kernels).positions);
}

[[noreturn]] void blame_offset(Integers offsets) {
  for (int64_t at = 1; at < offsets.size; ++at) {
    const int64_t before = offsets[at - 1], found = offsets[at];
    if (found < before) throw Fault{"descending", "offsets", {at, found, before}, 3};
  }
  throw Fault{"changed", "offsets", {}, 0};  // another thread wrote to them
}

nb::object offsets_to_lengths(nb::handle values) {
  const Buffer buffer(values);
  const Integers offsets = buffer.counts();
  if (offsets.size && offsets[0] < 0) throw Fault{"negative", "offsets", {0, offsets[0]}, 2};
  const int64_t count = offsets.size ? offsets.size - 1 : 0;
  nb::object lengths = empty_array({count}, buffer, 1, dtype_named(INT64));
  Buffer out(lengths, NUMERIC, true);
  int64_t *const to = reinterpret_cast<int64_t *>(out.data());
  const LengthKernels &kernels = SEQFLOW_SELECTED(length_kernels);
  bool ascends = true;
  {
    const Unlocked unlocked(out.bytes());
    ascends = offsets.wide ? kernels.lengths_of_int64(static_cast<const int64_t *>(offsets.values), 0, count, to)
                           : kernels.lengths_of_int32(static_cast<const int32_t *>(offsets.values), 0, count, to);
  }
  if (!ascends) blame_offset(offsets);
  return lengths;
}

nb::object segment_ids_to_lengths(nb::handle ids, nb::handle limit) {
  Index num_segments;
  num_segments.value = -1;  // as many as the last id says
  if (!limit.is_none() && (!nb::try_cast(limit, num_segments) || num_segments < 0)) decline();
  const Buffer buffer(ids);
  const Integers numbers = buffer.counts();
  const int64_t last = numbers.size ? numbers[numbers.size - 1] : -1;
  if (num_segments < 0 && last == INT64_MAX) refuse_size();
  const int64_t count = num_segments >= 0 ? num_segments : last < 0 ? 0 : last + 1;
  if (last >= count) blame_id(numbers, num_segments, "ids");
  nb::object lengths = empty_array({count}, buffer, 1, dtype_named(INT64));
  Buffer out(lengths, NUMERIC, true);
  const Unlocked unlocked(buffer.bytes());
  if (!count_ids(numbers, count, reinterpret_cast<int64_t *>(out.data()))) blame_id(numbers, num_segments, "ids");
  return lengths;
}

}  // namespace

void bind_lengths(nb::module_ &module) {
  bind_kernel(module, "check_lengths", check_lengths);
  bind_kernel(module, "max_length", max_length);
  bind_kernel(module, "offsets_to_lengths", offsets_to_lengths);
  bind_kernel(module, "lengths_to_offsets", lengths_to_offsets);
  bind_kernel(module, "lengths_to_segment_ids", lengths_to_segment_ids);
  bind_kernel(module, "lengths_to_positions", lengths_to_positions);
  bind_kernel(module, "segment_ids_to_lengths", segment_ids_to_lengths);
  module.def("quick_check_lengths", quick_check_lengths);  // where it declines, nanobind raises TypeError
}

}  // namespace seqflow
