// Gathers rows by index, and copies slices of rows between arrays. In NumPy: moves.py.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

// Rows of `row_bytes` picked by indices.
struct Gather {
  const uint8_t *data;
  int64_t num_rows, row_bytes;
  Integers indices;
  bool wrap, ignores;
  int64_t ignored;
  uint8_t *out;
  bool fault = false;
};

// Slices of rows from one array to another.
struct Slices {
  const uint8_t *source;
  uint8_t *target;
  int64_t source_rows, target_rows, row_bytes;
  Integers source_starts, sizes, target_starts;
};

// Rows repeated: row k at positions [offsets[k], offsets[k + 1]) of the result.
struct Repeats {
  const uint8_t *data;
  uint8_t *out;
  int64_t row_bytes;
  const int64_t *offsets;  // checked
};

// Elements of `yes` where the condition is not 0, else of `no`. `one_`: the same element everywhere.
struct Choice {
  const uint8_t *condition, *yes, *no;
  uint8_t *out;
  int64_t size, item_bytes;
  bool one_yes, one_no;
};

// Results of so many bytes are written around the caches: a smaller one is read again sooner than it leaves them.
constexpr int64_t AROUND_BYTES = 4 << 20;

// Rows that are whole lines of the caches may go around them.
inline bool go_around(int64_t bytes, int64_t row_bytes, const uint8_t *out) {
  return bytes >= AROUND_BYTES && row_bytes % 64 == 0 && reinterpret_cast<uintptr_t>(out) % 64 == 0;
}

struct MoveKernels {
  void (*gather)(Gather &, int64_t begin, int64_t end);              // indices
  void (*move_slices)(const Slices &, int64_t begin, int64_t end);  // slices
  void (*repeat_around)(const Repeats &, int64_t begin, int64_t end);  // rows, which are whole lines of the caches
  void (*choose)(const Choice &);
};
SEQFLOW_TABLE(MoveKernels, move_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "moves/copy.h"

namespace seqflow {
namespace SEQFLOW_ISA {

constexpr int64_t BLOCK = 64;  // indices worked on at a time
constexpr int64_t FEW = 8;     // rows copied between prefetches, or without any
constexpr int64_t SKIPPED = INT64_MIN;  // an index that is ignored

// The indices of a block as rows; false where one is outside. They are copied first, so that what was checked is what
// is used. An index is inside where neither it nor its distance to the last one is negative.
template <class T>
inline bool take_indices(const Gather &job, const T *from, int64_t count, int64_t *rows) {
  const int64_t num_rows = job.num_rows, last = num_rows - 1, shift = job.wrap ? num_rows : 0;
  T own[BLOCK];
  memcpy(own, from, count * sizeof(T));
  int64_t signs = 0;
  if (job.ignores || job.wrap) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = own[i];
      const bool skipped = job.ignores && index == job.ignored;
      signs |= skipped ? 0 : (index + shift) | (last - index);
      rows[i] = skipped ? SKIPPED : index < 0 ? index + num_rows : index;
    }
  } else {
    for (int64_t i = 0; i < count; ++i) {
      rows[i] = own[i];
      signs |= rows[i] | (last - rows[i]);
    }
  }
  return signs >= 0;
}

// ROW_BYTES 0: any number.
template <int ROW_BYTES>
inline void copy_rows(const uint8_t *data, const int64_t *rows, int64_t count, int64_t row_bytes, uint8_t *to) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (ROW_BYTES != 0)
      memcpy(to + i * ROW_BYTES, data + rows[i] * ROW_BYTES, ROW_BYTES);
    else
      copy(to + i * row_bytes, data + rows[i] * row_bytes, row_bytes);
  }
}

inline void copy_or_clear(const uint8_t *data, const int64_t *rows, int64_t count, int64_t row_bytes, uint8_t *to) {
  for (int64_t i = 0; i < count; ++i, to += row_bytes) {
    if (rows[i] == SKIPPED)
      memset(to, 0, row_bytes);
    else
      copy(to, data + rows[i] * row_bytes, row_bytes);
  }
}

