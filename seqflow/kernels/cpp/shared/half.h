// float16 elements, which are converted when loaded.
#pragma once

#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

struct Half {
  uint16_t bits;
};

// float16 to float32 by moving bits; subnormal numbers become right by the multiplication.
template <int N>
inline Vector<float, N> widen_bits(Vector<uint16_t, N> raw) {
  using Bits = Vector<uint32_t, N>;
  const Bits bits = __builtin_convertvector(raw, Bits);
  const Bits shifted = (bits & 0x7fff) << 13;
  Vector<float, N> value;
  memcpy(&value, &shifted, sizeof value);
  value *= 0x1p112f;
  Bits found;
  memcpy(&found, &value, sizeof found);
  found |= ((bits & 0x7c00) == 0x7c00 ? Bits{} + 0x7f800000u : Bits{}) | (bits & 0x8000) << 16;
  memcpy(&value, &found, sizeof value);
  return value;
}

template <int N>
inline Vector<float, N> widen(const Half *from) {
#if defined(__AVX512F__)
  if constexpr (N == 16) return (Vector<float, N>)_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)from));
#endif
#if defined(__F16C__)
  if constexpr (N == 8) return (Vector<float, N>)_mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)from));
  if constexpr (N == 4) return (Vector<float, N>)_mm_cvtph_ps(_mm_loadl_epi64((const __m128i *)from));
#endif
  Vector<uint16_t, N> raw;
  memcpy(&raw, from, sizeof raw);
  return widen_bits<N>(raw);
}

template <class A, class T, int N>
inline Vector<A, N> load_row(const T *from) {
  if constexpr (!__is_same(T, Half))
    return load<A, T, N>(from);
  else if constexpr (__is_same(A, float))
    return widen<N>(from);
  else
    return __builtin_convertvector(widen<N>(from), Vector<A, N>);
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
