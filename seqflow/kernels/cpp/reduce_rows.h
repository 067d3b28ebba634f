// Rows to one row, with accumulators in registers.
#pragma once

#include "reduction.h"
#include "rules.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// The rows of the data themselves.
template <class Element>
class Straight {
 public:
  using T = Element;
  static constexpr bool weighted = false;

  explicit Straight(Reduction &job) : data(static_cast<const T *>(job.data)), columns(job.columns) {}

  // Call `body(position, row from that column on)` for positions [from, to); how many of them do not count.
  template <int COLUMNS, class Body>
  inline int64_t each(int64_t from, int64_t to, int64_t column, const Body &body) const {
    const T *row = data + from * columns + column;
    for (int64_t p = from; p < to; ++p, row += columns) body(p, row);
    return 0;
  }

 private:
  const T *const data;
  const int64_t columns;
};

// Reduces rows of `columns` columns, in accumulators of LANES lanes of type A. There are LANES columns at least.
template <class R, class Source, int LANES>
class RowReducer {
 public:
  using T = typename R::T;
  using A = typename R::A;
  using F = typename R::F;
  using V = Vector<A, LANES>;
  static constexpr int MOST = 8;  // vectors that are accumulated at the same time
  static constexpr int FULL = VECTOR_BYTES / sizeof(F), STEP = FULL < LANES ? FULL : LANES;  // lanes of type F

  explicit RowReducer(Reduction &job)
      : columns(job.columns), source(job), weights(static_cast<const A *>(job.weights)), positional(job.positional) {}

  // The segment that begins at `position` is next: weights of positions inside it count from there.
  void begin(int64_t position) { first = positional ? position : 0; }

  // Positions [from, to) to columns [column, end) of a row of results, or of totals where these are not null. The
  // columns are COUNT vectors. The last one ends with them, and so overlaps the one before, or what is before `column`,
  // where they are no multiple of LANES. Returns how many positions counted.
  template <int COUNT>
  inline int64_t reduce(int64_t from, int64_t to, int64_t column, int64_t end, A *out, F *totals) const {
    if (COUNT == 1) column = end - LANES;
    const int64_t last = end - LANES - column;
    V sums[COUNT];
    int64_t used = accumulate<COUNT>(from, first_stop(from, to), column, last, sums);
    if (totals == nullptr && first_stop(from, to) == to) {
      if constexpr (R::divides) {
        const V count = V{} + static_cast<A>(used);
#pragma GCC unroll 8
        for (int k = 0; k < COUNT; ++k) sums[k] /= count;
      }
#pragma GCC unroll 8
      for (int k = 0; k < COUNT; ++k) store<A, LANES>(out + column + (k < COUNT - 1 ? k * LANES : last), sums[k]);
      return used;
    }
    F wide[COUNT * LANES];
    add<COUNT>(sums, wide, true);
    for (from = first_stop(from, to); from < to; from += CHUNK) {
      used += accumulate<COUNT>(from, first_stop(from, to), column, last, sums);
      add<COUNT>(sums, wide, false);
    }
#pragma GCC unroll 8
    for (int k = 0; k < COUNT; ++k) {
      const int64_t at = column + (k < COUNT - 1 ? k * LANES : last);
      for (int i = 0; i < LANES; i += STEP) {
        auto part = load<F, F, STEP>(wide + k * LANES + i);
        if (totals) {
          store<F, STEP>(totals + at + i, part);
          continue;
        }
        if constexpr (R::divides) part /= static_cast<F>(used);
        store<A, STEP>(out + at + i, __builtin_convertvector(part, Vector<A, STEP>));
      }
    }
    return used;
  }

  // The same for MOST vectors, or for one or a part of it.
  __attribute__((noinline)) int64_t reduce_part(int64_t from, int64_t to, int64_t column, int64_t end, A *out,
                                                F *totals) const {
    if (end - column > LANES) return reduce<MOST>(from, to, column, end, out, totals);
    return reduce<1>(from, to, column, end, out, totals);
  }

  // All columns, part by part.
  int64_t reduce_parts(int64_t from, int64_t to, A *out, F *totals) const {
    int64_t used = 0;
    for (int64_t column = 0, end; column < columns; column = end) {
      end = column + MOST * LANES <= columns ? column + MOST * LANES : column + LANES;
      used = reduce_part(from, to, column, end < columns ? end : columns, out, totals);
    }
    return used;
  }

  // All columns, of which the last LAST vectors are reduced in place, and what is before them in parts of MOST.
  template <int LAST>
  inline int64_t reduce_row(int64_t from, int64_t to, A *out) const {
    int64_t column = 0;
    for (; column + LAST * LANES < columns; column += MOST * LANES)
      reduce_part(from, to, column, column + MOST * LANES, out, nullptr);
    return reduce<LAST>(from, to, column, columns, out, nullptr);
  }

  const int64_t columns;

 private:
  // How far sums of type A go before they are added to those of type F.
  static int64_t first_stop(int64_t from, int64_t to) {
    return __is_same(A, F) || to - from <= CHUNK ? to : from + CHUNK;
  }

  template <int COUNT>
  inline int64_t accumulate(int64_t from, int64_t to, int64_t column, int64_t last, V (&out)[COUNT]) const {
    V sums[COUNT];
#pragma GCC unroll 16
    for (int k = 0; k < COUNT; ++k) sums[k] = V{} + R::start();
    const int64_t skipped = source.template each<COUNT * LANES>(from, to, column, [&](int64_t p, const T *row) {
      if constexpr (Source::weighted) {
        const V weight = V{} + weights[p - first];
#pragma GCC unroll 16
        for (int k = 0; k < COUNT; ++k)
          sums[k] += weight * load_row<A, T, LANES>(row + (k < COUNT - 1 ? k * LANES : last));
      } else {
#pragma GCC unroll 16
        for (int k = 0; k < COUNT; ++k)
          sums[k] = R::join(sums[k], load_row<A, T, LANES>(row + (k < COUNT - 1 ? k * LANES : last)));
      }
    });
#pragma GCC unroll 16
    for (int k = 0; k < COUNT; ++k) out[k] = sums[k];
    return to - from - skipped;
  }

  // To totals of type F, or as the first of them.
  template <int COUNT>
  static inline void add(const V (&sums)[COUNT], F *wide, bool is_first) {
#pragma GCC unroll 8
    for (int k = 0; k < COUNT; ++k) {
      A lanes[LANES];
      store<A, LANES>(lanes, sums[k]);
      for (int i = 0; i < LANES; i += STEP) {
        F *const into = wide + k * LANES + i;
        const auto part = load<F, A, STEP>(lanes + i);
        store<F, STEP>(into, is_first ? part : R::join(load<F, F, STEP>(into), part));
      }
    }
  }

  const Source source;
  const A *const weights;
  const bool positional;
  int64_t first = 0;
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
