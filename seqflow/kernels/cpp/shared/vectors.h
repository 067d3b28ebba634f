// Vectors as wide as the instruction set's registers, in GCC's and Clang's vector extensions.
#pragma once

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__) && !defined(__AVX__)
#include <emmintrin.h>
#elif defined(__SSE2__)
// GCC 12 takes the undefined lanes that its own header passes on for variables that were forgotten.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace seqflow {
namespace SEQFLOW_ISA {

#if defined(__AVX512F__)
constexpr int VECTOR_BYTES = 64;
#elif defined(__AVX2__)
constexpr int VECTOR_BYTES = 32;
#else
constexpr int VECTOR_BYTES = 16;
#endif

template <class T, int N>
struct VectorOf {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N>
using Vector = typename VectorOf<T, N>::type;

// Lanes of T as lanes of A. GCC 12 takes float32 to float64 lane by lane unless it is told.
template <class A, class T, int N>
inline Vector<A, N> convert(Vector<T, N> lanes) {
  [[maybe_unused]] constexpr bool WIDENS = __is_same(A, double) && __is_same(T, float);
#if defined(__AVX512F__)
  if constexpr (WIDENS && N == 8) return (Vector<A, N>)_mm512_cvtps_pd((__m256)lanes);
#endif
#if defined(__AVX2__)
  if constexpr (WIDENS && N == 4) return (Vector<A, N>)_mm256_cvtps_pd((__m128)lanes);
#endif
  if constexpr (__is_same(A, T))
    return lanes;
  else
    return __builtin_convertvector(lanes, Vector<A, N>);
}

// N elements of T, converted to N elements of A.
template <class A, class T, int N>
inline Vector<A, N> load(const T *from) {
  Vector<T, N> raw;
  memcpy(&raw, from, sizeof raw);
  return convert<A, T, N>(raw);
}

// The same where only `count` < N elements may be read; the other lanes are 0.
template <class A, class T, int N>
inline Vector<A, N> load_some(const T *from, int64_t count) {
  Vector<A, N> lanes = {};
  for (int64_t i = 0; i < count; ++i) lanes[i] = static_cast<A>(from[i]);
  return lanes;
}

template <class T, int N>
inline void store(T *to, Vector<T, N> lanes) {
  memcpy(to, &lanes, sizeof lanes);
}

template <class T, int N>
inline void store_some(T *to, Vector<T, N> lanes, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = lanes[i];
}

// A signed integer of that many bytes.
template <int SIZE> struct Signed;
template <> struct Signed<1> { using type = int8_t; };
template <> struct Signed<2> { using type = int16_t; };
template <> struct Signed<4> { using type = int32_t; };
template <> struct Signed<8> { using type = int64_t; };

// Two ways to join lanes. Larger passes over NaN.
struct Larger {
  template <class V> static V join(V most, V x) { return x > most ? x : most; }
};
struct Plus {
  template <class V> static V join(V total, V x) { return total + x; }
};

// All lanes joined by R::join, halving the vector until one element is left.
template <class R, class A, int N>
inline A across(Vector<A, N> lanes) {
  if constexpr (N == 1) {
    return lanes[0];
  } else if constexpr (N == 2) {
    return R::join(static_cast<A>(lanes[0]), static_cast<A>(lanes[1]));
  } else if constexpr (N == 4) {
    Vector<A, 2> low = __builtin_shufflevector(lanes, lanes, 0, 1);
    Vector<A, 2> high = __builtin_shufflevector(lanes, lanes, 2, 3);
    return across<R, A, 2>(R::join(low, high));
  } else if constexpr (N == 8) {
    Vector<A, 4> low = __builtin_shufflevector(lanes, lanes, 0, 1, 2, 3);
    Vector<A, 4> high = __builtin_shufflevector(lanes, lanes, 4, 5, 6, 7);
    return across<R, A, 4>(R::join(low, high));
  } else if constexpr (N == 16) {
    Vector<A, 8> low = __builtin_shufflevector(lanes, lanes, 0, 1, 2, 3, 4, 5, 6, 7);
    Vector<A, 8> high = __builtin_shufflevector(lanes, lanes, 8, 9, 10, 11, 12, 13, 14, 15);
    return across<R, A, 8>(R::join(low, high));
  } else {
    Vector<A, N / 2> half[2];
    memcpy(half, &lanes, sizeof lanes);
    return across<R, A, N / 2>(R::join(half[0], half[1]));
  }
}

// A bit for each lane of a mask of 8-bit, 32-bit or 64-bit lanes.
template <class L, int N>
inline uint64_t lane_bits(Vector<L, N> mask) {
#if defined(__AVX512DQ__)
  if constexpr (sizeof mask == 64 && sizeof(L) == 1) return _mm512_movepi8_mask((__m512i)mask);
  if constexpr (sizeof mask == 64 && sizeof(L) == 4) return _mm512_movepi32_mask((__m512i)mask);
  if constexpr (sizeof mask == 64 && sizeof(L) == 8) return _mm512_movepi64_mask((__m512i)mask);
#endif
#if defined(__AVX2__)
  if constexpr (sizeof mask == 32 && sizeof(L) == 1)
    return static_cast<uint32_t>(_mm256_movemask_epi8((__m256i)mask));
  if constexpr (sizeof mask == 32 && sizeof(L) == 4) return _mm256_movemask_ps((__m256)mask);
  if constexpr (sizeof mask == 32 && sizeof(L) == 8) return _mm256_movemask_pd((__m256d)mask);
#endif
#if defined(__SSE2__)
  if constexpr (sizeof mask == 16 && sizeof(L) == 1) return _mm_movemask_epi8((__m128i)mask);
  if constexpr (sizeof mask == 16 && sizeof(L) == 4) return _mm_movemask_ps((__m128)mask);
  if constexpr (sizeof mask == 16 && sizeof(L) == 8) return _mm_movemask_pd((__m128d)mask);
#endif
  uint64_t bits = 0;
  for (int i = 0; i < N; ++i) bits |= static_cast<uint64_t>(mask[i] != 0) << i;
  return bits;
}

// Fetch every line of the bytes at an address that need not be valid.
inline __attribute__((always_inline)) void prefetch(uintptr_t address, int64_t size) {
  for (int64_t at = 0; at < size; at += 64) __builtin_prefetch(reinterpret_cast<const void *>(address + at));
  __builtin_prefetch(reinterpret_cast<const void *>(address + size - 1));
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
