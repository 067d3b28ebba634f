#include "processor.h"
#include "python.h"
#include "threads.h"

namespace seqflow {
namespace {

int64_t check_lengths(nb::handle lengths) {
  const Buffer buffer(lengths);
  return check_total(buffer.counts(), "lengths");
}

int64_t max_length(nb::handle lengths) {
  const Buffer buffer(lengths);
  return check_max(buffer.counts(), "lengths");
}

nb::object lengths_to_offsets(nb::handle lengths) {
  const Buffer buffer(lengths);
  const Numbers offsets = checked_offsets(buffer.counts(), "lengths");
  return int64_array(offsets.data(), offsets.size);
}

nb::object lengths_to_segment_ids(nb::handle lengths) {
  const Buffer buffer(lengths);
  const Numbers offsets = checked_offsets(buffer.counts(), "lengths");
  const int64_t num_segments = offsets.size - 1, total = offsets[num_segments];
  nb::object ids = empty_array({total}, buffer, 1, dtype_named(INT64));
  Buffer out(ids, true);
  const int64_t bytes = product(total, sizeof(int64_t));
  Unlocked unlocked(bytes);
  parallel_ranges(num_segments, bytes, [&](int64_t begin, int64_t end) {
    kernels().segment_ids(offsets.data(), begin, end, reinterpret_cast<int64_t *>(out.data()));
  });
  return ids;
}

}  // namespace

void bind_lengths(nb::module_ &module) {
  module.def("check_lengths", check_lengths);
  module.def("max_length", max_length);
  module.def("lengths_to_offsets", lengths_to_offsets);
  module.def("lengths_to_segment_ids", lengths_to_segment_ids);
}

}  // namespace seqflow
