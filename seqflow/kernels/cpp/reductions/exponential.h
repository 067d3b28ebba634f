// exp of every lane, to about one unit in the last place; 0 below the smallest number, infinity above the largest.
#pragma once

#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// exp(x) = 2^n * (1 + r + r * r * (POLYNOMIAL in r)), r = x - n * log(2) in [-log(2) / 2, log(2) / 2].
template <class T> struct Exponential;

template <> struct Exponential<float> {
  using Bits = uint32_t;
  static constexpr int MANTISSA = 23, BIAS = 127, DEGREE = 4;
  static constexpr float ROUND = 12582912.0f;  // 1.5 * 2^23: what is added to it is rounded to an integer
  static constexpr float LOG2_E = 1.44269504f, LN2_HIGH = 0.693359375f, LN2_LOW = -2.12194440e-4f;
  static constexpr float LOWEST = -104.0f, HIGHEST = 89.0f;
  static constexpr float POLYNOMIAL[DEGREE + 1] = {0.4999999344649036f, 0.16666520618944275f, 0.04166838830827638f,
                                                   0.008368718066805732f, 0.0013814586040750312f};
};

template <> struct Exponential<double> {
  using Bits = uint64_t;
  static constexpr int MANTISSA = 52, BIAS = 1023, DEGREE = 9;
  static constexpr double ROUND = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double LOG2_E = 1.4426950408889634, LN2_HIGH = 6.93147180369123816490e-01;
  static constexpr double LN2_LOW = 1.90821492927058770002e-10;
  static constexpr double LOWEST = -746.0, HIGHEST = 710.0;
  static constexpr double POLYNOMIAL[DEGREE + 1] = {
      0.5000000000000011,     0.16666666666666413,    0.04166666666653012,   0.00833333333349442,
      0.0013888888943638868,  0.00019841269506711787, 2.4801493090521307e-05, 2.755758622793232e-06,
      2.763025115871156e-07,  2.500011409950536e-08};
};

template <class T, int N>
inline Vector<T, N> exponential(Vector<T, N> x) {
  using E = Exponential<T>;
  using V = Vector<T, N>;
  using Bits = Vector<typename E::Bits, N>;
  x = x < E::LOWEST ? V{} + E::LOWEST : x;  // NaN stays
  x = x > E::HIGHEST ? V{} + E::HIGHEST : x;
  const V shifted = x * E::LOG2_E + E::ROUND;
  const V n = shifted - E::ROUND;
  const V r = (x - n * E::LN2_HIGH) - n * E::LN2_LOW;
  V sum = V{} + E::POLYNOMIAL[E::DEGREE];
#pragma GCC unroll 16
  for (int k = E::DEGREE - 1; k >= 0; --k) sum = sum * r + E::POLYNOMIAL[k];
  sum = (sum * r) * r + r + static_cast<T>(1);
  // 2^n in two halves, since n alone may be outside the exponents there are.
  const V round = V{} + E::ROUND;
  const Bits twice = (Bits)shifted - (Bits)round + static_cast<typename E::Bits>(2 * E::BIAS);
  const Bits half = twice >> 1;
  return sum * (V)(half << E::MANTISSA) * (V)((twice - half) << E::MANTISSA);
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
