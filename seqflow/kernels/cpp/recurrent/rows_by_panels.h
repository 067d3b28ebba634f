// Products of a few rows with packed weights: out[n, columns] += rows[n, depth] · weights[depth, columns].
//
// Weights are packed in panels of two vectors of columns, [panel][depth][2 * lanes]. A tile of rows and panels has
// its sums in registers. Each sum is made in the order of depth in every tile: no result depends on which
// rows are multiplied together.
#pragma once

#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class T>
constexpr int LANES = VECTOR_BYTES / sizeof(T);
template <class T>
constexpr int PANEL = 2 * LANES<T>;
constexpr int MAX_ROWS = 6;
constexpr bool MANY_REGISTERS = VECTOR_BYTES == 64;  // 32 of them, not 16

template <class T>
struct Product {
  const T *const *rows;
  int64_t num_rows, depth;
  const T *panels;
  int64_t num_panels;
  T *out;
  int64_t stride;
};

// The number of panels in a tile of `rows` rows: enough sums to keep the multipliers busy, and no more than fit.
constexpr int panels_for(int rows) {
  if (MANY_REGISTERS) return rows > 3 ? 2 : 4;
  return rows > 3 ? 1 : rows == 3 ? 2 : rows == 2 ? 3 : 4;
}

template <class T, int ROWS, int PANELS>
inline void multiply_tile(const Product<T> &product, int64_t row, int64_t panel) {
  constexpr int N = LANES<T>, VECTORS = 2 * PANELS;
  const T *rows[ROWS];
  T *out[ROWS];
  Vector<T, N> sums[ROWS][VECTORS];
#pragma GCC unroll 8
  for (int r = 0; r < ROWS; ++r) {
    rows[r] = product.rows[row + r];
    out[r] = product.out + (row + r) * product.stride + panel * PANEL<T>;
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) sums[r][v] = load<T, T, N>(out[r] + v * N);
  }
  const T *weights[PANELS];
#pragma GCC unroll 4
  for (int p = 0; p < PANELS; ++p) weights[p] = product.panels + (panel + p) * product.depth * PANEL<T>;
  for (int64_t k = 0; k < product.depth; ++k) {
    Vector<T, N> w[VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) w[v] = load<T, T, N>(weights[v / 2] + k * PANEL<T> + v % 2 * N);
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; ++r) {
      const T factor = rows[r][k];
#pragma GCC unroll 8
      for (int v = 0; v < VECTORS; ++v) sums[r][v] += factor * w[v];
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) store<T, N>(out[r] + v * N, sums[r][v]);
}

// All tiles of a few panels, whose weights stay in the nearest cache.
template <class T, int PANELS>
inline void multiply_panels(const Product<T> &product, int64_t panel, int64_t num_tiles) {
  int64_t row = 0;
  for (int64_t tile = 0; tile < num_tiles; ++tile) {
    const int64_t end = product.num_rows * (tile + 1) / num_tiles;
    switch (end - row) {
      case 6: multiply_tile<T, 6, PANELS>(product, row, panel); break;
      case 5: multiply_tile<T, 5, PANELS>(product, row, panel); break;
      case 4: multiply_tile<T, 4, PANELS>(product, row, panel); break;
      default: multiply_tile<T, 3, PANELS>(product, row, panel); break;
    }
    row = end;
  }
}

template <class T, int ROWS>
inline void multiply_few(const Product<T> &product) {
  constexpr int PANELS = panels_for(ROWS);
  int64_t panel = 0;
  for (; panel + PANELS <= product.num_panels; panel += PANELS)
    multiply_tile<T, ROWS, PANELS>(product, 0, panel);
  for (; panel < product.num_panels; ++panel) multiply_tile<T, ROWS, 1>(product, 0, panel);
}

template <class T>
inline void multiply(const Product<T> &product) {
  switch (product.num_rows) {
    case 0: return;
    case 1: return multiply_few<T, 1>(product);
    case 2: return multiply_few<T, 2>(product);
    case 3: return multiply_few<T, 3>(product);
  }
  constexpr int PANELS = panels_for(MAX_ROWS);
  const int64_t num_tiles = (product.num_rows + MAX_ROWS - 1) / MAX_ROWS;
  int64_t panel = 0;
  for (; panel + PANELS <= product.num_panels; panel += PANELS)
    multiply_panels<T, PANELS>(product, panel, num_tiles);
  for (; panel < product.num_panels; ++panel) multiply_panels<T, 1>(product, panel, num_tiles);
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
