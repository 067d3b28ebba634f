// Embedding rows by index, prefetched.
#pragma once

#include "shared/half.h"
#include "reductions/reduction.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// How far ahead rows are fetched, in bytes and in rows, measured on Zen 4 with AVX2 and on Sapphire Rapids with AVX-512: from
// 8 rows on memory is as fast as it gets, tables that are in no cache gain up to 32, and rows that are fetched too early
// drive others out of the first cache.
constexpr int64_t BYTES_AHEAD = VECTOR_BYTES == 64 ? 8 << 10 : 6 << 10, MOST_ROWS_AHEAD = BYTES_AHEAD / 256;

inline int64_t rows_ahead(int64_t row_bytes) {
  const int64_t rows = BYTES_AHEAD / row_bytes;
  return rows < 1 ? 1 : rows > MOST_ROWS_AHEAD ? MOST_ROWS_AHEAD : rows;
}

// Every line of these bytes. Their index is not checked yet: the address may be anything. Always inline, as all that only
// fetches: a call of it would have no effect that GCC knows, and be left out.
template <int64_t BYTES>
inline __attribute__((always_inline)) void fetch(uintptr_t address, bool splits) {
#pragma GCC unroll 16
  for (int64_t at = 0; at < BYTES; at += 64) __builtin_prefetch(reinterpret_cast<const void *>(address + at));
  if (splits) __builtin_prefetch(reinterpret_cast<const void *>(address + BYTES - 1));
}

// Whether rows may end in another line than what is fetched from their start in steps of lines.
inline bool ends_in_another_line(const Reduction &job, uint64_t row_bytes) {
  return reinterpret_cast<uintptr_t>(job.data) % 64 != 0 || row_bytes % 64 != 0;
}

// Indices are int64, and where takes_int32, int32 as well.
template <class Element, bool weighted_, bool takes_int32_>
class Picked {
 public:
  using T = Element;
  static constexpr bool weighted = weighted_, takes_int32 = takes_int32_;

  explicit Picked(Reduction &job)
      : data(reinterpret_cast<uintptr_t>(job.data)),
        row_bytes(static_cast<uint64_t>(job.columns) * sizeof(T)),
        num_rows(job.num_rows),
        ignored(job.ignores ? job.ignored : -1),
        ahead(job.rows_ahead),
        splits(ends_in_another_line(job, row_bytes)),
        indices(job.indices),
        job(&job) {}

  // Call `body(row from that column on, its weight)` for positions [from, to), the weights of which begin at `weight`,
  // and fetch COLUMNS columns of later rows; how many of them do not count, because the index is ignored, or outside
  // the table.
  template <int COLUMNS, class Weight, class Body>
  inline int64_t each(int64_t from, int64_t to, int64_t column, const Weight *weight, const Body &body) const {
    if constexpr (takes_int32)
      if (!indices.wide) return each_of<COLUMNS, int32_t>(from, to, column, weight, body);
    return each_of<COLUMNS, int64_t>(from, to, column, weight, body);
  }

 private:
  // The same for indices of type I.
  template <int COLUMNS, class I, class Weight, class Body>
  inline int64_t each_of(int64_t from, int64_t to, int64_t column, const Weight *weight, const Body &body) const {
    const uintptr_t base = data + static_cast<uint64_t>(column) * sizeof(T);
    const uint64_t bytes = row_bytes, rows = static_cast<uint64_t>(num_rows);
    const int64_t unused = ignored, distance = to + ahead <= indices.size ? ahead : 0;
    const I *const picked = static_cast<const I *>(indices.values);
    int64_t skipped = 0;
    for (const I *at = picked + from, *const end = picked + to; at != end; ++at, ++weight) {
      const int64_t next = __atomic_load_n(at + distance, __ATOMIC_RELAXED);
      fetch<COLUMNS * sizeof(T)>(base + static_cast<uint64_t>(next) * bytes, splits);
      const int64_t index = __atomic_load_n(at, __ATOMIC_RELAXED);
      if (__builtin_expect(index == unused || static_cast<uint64_t>(index) >= rows, 0)) {
        if (!job->ignores || index != unused) __atomic_store_n(&job->fault, true, __ATOMIC_RELAXED);
        ++skipped;
        continue;
      }
      body(reinterpret_cast<const T *>(base + static_cast<uint64_t>(index) * bytes), weight);
    }
    return skipped;
  }

  const uintptr_t data;
  const uint64_t row_bytes;
  const int64_t num_rows, ignored, ahead;
  const bool splits;
  const Integers indices;
  Reduction *const job;
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
