// Reducing rows segment by segment, one block of positions at a time.
#pragma once

#include "reduce_rows.h"
#include "reduce_run.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// The first k of [0, size) with sorted[k] >= value, else size.
inline int64_t first_at_least(const int64_t *sorted, int64_t size, int64_t value) {
  int64_t low = 0;
  while (size > 0) {
    const int64_t half = size / 2;
    const bool below = sorted[low + half] < value;
    low = below ? low + half + 1 : low;
    size = below ? size - half - 1 : half;
  }
  return low;
}

template <class R>
inline void fill_empty(const Reduction &job, typename R::A *out) {
  using A = typename R::A;
  const A value = job.empty ? *static_cast<const A *>(job.empty) : A{};
  for (int64_t i = 0; i < job.columns; ++i) out[i] = value;
}

constexpr int MOST = 8;  // vectors that are accumulated at the same time

// The two below stay calls, so that the loop over short segments of few columns has the registers for itself.

// Columns [column, end), which are COUNT vectors, of positions [from, to) of segment k.
template <class R, class Source, int LANES, int COUNT>
__attribute__((noinline)) int64_t reduce_part(Reduction &job, int64_t k, int64_t from, int64_t to, int64_t column,
                                              int64_t end, typename R::A *out, typename R::F *totals) {
  return Stripe<R, Source, LANES, COUNT>(job, column, end).reduce(from, to, job.offsets[k], out, totals);
}

// Columns [0, end), MOST vectors at the same time, of a short segment.
template <class R, class Source, int LANES>
__attribute__((noinline)) void reduce_first(Reduction &job, int64_t from, int64_t to, int64_t end,
                                            typename R::A *out) {
  const Stripe<R, Source, LANES, MOST> stripe(job, 0, MOST * LANES);
  for (int64_t column = 0; column < end; column += MOST * LANES) stripe.reduce_short(from, to, out, column);
}

// Rows of one column that follow one another: runs of elements.
template <class R>
struct Runs {
  using T = typename R::T;
  using A = typename R::A;
  using F = typename R::F;
  const T *const data, *const end;
  const Run<R> run;

  explicit Runs(Reduction &job)
      : data(static_cast<const T *>(job.data)), end(data + job.num_rows), run{R(job)} {}

  inline int64_t segment(Reduction &, int64_t, int64_t from, int64_t to, A *out) const {
    const F total = run.reduce(data + from, to - from, end);
    *out = static_cast<A>(run.rule.template finish<F, 1>(Vector<F, 1>{total}, to - from)[0]);
    return to - from;
  }

  inline int64_t part(Reduction &, int64_t, int64_t from, int64_t to, F *total) const {
    *total = run.reduce(data + from, to - from, end);
    return to - from;
  }
};

// Rows of at least LANES columns: MOST vectors of them at the same time, and the COUNT last.
template <class R, class Source, int LANES, int COUNT>
struct Rows {
  using A = typename R::A;
  using F = typename R::F;
  static constexpr bool ONCE = LANES * sizeof(A) < VECTOR_BYTES;  // there are no more than COUNT vectors
  const int64_t columns, column;
  const Stripe<R, Source, LANES, COUNT> last;

  explicit Rows(Reduction &job)
      : columns(job.columns),
        column(ONCE ? 0 : (columns - 1) / LANES / MOST * MOST * LANES),
        last(job, column, columns) {}

  inline int64_t segment(Reduction &job, int64_t k, int64_t from, int64_t to, A *out) const {
    if (__builtin_expect(!last.is_short(to - from), 0)) return reduce(job, k, from, to, out, nullptr);
    if constexpr (!ONCE)
      if (column > 0) reduce_first<R, Source, LANES>(job, from, to, column, out);
    return last.reduce_short(from, to, out);
  }

  inline int64_t part(Reduction &job, int64_t k, int64_t from, int64_t to, F *totals) const {
    return reduce(job, k, from, to, nullptr, totals);
  }

 private:
  inline int64_t reduce(Reduction &job, int64_t k, int64_t from, int64_t to, A *out, F *totals) const {
    if constexpr (!ONCE)
      for (int64_t part = 0; part < column; part += MOST * LANES)
        reduce_part<R, Source, LANES, MOST>(job, k, from, to, part, part + MOST * LANES, out, totals);
    return reduce_part<R, Source, LANES, COUNT>(job, k, from, to, column, columns, out, totals);
  }
};

// Rows of at least LANES columns, MOST vectors or one at the same time.
template <class R, class Source, int LANES>
struct Parts {
  using A = typename R::A;
  using F = typename R::F;

  explicit Parts(Reduction &) {}

  inline int64_t segment(Reduction &job, int64_t k, int64_t from, int64_t to, A *out) const {
    return reduce(job, k, from, to, out, nullptr);
  }

  inline int64_t part(Reduction &job, int64_t k, int64_t from, int64_t to, F *totals) const {
    return reduce(job, k, from, to, nullptr, totals);
  }

 private:
  static int64_t reduce(Reduction &job, int64_t k, int64_t from, int64_t to, A *out, F *totals) {
    int64_t used = 0, column = 0;
    for (; column + MOST * LANES <= job.columns; column += MOST * LANES)
      used = reduce_part<R, Source, LANES, MOST>(job, k, from, to, column, column + MOST * LANES, out, totals);
    for (; column < job.columns; column += LANES) {
      const int64_t end = column + LANES < job.columns ? column + LANES : job.columns;
      used = reduce_part<R, Source, LANES, 1>(job, k, from, to, column, end, out, totals);
    }
    return used;
  }
};

