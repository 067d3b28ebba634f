// Cumulative sums of each segment. In NumPy: scans.py.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

struct Scan {
  const void *data;
  int64_t columns;
  const int64_t *offsets;  // [num_segments + 1], checked
  void *out;
  bool reverse, exclusive;
  const void *before;  // [columns] sums that each segment begins with, in the type they are added up in; null: zeros
};

using ScanKernel = void (*)(const Scan &, int64_t begin, int64_t end);  // segments

struct ScanKernels {
  ScanKernel cumsum[NUM_TYPES];
  void (*total[NUM_TYPES])(const Scan &, int64_t from, int64_t to, void *sums);  // of rows; [columns], in that type
};
SEQFLOW_TABLE(ScanKernels, scan_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "reductions/columns.h"
#include "reductions/rules.h"
#include "reductions/run_sums.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class T>
void cumsum_segments(const Scan &job, int64_t begin, int64_t end) {
  using A = typename SumTypes<T>::A;
  using F = typename SumTypes<T>::F;
  const int64_t *offsets = job.offsets, columns = job.columns;
  for (int64_t k = begin; k < end; ++k) {
    const int64_t size = offsets[k + 1] - offsets[k], step = job.reverse ? -columns : columns;
    const int64_t first = (job.reverse ? offsets[k + 1] - 1 : offsets[k]) * columns;
    each_block(columns, [&](int64_t column, auto block) {
      const T *row = static_cast<const T *>(job.data) + first + column;
      A *to = static_cast<A *>(job.out) + first + column;
      F sums[COLUMNS];
      for (int64_t c = 0; c < block.count; ++c)
        sums[c] = job.before ? static_cast<const F *>(job.before)[column + c] : F{};
      for (int64_t i = 0; i < size; ++i, row += step, to += step)
        for (int64_t c = 0; c < block.count; ++c) {
          const F before = sums[c];
          sums[c] += static_cast<F>(row[c]);
          to[c] = static_cast<A>(job.exclusive ? before : sums[c]);
        }
    });
  }
}

template <class T>
void total_rows(const Scan &job, int64_t from, int64_t to, void *out) {
  using F = typename SumTypes<T>::F;
  F *const sums = static_cast<F *>(out);
  const T *row = static_cast<const T *>(job.data) + from * job.columns;
  if constexpr (__is_same(F, double))
    if (job.columns == 1) {
      *sums = sum_of_run(row, to - from, [](auto x) { return x; });
      return;
    }
  for (int64_t c = 0; c < job.columns; ++c) sums[c] = 0;
  for (; from < to; ++from, row += job.columns)
    for (int64_t c = 0; c < job.columns; ++c) sums[c] += static_cast<F>(row[c]);
}

extern const ScanKernels scan_kernels = {
    SEQFLOW_TYPES(cumsum_segments),
    SEQFLOW_TYPES(total_rows),
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