// Where the table is large, the rows of the next block are on their way while those of this one are copied.
template <int ROW_BYTES, class T>
void gather_blocks(Gather &job, int64_t begin, int64_t end) {
  const int64_t row_bytes = ROW_BYTES ? ROW_BYTES : job.row_bytes;
  const bool far = job.num_rows * row_bytes >= (1 << 19);
  const int64_t wanted = 8192 / row_bytes, block = wanted > BLOCK ? BLOCK : wanted < 1 ? 1 : wanted;
  const T *const indices = static_cast<const T *>(job.indices.values);
  const uint8_t *const data = job.data;
  const auto copy_block = job.ignores ? copy_or_clear : copy_rows<ROW_BYTES>;
  const auto first_byte = [&](int64_t row) {
    return reinterpret_cast<uintptr_t>(data) + static_cast<uint64_t>(row * row_bytes);
  };
  uint8_t *to = job.out + begin * row_bytes;
  int64_t blocks[2][BLOCK], *rows = blocks[0], *next = blocks[1];
  int64_t waiting = 0;  // rows that are on their way
  for (int64_t first = begin; first < end; first += block) {
    const int64_t count = end - first < block ? end - first : block;
    if (!take_indices(job, indices + first, count, next)) {
      __atomic_store_n(&job.fault, true, __ATOMIC_RELAXED);
      return;
    }
    if (!far) {
      copy_block(data, next, count, row_bytes, to);
      to += count * row_bytes;
      continue;
    }
    int64_t done = 0;
    const auto copy_some = [&](int64_t some) {
      copy_block(data, rows + done, some, row_bytes, to);
      to += some * row_bytes;
      done += some;
    };
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (ROW_BYTES != 0)
        __builtin_prefetch(reinterpret_cast<const void *>(first_byte(next[i])));
      else
        prefetch(first_byte(next[i]), row_bytes);
      if (i % FEW == FEW - 1 && waiting - done >= FEW) copy_some(FEW);
    }
    copy_some(waiting - done);
    int64_t *const copied = rows;
    rows = next;
    next = copied;
    waiting = count;
  }
  copy_block(data, rows, waiting, row_bytes, to);
}

template <int64_t size> struct Group { static constexpr int SIZE = size; };

// Small rows: the indices and rows of a group stay in registers.
template <int ROW_BYTES, class T, bool wraps>
void gather_small(Gather &job, int64_t begin, int64_t end) {
  const T *const indices = static_cast<const T *>(job.indices.values);
  const uint8_t *const data = job.data;
  const uint64_t num_rows = static_cast<uint64_t>(job.num_rows);
  const auto gather_group = [&](int64_t first, auto group) {
    constexpr int SIZE = decltype(group)::SIZE;
    uint64_t picked[SIZE];
    bool outside = false;
#pragma GCC unroll 8
    for (int i = 0; i < SIZE; ++i) {
      const int64_t index = __atomic_load_n(indices + first + i, __ATOMIC_RELAXED);
      picked[i] = static_cast<uint64_t>(index) + (wraps && index < 0 ? num_rows : 0);
    }
#pragma GCC unroll 8
    for (int i = 0; i < SIZE; ++i) outside |= picked[i] >= num_rows;
    if (outside) return false;
    uint8_t rows[SIZE * ROW_BYTES];
#pragma GCC unroll 8
    for (int i = 0; i < SIZE; ++i) memcpy(rows + i * ROW_BYTES, data + picked[i] * ROW_BYTES, ROW_BYTES);
    memcpy(job.out + first * ROW_BYTES, rows, sizeof rows);
    return true;
  };
  bool inside = true;
  int64_t first = begin;
  for (; inside && first + FEW <= end; first += FEW) inside = gather_group(first, Group<FEW>());
  for (; inside && first < end; ++first) inside = gather_group(first, Group<1>());
  if (!inside) __atomic_store_n(&job.fault, true, __ATOMIC_RELAXED);
}

