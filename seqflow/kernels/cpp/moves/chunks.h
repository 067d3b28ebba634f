// Slices of rows that lie in several arrays, one after another or padded. In NumPy: chunks.py.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

// Slices one after another: slice k goes to offsets[k] .. offsets[k + 1] of `to`. Addresses and offsets are checked.
struct GatherSlices {
  const uint8_t *const *from;  // [K]
  const int64_t *offsets;      // [K + 1], in rows
  int64_t row_bytes;
  uint8_t *to;
};

// Elements converted to another type; false where one does not fit.
using Cast = bool (*)(const uint8_t *from, uint8_t *to, int64_t count);

// Slice k to row k of an array of `width` rows of data each.
struct PadSlices {
  const uint8_t *const *from;  // [K], the first row that is kept
  const int64_t *offsets;      // [K + 1], in rows that are kept
  int64_t width;
  int64_t row_elements, row_bytes;  // of data
  int64_t padded_row_bytes;         // the same, converted
  Cast cast;                        // null: as they are
  Pattern pattern;
  bool left;
  uint8_t *padded;
  uint8_t *mask;  // null: none
  bool fault = false;
};

struct ChunkKernels {
  void (*gather_slices)(const GatherSlices &, int64_t begin, int64_t end);  // slices
  void (*pad_slices)(PadSlices &, int64_t begin, int64_t end);
  Cast int32[NUM_TYPES], int64[NUM_TYPES], float32[NUM_TYPES], float64[NUM_TYPES];  // from each type
};
SEQFLOW_TABLE(ChunkKernels, chunk_kernels)

}  // namespace seqflow

#if defined(SEQFLOW_ISA)
#include "moves/copy.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// Slices lie anywhere: the first bytes of one are fetched while those before it are copied.
constexpr int64_t SLICES_AHEAD = 16, BYTES_AHEAD = 256;

inline void fetch_slice(const uint8_t *const *from, const int64_t *offsets, int64_t row_bytes, int64_t k, int64_t end) {
  const int64_t next = k + SLICES_AHEAD;
  if (next >= end) return;
  const int64_t bytes = (offsets[next + 1] - offsets[next]) * row_bytes;
  if (bytes > 0) prefetch(reinterpret_cast<uintptr_t>(from[next]), bytes < BYTES_AHEAD ? bytes : BYTES_AHEAD);
}

inline void gather_slices(const GatherSlices &job, int64_t begin, int64_t end) {
  for (int64_t k = begin; k < end; ++k) {
    fetch_slice(job.from, job.offsets, job.row_bytes, k, end);
    copy(job.to + job.offsets[k] * job.row_bytes, job.from[k], (job.offsets[k + 1] - job.offsets[k]) * job.row_bytes);
  }
}

// The slices of a call, one after another, from where they are fast to read. Slices that lie anywhere are first
// brought together, some at a time: to wait for them between whole rows of padding takes almost twice as long.
class NearSlices {
 public:
  NearSlices(const PadSlices &job, int64_t begin, int64_t end) : job(job), end(end), after(begin) {}

  const uint8_t *operator[](int64_t k) {
    if (k >= after) bring(k);
    return k < after ? bytes + (job.offsets[k] - job.offsets[first]) * job.row_bytes : job.from[k];
  }

 private:
  // Slices from k on, as many as there is room for.
  void bring(int64_t k) {
    for (first = after = k; after < end; ++after) {
      const int64_t start = (job.offsets[after] - job.offsets[k]) * job.row_bytes;
      const int64_t stop = (job.offsets[after + 1] - job.offsets[k]) * job.row_bytes;
      if (stop > ROOM) return;
      fetch_slice(job.from, job.offsets, job.row_bytes, after, end);
      copy(bytes + start, job.from[after], stop - start);
    }
  }

  static constexpr int64_t ROOM = 1 << 14;
  const PadSlices &job;
  const int64_t end;
  int64_t first = 0, after;  // the slices that are in `bytes`: first .. after - 1
  alignas(64) uint8_t bytes[ROOM];
};

inline void pad_slices(PadSlices &job, int64_t begin, int64_t end) {
  NearSlices slices(job, begin, end);
  uint8_t *to = job.padded + begin * job.width * job.padded_row_bytes;
  uint8_t *mask = job.mask ? job.mask + begin * job.width : nullptr;
  for (int64_t k = begin; k < end; ++k, to += job.width * job.padded_row_bytes) {
    const uint8_t *const from = slices[k];
    const int64_t count = job.offsets[k + 1] - job.offsets[k], room = job.width - count;
    const int64_t bytes = count * job.padded_row_bytes, room_bytes = room * job.padded_row_bytes;
    uint8_t *const data = job.left ? to + room_bytes : to;
    if (!job.cast)
      copy(data, from, bytes);
    else if (!job.cast(from, data, count * job.row_elements))
      __atomic_store_n(&job.fault, true, __ATOMIC_RELAXED);
    fill(job.left ? to : to + bytes, job.pattern, room_bytes);
    if (!mask) continue;
    memset(mask + (job.left ? room : 0), 1, count);
    memset(mask + (job.left ? 0 : count), 0, room);
    mask += job.width;
  }
}

template <class T>
constexpr bool is_float = __is_same(T, float) || __is_same(T, double);

// Whether every T is an A.
template <class T, class A>
constexpr bool holds = is_float<A> || (T(-1) < T(0) ? A(-1) < A(0) && sizeof(A) >= sizeof(T)
                                                   : sizeof(A) > sizeof(T) || (sizeof(A) == sizeof(T) && A(-1) > A(0)));

template <class T, class A>
bool cast(const uint8_t *from, uint8_t *to, int64_t count) {
  const T *const source = reinterpret_cast<const T *>(from);
  A *const target = reinterpret_cast<A *>(to);
  if constexpr (holds<T, A>) {
    for (int64_t i = 0; i < count; ++i) target[i] = static_cast<A>(source[i]);
    return true;
  } else {
    bool wrong = false;
    for (int64_t i = 0; i < count; ++i) {
      const T x = source[i];
      const A y = static_cast<A>(x);
      wrong |= static_cast<T>(y) != x || (y < A(0)) != (x < T(0));
      target[i] = y;
    }
    return !wrong;
  }
}

template <class T> bool to_int32(const uint8_t *from, uint8_t *to, int64_t count) { return cast<T, int32_t>(from, to, count); }
template <class T> bool to_int64(const uint8_t *from, uint8_t *to, int64_t count) { return cast<T, int64_t>(from, to, count); }
template <class T> bool to_float32(const uint8_t *from, uint8_t *to, int64_t count) { return cast<T, float>(from, to, count); }
template <class T> bool to_float64(const uint8_t *from, uint8_t *to, int64_t count) { return cast<T, double>(from, to, count); }

extern const ChunkKernels chunk_kernels = {
    gather_slices,
    pad_slices,
    SEQFLOW_TYPES(to_int32),
    SEQFLOW_TYPES(to_int64),
    SEQFLOW_TYPES(to_float32),
    SEQFLOW_TYPES(to_float64),
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
#endif
