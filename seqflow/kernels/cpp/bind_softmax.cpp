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

nb::object softmax_within_backward(nb::handle d, nb::handle out, nb::handle lengths) {
  const Buffer arriving(d), result(out), counts(lengths);
  const Type type = result.type();
  if (arriving.is_half() || result.is_half() || arriving.type() != type) decline();
  if ((type != FLOAT32 && type != FLOAT64) || result.row_elements() == 0) decline();
  if (arriving.extent(0) != result.extent(0) || arriving.size() != result.size()) decline();
  nb::object back = empty_array({result.extent(0)}, result, 1, dtype_named(type));
  SoftmaxBackward job = {};
  job.columns = result.row_elements();
  job.d = arriving.data(), job.y = result.data();
  job.out = Buffer(back, NUMERIC, true).data();
  const Unlocked unlocked(result.bytes());
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_sum(offsets[offsets.size - 1], result.extent(0), "lengths", "data");
  job.offsets = offsets.data();
  const auto kernel = SEQFLOW_SELECTED(softmax_kernels).backward[type == FLOAT64];
  parallel_segments(offsets, job.columns, result.bytes(),
                    [&](int64_t begin, int64_t end) { kernel(job, begin, end); });
  return back;
}

}  // namespace

void bind_softmax(nb::module_ &module) {
  bind_kernel(module, "softmax_within", softmax_within);
  bind_kernel(module, "segment_logsumexp", segment_logsumexp);
  bind_kernel(module, "softmax_within_backward", softmax_within_backward);
}

}  // namespace seqflow
