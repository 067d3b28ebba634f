// Quicksort in vectors: each step packs the lanes on either side of a pivot. For elements of 32 or 64 bits, in vectors of
// 32 bytes and more.
#pragma once

#include "ordering/network.h"

namespace seqflow {
namespace SEQFLOW_ISA {

#if defined(__AVX2__)

#if !defined(__AVX512F__)
// For each set of lanes, 32-bit lanes (numbers of bytes) that put the lanes of the set first and the others last.
template <int LANES>
struct Packings {
  uint8_t lanes[1 << LANES][8];

  constexpr Packings() : lanes() {
    constexpr int WORDS = 8 / LANES;
    for (int set = 0; set < 1 << LANES; ++set) {
      int at = 0;
      for (int side = 1; side >= 0; --side)
        for (int lane = 0; lane < LANES; ++lane)
          if ((set >> lane & 1) == side)
            for (int word = 0; word < WORDS; ++word) lanes[set][at++] = static_cast<uint8_t>(lane * WORDS + word);
    }
  }
};
template <int LANES>
constexpr Packings<LANES> packings;
#endif

template <class K>
class Parts {
 public:
  static constexpr int LANES = VECTOR_BYTES / sizeof(K);
  static constexpr int MOST = VECTOR_BYTES == 64 ? 16 : 8;  // vectors that the registers hold
  static constexpr int64_t IN_REGISTERS = MOST * LANES;
  using V = Vector<K, LANES>;
  using Lane = typename Signed<sizeof(K)>::type;
  using Lanes = Vector<Lane, LANES>;

  // Sort `size` elements, none above `largest`; `other` has room for them and one vector more. False where pivots were
  // bad too often: the elements are in some order then.
  static bool sort(K *a, int64_t size, K *other, K largest) {
    int depth = 2;
    for (int64_t n = size; n > 0; n /= 2) depth += 2;
    return sort(a, size, a + size, other, largest, depth);
  }

 private:
  // All elements from there to `end` are as large as these.
  static bool sort(K *a, int64_t size, const K *end, K *other, K largest, int depth) {
    while (size > IN_REGISTERS) {
      if (depth-- == 0) return false;
      const K pivot = size > 16 * IN_REGISTERS ? middle<64>(a, size) : middle<4 * LANES>(a, size);
      int64_t left = divide<false>(a, size, pivot, other);
      if (left == 0)  // the pivot is the smallest: elements equal to it are in place
        left = divide<true>(a, size, pivot, other);
      else if (!sort(a, left, end, other, largest, depth))
        return false;
      a += left, size -= left;
    }
    if (size > 1) sort_few<MOST>(a, size, end - a, largest);
    return true;
  }

  // The median of COUNT elements: 4 from each of some places.
  template <int COUNT>
  static K middle(const K *a, int64_t size) {
    constexpr int PLACES = COUNT / 4, VECTORS = COUNT / LANES;
    K some[COUNT];
    const int64_t step = size / PLACES;
    for (int i = 0; i < PLACES; ++i) memcpy(some + 4 * i, a + i * step, 4 * sizeof(K));
    V r[VECTORS];
    for (int i = 0; i < VECTORS; ++i) r[i] = load<K, K, LANES>(some + i * LANES);
    Network<K, VECTORS>::sort(r);
    return r[VECTORS / 2][0];
  }

  static Lanes inside(int64_t count) {
    Lanes lane;
    for (int i = 0; i < LANES; ++i) lane[i] = i;
    return lane < static_cast<Lane>(count < LANES ? count : LANES);
  }

  // The first `count` elements; nothing after them is read or written.
  static V load_first(const K *from, int64_t count, K rest) {
    const Lanes mask = inside(count);
    V found;
#if defined(__AVX512F__)
    const uint64_t bits = lane_bits<Lane, LANES>(mask);
    if constexpr (sizeof(K) == 4)
      found = (V)_mm512_maskz_loadu_epi32(static_cast<__mmask16>(bits), from);
    else
      found = (V)_mm512_maskz_loadu_epi64(static_cast<__mmask8>(bits), from);
#else
    if constexpr (sizeof(K) == 4)
      found = (V)_mm256_maskload_epi32(reinterpret_cast<const int *>(from), (__m256i)mask);
    else
      found = (V)_mm256_maskload_epi64(reinterpret_cast<const long long *>(from), (__m256i)mask);
#endif
    return mask ? found : V{} + rest;
  }

