// Sums or extremes of rows, accumulated in registers.
#pragma once

#include "reductions/reduction.h"
#include "reductions/rules.h"

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

// The two below are for long segments: they stay calls, so that there is one of them for all widths.

// Add sums to wider totals; the first ones are copied.
template <class A, class F>
__attribute__((noinline)) void add_wide(const A *sums, F *totals, int64_t count, bool first) {
  for (int64_t i = 0; i < count; ++i) totals[i] = (first ? F{} : totals[i]) + static_cast<F>(sums[i]);
}

// Totals to a row of totals, or where it is null to a row of results. The last `lanes` begin at column `last`.
template <class R>
__attribute__((noinline)) void leave_wide(const R &rule, const typename R::F *wide, int64_t count, int64_t lanes,
                                          int64_t last, int64_t used, typename R::A *out, typename R::F *totals) {
  using F = typename R::F;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t at = i < count - lanes ? i : last + i - (count - lanes);
    if (totals)
      totals[at] = wide[i];
    else
      out[at] = static_cast<typename R::A>(rule.template finish<F, 1>(Vector<F, 1>{wide[i]}, used)[0]);
  }
}

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

  Stripe(Reduction &job, int64_t column, int64_t end)
      : rule(job),
        source(job),
        weights(static_cast<const A *>(job.weights)),
        positional(job.positional),
        column(COUNT == 1 ? end - LANES : column),
        last(end - LANES - this->column) {}

  // Positions [from, to) of the segment that begins with them, at most CHUNK, to a row of results; how many counted.
  inline int64_t reduce_short(int64_t from, int64_t to, A *out) const {
    V sums[COUNT];
    const int64_t used = accumulate(from, to, from, 0, sums);
    finish(sums, used, out);
    return used;
  }

  // Positions [from, to) of the segment that begins at `first`, to a row of results, or of totals where these are not
  // null; how many of them counted. `shift` is how many columns further to the right.
  inline int64_t reduce(int64_t from, int64_t to, int64_t first, A *out, F *totals, int64_t shift = 0) const {
    V sums[COUNT];
    F wide[COUNT * LANES];
    int64_t used = 0;
    for (int64_t begin = from, end;; begin = end) {
      end = __is_same(A, F) || to - begin <= CHUNK ? to : begin + CHUNK;
      used += accumulate(begin, end, first, shift, sums);
      if (__builtin_expect(begin == from && end == to && totals == nullptr, 1)) {
        finish(sums, used, out + shift);
        return used;
      }
      A lanes[COUNT * LANES];
      memcpy(lanes, sums, sizeof sums);
      add_wide(lanes, wide, COUNT * LANES, begin == from);
      if (end == to) break;
    }
    const int64_t start = column + shift;
    leave_wide(rule, wide, COUNT * LANES, LANES, last, used, out + start, totals ? totals + start : nullptr);
    return used;
  }

 private:
  // The first column of a vector.
  inline int64_t at(int k) const { return column + (k < COUNT - 1 ? k * LANES : last); }

  inline int64_t accumulate(int64_t from, int64_t to, int64_t first, int64_t shift, V (&out)[COUNT]) const {
    V sums[COUNT];
#pragma GCC unroll 16
    for (int k = 0; k < COUNT; ++k) sums[k] = V{} + R::start();
    const A *const weight = Source::weighted ? weights + from - (positional ? first : 0) : nullptr;
    const int64_t tail = last;
    const auto add_row = [&](const T *row, const A *factor) {
#pragma GCC unroll 16
      for (int k = 0; k < COUNT; ++k) {
        const V x = load_row<A, T, LANES>(row + (k < COUNT - 1 ? k * LANES : tail));
        if constexpr (Source::weighted)
          sums[k] += *factor * x;
        else
          sums[k] = R::join(sums[k], rule.take(x));
      }
    };
    const int64_t skipped = source.template each<COUNT * LANES>(from, to, column + shift, weight, add_row);
#pragma GCC unroll 16
    for (int k = 0; k < COUNT; ++k) out[k] = sums[k];
    return to - from - skipped;
  }

  inline void finish(const V (&sums)[COUNT], int64_t used, A *out) const {
#pragma GCC unroll 16
    for (int k = 0; k < COUNT; ++k) store<A, LANES>(out + at(k), rule.template finish<A, LANES>(sums[k], used));
  }

  const R rule;
  const Source source;
  const A *const weights;
  const bool positional;
  const int64_t column, last;
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
