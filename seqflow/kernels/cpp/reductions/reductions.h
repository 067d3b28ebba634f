// Sum, mean, maximum and minimum of each segment. In NumPy: reductions.py.
#pragma once

#include "shared/instruction_set.h"
#include "reductions/reduction.h"

namespace seqflow {

struct ReductionKernels {
  ReduceBlock reduce_block[NUM_KINDS][NUM_TYPES];
  CombineBlocks combine[NUM_KINDS][NUM_TYPES];
};
SEQFLOW_TABLE(ReductionKernels, reduction_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "reductions/reduce.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <template <class> class Of> struct Direct {
  template <class T> using Rule = typename Of<T>::Rule;
  template <class T> static constexpr ReduceBlock reduce = reduce_block<Rule<T>, Straight<typename Rule<T>::T>>;
  template <class T> static constexpr CombineBlocks combine = combine_blocks<typename Rule<T>::OfTotals>;
};

extern const ReductionKernels reduction_kernels = {
    {SEQFLOW_TYPES(Direct<Sums>::reduce), SEQFLOW_TYPES(Direct<Means>::reduce),
     SEQFLOW_TYPES(Direct<Extremes>::reduce), SEQFLOW_TYPES(Direct<Extremes>::reduce)},
    {SEQFLOW_TYPES(Direct<Sums>::combine), SEQFLOW_TYPES(Direct<Means>::combine),
     SEQFLOW_TYPES(Direct<Extremes>::combine), SEQFLOW_TYPES(Direct<Extremes>::combine)},
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
