// Attention inside sequences, in tiles of scores that are made and thrown away. In NumPy: attention.py.
//
// The queries of a sequence are cut into tiles of QUERIES rows, its keys into tiles of KEYS rows, both from the start of
// the sequence. A unit is a query tile of one head; those of one key head are numbered tile by tile. Every sum is made in
// the order of keys, or of queries, whatever else is in the batch and however many threads there are.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

constexpr int64_t QUERIES = 64, KEYS = 256;
constexpr int64_t UNITS = 16;  // of a forward task: they share the packed keys and values

// Arrays of T, float or double: q and out [queries, heads, depth | width], k and v [keys, groups, depth | width],
// lse [queries, heads], slopes [heads] or null; gradients are shaped as what they belong to.
struct Attention {
  int64_t heads, groups, depth, width;
  int64_t before, after;  // keys that a query sees before and after its own place
  bool from_end;          // the last query stands at the last key; else the first one at the first
  double scale, softcap;  // softcap 0: none
  const int64_t *offsets, *kv_offsets;  // checked
  const void *q, *k, *v, *slopes;
  void *out, *lse;
  const void *d_out, *d_lse;
  void *d_q, *d_k, *d_v;
  void (*await)(const int64_t *turn, int64_t unit);  // returns when *turn is above the unit
};

// Units [first, last) of a key head (forward), or its keys [first, last) (backward).
struct AttentionTask {
  int64_t sequence, group, first, last;
};

// Tasks of a key head add to d_q in the order of their keys: each says how many units it is done with.
struct Turns {
  const int64_t *before;  // null: of the first task
  int64_t *own;
  double *d_slopes;  // [heads of the group], to be added to; null without slopes
};

// For float and for double.
struct AttentionKernels {
  int64_t (*scratch[2])(const Attention &, bool backward);  // elements
  void (*forward[2])(const Attention &, const AttentionTask &, void *scratch);
  void (*backward[2])(const Attention &, const AttentionTask &, const Turns &, void *scratch);
};
SEQFLOW_TABLE(AttentionKernels, attention_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "attention/attention_backward.h"
#include "attention/attention_forward.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class T>
int64_t scratch_size(const Attention &job, bool backward) {
  return backward ? BackwardTiles<T>(job, nullptr).size : ForwardTiles<T>(job, nullptr).size;
}

extern const AttentionKernels attention_kernels = {
    {scratch_size<float>, scratch_size<double>},
    {attention_forward<float>, attention_forward<double>},
    {attention_backward<float>, attention_backward<double>},
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
