// Sum or extreme of a contiguous run of elements (rows of one column).
#pragma once

#include "reductions/rules.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class R>
struct Run {
  using T = typename R::T;
  using A = typename R::A;
  using F = typename R::F;
  static constexpr int LANES = VECTOR_BYTES / sizeof(A);
  static constexpr int STEP = 4 * LANES;
  static constexpr int ROUNDS = 8;  // of float32 additions in one lane before they go into a float64
  using V = Vector<A, LANES>;
  using Lane = typename Signed<sizeof(A)>::type;
  using Mask = Vector<Lane, LANES>;

  const R rule;

  inline V at(const T *from, int k) const { return rule.take(load<A, T, LANES>(from + k * LANES)); }
  inline F one(const T *from) const { return static_cast<F>(rule.take(Vector<A, 1>{static_cast<A>(*from)})[0]); }

  // At most VECTORS * LANES elements, where as many may be read; the same bits for any VECTORS.
  template <int VECTORS>
  inline A few(const T *from, int64_t count) const {
    const V neutral = V{} + R::start();
    V parts[4] = {neutral, neutral, neutral, neutral};
    Mask lane;
    for (int i = 0; i < LANES; ++i) lane[i] = i;
#pragma GCC unroll 4
    for (int k = 0; k < VECTORS; ++k) {
      int64_t left = count - k * LANES;
      if constexpr (sizeof(A) == 1) left = left < 0 ? 0 : left > LANES ? LANES : left;
      const Mask limit = Mask{} + static_cast<Lane>(left);
      parts[k] = lane < limit ? at(from, k) : neutral;
    }
    return across<R, A, LANES>(R::join(R::join(parts[0], parts[1]), R::join(parts[2], parts[3])));
  }

  inline F many(const T *from, int64_t count, const T *end) const {
    F total = one(from);
    bool first = true;
    while (count >= STEP) {
      V parts[4] = {at(from, 0), at(from, 1), at(from, 2), at(from, 3)};
      from += STEP, count -= STEP;
      for (int round = 1; round < ROUNDS && count >= STEP; ++round, from += STEP, count -= STEP) {
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) parts[k] = R::join(parts[k], at(from, k));
      }
      const F part = static_cast<F>(
          across<R, A, LANES>(R::join(R::join(parts[0], parts[1]), R::join(parts[2], parts[3]))));
      total = first ? part : R::join(total, part);
      first = false;
    }
    if (count == 0) return total;
    if (end - from >= STEP) {
      const F part = static_cast<F>(few<4>(from, count));
      return first ? part : R::join(total, part);
    }
    for (int64_t i = first ? 1 : 0; i < count; ++i) total = R::join(total, one(from + i));
    return total;
  }

  // `count` > 0 elements, in most cases at most VECTORS * LANES; nothing at or behind `end` is read.
  template <int VECTORS>
  inline F reduce(const T *from, int64_t count, const T *end) const {
    constexpr int64_t MOST = VECTORS * LANES;
    if (count <= MOST && end - from >= MOST) return static_cast<F>(few<VECTORS>(from, count));
    if constexpr (VECTORS < 4)
      if (count <= STEP && end - from >= STEP) return static_cast<F>(few<4>(from, count));
    return many(from, count, end);
  }
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
