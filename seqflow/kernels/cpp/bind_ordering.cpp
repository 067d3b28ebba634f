#include "ordering_kernels.h"
#include "processor.h"
#include "python.h"
#include "segments.h"

namespace seqflow {
namespace {

constexpr int64_t WORK_PER_BYTE = 4;

using Kernel = void (*)(const Ordering &, int64_t begin, int64_t end, void *scratch);

// The parts of a call that all kernels share. `result_of` makes the result and fills in where it is.
template <class Make>
nb::object run(const Kernel (OrderingKernels::*kernels)[NUM_TYPES], nb::handle data, nb::handle lengths,
               bool any_columns, Ordering job, Make &&result_of) {
  const Buffer rows(data), counts(lengths);
  const Type type = rows.type();
  if (rows.row_elements() == 0 || (rows.rank() > 1 && !any_columns)) not_plain();
  job.columns = rows.row_elements();
  job.data = rows.data();
  nb::object result = result_of(rows, counts.counts().size, job);
  const Unlocked unlocked(rows.bytes());
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  job.offsets = offsets.data();
  job.num_segments = offsets.size - 1;
  check_sum(offsets[job.num_segments], rows.extent(0), "lengths", "data");
  const Kernel kernel = (SEQFLOW_SELECTED(ordering_kernels).*kernels)[type];
  parallel_segments(offsets, job.columns, product(rows.bytes(), WORK_PER_BYTE), [&](int64_t begin, int64_t end) {
    int64_t longest = 0;
    for (int64_t k = begin; k < end; ++k) longest = std::max(longest, offsets[k + 1] - offsets[k]);
    std::unique_ptr<int64_t[]> scratch;
    if (longest > MAX_SHORT) scratch.reset(new int64_t[scratch_bytes(longest) / sizeof(int64_t)]);
    kernel(job, begin, end, scratch.get());
  });
  return result;
}

// What was left to NumPy.
void sort_longest(nb::object sorted, nb::handle lengths, bool descending) {
  const Buffer counts(lengths);
  const Integers sizes = counts.counts();
  const nb::object none = nb::none();
  int64_t from = 0;
  for (int64_t k = 0; k < sizes.size; ++k) {
    const int64_t size = sizes[k], to = from + size;
    if (size > MAX_MERGED) {
      nb::object segment = sorted[nb::slice(nb::int_(from), nb::int_(to), none)];
      segment.attr("sort")();
      if (descending) segment[nb::slice(none, none, none)] = segment[nb::slice(none, none, nb::int_(-1))];
    }
    from = to;
  }
}

nb::object sort_within(nb::handle data, nb::handle lengths, bool descending) {
  Ordering job = {};
  job.descending = descending;
  nb::object sorted;
  run(&OrderingKernels::sort, data, lengths, false, job, [&](const Buffer &rows, int64_t, Ordering &job) {
    sorted = empty_array({rows.extent(0)}, rows, 1, dtype_of(data));
    job.values = Buffer(sorted, true).data();
    return sorted;
  });
  sort_longest(sorted, lengths, descending);
  return sorted;
}

nb::object argsort_within(nb::handle data, nb::handle lengths, bool descending) {
  Ordering job = {};
  job.descending = descending;
  return run(&OrderingKernels::argsort, data, lengths, false, job, [](const Buffer &rows, int64_t, Ordering &job) {
    nb::object positions = empty_array({rows.extent(0)}, rows, 1, dtype_named(INT64));
    job.positions = reinterpret_cast<int64_t *>(Buffer(positions, true).data());
    return positions;
  });
}

nb::object segment_topk(nb::handle data, nb::handle lengths, int64_t k) {
  Ordering job = {};
  job.k = k;
  return run(&OrderingKernels::topk, data, lengths, false, job,
             [&](const Buffer &rows, int64_t num_segments, Ordering &job) -> nb::object {
               nb::object values = empty_array({num_segments, k}, rows, 1, dtype_of(data));
               nb::object positions = empty_array({num_segments, k}, rows, 1, dtype_named(INT64));
               job.values = Buffer(values, true).data();
               job.positions = reinterpret_cast<int64_t *>(Buffer(positions, true).data());
               return nb::make_tuple(values, positions);
             });
}

nb::object segment_arg(nb::handle data, nb::handle lengths, bool smallest) {
  Ordering job = {};
  job.descending = smallest;
  return run(&OrderingKernels::arg, data, lengths, true, job,
             [](const Buffer &rows, int64_t num_segments, Ordering &job) {
               nb::object positions = empty_array({num_segments}, rows, 1, dtype_named(INT64));
               job.positions = reinterpret_cast<int64_t *>(Buffer(positions, true).data());
               return positions;
             });
}

}  // namespace

void bind_ordering(nb::module_ &module) {
  module.def("sort_within", sort_within);
  module.def("argsort_within", argsort_within);
  module.def("segment_topk", segment_topk);
  module.def("segment_arg", segment_arg);
}

}  // namespace seqflow
