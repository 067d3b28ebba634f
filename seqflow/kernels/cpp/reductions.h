// Reducing the rows of each segment. In NumPy: reductions.py.
#pragma once

#include "instruction_set.h"

namespace seqflow {

// Rows of `data`, or those of them that `indices` pick, reduced segment by segment. Positions (rows of direct
// data, entries of indices) are cut into blocks of fixed size; a segment that crosses a border leaves one
// partial result in each block (`tail` where it begins, `head` where it goes on), and `combine` joins them.
struct Reduction {
  const void *data;
  int64_t num_rows, columns;
  const int64_t *offsets;  // [num_segments + 1], checked
  int64_t num_segments;
  bool gathered;
  Integers indices;
  bool ignores;
  int64_t ignored;
  const void *empty;  // one element of the result, or null for 0
  void *out;
  int64_t block_size, num_blocks;
  void *head, *tail, *scratch;         // [num_blocks, columns] accumulators each
  int64_t *head_count, *tail_count;    // how many rows went into them
  bool fault = false;                  // an index was out of range: the caller finds it
};

constexpr int64_t MAX_ACCUMULATOR_BYTES = 8;

struct ReductionKernels {
  void (*reduce_block[NUM_KINDS][NUM_TYPES])(Reduction &, int64_t block);
  void (*combine[NUM_KINDS][NUM_TYPES])(Reduction &);
};
SEQFLOW_TABLE(ReductionKernels, reduction_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "reduce.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <int kind> struct Of {
  template <class T> static void reduce(Reduction &job, int64_t block) { reduce_block<Rule<kind, T>>(job, block); }
  template <class T> static void combine(Reduction &job) { combine_blocks<Rule<kind, T>>(job); }
};

extern const ReductionKernels reduction_kernels = {
    {SEQFLOW_TYPES(Of<SUM>::reduce), SEQFLOW_TYPES(Of<MEAN>::reduce), SEQFLOW_TYPES(Of<MAX>::reduce),
     SEQFLOW_TYPES(Of<MIN>::reduce)},
    {SEQFLOW_TYPES(Of<SUM>::combine), SEQFLOW_TYPES(Of<MEAN>::combine), SEQFLOW_TYPES(Of<MAX>::combine),
     SEQFLOW_TYPES(Of<MIN>::combine)},
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
