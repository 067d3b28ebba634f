// sigmoid and tanh of vectors. Both rest on exp(x) = scale * (1 + rest), with rest small and exact near 0.
#pragma once

#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class T>
struct Exponential;

template <>
struct Exponential<float> {
  using Bits = int32_t;
  static constexpr float LOG2_E = 1.44269504f, LN2_HIGH = 0.693359375f, LN2_LOW = -2.12194440e-4f;
  static constexpr float ROUND = 12582912.0f;  // 1.5 * 2^23: added and taken away, it leaves the nearest integer
  static constexpr int MANTISSA = 23;
  static constexpr Bits ONE = 0x3f800000;
  static constexpr float MAX = 87.0f, MAX_TANH = 10.0f;
  static constexpr int TERMS = 6;
};

template <>
struct Exponential<double> {
  using Bits = int64_t;
  static constexpr double LOG2_E = 1.4426950408889634, LN2_HIGH = 6.93145751953125e-1,
                          LN2_LOW = 1.42860682030941723212e-6;
  static constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr int MANTISSA = 52;
  static constexpr Bits ONE = 0x3ff0000000000000;
  static constexpr double MAX = 708.0, MAX_TANH = 20.0;
  static constexpr int TERMS = 12;
};

// 1 / (TERMS + 1)!, …, 1 / 3!, 1 / 2!
constexpr double INVERSE_FACTORIALS[] = {
    1.0 / 6227020800.0, 1.0 / 479001600.0, 1.0 / 39916800.0, 1.0 / 3628800.0, 1.0 / 362880.0, 1.0 / 40320.0,
    1.0 / 5040.0,       1.0 / 720.0,       1.0 / 120.0,      1.0 / 24.0,      1.0 / 6.0,      1.0 / 2.0,
};

template <class T, int N>
struct Split {
  Vector<T, N> scale, rest;
};

// NaN stays NaN.
template <class T, int N>
inline Vector<T, N> clamp(Vector<T, N> x, T limit) {
  const Vector<T, N> high = Vector<T, N>{} + limit, low = Vector<T, N>{} - limit;
  x = x > high ? high : x;
  return x < low ? low : x;
}

// exp(x) for |x| <= MAX.
template <class T, int N>
inline Split<T, N> split_exponential(Vector<T, N> x) {
  using E = Exponential<T>;
  const Vector<T, N> shifted = x * E::LOG2_E + E::ROUND;
  const Vector<T, N> n = shifted - E::ROUND;
  const Vector<T, N> r = (x - n * E::LN2_HIGH) - n * E::LN2_LOW;
  constexpr int FIRST = 12 - E::TERMS;
  Vector<T, N> sum = Vector<T, N>{} + static_cast<T>(INVERSE_FACTORIALS[FIRST]);
#pragma GCC unroll 12
  for (int i = FIRST + 1; i < 12; ++i) sum = sum * r + static_cast<T>(INVERSE_FACTORIALS[i]);
  Vector<typename E::Bits, N> bits;
  memcpy(&bits, &shifted, sizeof bits);
  bits = (bits << E::MANTISSA) + E::ONE;
  Split<T, N> found;
  memcpy(&found.scale, &bits, sizeof bits);
  found.rest = r + r * r * sum;
  return found;
}

// 1 / sigmoid(x).
template <class T, int N>
inline Vector<T, N> inverse_sigmoid(Vector<T, N> x) {
  const Split<T, N> e = split_exponential<T, N>(-clamp<T, N>(x, Exponential<T>::MAX));
  return e.scale * e.rest + e.scale + T(1);
}

template <class T, int N>
inline Vector<T, N> sigmoid(Vector<T, N> x) {
  return T(1) / inverse_sigmoid<T, N>(x);
}

// exp(2x) - 1 for x as far as tanh(x) changes: tanh(x) = m / (m + 2).
template <class T, int N>
inline Vector<T, N> tanh_numerator(Vector<T, N> x) {
  const Split<T, N> e = split_exponential<T, N>(clamp<T, N>(x, Exponential<T>::MAX_TANH) * T(2));
  return e.scale * e.rest + (e.scale - T(1));
}

template <class T, int N>
inline Vector<T, N> tanh(Vector<T, N> x) {
  const Vector<T, N> m = tanh_numerator<T, N>(x);
  return m / (m + T(2));
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
