// Embedding pooling: reduces the table rows of each segment's indices. In NumPy: reductions.py.
#pragma once

#include "shared/instruction_set.h"
#include "reductions/reduction.h"

namespace seqflow {

constexpr int FLOAT16 = NUM_TYPES;  // a table may have float16 as well, which is pooled without a copy
constexpr int NUM_TABLE_TYPES = NUM_TYPES + 1;

// Indices are int64; those into float32 that is added up in float32 may be int32.
struct PoolingKernels {
  int64_t (*rows_ahead)(int64_t row_bytes);
  ReduceBlock pool_block[NUM_KINDS][NUM_TABLE_TYPES];
  CombineBlocks combine[NUM_KINDS][NUM_TABLE_TYPES];
  // Sums of rows times weights: in float32, of float32 and float16; and in float64.
  ReduceBlock weigh_float32, weigh_float16, weigh_block[NUM_TABLE_TYPES];
  CombineBlocks combine_float32, combine_float64;
};
SEQFLOW_TABLE(PoolingKernels, pooling_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "reductions/pooled_rows.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// Sums of float32 in float32 take int32 as well, all else int64 alone.
template <class R>
constexpr bool takes_int32 = R::adds && __is_same(typename R::T, float) && __is_same(typename R::A, float);

template <class R, bool weighted>
void pool_block(Reduction &job, int64_t block) {
  using Source = Picked<typename R::T, weighted, takes_int32<R>>;
  if constexpr (__is_same(typename R::T, float) && __is_same(typename R::A, float))
    pool_float32<R, Source>(job, block);
  else
    reduce_block<R, Source>(job, block);
}

template <template <class> class Of> struct Pool {
  template <class T> static constexpr ReduceBlock reduce = pool_block<typename Of<T>::Rule, false>;
  template <class T> static constexpr CombineBlocks combine = combine_blocks<typename Of<T>::Rule::OfTotals>;
};

template <class Total> struct Weigh {
  template <class T> static constexpr ReduceBlock reduce = pool_block<Adding<T, Total, double>, true>;
};

#define SEQFLOW_TABLE_TYPES(f)                                                                         \
  {f<int8_t>,  f<uint8_t>,  f<int16_t>, f<uint16_t>, f<int32_t>, f<uint32_t>, f<int64_t>, f<uint64_t>, \
   f<float>,   f<double>,   f<Half>}

extern const PoolingKernels pooling_kernels = {
    rows_ahead,
    {SEQFLOW_TABLE_TYPES(Pool<Sums>::reduce), SEQFLOW_TABLE_TYPES(Pool<Means>::reduce),
     SEQFLOW_TABLE_TYPES(Pool<Extremes>::reduce), SEQFLOW_TABLE_TYPES(Pool<Extremes>::reduce)},
    {SEQFLOW_TABLE_TYPES(Pool<Sums>::combine), SEQFLOW_TABLE_TYPES(Pool<Means>::combine),
     SEQFLOW_TABLE_TYPES(Pool<Extremes>::combine), SEQFLOW_TABLE_TYPES(Pool<Extremes>::combine)},
    Weigh<float>::reduce<float>,
    Weigh<float>::reduce<Half>,
    SEQFLOW_TABLE_TYPES(Weigh<double>::reduce),
    combine_blocks<Adding<float, float, double>>,
    combine_blocks<Adding<double, double, double>>,
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
