// Segment ids and positions of rows, from lengths; lengths from offsets. In NumPy: lengths.py.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

// For segments begin .. end - 1; offsets [num_segments + 1] are checked.
struct LengthKernels {
  void (*segment_ids)(const int64_t *offsets, int64_t begin, int64_t end, int64_t *out);
  void (*positions)(const int64_t *offsets, int64_t begin, int64_t end, int64_t *out);
  // From offsets that are not checked: whether none is below the one before it.
  bool (*lengths_of_int32)(const int32_t *offsets, int64_t begin, int64_t end, int64_t *out);
  bool (*lengths_of_int64)(const int64_t *offsets, int64_t begin, int64_t end, int64_t *out);
};
SEQFLOW_TABLE(LengthKernels, length_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)

namespace seqflow {
namespace SEQFLOW_ISA {

// One number for each row of segments begin .. end - 1: f(segment, position). A short segment is written as SHORT
// rows where that many are left; the next segments overwrite the surplus.
template <class F>
inline void number_rows(const int64_t *offsets, int64_t begin, int64_t end, int64_t *out, F &&f) {
  constexpr int64_t SHORT = 16;
  for (int64_t k = begin; k < end; ++k) {
    int64_t *const to = out + offsets[k];
    const int64_t size = offsets[k + 1] - offsets[k], left = offsets[end] - offsets[k];
    int64_t i = 0;
    if (left >= SHORT)
      for (; i < SHORT; ++i) to[i] = f(k, i);
    for (; i < size; ++i) to[i] = f(k, i);
  }
}

// For each row the number of its segment.
inline void segment_ids(const int64_t *offsets, int64_t begin, int64_t end, int64_t *out) {
  number_rows(offsets, begin, end, out, [](int64_t k, int64_t) { return k; });
}

// For each row its position inside its segment.
inline void positions(const int64_t *offsets, int64_t begin, int64_t end, int64_t *out) {
  number_rows(offsets, begin, end, out, [](int64_t, int64_t i) { return i; });
}

template <class I>
bool differences(const I *offsets, int64_t begin, int64_t end, int64_t *out) {
  int64_t decreases = 0;
  for (int64_t k = begin; k < end; ++k) {
    decreases |= offsets[k + 1] < offsets[k];
    out[k] = static_cast<int64_t>(static_cast<uint64_t>(offsets[k + 1]) - static_cast<uint64_t>(offsets[k]));
  }
  return decreases == 0;
}

extern const LengthKernels length_kernels = {segment_ids, positions, differences<int32_t>, differences<int64_t>};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