  static void store_first(K *to, V v, int64_t count) {
    const Lanes mask = inside(count);
#if defined(__AVX512F__)
    const uint64_t bits = lane_bits<Lane, LANES>(mask);
    if constexpr (sizeof(K) == 4)
      _mm512_mask_storeu_epi32(to, static_cast<__mmask16>(bits), (__m512i)v);
    else
      _mm512_mask_storeu_epi64(to, static_cast<__mmask8>(bits), (__m512i)v);
#else
    if constexpr (sizeof(K) == 4)
      _mm256_maskstore_epi32(reinterpret_cast<int *>(to), (__m256i)mask, (__m256i)v);
    else
      _mm256_maskstore_epi64(reinterpret_cast<long long *>(to), (__m256i)mask, (__m256i)v);
#endif
  }

  template <bool equal>
  static uint64_t below(V v, V pivot) {
    if constexpr (equal) return lane_bits<Lane, LANES>(v <= pivot);
    return lane_bits<Lane, LANES>(v < pivot);
  }

  // Elements below the pivot move to the front in place; the others go to the end of `other`, downwards, and then back.
  // Returns how many are below. What is stored too much was read before.
  template <bool equal>
  static int64_t divide(K *a, int64_t size, K by, K *other) {
    const V pivot = V{} + by;
    K *low = a, *const end = other + size + LANES, *high = end;
    int64_t at = 0;
    const auto put = [&](V v) {
      const uint64_t set = below<equal>(v, pivot);
      const int count = __builtin_popcountll(set);
#if defined(__AVX512F__)
      // Packed in a register and then stored whole: AMD's processors are slow to compress to memory.
      V first, last;
      if constexpr (sizeof(K) == 4) {
        const __mmask16 bits = static_cast<__mmask16>(set);
        first = (V)_mm512_maskz_compress_epi32(bits, (__m512i)v);
        last = (V)_mm512_maskz_compress_epi32(static_cast<__mmask16>(~bits), (__m512i)v);
      } else {
        const __mmask8 bits = static_cast<__mmask8>(set);
        first = (V)_mm512_maskz_compress_epi64(bits, (__m512i)v);
        last = (V)_mm512_maskz_compress_epi64(static_cast<__mmask8>(~bits), (__m512i)v);
      }
      store<K, LANES>(low, first);
      high -= LANES - count;
      store_first(high, last, LANES - count);
#else
      const __m256i lanes = _mm256_cvtepu8_epi32(
          _mm_loadl_epi64(reinterpret_cast<const __m128i *>(packings<LANES>.lanes[set])));
      const V packed = (V)_mm256_permutevar8x32_epi32((__m256i)v, lanes);
      store<K, LANES>(low, packed);
      store<K, LANES>(high - LANES, packed);
      high -= LANES - count;
#endif
      low += count;
    };
    for (; at + 4 * LANES <= size; at += 4 * LANES) {
      const V w = load<K, K, LANES>(a + at), x = load<K, K, LANES>(a + at + LANES);
      const V y = load<K, K, LANES>(a + at + 2 * LANES), z = load<K, K, LANES>(a + at + 3 * LANES);
      put(w), put(x), put(y), put(z);
    }
    for (; at + LANES <= size; at += LANES) put(load<K, K, LANES>(a + at));
    for (; at < size; ++at) {
      const K x = a[at];
      const bool is_low = equal ? x <= by : x < by;
      *low = x;
      high[-1] = x;
      low += is_low;
      high -= !is_low;
    }
    memcpy(low, high, static_cast<size_t>(end - high) * sizeof(K));
    return low - a;
  }

  // Up to VECTORS vectors, in as few as will do. With them go elements after them, which are as large, where whole vectors
  // of them are there: `room` elements in all.
  template <int VECTORS>
  static void sort_few(K *a, int64_t size, int64_t room, K largest) {
    if constexpr (VECTORS > 1)
      if (size <= VECTORS / 2 * LANES) return sort_few<VECTORS / 2>(a, size, room, largest);
    V r[VECTORS];
    if (room >= VECTORS * LANES) {
#pragma GCC unroll 16
      for (int i = 0; i < VECTORS; ++i) r[i] = load<K, K, LANES>(a + i * LANES);
      Network<K, VECTORS>::sort(r);
#pragma GCC unroll 16
      for (int i = 0; i < VECTORS; ++i) store<K, LANES>(a + i * LANES, r[i]);
      return;
    }
    for (int i = 0; i < VECTORS; ++i)
      r[i] = i * LANES < size ? load_first(a + i * LANES, size - i * LANES, largest) : V{} + largest;
    Network<K, VECTORS>::sort(r);
    for (int i = 0; i < VECTORS; ++i)
      if (i * LANES < size) store_first(a + i * LANES, r[i], size - i * LANES);
  }
};

#endif

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
