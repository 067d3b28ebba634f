#include "folds_kernels.h"
#include "processor.h"
#include "python.h"
#include "segments.h"

namespace seqflow {
namespace {

using Kernel = void (*)(const Fold &, int64_t begin, int64_t end);

nb::object run(const Kernel (FoldKernels::*kernels)[NUM_TYPES], nb::handle data, nb::handle lengths, bool row_by_row,
               bool is_sum, nb::handle empty, Fold job) {
  const Buffer rows(data), counts(lengths);
  const Type type = rows.type();
  job.columns = rows.row_elements();
  if (job.columns == 0) not_plain();
  const bool floats = type == FLOAT32 || type == FLOAT64;
  const Type out_type = floats ? type : !is_sum ? FLOAT64 : type == UINT64 ? UINT64 : INT64;
  nb::object result =
      empty_array({row_by_row ? rows.extent(0) : counts.counts().size}, rows, 1, dtype_named(out_type));
  Buffer out(result, true);
  job.data = rows.data();
  job.empty = fill_bytes(empty, out.item_bytes());
  job.out = out.data();
  const Unlocked unlocked(rows.bytes());
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  job.offsets = offsets.data();
  check_sum(offsets[offsets.size - 1], rows.extent(0), "lengths", "data");
  const Kernel kernel = (SEQFLOW_SELECTED(fold_kernels).*kernels)[type];
  parallel_segments(offsets, job.columns, rows.bytes(),
                    [&](int64_t begin, int64_t end) { kernel(job, begin, end); });
  return result;
}

nb::object cumsum_within(nb::handle data, nb::handle lengths, bool reverse, bool exclusive) {
  Fold job = {};
  job.reverse = reverse;
  job.exclusive = exclusive;
  return run(&FoldKernels::cumsum, data, lengths, true, true, nb::none(), job);
}

nb::object segment_prod(nb::handle data, nb::handle lengths, nb::handle empty) {
  return run(&FoldKernels::prod, data, lengths, false, true, empty, Fold{});
}

nb::object segment_variance(nb::handle data, nb::handle lengths, int64_t ddof, nb::handle empty) {
  Fold job = {};
  job.ddof = ddof;
  return run(&FoldKernels::variance, data, lengths, false, false, empty, job);
}

}  // namespace

void bind_folds(nb::module_ &module) {
  module.def("cumsum_within", cumsum_within);
  module.def("segment_prod", segment_prod, nb::arg(), nb::arg(), nb::arg().none());
  module.def("segment_variance", segment_variance, nb::arg(), nb::arg(), nb::arg(), nb::arg().none());
}

}  // namespace seqflow
