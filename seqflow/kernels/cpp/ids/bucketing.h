// Bucket indices of values by sorted boundaries. In NumPy: bucketing.py.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

// Ascending boundaries; the bucket of a value is how many of them are below it.
struct Bucketing {
  const void *values, *boundaries;
  int64_t num_boundaries;  // as int32
  int64_t *out;
};

struct BucketingKernels {
  void (*bucketize[NUM_TYPES])(const Bucketing &, int64_t begin, int64_t end);  // values
};
SEQFLOW_TABLE(BucketingKernels, bucketing_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

constexpr int64_t BUCKETED = 64;  // values worked on at a time

// NaN is above every boundary.
template <class T>
inline bool above(T value, T boundary) {
  return !(value <= boundary);
}

// Compare with every boundary: vectors of values. `count` is BUCKETED but for the last ones.
template <class T>
void count_boundaries(const T *values, const T *boundaries, int64_t num_boundaries, int64_t *out, int64_t count) {
  using Count = typename Signed<sizeof(T)>::type;
  Count counts[BUCKETED] = {};
  T own[BUCKETED] = {};
  memcpy(own, values, count * sizeof(T));
  for (int64_t k = 0; k < num_boundaries; ++k) {
    const T boundary = boundaries[k];
    for (int64_t i = 0; i < BUCKETED; ++i) counts[i] += above(own[i], boundary) ? Count(1) : Count(0);
  }
  for (int64_t i = 0; i < count; ++i) out[i] = counts[i];
}

// Halve the boundaries, for all values of a block in the same steps: no branch depends on the data.
template <class T>
void search_boundaries(const T *values, const T *boundaries, int64_t num_boundaries, int64_t *out, int64_t count) {
  int32_t below[BUCKETED] = {};
  T own[BUCKETED] = {};
  memcpy(own, values, count * sizeof(T));
  int32_t left = static_cast<int32_t>(num_boundaries);
  for (; left > 1; left -= left / 2) {
    const T *const middle = boundaries + left / 2 - 1;
    const int32_t half = left / 2;
    for (int64_t i = 0; i < BUCKETED; ++i) below[i] += half & -static_cast<int32_t>(above(own[i], middle[below[i]]));
  }
  for (int64_t i = 0; i < count; ++i) out[i] = below[i] + above(own[i], boundaries[below[i]]);
}

template <class T>
void bucketize(const Bucketing &job, int64_t begin, int64_t end) {
  constexpr int64_t FEW = 4 * VECTOR_BYTES / static_cast<int64_t>(sizeof(T));
  const T *values = static_cast<const T *>(job.values), *boundaries = static_cast<const T *>(job.boundaries);
  const bool few = job.num_boundaries <= FEW && job.num_boundaries < 127;  // what an int8 counts
  for (int64_t first = begin; first < end; first += BUCKETED) {
    const int64_t count = end - first < BUCKETED ? end - first : BUCKETED;
    (few ? count_boundaries<T> : search_boundaries<T>)(values + first, boundaries, job.num_boundaries,
                                                       job.out + first, count);
  }
}

extern const BucketingKernels bucketing_kernels = {SEQFLOW_TYPES(bucketize)};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
