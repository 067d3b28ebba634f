// Equal elements with their own bits, in the order of the input: -0 beside 0, NaN beside NaN.
#pragma once

#include <stdint.h>

namespace seqflow {

// `sorted` holds the elements of `data`, but zeros and NaN (`num_nans`, from `nans` on) may have lost their bits.
// Static, since it is compiled for each instruction set.
template <class T>
static void restore_equals(const T *data, int64_t size, T *sorted, T *nans, int64_t num_nans) {
  int64_t first = 0, last = size, found = 0;
  while (first < size && sorted[first] != 0) ++first;
  while (last > first && sorted[last - 1] != 0) --last;
  for (int64_t i = 0; i < size; ++i) {
    const T value = data[i];
    if (value == 0 && first < last) sorted[first++] = value;
    if (value != value && found < num_nans) nans[found++] = value;
  }
}

}  // namespace seqflow