// Reduce the segments of a block; Segments are Runs, Rows or Parts.
template <class R, class Segments>
void run_block(Reduction &job, int64_t block) {
  using F = typename R::F;
  const int64_t *const offsets = job.offsets, columns = job.columns;
  const int64_t begin = block * job.block_size;
  const bool last = block == job.num_blocks - 1;
  const int64_t stop = last ? offsets[job.num_segments] : begin + job.block_size;
  const auto is_long = [&](int64_t k) { return offsets[k + 1] - offsets[k] > job.block_size; };
  const Segments segments(job);
  int64_t k = block == 0 ? 0 : first_at_least(offsets, job.num_segments, begin);
  int64_t after = last ? job.num_segments : first_at_least(offsets, job.num_segments, stop);
  if (k > 0 && offsets[k] > begin && is_long(k - 1)) {
    job.head_count[block] = segments.part(job, k - 1, begin, offsets[k] < stop ? offsets[k] : stop,
                                          static_cast<F *>(job.head) + block * columns);
  }
  if (after > k && offsets[after] > stop && is_long(after - 1)) {
    --after;
    job.tail_count[block] =
        segments.part(job, after, offsets[after], stop, static_cast<F *>(job.tail) + block * columns);
  }
  typename R::A *out = static_cast<typename R::A *>(job.out) + k * columns;
  int64_t from = offsets[k];
  for (; k < after; ++k, out += columns) {
    const int64_t to = offsets[k + 1];
    if (from == to || segments.segment(job, k, from, to, out) == 0) fill_empty<R>(job, out);
    from = to;
  }
}

// Rows of fewer columns than a vector: half of one, or a quarter …, twice.
template <class R, class Source, int LANES>
void reduce_narrow(Reduction &job, int64_t block) {
  if (job.columns >= LANES) return run_block<R, Rows<R, Source, LANES, LANES == 1 ? 1 : 2>>(job, block);
  if constexpr (LANES > 1) reduce_narrow<R, Source, LANES / 2>(job, block);
}

// float32 has a loop for each number of vectors, the others have one for all.
template <class R, class Source, int LANES>
void reduce_float32(Reduction &job, int64_t block) {
  if (job.columns < LANES) return reduce_narrow<R, Source, LANES / 2>(job, block);
  switch ((job.columns - 1) / LANES % 8) {
    case 0: return run_block<R, Rows<R, Source, LANES, 1>>(job, block);
    case 1: return run_block<R, Rows<R, Source, LANES, 2>>(job, block);
    case 2: return run_block<R, Rows<R, Source, LANES, 3>>(job, block);
    case 3: return run_block<R, Rows<R, Source, LANES, 4>>(job, block);
    case 4: return run_block<R, Rows<R, Source, LANES, 5>>(job, block);
    case 5: return run_block<R, Rows<R, Source, LANES, 6>>(job, block);
    case 6: return run_block<R, Rows<R, Source, LANES, 7>>(job, block);
    case 7: return run_block<R, Rows<R, Source, LANES, 8>>(job, block);
  }
}

template <class R, class Source, int LANES>
void reduce_others(Reduction &job, int64_t block) {
  if (LANES == 1 || job.columns >= LANES) return run_block<R, Parts<R, Source, LANES>>(job, block);
  if constexpr (LANES > 1) reduce_others<R, Source, LANES >= 16 ? LANES / 8 : 1>(job, block);
}

template <class R, class Source>
void reduce_block(Reduction &job, int64_t block) {
  constexpr int LANES = VECTOR_BYTES / sizeof(typename R::A);
  if constexpr (__is_same(Source, Straight<typename R::T>))
    if (job.columns == 1) return run_block<R, Runs<R>>(job, block);
  if constexpr (__is_same(typename R::T, float) && __is_same(typename R::A, float))
    reduce_float32<R, Source, LANES>(job, block);
  else
    reduce_others<R, Source, LANES>(job, block);
}

// Join the parts of the segments that cross block borders.
template <class R>
void combine_blocks(Reduction &job) {
  using F = typename R::F;
  const int64_t *offsets = job.offsets, columns = job.columns;
  F *const totals = static_cast<F *>(job.totals);
  const R rule(job);
  for (int64_t block = 0; block + 1 < job.num_blocks; ++block) {
    const int64_t border = (block + 1) * job.block_size;
    const int64_t k = first_at_least(offsets, job.num_segments, border) - 1;
    if (offsets[k + 1] <= border || offsets[k] < border - job.block_size) continue;
    if (offsets[k + 1] - offsets[k] <= job.block_size) continue;
    int64_t count = 0;
    const auto add = [&](const void *parts, int64_t at, int64_t part_count) {
      const F *part = static_cast<const F *>(parts) + at * columns;
      if (part_count == 0) return;
      for (int64_t i = 0; i < columns; ++i) totals[i] = count == 0 ? part[i] : R::join(totals[i], part[i]);
      count += part_count;
    };
    add(job.tail, block, job.tail_count[block]);
    for (int64_t next = block + 1; next * job.block_size < offsets[k + 1]; ++next)
      add(job.head, next, job.head_count[next]);
    typename R::A *out = static_cast<typename R::A *>(job.out) + k * columns;
    if (count == 0) fill_empty<R>(job, out);
    for (int64_t i = 0; i < columns && count != 0; ++i) 
      out[i] = static_cast<typename R::A>(rule.template finish<F, 1>(Vector<F, 1>{totals[i]}, count)[0]);
  }
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
