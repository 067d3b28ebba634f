// Segment reduction, one block of positions at a time.
#pragma once

#include "reductions/reduce_rows.h"
#include "reductions/reduce_run.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// The first k of [0, size) with sorted[k] >= value, else size.
__attribute__((noinline)) static int64_t first_at_least(const int64_t *sorted, int64_t size, int64_t value) {
  int64_t low = 0;
  while (size > 0) {
    const int64_t half = size / 2;
    const bool below = sorted[low + half] < value;
    low = below ? low + half + 1 : low;
    size = below ? size - half - 1 : half;
  }
  return low;
}

template <class A>
__attribute__((noinline)) void fill_empty(const Reduction &job, A *out) {
  const A value = job.empty ? *static_cast<const A *>(job.empty) : A{};
  for (int64_t i = 0; i < job.columns; ++i) out[i] = value;
}

constexpr int MOST = 8;  // vectors that are accumulated at the same time

// Columns [0, end), MOST vectors at the same time. A call, so that the loop over segments has the registers for itself.
template <class R, class Source, int LANES>
__attribute__((noinline)) int64_t reduce_first(Reduction &job, int64_t from, int64_t to, int64_t first, int64_t end,
                                               typename R::A *out, typename R::F *totals) {
  const Stripe<R, Source, LANES, MOST> stripe(job, 0, MOST * LANES);
  int64_t used = 0;
  for (int64_t column = 0; column < end; column += MOST * LANES)
    used = stripe.reduce(from, to, first, out, totals, column);
  return used;
}

// Rows of one column that follow one another: runs of elements, most of them of at most VECTORS vectors.
template <class R, int VECTORS>
struct Runs {
  using T = typename R::T;
  using A = typename R::A;
  using F = typename R::F;
  const T *const data, *const end;
  const Run<R> run;

  explicit Runs(Reduction &job)
      : data(static_cast<const T *>(job.data)), end(data + job.num_rows), run{R(job)} {}

  inline int64_t reduce(Reduction &, int64_t from, int64_t to, int64_t, A *out, F *totals) const {
    const F total = run.template reduce<VECTORS>(data + from, to - from, end);
    if (totals)
      *totals = total;
    else
      *out = static_cast<A>(run.rule.template finish<F, 1>(Vector<F, 1>{total}, to - from)[0]);
    return to - from;
  }
};

// Rows of at least LANES columns: MOST vectors of them at the same time, and the COUNT last.
template <class R, class Source, int LANES, int COUNT>
struct Rows {
  using A = typename R::A;
  using F = typename R::F;
  static constexpr bool ONCE = LANES * sizeof(A) < VECTOR_BYTES;  // no more than COUNT vectors
  const int64_t column;
  const Stripe<R, Source, LANES, COUNT> last;

  explicit Rows(Reduction &job)
      : column(ONCE ? 0 : (job.columns - 1) / LANES / MOST * MOST * LANES), last(job, column, job.columns) {}

  inline int64_t reduce(Reduction &job, int64_t from, int64_t to, int64_t first, A *out, F *totals) const {
    if (__builtin_expect(totals || (!__is_same(A, F) && to - from > CHUNK), 0))
      return reduce_long(job, from, to, first, out, totals);
    if constexpr (!ONCE)
      if (column > 0) reduce_first<R, Source, LANES>(job, from, to, first, column, out, totals);
    return last.reduce_short(from, to, out);
  }

 private:
  // With rows of its own: those of the loop over segments stay in registers.
  __attribute__((noinline)) static int64_t reduce_long(Reduction &job, int64_t from, int64_t to, int64_t first, A *out,
                                                       F *totals) {
    const Rows rows(job);
    if constexpr (!ONCE)
      if (rows.column > 0) reduce_first<R, Source, LANES>(job, from, to, first, rows.column, out, totals);
    return rows.last.reduce(from, to, first, out, totals);
  }
};

// Rows of at least LANES columns, MOST vectors or one at the same time.
template <class R, class Source, int LANES>
struct Parts {
  using A = typename R::A;
  using F = typename R::F;
  const int64_t columns, rest;
  const Stripe<R, Source, LANES, 1> one;

  explicit Parts(Reduction &job)
      : columns(job.columns), rest(columns / (MOST * LANES) * (MOST * LANES)), one(job, 0, LANES) {}

