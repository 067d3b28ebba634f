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
struct BlockReducer {
  using T = typename R::T;
  using A = typename R::A;
  using F = typename R::F;

  Reduction &job;
  F *totals;
  const T *data, *end;
  int64_t columns, padded_columns, ahead;
  bool runs;
  Chunk<R> chunk;

  BlockReducer(Reduction &job, int64_t block) : job(job) {
    columns = padded_columns = chunk.columns = job.columns;
    totals = static_cast<F *>(job.scratch) + block * columns;
    data = static_cast<const T *>(job.data);
    end = data + job.num_rows * columns;
    padded_columns = (columns + Chunk<R>::LANES - 1) / Chunk<R>::LANES * Chunk<R>::LANES;
    const int64_t row_bytes = columns * static_cast<int64_t>(sizeof(T));
    ahead = job.num_rows * row_bytes < (1 << 18) ? 0 : 8192 / row_bytes;
    ahead = ahead == 0 || ahead <= 48 ? ahead : 48;
    runs = columns == 1 && !job.gathered;
  }

  void run(int64_t block) {
    const int64_t *offsets = job.offsets;
    const int64_t total = offsets[job.num_segments];
    const int64_t begin = block * job.block_size;
    const bool last = block == job.num_blocks - 1;
    const int64_t stop = last ? total : begin + job.block_size;
    int64_t k = block == 0 ? 0 : first_at_least(offsets, job.num_segments, begin);
    const int64_t after = last ? job.num_segments : first_at_least(offsets, job.num_segments, stop);
    if (block > 0 && offsets[k] > begin)
      job.head_count[block] = part(begin, offsets[k] < stop ? offsets[k] : stop, head(block));
    A *out = static_cast<A *>(job.out) + k * columns;
    for (; k < after; ++k, out += columns) {
      if (offsets[k + 1] > stop)
        job.tail_count[block] = part(offsets[k], stop, tail(block));
      else
        segment(offsets[k], offsets[k + 1], out);
    }
  }

  // Join the parts of the segments that cross block borders.
  void combine() {
    const int64_t *offsets = job.offsets;
    for (int64_t block = 0; block + 1 < job.num_blocks; ++block) {
      const int64_t border = (block + 1) * job.block_size;
      const int64_t k = first_at_least(offsets, job.num_segments, border) - 1;
      if (offsets[k + 1] <= border || offsets[k] < border - job.block_size) continue;
      int64_t count = 0;
      add(tail(block), job.tail_count[block], &count);
      for (int64_t next = block + 1; next * job.block_size < offsets[k + 1]; ++next)
        add(head(next), job.head_count[next], &count);
      finish(count, static_cast<A *>(job.out) + k * columns);
    }
  }

 private:
  F *head(int64_t block) { return static_cast<F *>(job.head) + block * columns; }
  F *tail(int64_t block) { return static_cast<F *>(job.tail) + block * columns; }

  void add(const F *part, int64_t part_count, int64_t *count) {
    if (part_count == 0) return;
    for (int64_t i = 0; i < columns; ++i) totals[i] = *count == 0 ? part[i] : R::join(totals[i], part[i]);
    *count += part_count;
  }

  void finish(int64_t count, A *out) {
    if (count == 0) return fill_empty(out);
    for (int64_t i = 0; i < columns; ++i) out[i] = result(totals[i], count);
  }

  static A result(F total, int64_t count) {
    if constexpr (R::divides) return static_cast<A>(total / static_cast<F>(count));
    return static_cast<A>(total);
  }

  void fill_empty(A *out) const {
    const A value = job.empty ? *static_cast<const A *>(job.empty) : A{};
    for (int64_t i = 0; i < columns; ++i) out[i] = value;
  }

  void segment(int64_t from, int64_t to, A *out) {
    const int64_t size = to - from;
    if (size == 0) return fill_empty(out);
    if (runs) {
      *out = result(Run<R>::reduce(data + from, size, end), size);
    } else if (size <= CHUNK) {
      if (!pick(from, size)) return;
      if (chunk.num_rows == 0) return fill_empty(out);
      chunk.write(out);
    } else {
      finish(part(from, to, totals), out);
    }
  }

  // Reduce positions [from, to) into `into`; how many rows that were.
  int64_t part(int64_t from, int64_t to, F *into) {
    if (runs) {
      *into = Run<R>::reduce(data + from, to - from, end);
      return to - from;
    }
    int64_t count = 0;
    for (; from < to; from += CHUNK) {
      if (!pick(from, to - from < CHUNK ? to - from : CHUNK)) return count;
      if (chunk.num_rows == 0) continue;
      chunk.fold(into, count == 0);
      count += chunk.num_rows;
    }
    return count;
  }

  // The rows of positions [from, from + size), size in [1, CHUNK]; false where an index is out of range.
  bool pick(int64_t from, int64_t size) {
    if (job.gathered) return pick_gathered(from, size);
    const T *row = data + from * columns;
    for (int64_t i = 0; i < size; ++i, row += columns) chunk.rows[i] = row;
    chunk.num_rows = size;
    chunk.may_overread = end - chunk.rows[size - 1] >= padded_columns;
    return true;
  }

  bool pick_gathered(int64_t from, int64_t size) {
    int64_t used = 0, highest = 0;
    for (int64_t i = from; i < from + size; ++i) {
      if (ahead != 0 && i + ahead < job.indices.size) fetch(job.indices[i + ahead]);
      const int64_t index = job.indices[i];
      if (job.ignores && index == job.ignored) continue;
      if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(job.num_rows)) {
        __atomic_store_n(&job.fault, true, __ATOMIC_RELAXED);
        return false;
      }
      highest = index > highest ? index : highest;
      chunk.rows[used++] = data + index * columns;
    }
    chunk.num_rows = used;
    chunk.may_overread = (job.num_rows - highest) * columns >= padded_columns;
    return true;
  }

  // The index is not checked yet: the address may be anything.
  void fetch(int64_t index) const {
    const uint64_t row_bytes = static_cast<uint64_t>(columns) * sizeof(T);
    prefetch(reinterpret_cast<uintptr_t>(data) + static_cast<uint64_t>(index) * row_bytes,
             static_cast<int64_t>(row_bytes));
  }
};

template <class R>
void reduce_block(Reduction &job, int64_t block) {
  BlockReducer<R>(job, block).run(block);
}

template <class R>
void combine_blocks(Reduction &job) {
  BlockReducer<R>(job, 0).combine();
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
