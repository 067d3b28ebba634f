// Exponentials inside segments: the job, and the kernels of one instruction set.
#pragma once

#include <stdint.h>

namespace seqflow {

enum SoftmaxForm { SOFTMAX, LOG_SOFTMAX, LOGSUMEXP, NUM_SOFTMAX_FORMS };

// float32 or float64 rows, column by column. `out` has a row for each row, for LOGSUMEXP one for each segment.
struct Softmax {
  const void *data;
  int64_t columns;
  const int64_t *offsets;  // [num_segments + 1], checked
  int64_t num_segments;
  const void *empty;  // one element of the result, or null for 0
  void *out;
};

struct SoftmaxKernels {
  void (*run[NUM_SOFTMAX_FORMS][2])(const Softmax &, int64_t begin, int64_t end);  // segments; float32, float64
};

namespace baseline { extern const SoftmaxKernels softmax_kernels; }
namespace avx2 { extern const SoftmaxKernels softmax_kernels; }
namespace avx512 { extern const SoftmaxKernels softmax_kernels; }

}  // namespace seqflow
