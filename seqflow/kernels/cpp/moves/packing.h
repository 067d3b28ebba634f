// Fills rows with several sequences each. In NumPy: packing.py.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

// Pieces of sequences to packed rows; all of it checked.
struct Packing {
  const uint8_t *data;
  uint8_t *packed;
  int32_t *segment_ids, *position_ids;
  int64_t row_bytes, capacity;
  const int64_t *places;  // [number of pieces]: the first row of each piece in data
  const int64_t *ends;    // [number of pieces + 1]: exclusive sum of piece lengths
  const int64_t *first;   // [number of packed rows + 1]: exclusive sum of pieces
  Pattern pattern;
};

struct PackingKernels {
  void (*fill_packed)(const Packing &, int64_t begin, int64_t end);  // packed rows
};
SEQFLOW_TABLE(PackingKernels, packing_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "moves/copy.h"

namespace seqflow {
namespace SEQFLOW_ISA {

inline void fill_row(const Packing &job, int64_t row) {
  uint8_t *to = job.packed + row * job.capacity * job.row_bytes;
  int32_t *segment_ids = job.segment_ids + row * job.capacity;
  int32_t *position_ids = job.position_ids + row * job.capacity;
  int64_t used = 0;
  for (int64_t piece = job.first[row]; piece < job.first[row + 1]; ++piece) {
    const int64_t size = job.ends[piece + 1] - job.ends[piece];
    const int32_t id = static_cast<int32_t>(piece - job.first[row] + 1);
    copy(to + used * job.row_bytes, job.data + job.places[piece] * job.row_bytes, size * job.row_bytes);
    for (int64_t i = 0; i < size; ++i) segment_ids[used + i] = id;
    for (int64_t i = 0; i < size; ++i) position_ids[used + i] = static_cast<int32_t>(i);
    used += size;
  }
  fill(to + used * job.row_bytes, job.pattern, (job.capacity - used) * job.row_bytes);
  memset(segment_ids + used, 0, (job.capacity - used) * sizeof(int32_t));
  memset(position_ids + used, 0, (job.capacity - used) * sizeof(int32_t));
}

inline void fill_packed(const Packing &job, int64_t begin, int64_t end) {
  for (int64_t row = begin; row < end; ++row) fill_row(job, row);
}

extern const PackingKernels packing_kernels = {fill_packed};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
