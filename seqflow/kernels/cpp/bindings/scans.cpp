// Binds scans.h: cumulative sums of each segment.
#include "shared/processor.h"
#include "bindings/python.h"
#include "reductions/scans.h"
#include "shared/segments.h"

namespace seqflow {
namespace {

nb::object scan(const ScanKernel (&kernels)[NUM_TYPES], nb::handle data, nb::handle lengths, bool reverse,
                bool exclusive) {
  const Buffer rows(data), counts(lengths);
  if (rows.is_half()) return scan(kernels, cast(data, dtype_named(FLOAT32)), lengths, reverse, exclusive);
  const Type type = rows.type();
  Scan job = {};
  job.columns = rows.row_elements();
  if (job.columns == 0) decline();
  nb::object result = empty_array({rows.extent(0)}, rows, 1, dtype_named(sum_type(type)));
  job.data = rows.data();
  job.out = Buffer(result, NUMERIC, true).data();
  job.reverse = reverse;
  job.exclusive = exclusive;
  const Integers sizes = counts.counts();
  const Unlocked unlocked(rows.bytes());
  const Numbers offsets = checked_offsets(sizes, "lengths");
  job.offsets = offsets.data();
  check_sum(offsets[offsets.size - 1], rows.extent(0), "lengths", "data");
  const ScanKernel run = kernels[type];
  parallel_segments(offsets, job.columns, rows.bytes(), [&](int64_t begin, int64_t end) { run(job, begin, end); });
  return result;
}

nb::object cumsum_within(nb::handle data, nb::handle lengths, bool reverse, bool exclusive) {
  return scan(SEQFLOW_SELECTED(scan_kernels).cumsum, data, lengths, reverse, exclusive);
}

}  // namespace

void bind_scans(nb::module_ &module) {
  bind_kernel(module, "cumsum_within", cumsum_within);
}

}  // namespace seqflow
