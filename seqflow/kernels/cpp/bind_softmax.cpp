// Binds softmax.h.
#include "processor.h"
#include "python.h"
#include "segments.h"
#include "softmax.h"

namespace seqflow {
namespace {

constexpr int64_t SOFTMAX_WORK = 4;  // exp takes longer than a copy

nb::object run(SoftmaxForm form, nb::handle data, nb::handle lengths, nb::handle empty) {
  const Buffer rows(data), counts(lengths);
  if (rows.is_half()) return run(form, cast(data, dtype_named(FLOAT64)), lengths, empty);
  const Type type = rows.type();
  if (type != FLOAT32 && type != FLOAT64) return run(form, cast(data, dtype_named(FLOAT64)), lengths, empty);
  if (rows.row_elements() == 0) decline();
  const Integers sizes = counts.counts();
  const nb::object dtype = dtype_named(type);
  Softmax job = {};
  job.columns = rows.row_elements();
  const int64_t size = form == LOGSUMEXP ? sizes.size : rows.extent(0);
  nb::object result = empty_array({size}, rows, 1, dtype);
  const Fill fill(empty, dtype);
  job.data = rows.data();
  job.empty = fill.data();
  job.out = Buffer(result, NUMERIC, true).data();
  const Unlocked unlocked(rows.bytes());
  const Numbers offsets = checked_offsets(sizes, "lengths");
  job.offsets = offsets.data();
  job.num_segments = offsets.size - 1;
  check_sum(offsets[job.num_segments], rows.extent(0), "lengths", "data");
  const auto kernel = SEQFLOW_SELECTED(softmax_kernels).run[form][type == FLOAT64];
  parallel_segments(offsets, job.columns, product(rows.bytes(), SOFTMAX_WORK),
                    [&](int64_t begin, int64_t end) { kernel(job, begin, end); });
  return result;
}

nb::object softmax_within(nb::handle data, nb::handle lengths, bool log) {
  return run(log ? LOG_SOFTMAX : SOFTMAX, data, lengths, nb::int_(0));
}

nb::object segment_logsumexp(nb::handle data, nb::handle lengths, nb::handle empty) {
  return run(LOGSUMEXP, data, lengths, empty);
}

}  // namespace

void bind_softmax(nb::module_ &module) {
  bind_kernel(module, "softmax_within", softmax_within);
  bind_kernel(module, "segment_logsumexp", segment_logsumexp);
}

}  // namespace seqflow
