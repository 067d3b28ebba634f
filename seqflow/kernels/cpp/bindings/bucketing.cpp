// Binds bucketing.h.
#include "ids/bucketing.h"
#include "shared/processor.h"
#include "bindings/python.h"
#include "shared/threads.h"

namespace seqflow {
namespace {

constexpr int64_t BUCKETING_WORK = 2;

nb::object bucketize(nb::handle values, nb::handle boundaries) {
  const Buffer rows(values), bounds(boundaries);
  const Type type = rows.type();
  if (bounds.type() != type || bounds.rank() != 1 || bounds.extent(0) > INT32_MAX) decline();
  nb::object buckets = empty_array({}, rows, 0, dtype_named(INT64));
  Buffer result(buckets, NUMERIC, true);
  Bucketing job = {};
  job.values = rows.data();
  job.boundaries = bounds.data();
  job.num_boundaries = bounds.extent(0);
  job.out = reinterpret_cast<int64_t *>(result.data());
  const Unlocked unlocked(result.bytes());
  const auto run = SEQFLOW_SELECTED(bucketing_kernels).bucketize[type];
  parallel_ranges(rows.size(), product(result.bytes(), BUCKETING_WORK),
                  [&](int64_t begin, int64_t end) { run(job, begin, end); });
  return buckets;
}

}  // namespace

void bind_bucketing(nb::module_ &module) { bind_kernel(module, "bucketize", bucketize); }

}  // namespace seqflow
