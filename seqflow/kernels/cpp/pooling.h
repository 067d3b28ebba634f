// Reducing rows of a table that indices pick, segment by segment. In NumPy: reductions.py.
#pragma once

#include "instruction_set.h"
#include "reduction.h"

namespace seqflow {

constexpr int FLOAT16 = NUM_TYPES;  // a table may have float16 as well, which is pooled without a copy
constexpr int NUM_TABLE_TYPES = NUM_TYPES + 1;

// Indices are int64; those into float32 may be int32, unless they are weighted in float64.
struct PoolingKernels {
  ReduceBlock pool_block[NUM_KINDS][NUM_TABLE_TYPES];
  CombineBlocks combine[NUM_KINDS][NUM_TABLE_TYPES];
  // Sums of rows times weights: in float32, of float32 and float16; and in float64.
  ReduceBlock weigh_float32, weigh_float16, weigh_block[NUM_TABLE_TYPES];
  CombineBlocks combine_float32, combine_float64;
};
SEQFLOW_TABLE(PoolingKernels, pooling_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "picked_rows.h"
#include "reduce.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// float32 is pooled by int32 as well, all others by int64 alone.
template <class R, bool weighted>
void pool_block(Reduction &job, int64_t block) {
  using T = typename R::T;
  if constexpr (__is_same(T, float) && __is_same(typename R::A, float))
    if (!job.indices.wide) return reduce_block<R, Picked<T, int32_t, weighted>>(job, block);
  reduce_block<R, Picked<T, int64_t, weighted>>(job, block);
}

template <int kind> struct Pool {
  template <class T> static void reduce(Reduction &job, int64_t block) { pool_block<Rule<kind, T>, false>(job, block); }
  template <class T> static void combine(Reduction &job) { combine_blocks<Rule<kind, T>>(job); }
};

template <class Total> struct Weigh {
  struct Types { using A = Total; using F = double; };
  template <class T> struct Rows : Adding<T, Types> { static constexpr bool divides = false; };
  template <class T> static void reduce(Reduction &job, int64_t block) { pool_block<Rows<T>, true>(job, block); }
};

#define SEQFLOW_TABLE_TYPES(f)                                                                         \
  {f<int8_t>,  f<uint8_t>,  f<int16_t>, f<uint16_t>, f<int32_t>, f<uint32_t>, f<int64_t>, f<uint64_t>, \
   f<float>,   f<double>,   f<Half>}

extern const PoolingKernels pooling_kernels = {
    {SEQFLOW_TABLE_TYPES(Pool<SUM>::reduce), SEQFLOW_TABLE_TYPES(Pool<MEAN>::reduce),
     SEQFLOW_TABLE_TYPES(Pool<MAX>::reduce), SEQFLOW_TABLE_TYPES(Pool<MIN>::reduce)},
    {SEQFLOW_TABLE_TYPES(Pool<SUM>::combine), SEQFLOW_TABLE_TYPES(Pool<MEAN>::combine),
     SEQFLOW_TABLE_TYPES(Pool<MAX>::combine), SEQFLOW_TABLE_TYPES(Pool<MIN>::combine)},
    Weigh<float>::reduce<float>,
    Weigh<float>::reduce<Half>,
    SEQFLOW_TABLE_TYPES(Weigh<double>::reduce),
    combine_blocks<Weigh<float>::Rows<float>>,
    combine_blocks<Weigh<double>::Rows<double>>,
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
