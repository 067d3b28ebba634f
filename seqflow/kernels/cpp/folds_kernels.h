// What is worked out row after row: running sums, products, variances. The job, and the kernels of one instruction set.
#pragma once

#include "kernels.h"

namespace seqflow {

struct Fold {
  const void *data;
  int64_t columns;
  const int64_t *offsets;  // [num_segments + 1], checked
  const void *empty;       // one element of the result, or null for 0
  void *out;
  bool reverse, exclusive;  // of running sums
  int64_t ddof;             // of variances
};

struct FoldKernels {
  void (*cumsum[NUM_TYPES])(const Fold &, int64_t begin, int64_t end);  // segments
  void (*prod[NUM_TYPES])(const Fold &, int64_t begin, int64_t end);
  void (*variance[NUM_TYPES])(const Fold &, int64_t begin, int64_t end);
};

namespace baseline { extern const FoldKernels fold_kernels; }
namespace avx2 { extern const FoldKernels fold_kernels; }
namespace avx512 { extern const FoldKernels fold_kernels; }

}  // namespace seqflow
