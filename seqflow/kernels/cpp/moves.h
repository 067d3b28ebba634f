// Rows by index, and slices of rows from one array to another. In NumPy: moves.py.
#pragma once

#include "instruction_set.h"

namespace seqflow {

// Rows of `row_bytes` picked by indices.
struct Gather {
  const uint8_t *data;
  int64_t num_rows, row_bytes;
  Integers indices;
  bool wrap, ignores;
  int64_t ignored;
  uint8_t *out;
  bool fault = false;
};

// Slices of rows from one array to another.
struct Slices {
  const uint8_t *source;
  uint8_t *target;
  int64_t source_rows, target_rows, row_bytes;
  Integers source_starts, sizes, target_starts;
};

struct MoveKernels {
  void (*gather)(Gather &, int64_t begin, int64_t end);              // indices
  void (*move_slices)(const Slices &, int64_t begin, int64_t end);  // slices
};
SEQFLOW_TABLE(MoveKernels, move_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "copy.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// ROW_BYTES 0: any number.
template <int ROW_BYTES>
void gather_rows(Gather &job, int64_t begin, int64_t end) {
  const int64_t row_bytes = ROW_BYTES ? ROW_BYTES : job.row_bytes;
  const int64_t low = job.wrap ? -job.num_rows : 0;
  const bool far = job.num_rows * row_bytes >= (1 << 18);
  const int64_t wanted = 8192 / row_bytes;
  const int64_t ahead = far ? (wanted < 32 ? wanted : 32) : 0;
  uint8_t *to = job.out + begin * row_bytes;
  for (int64_t i = begin; i < end; ++i, to += row_bytes) {
    if (ahead != 0 && i + ahead < end) {
      const uint64_t index = static_cast<uint64_t>(job.indices[i + ahead]);
      prefetch(reinterpret_cast<uintptr_t>(job.data) + index * static_cast<uint64_t>(row_bytes), row_bytes);
    }
    int64_t index = job.indices[i];
    if (job.ignores && index == job.ignored) {
      memset(to, 0, row_bytes);
      continue;
    }
    if (index < low || index >= job.num_rows) {
      __atomic_store_n(&job.fault, true, __ATOMIC_RELAXED);
      return;
    }
    if (index < 0) index += job.num_rows;
    const uint8_t *from = job.data + index * row_bytes;
    if constexpr (ROW_BYTES != 0)
      memcpy(to, from, ROW_BYTES);
    else
      copy(to, from, row_bytes);
  }
}

inline void gather(Gather &job, int64_t begin, int64_t end) {
  switch (job.row_bytes) {
    case 1: return gather_rows<1>(job, begin, end);
    case 2: return gather_rows<2>(job, begin, end);
    case 4: return gather_rows<4>(job, begin, end);
    case 8: return gather_rows<8>(job, begin, end);
    case 16: return gather_rows<16>(job, begin, end);
    default: return gather_rows<0>(job, begin, end);
  }
}

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

extern const MoveKernels move_kernels = {gather, move_slices};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
