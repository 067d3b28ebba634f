// What "sum", "mean", "max" and "min" do to elements of each type: A is accumulated in registers (and is as large as
// an element of the result), F over longer stretches. As in NumPy: arrays.sum_dtype and arrays.mean_dtype.
#pragma once

#include "shared/half.h"
#include "reductions/reduction.h"
#include "shared/types.h"
#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class T> struct SumTypes { using A = int64_t; using F = int64_t; };
template <> struct SumTypes<float> { using A = float; using F = double; };
template <> struct SumTypes<Half> { using A = float; using F = double; };
template <> struct SumTypes<double> { using A = double; using F = double; };

template <class T> struct MeanTypes { using A = double; using F = double; };
template <> struct MeanTypes<float> { using A = float; using F = double; };

// Sums and means. The mean of integers that are added up in int64 is float64.
template <class Element, class Accumulator, class Total>
struct Adding {
  using T = Element;
  using A = Accumulator;
  using F = Total;
  using OfTotals = Adding<A, A, F>;  // the rule for what was added up already, of any T
  static constexpr bool adds = true;
  const bool mean;

  explicit Adding(const Reduction &job) : mean(job.mean) {}
  static A start() { return A{}; }
  template <class V> static V join(V total, V x) { return total + x; }
  template <class V> static V take(V x) { return x; }

  // Totals of `count` rows, as the elements of the result: those of A, or where they are means of int64, of double.
  template <class B, int N>
  inline Vector<B, N> finish(Vector<B, N> totals, int64_t count) const {
    if (!mean) return totals;
    if constexpr (__is_same(B, int64_t))
      return (Vector<B, N>)(__builtin_convertvector(totals, Vector<double, N>) / static_cast<double>(count));
    else
      return totals / static_cast<B>(count);
  }
};

// The largest, where NaN wins, as in numpy.maximum. Bits of elements are flipped where that makes the smallest, or the
// largest of unsigned integers, the largest of A.
template <class Element, class Compared>
struct Largest {
  using T = Element;
  using A = Compared;
  using F = Compared;
  using OfTotals = Largest<A, A>;
  using Bits = typename Signed<sizeof(A)>::type;
  static constexpr bool adds = false;
  const Bits flipped;

  explicit Largest(const Reduction &job) : flipped(static_cast<Bits>(job.flipped)) {}

  static A start() {
    if constexpr (__is_same(A, float) || __is_same(A, double)) return -__builtin_inf();
    return static_cast<A>(uint64_t{1} << (8 * sizeof(A) - 1));
  }
  template <class V> static V join(V most, V x) { return ((x > most) | (x != x)) ? x : most; }
  template <class V> inline V take(V x) const {
    typedef Bits Lanes __attribute__((vector_size(sizeof(V))));
    return (V)((Lanes)x ^ flipped);
  }
  template <class B, int N>
  inline Vector<B, N> finish(Vector<B, N> most, int64_t) const { return take(most); }
};

// What elements of T are added up by. The bits of a sum are those of uint64 and of int64.
template <class T> struct Sums { using Rule = Adding<T, typename SumTypes<T>::A, typename SumTypes<T>::F>; };
template <> struct Sums<uint64_t> : Sums<int64_t> {};

template <class T> struct Means : Sums<T> {};
template <> struct Means<int64_t> { using Rule = Adding<int64_t, double, double>; };
template <> struct Means<uint64_t> { using Rule = Adding<uint64_t, double, double>; };
template <> struct Means<Half> { using Rule = Adding<Half, double, double>; };

// What they are compared by, for the largest and for the smallest.
template <class T> struct Extremes { using Rule = Largest<T, T>; };
template <> struct Extremes<uint8_t> : Extremes<int8_t> {};
template <> struct Extremes<uint16_t> : Extremes<int16_t> {};
template <> struct Extremes<uint32_t> : Extremes<int32_t> {};
template <> struct Extremes<uint64_t> : Extremes<int64_t> {};
template <> struct Extremes<Half> { using Rule = Largest<Half, float>; };

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
