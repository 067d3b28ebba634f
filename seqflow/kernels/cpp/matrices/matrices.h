// Products of the rows of each sequence with a matrix of its own. In NumPy: matrices.py.
//
// Every sum is made in the order of the inner axis, whatever else is in the batch.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

// Arrays of T, float or double: x [rows, inner], y [rows, outer], and for each sequence a matrix [inner, outer], or
// [outer, inner] if transposed.
struct Matrices {
  int64_t inner, outer;
  bool transposed;
  const int64_t *offsets;  // checked
  const void *x, *weight;
  void *y;
};

// For float and for double.
struct MatricesKernels {
  int64_t (*scratch[2])(const Matrices &);  // bytes
  void (*multiply[2])(const Matrices &, int64_t begin, int64_t end, void *scratch);  // sequences
};
SEQFLOW_TABLE(MatricesKernels, matrices_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "shared/products.h"

namespace seqflow {
namespace SEQFLOW_ISA {

constexpr int64_t DEPTH = 256;  // rows of a panel, which then take half of the first cache
constexpr int64_t ROWS = 96;    // rows of x, which then stay in the second cache
// Rows up to which a copy of the matrix costs more than it saves: any number if the matrix fits the first cache, FEW if it
// fits the second one. A larger one comes from memory, fastest row by row, as it is copied.
constexpr int64_t NEAREST = 1 << 14, NEAR = 1 << 18, FEW = 2 * MAX_ROWS;

template <class T>
int64_t scratch_bytes(const Matrices &job) {
  return (round_up(job.outer, PANEL<T>) * DEPTH + ROWS * LANES<T>) * static_cast<int64_t>(sizeof(T));
}

// Rows [first, first + rows) of a sequence, in a block of the inner axis.
template <class T>
inline void multiply_rows(Product<T> product, bool add, int64_t rest, T *last) {
  const auto run = add ? multiply<T, true> : multiply<T, false>;
  run(product);
  if (rest == 0) return;
  // the last columns fill no vector: they are made next to y
  T *const c = product.c + product.columns;
  product.b += product.columns / PANEL<T> * product.b_panel + product.columns % PANEL<T>;
  for (int64_t r = 0; add && r < product.rows; ++r)
    for (int64_t i = 0; i < rest; ++i) last[r * LANES<T> + i] = c[r * product.c_row + i];
  const int64_t stride = product.c_row;
  product.c = last, product.c_row = product.columns = LANES<T>;
  run(product);
  for (int64_t r = 0; r < product.rows; ++r)
    for (int64_t i = 0; i < rest; ++i) c[r * stride + i] = last[r * LANES<T> + i];
}

template <class T>
void multiply_matrices(const Matrices &job, int64_t begin, int64_t end, void *scratch) {
  T *const panels = static_cast<T *>(scratch), *const last = panels + round_up(job.outer, PANEL<T>) * DEPTH;
  const int64_t rest = job.outer % LANES<T>;
  const int64_t bytes = job.inner * job.outer * static_cast<int64_t>(sizeof(T));
  for (int64_t k = begin; k < end; ++k) {
    const int64_t stop = job.offsets[k + 1];
    const T *const weight = static_cast<const T *>(job.weight) + k * job.inner * job.outer;
    const int64_t direct = bytes <= NEAREST ? INT64_MAX : bytes <= NEAR ? FEW : 0;
    const bool packs = job.transposed || rest != 0 || stop - job.offsets[k] > direct;
    int64_t start = 0;
    do {  // once for matrices without rows, too: their sums are 0
      Product<T> product = {};
      product.depth = job.inner - start < DEPTH ? job.inner - start : DEPTH;
      product.a_row = job.inner, product.a_depth = 1;
      product.c_row = job.outer, product.columns = job.outer - rest;
      product.b = packs ? panels : weight + start * job.outer;
      product.b_panel = packs ? product.depth * PANEL<T> : PANEL<T>;
      product.b_row = packs ? PANEL<T> : job.outer;
      if (job.transposed)
        pack_transposed<T>(weight + start, job.inner, job.outer, product.depth, T(1), panels);
      else if (packs)
        pack_rows<T>(weight + start * job.outer, job.outer, product.depth, job.outer, panels);
      for (int64_t row = job.offsets[k]; row < stop; row += ROWS) {
        product.rows = stop - row < ROWS ? stop - row : ROWS;
        product.a = static_cast<const T *>(job.x) + row * job.inner + start;
        product.c = static_cast<T *>(job.y) + row * job.outer;
        multiply_rows<T>(product, start > 0, rest, last);
      }
      start += DEPTH;
    } while (start < job.inner);
  }
}

extern const MatricesKernels matrices_kernels = {
    {scratch_bytes<float>, scratch_bytes<double>},
    {multiply_matrices<float>, multiply_matrices<double>},
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
