// Divides a long run of elements into buckets in ascending order, a piece at a time. Elements that compare equal share a
// bucket and keep their order.
#pragma once

#include "ordering/order_keys.h"
#include "ordering/ordering.h"

namespace seqflow {
namespace SEQFLOW_ISA {

constexpr int64_t AT_A_TIME = 512;

// `keys` of `count` elements, `step` apart.
template <class T>
void order_keys_of(const Dividing &job, int64_t step, int64_t count, uint64_t *keys) {
  const T *const data = static_cast<const T *>(job.data);
  for (int64_t i = 0; i < count; ++i) keys[i] = Digits<T>::stable(data[i * step], job.flipped);
}

// Call `body(at, count, keys)` for elements [begin, end); after the last there are keys of which the bucket is the last.
template <class T, class Body>
inline void in_blocks(const Dividing &job, int64_t begin, int64_t end, const Body &body) {
  using U = typename Digits<T>::U;
  const T *const data = static_cast<const T *>(job.data);
  U keys[AT_A_TIME];
  for (; end - begin >= AT_A_TIME; begin += AT_A_TIME) {
    for (int64_t i = 0; i < AT_A_TIME; ++i) keys[i] = Digits<T>::stable(data[begin + i], job.flipped);
    body(begin, AT_A_TIME, keys);
  }
  for (int64_t i = 0; i < AT_A_TIME; ++i)
    keys[i] = i < end - begin ? Digits<T>::stable(data[begin + i], job.flipped) : static_cast<U>(~U{0});
  body(begin, end - begin, keys);
}

// How many of the elements each bucket has.
template <class T>
void count_buckets(const Dividing &job, int64_t begin, int64_t end, int64_t *counts) {
  in_blocks<T>(job, begin, end, [&](int64_t, int64_t count, const auto *keys) {
    int64_t before = AT_A_TIME;
    for (int64_t j = 0; j + 1 < job.num_buckets; ++j) {
      const auto pivot = static_cast<typename Digits<T>::U>(job.pivots[j]);
      int32_t found = 0;
      for (int64_t i = 0; i < AT_A_TIME; ++i) found += keys[i] >= pivot;
      counts[j] += before - found;
      before = found;
    }
    counts[job.num_buckets - 1] += before - (AT_A_TIME - count);
  });
}

// Each element to the next place of its bucket.
template <class T>
void fill_buckets(const Dividing &job, int64_t begin, int64_t end, int64_t *next) {
  const T *const data = static_cast<const T *>(job.data);
  T *const out = static_cast<T *>(job.out);
  in_blocks<T>(job, begin, end, [&](int64_t at, int64_t count, const auto *keys) {
    uint8_t buckets[AT_A_TIME] = {};
    for (int64_t j = 0; j + 1 < job.num_buckets; ++j) {
      const auto pivot = static_cast<typename Digits<T>::U>(job.pivots[j]);
      for (int64_t i = 0; i < AT_A_TIME; ++i) buckets[i] += keys[i] >= pivot;
    }
    for (int64_t i = 0; i < count; ++i) out[next[buckets[i]]++] = data[at + i];
  });
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
