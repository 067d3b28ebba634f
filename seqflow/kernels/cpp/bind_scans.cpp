#include "processor.h"
#include "python.h"
#include "scans.h"
#include "segments.h"

namespace seqflow {
namespace {

nb::object cumsum_within(nb::handle data, nb::handle lengths, bool reverse, bool exclusive) {
  const Buffer rows(data), counts(lengths);
  if (rows.is_half()) return cumsum_within(cast(data, dtype_named(FLOAT32)), lengths, reverse, exclusive);
  const Type type = rows.type();
  Scan job = {};
  job.columns = rows.row_elements();
  if (job.columns == 0) decline();
  nb::object sums = empty_array({rows.extent(0)}, rows, 1, dtype_named(sum_type(type)));
  job.data = rows.data();
  job.out = Buffer(sums, NUMERIC, true).data();
  job.reverse = reverse;
  job.exclusive = exclusive;
  const Integers sizes = counts.counts();
  const Unlocked unlocked(rows.bytes());
  const Numbers offsets = checked_offsets(sizes, "lengths");
  job.offsets = offsets.data();
  check_sum(offsets[offsets.size - 1], rows.extent(0), "lengths", "data");
  const auto run = SEQFLOW_SELECTED(scan_kernels).cumsum[type];
  parallel_segments(offsets, job.columns, rows.bytes(), [&](int64_t begin, int64_t end) { run(job, begin, end); });
  return sums;
}

}  // namespace

void bind_scans(nb::module_ &module) { bind_kernel(module, "cumsum_within", cumsum_within); }

}  // namespace seqflow
