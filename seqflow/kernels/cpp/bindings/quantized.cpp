// Binds quantized.h: pooling of quantized embedding tables.
#include <cstring>
#include <optional>

#include "shared/processor.h"
#include "bindings/python.h"
#include "reductions/quantized.h"
#include "shared/segments.h"

namespace seqflow {
namespace {

bool is_second(const char *name, const char *first, const char *second) {
  if (std::strcmp(name, first) == 0) return false;
  if (std::strcmp(name, second) == 0) return true;
  decline();
}

PoolQuantized kernel_of(int64_t bits) {
  const QuantizedKernels &kernels = SEQFLOW_SELECTED(quantized_kernels);
  if (bits == 8) return kernels.bits8;
  if (bits == 4) return kernels.bits4;
  if (bits == 2) return kernels.bits2;
  decline();
}

nb::object pool_quantized(const char *kind, nb::handle table, nb::handle weights, nb::handle indices,
                          nb::handle lengths, Index bits, const char *scale, bool pruned) {
  const PoolQuantized kernel = kernel_of(bits);
  const Buffer rows(table), picks(indices), counts(lengths);
  if (!rows.is_bytes() || rows.rank() != 2) decline();
  const Integers sizes = counts.counts();
  QuantizedPooling job = {};
  job.mean = is_second(kind, "sum", "mean");
  job.half = is_second(scale, "float32", "float16");
  job.table = rows.data();
  job.num_rows = rows.extent(0);
  job.row_bytes = rows.extent(1);
  job.packed_bytes = job.row_bytes - (job.half ? 4 : 8);
  if (job.packed_bytes <= 0) decline();
  job.indices = picks.counts();
  job.pruned = pruned;
  std::optional<Buffer> factors;
  if (!weights.is_none()) {
    factors.emplace(weights);
    if (factors->type() != FLOAT32 || factors->rank() != 1 || factors->size() != job.indices.size) decline();
    job.weights = reinterpret_cast<const float *>(factors->data());
  }
  const int64_t columns = product(job.packed_bytes, 8 / bits);
  nb::object result = empty_array({sizes.size, columns}, rows, 2, dtype_named(FLOAT32));
  Buffer out(result, NUMERIC, true);
  job.out = reinterpret_cast<float *>(out.data());
  const int64_t bytes = product(job.indices.size, job.row_bytes);
  const Unlocked unlocked(bytes);
  const Numbers offsets = checked_offsets(sizes, "lengths");
  job.offsets = offsets.data();
  check_sum(offsets[sizes.size], job.indices.size, "lengths", "indices");
  parallel_segments(offsets, columns, bytes, [&](int64_t begin, int64_t end) { kernel(job, begin, end); });
  if (job.fault) blame_index(job.indices, 0, job.num_rows, pruned, -1, "indices");
  return result;
}

}  // namespace

void bind_quantized(nb::module_ &module) { bind_kernel(module, "pool_quantized", pool_quantized); }

}  // namespace seqflow
