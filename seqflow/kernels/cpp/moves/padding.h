// Padding, time-major packing, and their inverses. In NumPy: padding.py.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

// Flat rows to padded ones, or back.
struct Padding {
  uint8_t *flat;
  uint8_t *padded;
  uint8_t *mask;
  int64_t row_bytes, width;
  const int64_t *offsets;  // [number of sequences + 1], checked
  bool left;
  bool streams;  // write around the caches
  Pattern pattern;
};

// Flat rows to rows by time step, or back.
struct ByTime {
  uint8_t *flat;
  uint8_t *packed;
  int64_t row_bytes, num_sequences;
  const int64_t *offsets;  // [num_sequences + 1], checked
  bool streams;            // write around the caches
  Pattern pattern;
};

struct PaddingKernels {
  void (*pad)(const Padding &, int64_t begin, int64_t end);  // sequences
  void (*unpad)(const Padding &, int64_t begin, int64_t end);
  void (*pack_by_time)(const ByTime &, int64_t begin, int64_t end);  // time steps
  void (*unpack_by_time)(const ByTime &, int64_t begin, int64_t end);
};
SEQFLOW_TABLE(PaddingKernels, padding_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "moves/by_time.h"
#include "moves/pad.h"

namespace seqflow {
namespace SEQFLOW_ISA {

extern const PaddingKernels padding_kernels = {pad, unpad, pack_by_time, unpack_by_time};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
