// Reducing the rows of each segment. In NumPy: reductions.py.
#pragma once

#include "instruction_set.h"
#include "reduction.h"

namespace seqflow {

struct ReductionKernels {
  ReduceBlock reduce_block[NUM_KINDS][NUM_TYPES];
  CombineBlocks combine[NUM_KINDS][NUM_TYPES];
};
SEQFLOW_TABLE(ReductionKernels, reduction_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "reduce.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <int kind> struct Of {
  template <class T> static void reduce(Reduction &job, int64_t block) {
    reduce_block<Rule<kind, T>, Straight<T>>(job, block);
  }
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
