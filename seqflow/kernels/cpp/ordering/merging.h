// Merges sorted runs of elements, a part of the result at a time. Of equal elements those of the left run are first.
#pragma once

#include "ordering/order_keys.h"
#include "ordering/ordering.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// Whether b is before a: NaN is the largest, and 0 and -0 are equal.
template <class T>
inline bool is_before(T b, T a, int64_t flipped) {
  if constexpr (Keys<T>::floats)
    return flipped ? (b > a) | ((b != b) & (a == a)) : (b < a) | ((a != a) & (b == b));
  else
    return static_cast<T>(b ^ static_cast<T>(flipped)) < static_cast<T>(a ^ static_cast<T>(flipped));
}

// How many of the first `count` elements of the result are of the left run.
template <class T>
inline int64_t taken_of_left(const Merging &job, int64_t count) {
  const T *const left = static_cast<const T *>(job.left), *const right = static_cast<const T *>(job.right);
  int64_t low = count < job.right_size ? 0 : count - job.right_size, high = count < job.left_size ? count : job.left_size;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    const bool is_taken = !is_before(right[count - middle - 1], left[middle], job.flipped);
    low = is_taken ? middle + 1 : low;
    high = is_taken ? high : middle;
  }
  return low;
}

template <class T>
struct Merger {
  const T *left, *right, *const left_end, *const right_end;
  T *to;
  const int64_t flipped;

  bool has_both() const { return left != left_end && right != right_end; }
  void step() {
    const bool is_right = is_before(*right, *left, flipped);
    typename Digits<T>::U a, b;
    memcpy(&a, left, sizeof a);
    memcpy(&b, right, sizeof b);
    a ^= (a ^ b) & -static_cast<decltype(a)>(is_right);  // GCC makes a branch of a choice of floats
    memcpy(to++, &a, sizeof a);
    left += !is_right;
    right += is_right;
  }
  void finish() {
    while (has_both()) step();
    memcpy(to, left, static_cast<size_t>(left_end - left) * sizeof(T));
    memcpy(to + (left_end - left), right, static_cast<size_t>(right_end - right) * sizeof(T));
  }
};

template <class T>
Merger<T> merger_of(const Merging &job, int64_t begin, int64_t end) {
  const T *const left = static_cast<const T *>(job.left), *const right = static_cast<const T *>(job.right);
  const int64_t first = taken_of_left<T>(job, begin), last = taken_of_left<T>(job, end);
  return {left + first, right + (begin - first), left + last, right + (end - last), static_cast<T *>(job.out) + begin,
          job.flipped};
}

// Two halves at the same time: each step of one waits for the step before.
template <class T>
void merge_runs(const Merging &job, int64_t begin, int64_t end) {
  const int64_t middle = begin + (end - begin) / 2;
  Merger<T> first = merger_of<T>(job, begin, middle), second = merger_of<T>(job, middle, end);
  while (first.has_both() && second.has_both()) {
    first.step();
    second.step();
  }
  first.finish();
  second.finish();
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
