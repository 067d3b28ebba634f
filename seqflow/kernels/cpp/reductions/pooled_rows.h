// Picked rows of float32 that are reduced in float32: most of embedding pooling. All sums of a stripe of columns are in
// registers, and the loop over segments needs few others.
#pragma once

#include "reductions/picked_rows.h"
#include "reductions/reduce.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// As many vectors as there is a register for, with one or two to spare: AVX2 has 16.
template <class R>
constexpr int MOST_POOLED = VECTOR_BYTES == 32 && R::adds ? 13 : MOST;

// Columns in stripes of COUNT vectors, of which the last ends with the row, and so overlaps the one before.
template <class R, class Source, int LANES, int COUNT>
struct Stripes {
  using A = typename R::A;
  using F = typename R::F;
  const int64_t columns, width;
  const Stripe<R, Source, LANES, COUNT> stripe;

  explicit Stripes(Reduction &job) : columns(job.columns), width(width_of(columns)), stripe(job, 0, width) {}

  static int64_t width_of(int64_t columns) { return columns < COUNT * LANES ? columns : COUNT * LANES; }

  // The first column of the stripe behind that which begins with `column` and does not end the row.
  static int64_t next(int64_t column, int64_t width, int64_t columns) {
    return column + 2 * width <= columns ? column + width : columns - width;
  }

  inline int64_t reduce(Reduction &, int64_t from, int64_t to, int64_t first, A *out, F *totals) const {
    for (int64_t column = 0;; column = next(column, width, columns)) {
      const int64_t used = stripe.reduce(from, to, first, out, totals, column);
      if (column + width == columns) return used;
    }
  }
};

// Segments [k, end) up to the first that is longer than CHUNK, or has an index that is outside the table, which is
// returned. SPLITS: rows may end in another line than what is fetched in steps of lines.
template <class R, class Source, int LANES, int COUNT, bool SPLITS, class I>
__attribute__((noinline)) int64_t pool_short(const Reduction &job, int64_t k, int64_t end) {
  using A = typename R::A;
  using V = Vector<A, LANES>;
  using Columns = Stripes<R, Source, LANES, COUNT>;
  constexpr int64_t BYTES = COUNT * LANES * sizeof(A);
  const R rule(job);
  const int64_t columns = job.columns, width = Columns::width_of(columns), last = width - LANES;
  const uint64_t row_bytes = static_cast<uint64_t>(columns) * sizeof(A), num_rows = static_cast<uint64_t>(job.num_rows);
  const int64_t *const offsets = job.offsets;
  const I *const indices = static_cast<const I *>(job.indices.values);
  const A *const weights = static_cast<const A *>(job.weights);
  const int64_t ahead = job.rows_ahead, most = job.indices.size - ahead;
  const bool positional = job.positional;
  A *out = static_cast<A *>(job.out) + k * columns;
  for (; k < end; ++k, out += columns) {
    const int64_t from = offsets[k], to = offsets[k + 1], size = to - from;
    if (__builtin_expect(size == 0, 0)) {
      fill_empty(job, out);
      continue;
    }
    if (__builtin_expect(size > CHUNK, 0)) return k;
    const I *const picked = indices + from, *const later = picked + (to <= most ? ahead : 0);
    const A *const factors = Source::weighted ? weights + (positional ? 0 : from) : nullptr;
    for (int64_t column = 0;; column = Columns::next(column, width, columns)) {
      const uintptr_t base = reinterpret_cast<uintptr_t>(job.data) + static_cast<uint64_t>(column) * sizeof(A);
      V sums[COUNT];
#pragma GCC unroll 16
      for (int v = 0; v < COUNT; ++v) sums[v] = V{} + R::start();
      const auto takes = [&](int64_t i) __attribute__((always_inline)) {
        const int64_t fetched = __atomic_load_n(later + i, __ATOMIC_RELAXED);
        fetch<BYTES>(base + static_cast<uint64_t>(fetched) * row_bytes, SPLITS);
        const int64_t index = __atomic_load_n(picked + i, __ATOMIC_RELAXED);
        if (__builtin_expect(static_cast<uint64_t>(index) >= num_rows, 0)) return false;
        const A *const row = reinterpret_cast<const A *>(base + static_cast<uint64_t>(index) * row_bytes);
#pragma GCC unroll 16
        for (int v = 0; v < COUNT; ++v) {
          const V x = load<A, A, LANES>(row + (v < COUNT - 1 ? v * LANES : last));
          if constexpr (Source::weighted)
            sums[v] += factors[i] * x;
          else
            sums[v] = R::join(sums[v], rule.take(x));
        }
        return true;
      };
      // two rows a turn: of narrow rows, what goes with the loop takes a third of the time; wide ones with weights lose 3 %
      int64_t i = 0;
      if constexpr (!Source::weighted || COUNT <= 4)
        for (; i < size - 1; i += 2)
          if (!takes(i) || !takes(i + 1)) return k;
      for (; i < size; ++i)
        if (!takes(i)) return k;
#pragma GCC unroll 16
      for (int v = 0; v < COUNT; ++v)
        store<A, LANES>(out + column + (v < COUNT - 1 ? v * LANES : last), rule.template finish<A, LANES>(sums[v], size));
      if (column + width == columns) break;
    }
  }
  return end;
}

