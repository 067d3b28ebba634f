// A chunk of rows to one row.
//
// The addresses of up to CHUNK rows are worked out first (and indices checked there). Then each block of columns
// is accumulated in registers, in type A. Where a segment has more rows than a chunk, chunks are folded into
// totals of type F. So no float32 is ever the sum of more than CHUNK of them, and that in two halves.
#pragma once

#include "rules.h"

namespace seqflow {
namespace SEQFLOW_ISA {

constexpr int CHUNK = 32;
constexpr int HALF = CHUNK / 2;

template <class R>
struct Chunk {
  using T = typename R::T;
  using A = typename R::A;
  using F = typename R::F;
  static constexpr int LANES = VECTOR_BYTES / sizeof(A);
  using V = Vector<A, LANES>;

  const T *rows[CHUNK];
  int64_t num_rows;
  int64_t columns;
  bool may_overread;  // a whole vector may be read at the last columns of every row

  // Columns [column, column + WIDTH * LANES) of rows [begin, end).
  template <int WIDTH>
  inline void accumulate_part(int64_t column, int64_t begin, int64_t end, V *sums) const {
#pragma GCC unroll 8
    for (int k = 0; k < WIDTH; ++k) sums[k] = load<A, T, LANES>(rows[begin] + column + k * LANES);
    for (int64_t i = begin + 1; i < end; ++i) {
      const T *row = rows[i] + column;
#pragma GCC unroll 8
      for (int k = 0; k < WIDTH; ++k) sums[k] = R::join(sums[k], load<A, T, LANES>(row + k * LANES));
    }
  }

  template <int WIDTH>
  inline void accumulate(int64_t column, V *sums) const {
    if (__is_same(A, F) || num_rows <= HALF) return accumulate_part<WIDTH>(column, 0, num_rows, sums);
    V more[WIDTH];
    accumulate_part<WIDTH>(column, 0, HALF, sums);
    accumulate_part<WIDTH>(column, HALF, num_rows, more);
#pragma GCC unroll 8
    for (int k = 0; k < WIDTH; ++k) sums[k] = R::join(sums[k], more[k]);
  }

  // The last columns, fewer than a vector.
  inline V accumulate_some(int64_t column) const {
    const int64_t count = columns - column;
    V sums[1];
    if (may_overread) {
      accumulate<1>(column, sums);
      return sums[0];
    }
    sums[0] = load_some<A, T, LANES>(rows[0] + column, count);
    for (int64_t i = 1; i < num_rows; ++i)
      sums[0] = R::join(sums[0], load_some<A, T, LANES>(rows[i] + column, count));
    return sums[0];
  }

  template <int WIDTH, class Take>
  inline int64_t each_block(int64_t column, const Take &take) const {
    for (; column + WIDTH * LANES <= columns; column += WIDTH * LANES) {
      V sums[WIDTH];
      accumulate<WIDTH>(column, sums);
#pragma GCC unroll 8
      for (int k = 0; k < WIDTH; ++k) take(column + k * LANES, sums[k], LANES);
    }
    return column;
  }

  // Call `take(column, vector, how many of its lanes count)` for all columns.
  template <class Take>
  inline void each_column(const Take &take) const {
    int64_t column = each_block<8>(0, take);
    column = each_block<4>(column, take);
    column = each_block<1>(column, take);
    if (column < columns) take(column, accumulate_some(column), static_cast<int>(columns - column));
  }

  // The chunk is a whole segment: its result.
  __attribute__((noinline)) void write(A *out) const {
    const A n = static_cast<A>(num_rows);
    each_column([out, n](int64_t column, V sums, int count) {
      if constexpr (R::divides) sums /= n;
      if (count == LANES)
        store<A, LANES>(out + column, sums);
      else
        store_some<A, LANES>(out + column, sums, count);
    });
  }

  // The chunk is a part of one: into the totals.
  __attribute__((noinline)) void fold(F *totals, bool first) const {
    constexpr int STEP = VECTOR_BYTES / sizeof(F) < LANES ? VECTOR_BYTES / sizeof(F) : LANES;
    each_column([totals, first](int64_t column, V sums, int count) {
      A lanes[LANES];
      memcpy(lanes, &sums, sizeof lanes);
      F *into = totals + column;
      int i = 0;
      for (; i + STEP <= count; i += STEP) {
        auto part = load<F, A, STEP>(lanes + i);
        if (!first) part = R::join(load<F, F, STEP>(into + i), part);
        store<F, STEP>(into + i, part);
      }
      for (; i < count; ++i) into[i] = first ? static_cast<F>(lanes[i]) : R::join(into[i], static_cast<F>(lanes[i]));
    });
  }
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
