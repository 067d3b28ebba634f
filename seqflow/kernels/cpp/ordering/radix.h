// Radix sort. Stable, and in the same time for any data.
#pragma once

#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

constexpr int64_t MANY = 1 << 13;  // from here on wider digits, and so fewer passes, are worth their tables

template <class T>
void exchange(T &a, T &b) {
  const T before = a;
  a = b;
  b = before;
}

// `keys` in order, and `places` moved along unless they are null; `other_…` are as large. Counts are of type C. Returns
// whether the result is in the others.
template <int BITS, class C, bool PLACES, class U>
bool radix_sort(U *keys, U *other_keys, int64_t *places, int64_t *other_places, int64_t size) {
  constexpr int DIGITS = (sizeof(U) * 8 + BITS - 1) / BITS, VALUES = 1 << BITS;
  C counts[DIGITS][VALUES] = {};
  for (int64_t i = 0; i < size; ++i)
    for (int digit = 0; digit < DIGITS; ++digit) ++counts[digit][(keys[i] >> (digit * BITS)) % VALUES];
  bool moved = false;
  for (int digit = 0; digit < DIGITS; ++digit) {
    C *next = counts[digit];
    if (static_cast<int64_t>(next[(keys[0] >> (digit * BITS)) % VALUES]) == size) continue;  // all have the same
    C before = 0;
    for (int value = 0; value < VALUES; ++value) {
      const C count = next[value];
      next[value] = before;
      before += count;
    }
    for (int64_t i = 0; i < size; ++i) {
      const U key = keys[i];
      const auto to = next[(key >> (digit * BITS)) % VALUES]++;
      other_keys[to] = key;
      if constexpr (PLACES) other_places[to] = places[i];
    }
    exchange(keys, other_keys);
    exchange(places, other_places);
    moved = !moved;
  }
  return moved;
}

template <class U>
const U *sort_digits(U *keys, U *other_keys, int64_t size) {
  constexpr int BITS = sizeof(U) > 2 ? 11 : 8;
  const bool moved = size > UINT32_MAX
                         ? radix_sort<8, int64_t, false>(keys, other_keys, nullptr, nullptr, size)
                         : radix_sort<BITS, uint32_t, false>(keys, other_keys, nullptr, nullptr, size);
  return moved ? other_keys : keys;
}

template <class U>
bool sort_digits(U *keys, U *other_keys, int64_t *places, int64_t *other_places, int64_t size) {
  if constexpr (sizeof(U) > 2) {
    if (size >= MANY) return radix_sort<11, int64_t, true>(keys, other_keys, places, other_places, size);
  }
  return radix_sort<8, int64_t, true>(keys, other_keys, places, other_places, size);
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
