#include "processor.h"
#include "python.h"
#include "segments.h"
#include "softmax_kernels.h"

namespace seqflow {
namespace {

constexpr int64_t WORK_PER_BYTE = 4;  // exp takes longer than a copy

nb::object run(SoftmaxForm form, nb::handle data, nb::handle lengths, nb::handle empty) {
  const Buffer rows(data), counts(lengths);
  const Type type = rows.type();
  if ((type != FLOAT32 && type != FLOAT64) || rows.row_elements() == 0) not_plain();
  Softmax job = {};
  job.columns = rows.row_elements();
  const int64_t size = form == LOGSUMEXP ? counts.counts().size : rows.extent(0);
  nb::object result = empty_array({size}, rows, 1, dtype_named(type));
  Buffer out(result, true);
  job.data = rows.data();
  job.empty = fill_bytes(empty, out.item_bytes());
  job.out = out.data();
  const Unlocked unlocked(rows.bytes());
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  job.offsets = offsets.data();
  job.num_segments = offsets.size - 1;
  check_sum(offsets[job.num_segments], rows.extent(0), "lengths", "data");
  const auto kernel = SEQFLOW_SELECTED(softmax_kernels).run[form][type == FLOAT64];
  parallel_segments(offsets, job.columns, product(rows.bytes(), WORK_PER_BYTE),
                    [&](int64_t begin, int64_t end) { kernel(job, begin, end); });
  return result;
}

nb::object softmax_within(nb::handle data, nb::handle lengths, bool log) {
  return run(log ? LOG_SOFTMAX : SOFTMAX, data, lengths, nb::none());
}

nb::object segment_logsumexp(nb::handle data, nb::handle lengths, nb::handle empty) {
  return run(LOGSUMEXP, data, lengths, empty);
}

}  // namespace

void bind_softmax(nb::module_ &module) {
  module.def("softmax_within", softmax_within);
  module.def("segment_logsumexp", segment_logsumexp, nb::arg(), nb::arg(), nb::arg().none());
}

}  // namespace seqflow
