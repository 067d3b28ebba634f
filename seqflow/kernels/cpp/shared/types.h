// The plain structs that kernels work on. No std templates here: what includes this is compiled once for each
// instruction set.
#pragma once

#include <stdint.h>

namespace seqflow {

// A contiguous array of int32 or int64. An entry is read exactly once, so that what was checked is what is used.
struct Integers {
  const void *values = nullptr;
  int64_t size = 0;
  bool wide = true;

  // Always inline: a copy of its own could be the one that was compiled for another instruction set.
  __attribute__((always_inline)) int64_t operator[](int64_t i) const {
    return wide ? __atomic_load_n(static_cast<const int64_t *>(values) + i, __ATOMIC_RELAXED)
                : __atomic_load_n(static_cast<const int32_t *>(values) + i, __ATOMIC_RELAXED);
  }
};

enum Kind { SUM, MEAN, MAX, MIN, NUM_KINDS };
enum Type { INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FLOAT32, FLOAT64, NUM_TYPES };

// A value to fill with: `bytes` holds it over and over where its size divides 64, else it is repeated one by one.
struct Pattern {
  uint8_t bytes[64];
  const uint8_t *value;
  int64_t size;
  bool repeats;
};

}  // namespace seqflow
