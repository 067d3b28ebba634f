// Products, variances and norms of segments. In NumPy: reductions.py.
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

// Sums over rows in float64, of x, |x|, x² or the squared distances from means.
enum Moment { PLAIN, MAGNITUDES, SQUARES, DISTANCES, NUM_MOMENTS };
struct RowSums {
  const void *data;
  int64_t columns;
  const double *means;  // [columns], of distances
};
using SumRows = void (*)(const RowSums &, int64_t from, int64_t to, double *sums);  // [columns]
using DivideRows = void (*)(const RowSums &, int64_t from, int64_t to, const double *by, void *out);

using WholeSegmentKernel = void (*)(const WholeSegments &, int64_t begin, int64_t end);  // segments

struct WholeSegmentKernels {
  WholeSegmentKernel prod[NUM_TYPES];
  WholeSegmentKernel variance[NUM_TYPES];
  SumRows sum_rows[NUM_MOMENTS][NUM_TYPES];
  DivideRows divide_float32, divide_float64;
};
SEQFLOW_TABLE(WholeSegmentKernels, whole_segment_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "reductions/columns.h"
#include "reductions/rules.h"
#include "reductions/run_sums.h"

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
      for (int64_t i = 0; i < size; ++i, row += block.all)
        for (int64_t c = 0; c < block.count; ++c) products[c] *= static_cast<F>(row[c]);
      for (int64_t c = 0; c < block.count; ++c) to[c] = size == 0 ? empty : static_cast<A>(products[c]);
    });
  }
}

template <Moment moment>
struct Changed {
  template <class V, class M>
  static V of(V x, M mean) {
    if constexpr (moment == MAGNITUDES) return x < 0 ? -x : x;
    if constexpr (moment == SQUARES) return x * x;
    if constexpr (moment == DISTANCES) return (x - mean) * (x - mean);
    return x;
  }
};

template <class T, Moment moment>
void sum_rows(const RowSums &job, int64_t from, int64_t to, double *sums) {
  const int64_t columns = job.columns;
  const T *const data = static_cast<const T *>(job.data);
  if (columns == 1) {
    const double mean = job.means ? *job.means : 0;
    *sums = sum_of_run(data + from, to - from, [mean](auto x) { return Changed<moment>::of(x, mean); });
    return;
  }
  for (int64_t c = 0; c < columns; ++c) sums[c] = 0;
  for (const T *row = data + from * columns; from < to; ++from, row += columns)
    for (int64_t c = 0; c < columns; ++c)
      sums[c] += Changed<moment>::of(static_cast<double>(row[c]), job.means ? job.means[c] : 0);
}

template <class T>
void divide_rows(const RowSums &job, int64_t from, int64_t to, const double *by, void *out) {
  const int64_t columns = job.columns;
  const T *const data = static_cast<const T *>(job.data);
  T *const result = static_cast<T *>(out);
  if (columns == 1) {
    const double divisor = *by;
    for (int64_t i = from; i < to; ++i) result[i] = static_cast<T>(static_cast<double>(data[i]) / divisor);
    return;
  }
  for (int64_t i = from * columns; i < to * columns; i += columns)
    for (int64_t c = 0; c < columns; ++c) result[i + c] = static_cast<T>(static_cast<double>(data[i + c]) / by[c]);
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

template <class T> constexpr SumRows sum_plain = sum_rows<T, PLAIN>;
template <class T> constexpr SumRows sum_magnitudes = sum_rows<T, MAGNITUDES>;
template <class T> constexpr SumRows sum_squares = sum_rows<T, SQUARES>;
template <class T> constexpr SumRows sum_distances = sum_rows<T, DISTANCES>;

extern const WholeSegmentKernels whole_segment_kernels = {
    SEQFLOW_TYPES(prod_segments),
    SEQFLOW_TYPES(variance_segments),
    {SEQFLOW_TYPES(sum_plain), SEQFLOW_TYPES(sum_magnitudes), SEQFLOW_TYPES(sum_squares), SEQFLOW_TYPES(sum_distances)},
    divide_rows<float>,
    divide_rows<double>,
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