template <class R, class Source, int LANES, int COUNT, class I>
int64_t pool_short(const Reduction &job, int64_t k, int64_t end) {
  const uint64_t row_bytes = static_cast<uint64_t>(job.columns) * sizeof(typename R::A);
  return ends_in_another_line(job, row_bytes) ? pool_short<R, Source, LANES, COUNT, true, I>(job, k, end)
                                              : pool_short<R, Source, LANES, COUNT, false, I>(job, k, end);
}

// Reduce the segments of a block. Where an index is ignored, all of them take the way of long ones.
template <class R, class Source, int LANES, int COUNT>
void pool_stripes(Reduction &job, int64_t block) {
  using Columns = Stripes<R, Source, LANES, COUNT>;
  for (auto share : shares_of<typename R::F>(job, block).parts) {
    if (share.totals || job.ignores) {
      if (share.k != share.end) run_share<R, Columns>(job, share);
      continue;
    }
    for (const int64_t end = share.end; share.k < end; ++share.k) {
      if constexpr (Source::takes_int32)
        share.k = job.indices.wide ? pool_short<R, Source, LANES, COUNT, int64_t>(job, share.k, end)
                                   : pool_short<R, Source, LANES, COUNT, int32_t>(job, share.k, end);
      else
        share.k = pool_short<R, Source, LANES, COUNT, int64_t>(job, share.k, end);
      if (share.k == end) break;
      share.from = job.offsets[share.k];
      share.end = share.k + 1;
      run_share<R, Columns>(job, share);
    }
  }
}

// Rows of at least LANES columns, in as few stripes as registers allow.
template <class R, class Source, int LANES, int COUNT = MOST_POOLED<R>>
void pool_wide(Reduction &job, int64_t block) {
  constexpr int64_t MOST_VECTORS = MOST_POOLED<R>;
  const int64_t vectors = (job.columns - 1) / LANES + 1, stripes = (vectors - 1) / MOST_VECTORS + 1;
  if constexpr (COUNT > 1)
    if ((vectors - 1) / stripes + 1 < COUNT) return pool_wide<R, Source, LANES, COUNT - 1>(job, block);
  pool_stripes<R, Source, LANES, COUNT>(job, block);
}

// Rows of any number of columns: those of fewer than LANES as half a vector, or a quarter …, twice.
template <class R, class Source, int LANES = VECTOR_BYTES / sizeof(typename R::A)>
void pool_float32(Reduction &job, int64_t block) {
  if constexpr (LANES * sizeof(typename R::A) == VECTOR_BYTES)
    if (job.columns >= LANES) return pool_wide<R, Source, LANES>(job, block);
  if (job.columns >= LANES) return pool_stripes<R, Source, LANES, LANES == 1 ? 1 : 2>(job, block);
  if constexpr (LANES > 1) pool_float32<R, Source, LANES / 2>(job, block);
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
