// Copying and filling bytes: in whole vectors, the last one overlapping the one before; and the same around the
// caches, for outputs too big to stay in them.
#pragma once

#include "shared/types.h"
#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

using Bytes = Vector<uint8_t, VECTOR_BYTES>;

inline Bytes load_bytes(const uint8_t *from) { return load<uint8_t, uint8_t, VECTOR_BYTES>(from); }
inline void store_bytes(uint8_t *to, Bytes bytes) { store<uint8_t, VECTOR_BYTES>(to, bytes); }

template <int N>
inline void copy_ends(uint8_t *to, const uint8_t *from, int64_t size) {
  uint8_t head[N], tail[N];
  memcpy(head, from, N);
  memcpy(tail, from + size - N, N);
  memcpy(to, head, N);
  memcpy(to + size - N, tail, N);
}

// Fewer bytes than two vectors.
inline void copy_few(uint8_t *to, const uint8_t *from, int64_t size) {
  if (VECTOR_BYTES > 32 && size > 64) return copy_ends<VECTOR_BYTES>(to, from, size);
  if (VECTOR_BYTES > 16 && size > 32) return copy_ends<32>(to, from, size);
  if (size >= 16) return copy_ends<16>(to, from, size);
  if (size >= 8) return copy_ends<8>(to, from, size);
  if (size >= 4) return copy_ends<4>(to, from, size);
  if (size >= 2) return copy_ends<2>(to, from, size);
  if (size == 1) *to = *from;
}

inline void copy(uint8_t *to, const uint8_t *from, int64_t size) {
  if (size <= 2 * VECTOR_BYTES) return copy_few(to, from, size);
  const Bytes tail = load_bytes(from + size - VECTOR_BYTES);
  uint8_t *const last = to + size - VECTOR_BYTES;
  for (; last - to >= 4 * VECTOR_BYTES; to += 4 * VECTOR_BYTES, from += 4 * VECTOR_BYTES) {
    const Bytes a = load_bytes(from), b = load_bytes(from + VECTOR_BYTES);
    const Bytes c = load_bytes(from + 2 * VECTOR_BYTES), d = load_bytes(from + 3 * VECTOR_BYTES);
    store_bytes(to, a);
    store_bytes(to + VECTOR_BYTES, b);
    store_bytes(to + 2 * VECTOR_BYTES, c);
    store_bytes(to + 3 * VECTOR_BYTES, d);
  }
  for (; to < last; to += VECTOR_BYTES, from += VECTOR_BYTES) store_bytes(to, load_bytes(from));
  store_bytes(last, tail);
}

// `size` bytes of the value, which begins anew at `to`.
inline void fill(uint8_t *to, const Pattern &pattern, int64_t size) {
  if (!pattern.repeats) {
    for (int64_t at = 0; at < size; at += pattern.size) memcpy(to + at, pattern.value, pattern.size);
    return;
  }
  const Bytes bytes = load_bytes(pattern.bytes);
  int64_t at = 0;
  const int64_t over = -reinterpret_cast<uintptr_t>(to) % VECTOR_BYTES;
  if (size >= 4 * VECTOR_BYTES && over % pattern.size == 0) {  // whole lines of the caches from there on
    store_bytes(to, bytes);
    at = over;
  }
  for (; at + VECTOR_BYTES <= size; at += VECTOR_BYTES) store_bytes(to + at, bytes);
  if (at < size) memcpy(to + at, pattern.bytes, size - at);
}

inline void store_around_caches(uint8_t *to, Bytes bytes) {
#if defined(__AVX512F__)
  _mm512_stream_si512(reinterpret_cast<__m512i *>(to), reinterpret_cast<__m512i>(bytes));
#elif defined(__AVX2__)
  _mm256_stream_si256(reinterpret_cast<__m256i *>(to), reinterpret_cast<__m256i>(bytes));
#elif defined(__SSE2__)
  _mm_stream_si128(reinterpret_cast<__m128i *>(to), reinterpret_cast<__m128i>(bytes));
#else
  store_bytes(to, bytes);
#endif
}

// After the last of them, before anyone else may read.
inline void finish_streams() {
#if defined(__SSE2__)
  _mm_sfence();
#endif
}

// Writes a run of bytes from its beginning to its end around the caches. What does not fill a vector waits.
class Stream {
 public:
  explicit Stream(uint8_t *to) : to(to) {
    const int64_t over = reinterpret_cast<uintptr_t>(to) % VECTOR_BYTES;
    skip = over;  // bytes of the first vector that are not ours
    this->to -= over;
    waiting = over;
  }

  void write(const uint8_t *from, int64_t size) {
    if (waiting) {
      const int64_t some = size < VECTOR_BYTES - waiting ? size : VECTOR_BYTES - waiting;
      copy_few(line + waiting, from, some);
      waiting += some, from += some, size -= some;
      if (waiting < VECTOR_BYTES) return;
      flush();
    }
    for (; size >= 4 * VECTOR_BYTES; size -= 4 * VECTOR_BYTES, from += 4 * VECTOR_BYTES, to += 4 * VECTOR_BYTES)
      for (int k = 0; k < 4; ++k)
        store_around_caches(to + k * VECTOR_BYTES, load_bytes(from + k * VECTOR_BYTES));
    for (; size >= VECTOR_BYTES; size -= VECTOR_BYTES, from += VECTOR_BYTES, to += VECTOR_BYTES)
      store_around_caches(to, load_bytes(from));
    copy_few(line, from, size);
    waiting = size;
  }

  // A pattern of which a vector holds whole values; `to` may be anywhere.
  void fill(const Pattern &pattern, int64_t size) {
    int64_t phase = 0;
    if (waiting) {
      const int64_t some = size < VECTOR_BYTES - waiting ? size : VECTOR_BYTES - waiting;
      copy_few(line + waiting, pattern.bytes, some);
      waiting += some, size -= some, phase = some % pattern.size;
      if (waiting < VECTOR_BYTES) return;
      flush();
    }
    uint8_t turned[2 * VECTOR_BYTES];
    const uint8_t *bytes = pattern.bytes;
    if (phase) {
      for (int64_t i = 0; i < VECTOR_BYTES; ++i) turned[i] = pattern.bytes[(phase + i) % pattern.size];
      bytes = turned;
    }
    const Bytes full = load_bytes(bytes);
    for (; size >= VECTOR_BYTES; size -= VECTOR_BYTES, to += VECTOR_BYTES) store_around_caches(to, full);
    copy_few(line, bytes, size);
    waiting = size;
  }

  // Write what waits.
  void finish() {
    if (waiting > skip) memcpy(to + skip, line + skip, waiting - skip);
    waiting = skip = 0;
  }

 private:
  void flush() {
    if (skip)
      memcpy(to + skip, line + skip, VECTOR_BYTES - skip);
    else
      store_around_caches(to, load_bytes(line));
    to += VECTOR_BYTES;
    skip = waiting = 0;
  }

  uint8_t *to;
  int64_t skip, waiting;
  uint8_t line[2 * VECTOR_BYTES] = {};
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
