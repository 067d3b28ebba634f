// A sorting network on registers.
//
// VECTORS registers of LANES lanes are read as LANES columns. The columns are sorted by exchanges between whole
// registers; then neighbouring groups of columns are merged bitonically until one is left, element i of the result
// in register i % VECTORS, lane i / VECTORS. Last it is laid out in order.
#pragma once

#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// Lane i of the result is lane i ^ DISTANCE.
template <int DISTANCE, class T, int N>
inline Vector<T, N> swapped(Vector<T, N> v) {
  constexpr int D = DISTANCE;
  if constexpr (N == 2)
    return __builtin_shufflevector(v, v, 0 ^ D, 1 ^ D);
  else if constexpr (N == 4)
    return __builtin_shufflevector(v, v, 0 ^ D, 1 ^ D, 2 ^ D, 3 ^ D);
  else if constexpr (N == 8)
    return __builtin_shufflevector(v, v, 0 ^ D, 1 ^ D, 2 ^ D, 3 ^ D, 4 ^ D, 5 ^ D, 6 ^ D, 7 ^ D);
  else
    return __builtin_shufflevector(v, v, 0 ^ D, 1 ^ D, 2 ^ D, 3 ^ D, 4 ^ D, 5 ^ D, 6 ^ D, 7 ^ D, 8 ^ D, 9 ^ D, 10 ^ D,
                                   11 ^ D, 12 ^ D, 13 ^ D, 14 ^ D, 15 ^ D);
}

// Lane i of `low` where i & BIT is 0, else that of `high`.
template <int BIT, class T, int N>
inline Vector<T, N> blended(Vector<T, N> low, Vector<T, N> high) {
#define SEQFLOW_LANE(i) ((i) & BIT ? N + (i) : (i))
#define SEQFLOW_LANES(i) SEQFLOW_LANE(i), SEQFLOW_LANE(i + 1), SEQFLOW_LANE(i + 2), SEQFLOW_LANE(i + 3)
  if constexpr (N == 2)
    return __builtin_shufflevector(low, high, SEQFLOW_LANE(0), SEQFLOW_LANE(1));
  else if constexpr (N == 4)
    return __builtin_shufflevector(low, high, SEQFLOW_LANES(0));
  else if constexpr (N == 8)
    return __builtin_shufflevector(low, high, SEQFLOW_LANES(0), SEQFLOW_LANES(4));
  else
    return __builtin_shufflevector(low, high, SEQFLOW_LANES(0), SEQFLOW_LANES(4), SEQFLOW_LANES(8),
                                   SEQFLOW_LANES(12));
#undef SEQFLOW_LANES
#undef SEQFLOW_LANE
}

// a0 b0 a1 b1 …, of the first half of the lanes or of the second.
template <bool SECOND, class T, int N>
inline Vector<T, N> zipped(Vector<T, N> a, Vector<T, N> b) {
  constexpr int S = SECOND ? N / 2 : 0;
  if constexpr (N == 2)
    return __builtin_shufflevector(a, b, S, N + S);
  else if constexpr (N == 4)
    return __builtin_shufflevector(a, b, S, N + S, S + 1, N + S + 1);
  else if constexpr (N == 8)
    return __builtin_shufflevector(a, b, S, N + S, S + 1, N + S + 1, S + 2, N + S + 2, S + 3, N + S + 3);
  else
    return __builtin_shufflevector(a, b, S, N + S, S + 1, N + S + 1, S + 2, N + S + 2, S + 3, N + S + 3, S + 4,
                                   N + S + 4, S + 5, N + S + 5, S + 6, N + S + 6, S + 7, N + S + 7);
}

template <class K, int VECTORS>
struct Network {
  static constexpr int LANES = VECTOR_BYTES / sizeof(K);
  using V = Vector<K, LANES>;

