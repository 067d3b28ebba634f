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

  // Call `body(row from that column on, null)` for positions [from, to); how many of them do not count.
  template <int COLUMNS, class Weight, class Body>
  inline int64_t each(int64_t from, int64_t to, int64_t column, const Weight *, const Body &body) const {
    const T *row = data + from * columns + column;
    for (int64_t p = from; p < to; ++p, row += columns) body(row, nullptr);
    return 0;
  }

 private:
  const T *const data;
  const int64_t columns;
};

// Reduces COUNT vectors of columns, in accumulators of LANES lanes of type A: columns [column, end) of rows that have
// LANES of them at least. The last vector ends with them, and so overlaps the one before, or what is before `column`,
// where they are no multiple of LANES.
template <class R, class Source, int LANES, int COUNT>
class Stripe {
 public:
  using T = typename R::T;
  using A = typename R::A;
  using F = typename R::F;
  using V = Vector<A, LANES>;
  static constexpr int FULL = VECTOR_BYTES / sizeof(F), STEP = FULL < LANES ? FULL : LANES;  // lanes of type F

  Stripe(Reduction &job, int64_t column, int64_t end)
      : rule(job),
        source(job),
        weights(static_cast<const A *>(job.weights)),
        positional(job.positional),
        column(COUNT == 1 ? end - LANES : column),
        last(end - LANES - this->column) {}

  // Whether rows of a segment of that size are added up in type A alone.
  static bool is_short(int64_t size) { return __is_same(A, F) || size <= CHUNK; }

  // Positions [from, to), all of a segment that is short, to a row of results; how many of them counted. `shift` is how
  // many columns further to the right.
  inline int64_t reduce_short(int64_t from, int64_t to, A *out, int64_t shift = 0) const {
    V sums[COUNT];
    const int64_t used = accumulate(from, to, from, shift, sums);
    finish(sums, used, out + shift);
    return used;
  }

  // Any positions [from, to) of the segment that begins at `first`, to a row of results, or of totals where these are
  // not null; how many of them counted.
  inline int64_t reduce(int64_t from, int64_t to, int64_t first, A *out, F *totals) const {
    V sums[COUNT];
    F wide[COUNT * LANES] = {};
    int64_t used = 0;
    for (int64_t begin = from, end;; begin = end) {
      end = is_short(to - begin) ? to : begin + CHUNK;
      used += accumulate(begin, end, first, 0, sums);
      if (totals == nullptr && begin == from && end == to) {
        finish(sums, used, out);
        return used;
      }
      add(sums, wide);
      if (end == to) break;
    }
#pragma GCC unroll 8
    for (int k = 0; k < COUNT; ++k) {
      for (int i = 0; i < LANES; i += STEP) {
        const auto part = load<F, F, STEP>(wide + k * LANES + i);
        if (totals)
          store<F, STEP>(totals + at(k) + i, part);
        else
          store<A, STEP>(out + at(k) + i, convert<A, F, STEP>(rule.template finish<F, STEP>(part, used)));
      }
    }
    return used;
  }

 private:
  // The first column of a vector.
  inline int64_t at(int k) const { return column + (k < COUNT - 1 ? k * LANES : last); }

  inline int64_t accumulate(int64_t from, int64_t to, int64_t first, int64_t shift, V (&out)[COUNT]) const {
    V sums[COUNT];
#pragma GCC unroll 8
    for (int k = 0; k < COUNT; ++k) sums[k] = V{} + R::start();
    const A *const weight = Source::weighted ? weights + from - (positional ? first : 0) : nullptr;
    const int64_t tail = last;
    const auto add_row = [&](const T *row, const A *factor) {
#pragma GCC unroll 8
      for (int k = 0; k < COUNT; ++k) {
        const V x = load_row<A, T, LANES>(row + (k < COUNT - 1 ? k * LANES : tail));
        if constexpr (Source::weighted)
          sums[k] += *factor * x;
        else
          sums[k] = R::join(sums[k], rule.take(x));
      }
    };
    const int64_t skipped = source.template each<COUNT * LANES>(from, to, column + shift, weight, add_row);
#pragma GCC unroll 8
    for (int k = 0; k < COUNT; ++k) out[k] = sums[k];
    return to - from - skipped;
  }

  inline void finish(const V (&sums)[COUNT], int64_t used, A *out) const {
#pragma GCC unroll 8
    for (int k = 0; k < COUNT; ++k) store<A, LANES>(out + at(k), rule.template finish<A, LANES>(sums[k], used));
  }

  // To totals of type F; where they are of type A there is nothing in them yet.
  static inline void add(const V (&sums)[COUNT], F *wide) {
#pragma GCC unroll 8
    for (int k = 0; k < COUNT; ++k) {
      A lanes[LANES];
      store<A, LANES>(lanes, sums[k]);
      for (int i = 0; i < LANES; i += STEP) {
        F *const into = wide + k * LANES + i;
        const auto part = load<F, A, STEP>(lanes + i);
        store<F, STEP>(into, __is_same(A, F) ? part : load<F, F, STEP>(into) + part);
      }
    }
  }

  const R rule;
  const Source source;
  const A *const weights;
  const bool positional;
  const int64_t column, last;
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
