// Products of tiles that lie in the nearest caches: c[rows, columns] (+)= a[rows, depth] · b[depth, columns].
//
// b lies in panels of PANEL columns; a has any strides. Each element is summed in the order of depth, in whatever
// block of rows and columns it lies.
#pragma once

#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class T>
constexpr int LANES = VECTOR_BYTES / sizeof(T);
constexpr int PANEL_VECTORS = VECTOR_BYTES == 64 ? 4 : 2;  // with 6 rows, the sums fit the 32 or 16 registers
template <class T>
constexpr int PANEL = PANEL_VECTORS * LANES<T>;
constexpr int MAX_ROWS = 6;

constexpr int64_t round_up(int64_t size, int64_t unit) { return (size + unit - 1) / unit * unit; }

template <class T>
struct Product {
  const T *a;
  int64_t a_row, a_depth;  // strides
  const T *b;
  int64_t b_panel;  // from a panel to the next one
  T *c;
  int64_t c_row;
  int64_t rows, columns, depth;  // columns: a multiple of LANES
  int64_t b_row = PANEL<T>;      // from a row of a panel to the next one
};

template <class T, bool ADD, int ROWS, int VECTORS>
inline void multiply_block(const Product<T> &p, int64_t row, const T *b, T *c) {
  constexpr int N = LANES<T>;
  const T *const a = p.a + row * p.a_row;
  c += row * p.c_row;
  Vector<T, N> sums[ROWS][VECTORS];
#pragma GCC unroll 8
  for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) sums[r][v] = ADD ? load<T, T, N>(c + r * p.c_row + v * N) : Vector<T, N>{};
  for (int64_t k = 0; k < p.depth; ++k) {
    Vector<T, N> columns[VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) columns[v] = load<T, T, N>(b + k * p.b_row + v * N);
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; ++r) {
      const T factor = a[r * p.a_row + k * p.a_depth];
#pragma GCC unroll 8
      for (int v = 0; v < VECTORS; ++v) sums[r][v] += factor * columns[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) store<T, N>(c + r * p.c_row + v * N, sums[r][v]);
}

template <class T, bool ADD, int VECTORS>
inline void multiply_columns(const Product<T> &p, const T *b, T *c) {
  const int64_t num_blocks = (p.rows + MAX_ROWS - 1) / MAX_ROWS;
  for (int64_t block = 0, row = 0; block < num_blocks; ++block) {
    const int64_t end = p.rows * (block + 1) / num_blocks;
    switch (end - row) {
      case 6: multiply_block<T, ADD, 6, VECTORS>(p, row, b, c); break;
      case 5: multiply_block<T, ADD, 5, VECTORS>(p, row, b, c); break;
      case 4: multiply_block<T, ADD, 4, VECTORS>(p, row, b, c); break;
      case 3: multiply_block<T, ADD, 3, VECTORS>(p, row, b, c); break;
      case 2: multiply_block<T, ADD, 2, VECTORS>(p, row, b, c); break;
      default: multiply_block<T, ADD, 1, VECTORS>(p, row, b, c); break;
    }
    row = end;
  }
}

template <class T, bool ADD>
__attribute__((noinline)) void multiply(const Product<T> &p) {
  const T *b = p.b;
  T *c = p.c;
  int64_t left = p.columns;
  for (; left >= PANEL<T>; left -= PANEL<T>, b += p.b_panel, c += PANEL<T>)
    multiply_columns<T, ADD, PANEL_VECTORS>(p, b, c);
  for (; left > 0; left -= LANES<T>, b += LANES<T>, c += LANES<T>) multiply_columns<T, ADD, 1>(p, b, c);
}

// Rows [count, columns] as panels of their columns, [panel][count][PANEL], filled up with 0. Returns whether all are finite.
template <class T>
__attribute__((noinline)) bool pack_rows(const T *from, int64_t stride, int64_t count, int64_t columns, T *to) {
  T rest = 0;
  // row by row: that is how they come from memory fastest
  for (int64_t i = 0; i < count; ++i) {
    const T *const row = from + i * stride;
    T *target = to + i * PANEL<T>;
    Vector<T, LANES<T>> rests = {};
    int64_t column = 0;
    for (; column + PANEL<T> <= columns; column += PANEL<T>, target += count * PANEL<T>)
#pragma GCC unroll 8
      for (int v = 0; v < PANEL_VECTORS; ++v) {
        const auto lanes = load<T, T, LANES<T>>(row + column + v * LANES<T>);
        store<T, LANES<T>>(target + v * LANES<T>, lanes);
        rests += lanes - lanes;
      }
    rest += across<Plus, T, LANES<T>>(rests);
    for (int64_t c = 0; column < columns && c < PANEL<T>; ++c) {
      target[c] = column + c < columns ? row[column + c] : T(0);
      rest += target[c] - target[c];
    }
  }
  return rest == 0;
}

// Rows [count, depth] as panels of the columns of their transpose, [panel][depth][PANEL], filled up with 0 and multiplied.
template <class T>
__attribute__((noinline)) void pack_transposed(const T *from, int64_t stride, int64_t count, int64_t depth, T scale, T *to) {
  for (int64_t first = 0; first < count; first += PANEL<T>, to += depth * PANEL<T>) {
    const T *rows = from + first * stride;
    if (count - first >= PANEL<T>) {
      for (int64_t k = 0; k < depth; ++k)
#pragma GCC unroll 64
        for (int64_t c = 0; c < PANEL<T>; ++c) to[k * PANEL<T> + c] = rows[c * stride + k] * scale;
      continue;
    }
    for (int64_t i = 0; i < depth * PANEL<T>; ++i) to[i] = 0;
    for (int64_t c = 0; c < count - first; ++c)
      for (int64_t k = 0; k < depth; ++k) to[k * PANEL<T> + c] = rows[c * stride + k] * scale;
  }
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