  // Written so that nothing is lost where neither is smaller: -0 and 0. One instruction does just that for floats, where
  // GCC 12 makes a comparison and a blend. (Its header warns of undefined lanes unless there is a mask, even of all lanes.)
  static V smaller(V a, V b) {
#if defined(__AVX512F__)
    if constexpr (__is_same(K, float)) return (V)_mm512_maskz_min_ps(0xffff, (__m512)b, (__m512)a);
    if constexpr (__is_same(K, double)) return (V)_mm512_maskz_min_pd(0xff, (__m512d)b, (__m512d)a);
#elif defined(__AVX2__)
    if constexpr (__is_same(K, float)) return (V)_mm256_min_ps((__m256)b, (__m256)a);
    if constexpr (__is_same(K, double)) return (V)_mm256_min_pd((__m256d)b, (__m256d)a);
#elif defined(__SSE2__)
    if constexpr (__is_same(K, float)) return (V)_mm_min_ps((__m128)b, (__m128)a);
    if constexpr (__is_same(K, double)) return (V)_mm_min_pd((__m128d)b, (__m128d)a);
#endif
    return b < a ? b : a;
  }
  static V larger(V a, V b) {
#if defined(__AVX512F__)
    if constexpr (__is_same(K, float)) return (V)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b);
    if constexpr (__is_same(K, double)) return (V)_mm512_maskz_max_pd(0xff, (__m512d)a, (__m512d)b);
#elif defined(__AVX2__)
    if constexpr (__is_same(K, float)) return (V)_mm256_max_ps((__m256)a, (__m256)b);
    if constexpr (__is_same(K, double)) return (V)_mm256_max_pd((__m256d)a, (__m256d)b);
#elif defined(__SSE2__)
    if constexpr (__is_same(K, float)) return (V)_mm_max_ps((__m128)a, (__m128)b);
    if constexpr (__is_same(K, double)) return (V)_mm_max_pd((__m128d)a, (__m128d)b);
#endif
    return a > b ? a : b;
  }

  static void exchange(V &a, V &b) {
    const V low = smaller(a, b);
    b = larger(a, b);
    a = low;
  }

  static void sort(V *r) {
    sort_columns(r);
    merge_columns<1>(r);
    lay_out(r);
  }

 private:
  static void sort_columns(V *r) {
    if constexpr (VECTORS == 2) {
      exchange(r[0], r[1]);
    } else if constexpr (VECTORS == 4) {
      exchange(r[0], r[1]), exchange(r[2], r[3]);
      exchange(r[0], r[2]), exchange(r[1], r[3]);
      exchange(r[1], r[2]);
    } else if constexpr (VECTORS == 8) {
      exchange(r[0], r[2]), exchange(r[1], r[3]), exchange(r[4], r[6]), exchange(r[5], r[7]);
      exchange(r[0], r[4]), exchange(r[1], r[5]), exchange(r[2], r[6]), exchange(r[3], r[7]);
      exchange(r[0], r[1]), exchange(r[2], r[3]), exchange(r[4], r[5]), exchange(r[6], r[7]);
      exchange(r[2], r[4]), exchange(r[3], r[5]);
      exchange(r[1], r[4]), exchange(r[3], r[6]);
      exchange(r[1], r[2]), exchange(r[3], r[4]), exchange(r[5], r[6]);
    } else if constexpr (VECTORS == 16) {
      Network<K, 8>::sort_columns(r);
      Network<K, 8>::sort_columns(r + 8);
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i) exchange(r[i], r[15 - i]);
      Network<K, 8>::template merge_registers<4>(r);
      Network<K, 8>::template merge_registers<4>(r + 8);
    }
  }
  template <class, int> friend struct Network;

  // Groups of WIDTH sorted columns to groups of twice as many.
  template <int WIDTH>
  static void merge_columns(V *r) {
    if constexpr (WIDTH < LANES) {
      V mirror[VECTORS];
#pragma GCC unroll 16
      for (int i = 0; i < VECTORS; ++i) mirror[i] = swapped<2 * WIDTH - 1, K, LANES>(r[VECTORS - 1 - i]);
#pragma GCC unroll 16
      for (int i = 0; i < VECTORS; ++i)
        r[i] = blended<WIDTH, K, LANES>(smaller(r[i], mirror[i]), larger(r[i], mirror[i]));
      merge_lanes<WIDTH / 2>(r);
      merge_registers<VECTORS / 2>(r);
      merge_columns<WIDTH * 2>(r);
    }
  }

  template <int DISTANCE>
  static void merge_lanes(V *r) {
    if constexpr (DISTANCE > 0) {
#pragma GCC unroll 16
      for (int i = 0; i < VECTORS; ++i) {
        const V other = swapped<DISTANCE, K, LANES>(r[i]);
        r[i] = blended<DISTANCE, K, LANES>(smaller(r[i], other), larger(r[i], other));
      }
      merge_lanes<DISTANCE / 2>(r);
    }
  }

  template <int DISTANCE>
  static void merge_registers(V *r) {
    if constexpr (DISTANCE > 0) {
#pragma GCC unroll 16
      for (int i = 0; i < VECTORS; ++i)
        if ((i & DISTANCE) == 0) exchange(r[i], r[i + DISTANCE]);
      merge_registers<DISTANCE / 2>(r);
    }
  }

  // r[j] becomes elements [j * LANES, (j + 1) * LANES).
  static void lay_out(V *r) {
    if constexpr (VECTORS == 1) return;
    V z[VECTORS];
#pragma GCC unroll 8
    for (int round = 1; round < VECTORS; round *= 2) {
#pragma GCC unroll 16
      for (int i = 0; i < VECTORS / 2; ++i) {
        z[2 * i] = zipped<false, K, LANES>(r[i], r[i + VECTORS / 2]);
        z[2 * i + 1] = zipped<true, K, LANES>(r[i], r[i + VECTORS / 2]);
      }
#pragma GCC unroll 16
      for (int i = 0; i < VECTORS; ++i) r[i] = z[i];
    }
  }
};

