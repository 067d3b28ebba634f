// Sort, argsort, top-k and argmax of each segment. In NumPy: ordering.py.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

// Rows of one column, except where the largest is looked for, and of `columns` there.
struct Ordering {
  const void *data;
  int64_t columns;
  const int64_t *offsets;  // [num_segments + 1], checked
  int64_t num_segments;
  int64_t flipped;     // bits of each element that are flipped where elements are compared (order_keys.h)
  int64_t k;           // how many of each segment
  void *values;        // sorted rows, or the largest k of each segment; of `arg` the largest, unless it is null
  int64_t *positions;  // inside the segment
  const void *empty;   // one element for `values` of a segment without rows, or null for 0
  bool *declines;      // set where `values` are not made: of several NaN reductions take another one
};

// A long run of elements that becomes `num_buckets`, each with the elements from one pivot up to the next.
struct Dividing {
  const void *data;
  void *out;
  int64_t flipped;  // as above
  int64_t num_buckets;
  const uint64_t *pivots;  // keys, ascending, one less than there are buckets
};

// Segments up to this many elements are sorted without scratch memory.
constexpr int64_t MAX_SHORT = 64;

// What a call needs for its longest segment, where that is longer than MAX_SHORT.
constexpr int64_t scratch_bytes(int64_t longest) { return 5 * sizeof(int64_t) * (longest + 8); }

struct OrderingKernels {
  void (*sort[NUM_TYPES])(const Ordering &, int64_t begin, int64_t end, void *scratch);
  void (*argsort[NUM_TYPES])(const Ordering &, int64_t begin, int64_t end, void *scratch);
  void (*topk[NUM_TYPES])(const Ordering &, int64_t begin, int64_t end, void *scratch);
  void (*arg[NUM_TYPES])(const Ordering &, int64_t begin, int64_t end, void *scratch);
  void (*keys[NUM_TYPES])(const Dividing &, int64_t step, int64_t count, uint64_t *keys);
  void (*count[NUM_TYPES])(const Dividing &, int64_t begin, int64_t end, int64_t *counts);
  void (*fill[NUM_TYPES])(const Dividing &, int64_t begin, int64_t end, int64_t *next);
};
SEQFLOW_TABLE(OrderingKernels, ordering_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "ordering/dividing.h"
#include "ordering/extremes.h"
#include "ordering/sorting.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// Unsigned integers go by the functions of signed ones.
#define SEQFLOW_ORDERED(f)                                                                       \
  {f<int8_t>,  f<int8_t>,  f<int16_t>, f<int16_t>, f<int32_t>, f<int32_t>, f<int64_t>, f<int64_t>, \
   f<float>,   f<double>}

extern const OrderingKernels ordering_kernels = {
    SEQFLOW_ORDERED(sort_segments),
    SEQFLOW_ORDERED(argsort_segments),
    SEQFLOW_ORDERED(topk_segments),
    SEQFLOW_ORDERED(arg_segments),
    SEQFLOW_ORDERED(order_keys_of),
    SEQFLOW_ORDERED(count_buckets),
    SEQFLOW_ORDERED(fill_buckets),
};
#undef SEQFLOW_ORDERED

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