// Rows of up to MOST_VECTORS vectors: each is in registers as a whole, its last vector overlapping the one before, and
// later rows are fetched. With `around`, rows are whole lines and go around the caches.
constexpr int64_t MOST_VECTORS = 8;

template <int VECTORS, class T, bool wraps, bool around>
void gather_vectors(Gather &job, int64_t begin, int64_t end) {
  constexpr int64_t AHEAD = 16;
  const T *const indices = static_cast<const T *>(job.indices.values);
  const uint8_t *const data = job.data;
  const uint64_t num_rows = static_cast<uint64_t>(job.num_rows), row_bytes = static_cast<uint64_t>(job.row_bytes);
  const uint64_t tail = row_bytes - VECTOR_BYTES;
  const auto row_at = [&](int64_t k) {
    const int64_t index = __atomic_load_n(indices + k, __ATOMIC_RELAXED);
    return static_cast<uint64_t>(index) + (wraps && index < 0 ? num_rows : 0);
  };
  const bool splits = reinterpret_cast<uintptr_t>(data) % 64 != 0 || row_bytes % 64 != 0;
  uint8_t *to = job.out + begin * job.row_bytes;
  for (int64_t k = begin; k < end; ++k, to += row_bytes) {
    // not checked yet: the address may be anything
    const uintptr_t later = reinterpret_cast<uintptr_t>(data) + row_at(k + AHEAD < end ? k + AHEAD : k) * row_bytes;
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v)
      if (v * VECTOR_BYTES % 64 == 0) __builtin_prefetch(reinterpret_cast<const void *>(later + v * VECTOR_BYTES));
    if (splits) __builtin_prefetch(reinterpret_cast<const void *>(later + row_bytes - 1));
    const uint64_t row = row_at(k);
    if (__builtin_expect(row >= num_rows, 0)) {
      __atomic_store_n(&job.fault, true, __ATOMIC_RELAXED);
      break;
    }
    const uint8_t *const from = data + row * row_bytes;
    Bytes x[VECTORS];
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) x[v] = load_bytes(from + (v < VECTORS - 1 ? v * VECTOR_BYTES : tail));
#pragma GCC unroll 8
    for (int v = 0; v < VECTORS; ++v) {
      uint8_t *const at = to + (v < VECTORS - 1 ? v * VECTOR_BYTES : tail);
      if constexpr (around)
        store_around_caches(at, x[v]);
      else
        store_bytes(at, x[v]);
    }
  }
  if constexpr (around) finish_streams();
}

template <int VECTORS, class T>
void gather_wide(Gather &job, int64_t begin, int64_t end) {
  const bool around = go_around(job.indices.size * job.row_bytes, job.row_bytes, job.out);
  if constexpr (VECTORS * VECTOR_BYTES % 64 == 0)
    if (around)
      return job.wrap ? gather_vectors<VECTORS, T, true, true>(job, begin, end)
                      : gather_vectors<VECTORS, T, false, true>(job, begin, end);
  return job.wrap ? gather_vectors<VECTORS, T, true, false>(job, begin, end)
                  : gather_vectors<VECTORS, T, false, false>(job, begin, end);
}

template <int VECTORS, class T>
void gather_by_vectors(Gather &job, int64_t begin, int64_t end) {
  if constexpr (VECTORS > 1)
    if (job.row_bytes <= (VECTORS - 1) * VECTOR_BYTES) return gather_by_vectors<VECTORS - 1, T>(job, begin, end);
  gather_wide<VECTORS, T>(job, begin, end);
}

template <int ROW_BYTES, class T>
void gather_by(Gather &job, int64_t begin, int64_t end) {
  if constexpr (ROW_BYTES > 0)
    if (!job.ignores)
      return job.wrap ? gather_small<ROW_BYTES, T, true>(job, begin, end)
                      : gather_small<ROW_BYTES, T, false>(job, begin, end);
  if constexpr (ROW_BYTES == 0)
    if (!job.ignores && job.row_bytes >= VECTOR_BYTES && job.row_bytes <= MOST_VECTORS * VECTOR_BYTES)
      return gather_by_vectors<MOST_VECTORS, T>(job, begin, end);
  gather_blocks<ROW_BYTES, T>(job, begin, end);
}

