// Products and variances of segments. In NumPy: reductions.py.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

// Segments reduced one by one, each by one thread: products and variances.
struct WholeSegments {
  const void *data;
  int64_t columns;
  const int64_t *offsets;  // [num_segments + 1], checked
  const void *empty;       // one element of the result, or null for 0
  void *out;
  int64_t ddof;  // of variances
};

using WholeSegmentKernel = void (*)(const WholeSegments &, int64_t begin, int64_t end);  // segments

struct WholeSegmentKernels {
  WholeSegmentKernel prod[NUM_TYPES];
  WholeSegmentKernel variance[NUM_TYPES];
};
SEQFLOW_TABLE(WholeSegmentKernels, whole_segment_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "reductions/columns.h"
#include "reductions/rules.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class T>
void prod_segments(const WholeSegments &job, int64_t begin, int64_t end) {
  using A = typename SumTypes<T>::A;
  using F = typename SumTypes<T>::F;
  const int64_t *offsets = job.offsets, columns = job.columns;
  const A empty = job.empty ? *static_cast<const A *>(job.empty) : A{};
  for (int64_t k = begin; k < end; ++k) {
    const int64_t size = offsets[k + 1] - offsets[k];
    each_block(columns, [&](int64_t column, auto block) {
      const T *row = static_cast<const T *>(job.data) + offsets[k] * columns + column;
      A *to = static_cast<A *>(job.out) + k * columns + column;
      F products[COLUMNS];
      for (int64_t c = 0; c < block.count; ++c) products[c] = 1;
      for (int64_t i = 0; i < size; ++i, row += columns)
        for (int64_t c = 0; c < block.count; ++c) products[c] *= static_cast<F>(row[c]);
      for (int64_t c = 0; c < block.count; ++c) to[c] = size == 0 ? empty : static_cast<A>(products[c]);
    });
  }
}

// The sum of `change(x)` over a run of elements.
template <class T, class Change>
inline double sum_of_run(const T *from, int64_t size, const Change &change) {
  constexpr int LANES = VECTOR_BYTES / sizeof(double);
  using V = Vector<double, LANES>;
  V sums = {}, more = {};
  int64_t i = 0;
  for (; i + 2 * LANES <= size; i += 2 * LANES) {
    sums += change(load<double, T, LANES>(from + i));
    more += change(load<double, T, LANES>(from + i + LANES));
  }
  double total = across<Plus, double, LANES>(sums + more);
  for (; i < size; ++i) total += change(static_cast<double>(from[i]));
  return total;
}

// Twice over the rows: first for the mean, then for the squares of distances from it.
template <class T>
void variance_segments(const WholeSegments &job, int64_t begin, int64_t end) {
  using A = typename MeanTypes<T>::A;
  const int64_t *offsets = job.offsets, columns = job.columns;
  const A empty = job.empty ? *static_cast<const A *>(job.empty) : A{};
  for (int64_t k = begin; k < end; ++k) {
    const int64_t size = offsets[k + 1] - offsets[k];
    const T *from = static_cast<const T *>(job.data) + offsets[k] * columns;
    A *to = static_cast<A *>(job.out) + k * columns;
    if (size <= job.ddof || size == 0) {
      for (int64_t c = 0; c < columns; ++c) to[c] = empty;
      continue;
    }
    const double divisor = static_cast<double>(size - job.ddof);
    if (columns == 1) {
      const double mean = sum_of_run(from, size, [](auto x) { return x; }) / static_cast<double>(size);
      *to = static_cast<A>(sum_of_run(from, size, [mean](auto x) { return (x - mean) * (x - mean); }) / divisor);
      continue;
    }
    each_block(columns, [&](int64_t column, auto block) {
      double means[COLUMNS] = {}, squares[COLUMNS] = {};
      const T *row = from + column;
      for (int64_t i = 0; i < size; ++i)
        for (int64_t c = 0; c < block.count; ++c) means[c] += static_cast<double>(row[i * columns + c]);
      for (int64_t c = 0; c < block.count; ++c) means[c] /= static_cast<double>(size);
      for (int64_t i = 0; i < size; ++i)
        for (int64_t c = 0; c < block.count; ++c) {
          const double distance = static_cast<double>(row[i * columns + c]) - means[c];
          squares[c] += distance * distance;
        }
      for (int64_t c = 0; c < block.count; ++c) to[column + c] = static_cast<A>(squares[c] / divisor);
    });
  }
}

extern const WholeSegmentKernels whole_segment_kernels = {
    SEQFLOW_TYPES(prod_segments),
    SEQFLOW_TYPES(variance_segments),
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
