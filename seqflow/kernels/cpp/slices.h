// Slices of rows from one array to another. In NumPy: reference.move_slices.
#pragma once

#include "copy.h"

namespace seqflow {
namespace SEQFLOW_ISA {

inline bool inside(int64_t start, int64_t size, int64_t rows) {
  return size >= 0 && start >= 0 && size <= rows && start <= rows - size;
}

// All slices were checked; they are looked at again because another thread may have changed them since.
inline void move_slices(const Slices &job, int64_t begin, int64_t end) {
  constexpr int64_t AHEAD = 4;
  for (int64_t k = begin; k < end; ++k) {
    if (k + AHEAD < end) {
      const uint64_t start = static_cast<uint64_t>(job.source_starts[k + AHEAD]);
      prefetch(reinterpret_cast<uintptr_t>(job.source) + start * static_cast<uint64_t>(job.row_bytes), 128);
    }
    const int64_t from = job.source_starts[k], size = job.sizes[k], to = job.target_starts[k];
    if (!inside(from, size, job.source_rows) || !inside(to, size, job.target_rows)) continue;
    copy(job.target + to * job.row_bytes, job.source + from * job.row_bytes, size * job.row_bytes);
  }
}

// One number for each row of segments begin .. end - 1: f(segment, position). A short segment is written as one of
// SHORT rows where so many are left: what is too much the next ones overwrite.
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

// For each row the number of its segment. In NumPy: reference.lengths_to_segment_ids.
inline void segment_ids(const int64_t *offsets, int64_t begin, int64_t end, int64_t *out) {
  number_rows(offsets, begin, end, out, [](int64_t k, int64_t) { return k; });
}

// For each row its position inside its segment. In NumPy: reference.lengths_to_positions.
inline void positions(const int64_t *offsets, int64_t begin, int64_t end, int64_t *out) {
  number_rows(offsets, begin, end, out, [](int64_t, int64_t i) { return i; });
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