  inline int64_t reduce(Reduction &job, int64_t from, int64_t to, int64_t first, A *out, F *totals) const {
    int64_t used = 0;
    if constexpr (LANES * sizeof(A) == VECTOR_BYTES)
      if (rest > 0) used = reduce_first<R, Source, LANES>(job, from, to, first, rest, out, totals);
    for (int64_t column = rest; column < columns; column += LANES) {
      const int64_t shift = column + LANES <= columns ? column : columns - LANES;
      used = one.reduce(from, to, first, out, totals, shift);
    }
    return used;
  }
};

// Some of the segments of a block, the first of them from a position on, the last to one at most, and where they leave
// totals and how many rows these are of; null: results.
template <class F>
struct Share {
  int64_t from, k, end, stop;
  F *totals;
  int64_t *count;
};

// The segments of a block: a long one that goes on from the block before, those that begin here, all of whose rows count,
// and a long one that goes on in the next.
template <class F>
struct Shares {
  Share<F> parts[3];
};

template <class F>
__attribute__((noinline)) Shares<F> shares_of(const Reduction &job, int64_t block) {
  const int64_t *const offsets = job.offsets;
  const int64_t begin = block * job.block_size, at = block * job.columns, positions = offsets[job.num_segments];
  const bool last = block == job.num_blocks - 1;
  const int64_t stop = last ? positions : begin + job.block_size;
  const auto is_long = [&](int64_t k) { return offsets[k + 1] - offsets[k] > job.block_size; };
  const int64_t k = block == 0 ? 0 : first_at_least(offsets, job.num_segments, begin);
  const int64_t after = last ? job.num_segments : first_at_least(offsets, job.num_segments, stop);
  const bool head = k > 0 && offsets[k] > begin && is_long(k - 1);
  const bool tail = after > k && offsets[after] > stop && is_long(after - 1);
  return {{{begin, k - head, k, stop, static_cast<F *>(job.head) + at, job.head_count + block},
           {offsets[k], k, after - tail, positions, nullptr, nullptr},
           {offsets[after - tail], after - tail, after, stop, static_cast<F *>(job.tail) + at, job.tail_count + block}}};
}

// Reduce the segments of a share; Segments are Runs, Rows or Parts. A call, so that the loop has the registers for itself.
template <class R, class Segments>
__attribute__((noinline)) void run_share(Reduction &job, const Share<typename R::F> &share) {
  const int64_t *const offsets = job.offsets, columns = job.columns, end = share.end, stop = share.stop;
  typename R::F *const totals = share.totals;
  const Segments segments(job);
  typename R::A *out = static_cast<typename R::A *>(job.out) + share.k * columns;
  for (int64_t k = share.k, from = share.from; k < end; ++k, out += columns) {
    const int64_t next = offsets[k + 1], to = next > stop ? stop : next;
    const int64_t used = from == to ? 0 : segments.reduce(job, from, to, offsets[k], out, totals);
    if (totals)
      *share.count = used;
    else if (used == 0)
      fill_empty(job, out);
    from = to;
  }
}

// Reduce the segments of a block. A long segment leaves totals in each block.
template <class R, class Segments>
void run_block(Reduction &job, int64_t block) {
  for (const auto &share : shares_of<typename R::F>(job, block).parts)
    if (share.k != share.end) run_share<R, Segments>(job, share);
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

// Segments are taken to be of at most twice their mean length.
template <class R>
void reduce_runs(Reduction &job, int64_t block) {
  constexpr int LANES = VECTOR_BYTES / sizeof(typename R::A);
  if (job.num_rows * 2 <= job.num_segments * LANES) return run_block<R, Runs<R, 1>>(job, block);
  if (job.num_rows <= job.num_segments * LANES) return run_block<R, Runs<R, 2>>(job, block);
  return run_block<R, Runs<R, 4>>(job, block);
}

template <class R, class Source>
void reduce_block(Reduction &job, int64_t block) {
  constexpr int LANES = VECTOR_BYTES / sizeof(typename R::A);
  if constexpr (__is_same(Source, Straight<typename R::T>))
    if (job.columns == 1) return reduce_runs<R>(job, block);
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
    if (count == 0) fill_empty(job, out);
    for (int64_t i = 0; i < columns && count != 0; ++i) 
      out[i] = static_cast<typename R::A>(rule.template finish<F, 1>(Vector<F, 1>{totals[i]}, count)[0]);
  }
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