// Lanes that rise and then fall, or the other way round, to lanes that rise.
template <class K, int DISTANCE>
inline Vector<K, VECTOR_BYTES / sizeof(K)> risen(Vector<K, VECTOR_BYTES / sizeof(K)> v) {
  constexpr int LANES = VECTOR_BYTES / sizeof(K);
  using Pair = Network<K, 1>;
  if constexpr (DISTANCE == 0) return v;
  if constexpr (DISTANCE > 0) {
    const auto other = swapped<DISTANCE, K, LANES>(v);
    return risen<K, DISTANCE / 2>(blended<DISTANCE, K, LANES>(Pair::smaller(v, other), Pair::larger(v, other)));
  }
}

// Two sorted runs of whole vectors to one; either may be empty.
template <class K>
inline void merge(const K *a, int64_t size_a, const K *b, int64_t size_b, K *out) {
  constexpr int LANES = VECTOR_BYTES / sizeof(K);
  using V = Vector<K, LANES>;
  using Pair = Network<K, 1>;
  const K *const end_a = a + size_a, *const end_b = b + size_b;
  if (size_a == 0 || size_b == 0) {
    memcpy(out, size_a == 0 ? b : a, (size_a + size_b) * sizeof(K));
    return;
  }
  V rest = load<K, K, LANES>(a), next = load<K, K, LANES>(b);
  a += LANES, b += LANES;
  while (true) {
    next = swapped<LANES - 1, K, LANES>(next);
    const V low = Pair::smaller(rest, next), high = Pair::larger(rest, next);
    store<K, LANES>(out, risen<K, LANES / 2>(low));
    rest = risen<K, LANES / 2>(high);
    out += LANES;
    const bool first = b == end_b || (a != end_a && *a <= *b);
    const K *const from = first ? a : b;
    if (first && a == end_a) break;
    next = load<K, K, LANES>(from);
    a += first ? LANES : 0;
    b += first ? 0 : LANES;
  }
  store<K, LANES>(out, rest);
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
