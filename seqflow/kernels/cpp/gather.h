// Rows by index. In NumPy: reference.gather.
#pragma once

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

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
