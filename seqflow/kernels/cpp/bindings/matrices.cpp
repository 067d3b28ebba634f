// Binds matrices.h.
#include <memory>

#include "bindings/python.h"
#include "matrices/matrices.h"
#include "shared/processor.h"
#include "shared/segments.h"

namespace seqflow {
namespace {

nb::object multiply_segments(nb::handle x, nb::handle weight, nb::handle lengths, bool transpose) {
  const Buffer rows(x), matrices(weight), counts(lengths);
  const Type type = rows.type();
  if ((type != FLOAT32 && type != FLOAT64) || rows.is_half() || rows.rank() != 2) decline();
  if (matrices.type() != type || matrices.is_half() || matrices.rank() != 3) decline();
  const Integers sizes = counts.counts();
  Matrices job = {};
  job.inner = matrices.extent(transpose ? 2 : 1), job.outer = matrices.extent(transpose ? 1 : 2);
  job.transposed = transpose;
  if (rows.extent(1) != job.inner || matrices.extent(0) != sizes.size) decline();
  nb::object result = empty_array({rows.extent(0), job.outer}, counts, 1, dtype_named(type));
  Buffer out(result, NUMERIC, true);
  job.x = rows.data(), job.weight = matrices.data(), job.y = out.data();
  const Unlocked unlocked(rows.bytes() + matrices.bytes());
  const Numbers offsets = checked_offsets(sizes, "lengths");
  job.offsets = offsets.data();
  check_sum(offsets[sizes.size], rows.extent(0), "lengths", "x");
  const MatricesKernels &kernels = SEQFLOW_SELECTED(matrices_kernels);
  const bool wide = type == FLOAT64;
  const auto bytes = static_cast<size_t>(kernels.scratch[wide](job));
  parallel_segments(offsets, job.inner + job.outer, matrices.bytes() + product(out.bytes(), job.inner) / 8,
                    [&](int64_t begin, int64_t end) {
    const std::unique_ptr<uint8_t[]> scratch(new uint8_t[bytes]);
    kernels.multiply[wide](job, begin, end, scratch.get());
  });
  return result;
}

}  // namespace

void bind_matrices(nb::module_ &module) { bind_kernel(module, "multiply_segments", multiply_segments); }

}  // namespace seqflow
