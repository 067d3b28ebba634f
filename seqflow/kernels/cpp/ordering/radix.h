// Radix sort. Stable, and in the same time for any data.
#pragma once

#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

constexpr int64_t MANY = 1 << 13;  // from here on wider digits, and so fewer passes, are worth their tables

// `keys` in order, and `places` moved along; `other_…` are as large. Returns whether the result
// is in the others.
template <int BITS, class U>
bool radix_sort(U *keys, U *other_keys, int64_t *places, int64_t *other_places, int64_t size) {
  constexpr int DIGITS = (sizeof(U) * 8 + BITS - 1) / BITS, VALUES = 1 << BITS;
  int64_t counts[DIGITS][VALUES] = {};
  for (int64_t i = 0; i < size; ++i)
    for (int digit = 0; digit < DIGITS; ++digit) ++counts[digit][(keys[i] >> (digit * BITS)) % VALUES];
  bool moved = false;
  for (int digit = 0; digit < DIGITS; ++digit) {
    int64_t *next = counts[digit];
    if (next[(keys[0] >> (digit * BITS)) % VALUES] == size) continue;  // all have the same
    for (int64_t value = 0, before = 0; value < VALUES; ++value) {
      const int64_t count = next[value];
      next[value] = before;
      before += count;
    }
    for (int64_t i = 0; i < size; ++i) {
      const U key = keys[i];
      const int64_t to = next[(key >> (digit * BITS)) % VALUES]++;
      other_keys[to] = key;
      other_places[to] = places[i];
    }
    U *const keys_now = other_keys;
    other_keys = keys;
    keys = keys_now;
    int64_t *const places_now = other_places;
    other_places = places;
    places = places_now;
    moved = !moved;
  }
  return moved;
}

// The same without places: returns where the keys in order are.
template <int BITS, class C, class U>
const U *radix_sort(U *keys, U *other_keys, int64_t size) {
  constexpr int DIGITS = (sizeof(U) * 8 + BITS - 1) / BITS, VALUES = 1 << BITS;
  C counts[DIGITS][VALUES] = {};
  for (int64_t i = 0; i < size; ++i)
    for (int digit = 0; digit < DIGITS; ++digit) ++counts[digit][(keys[i] >> (digit * BITS)) % VALUES];
  for (int digit = 0; digit < DIGITS; ++digit) {
    C *next = counts[digit];
    if (static_cast<int64_t>(next[(keys[0] >> (digit * BITS)) % VALUES]) == size) continue;  // all have the same
    C before = 0;
    for (int value = 0; value < VALUES; ++value) {
      const C count = next[value];
      next[value] = before;
      before += count;
    }
    for (int64_t i = 0; i < size; ++i) other_keys[next[(keys[i] >> (digit * BITS)) % VALUES]++] = keys[i];
    U *const keys_now = other_keys;
    other_keys = keys;
    keys = keys_now;
  }
  return keys;
}

template <class U>
const U *sort_digits(U *keys, U *other_keys, int64_t size) {
  if (size > UINT32_MAX) return radix_sort<8, int64_t>(keys, other_keys, size);
  return radix_sort<(sizeof(U) > 2 ? 11 : 8), uint32_t>(keys, other_keys, size);
}

template <class U>
bool sort_digits(U *keys, U *other_keys, int64_t *places, int64_t *other_places, int64_t size) {
  if constexpr (sizeof(U) > 2) {
    if (size >= MANY) return radix_sort<11>(keys, other_keys, places, other_places, size);
  }
  return radix_sort<8>(keys, other_keys, places, other_places, size);
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