template <int ROW_BYTES>
void gather_rows(Gather &job, int64_t begin, int64_t end) {
  if (job.indices.wide)
    gather_by<ROW_BYTES, int64_t>(job, begin, end);
  else
    gather_by<ROW_BYTES, int32_t>(job, begin, end);
}

inline void gather(Gather &job, int64_t begin, int64_t end) {
  switch (job.row_bytes) {
    case 1: return gather_rows<1>(job, begin, end);
    case 2: return gather_rows<2>(job, begin, end);
    case 4: return gather_rows<4>(job, begin, end);
    case 8: return gather_rows<8>(job, begin, end);
    case 16: return gather_rows<16>(job, begin, end);
    default: return gather_rows<0>(job, begin, end);
  }
}

inline bool inside(int64_t start, int64_t size, int64_t rows) {
  return size >= 0 && start >= 0 && size <= rows && start <= rows - size;
}

// All slices were checked; they are looked at again because another thread may have changed them since.
inline void move_slices(const Slices &job, int64_t begin, int64_t end) {
  constexpr int64_t AHEAD = 4;
  for (int64_t k = begin; k < end; ++k) {
    if (k + AHEAD < end) {
      const uint64_t start = static_cast<uint64_t>(job.source_starts[k + AHEAD]);
      prefetch(reinterpret_cast<uintptr_t>(job.source) + start * static_cast<uint64_t>(job.row_bytes), 128);
    }
    const int64_t from = job.source_starts[k], size = job.sizes[k], to = job.target_starts[k];
    if (!inside(from, size, job.source_rows) || !inside(to, size, job.target_rows)) continue;
    copy(job.target + to * job.row_bytes, job.source + from * job.row_bytes, size * job.row_bytes);
  }
}

inline void repeat_around(const Repeats &job, int64_t begin, int64_t end) {
  const int64_t row_bytes = job.row_bytes;
  uint8_t *to = job.out + job.offsets[begin] * row_bytes;
  for (int64_t k = begin; k < end; ++k)
    for (int64_t i = job.offsets[k]; i < job.offsets[k + 1]; ++i)
      for (int64_t at = 0; at < row_bytes; at += VECTOR_BYTES, to += VECTOR_BYTES)
        store_around_caches(to, load_bytes(job.data + k * row_bytes + at));
  finish_streams();
}

// Without a branch: which element is chosen may be random.
template <class T, bool one_yes, bool one_no>
inline void choose_of(const Choice &job) {
  const T *const yes = reinterpret_cast<const T *>(job.yes), *const no = reinterpret_cast<const T *>(job.no);
  T *const out = reinterpret_cast<T *>(job.out);
#pragma GCC ivdep  // the result is an operand itself, or apart from it
  for (int64_t i = 0; i < job.size; ++i) {
    const T x = yes[one_yes ? 0 : i], y = no[one_no ? 0 : i], mask = -static_cast<T>(job.condition[i] != 0);
    out[i] = y ^ ((x ^ y) & mask);
  }
}

template <class T>
void choose_elements(const Choice &job) {
  if (job.one_yes) return job.one_no ? choose_of<T, true, true>(job) : choose_of<T, true, false>(job);
  return job.one_no ? choose_of<T, false, true>(job) : choose_of<T, false, false>(job);
}

inline void choose(const Choice &job) {
  switch (job.item_bytes) {
    case 1: return choose_elements<uint8_t>(job);
    case 2: return choose_elements<uint16_t>(job);
    case 4: return choose_elements<uint32_t>(job);
    case 8: return choose_elements<uint64_t>(job);
  }
}

extern const MoveKernels move_kernels = {gather, move_slices, repeat_around, choose};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
