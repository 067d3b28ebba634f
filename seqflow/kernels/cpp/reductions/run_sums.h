// Sums in float64 over elements that follow one another.
#pragma once

#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// The sum of `change(x)` over a run of elements.
template <class T, class Change>
inline double sum_of_run(const T *from, int64_t size, const Change &change) {
  constexpr int LANES = VECTOR_BYTES / sizeof(double);
  using V = Vector<double, LANES>;
  V sums = {}, more = {};
  int64_t i = 0;
  for (; i + 2 * LANES <= size; i += 2 * LANES) {
    sums += change(load<double, T, LANES>(from + i));
    more += change(load<double, T, LANES>(from + i + LANES));
  }
  double total = across<Plus, double, LANES>(sums + more);
  for (; i < size; ++i) total += change(static_cast<double>(from[i]));
  return total;
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
