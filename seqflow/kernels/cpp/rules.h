// What "sum", "mean", "max" and "min" do to elements of each type: A is accumulated in registers (and is the
// type of the result), F over longer stretches. As in NumPy: arrays.sum_dtype and arrays.mean_dtype.
#pragma once

#include "half.h"
#include "types.h"
#include "vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class T> struct SumTypes { using A = int64_t; using F = int64_t; };
template <> struct SumTypes<float> { using A = float; using F = double; };
template <> struct SumTypes<Half> { using A = float; using F = double; };
template <> struct SumTypes<double> { using A = double; using F = double; };

template <class T> struct MeanTypes { using A = double; using F = double; };
template <> struct MeanTypes<float> { using A = float; using F = double; };

template <class Element, class Types>
struct Adding {
  using T = Element;
  using A = typename Types::A;
  using F = typename Types::F;
  template <class V> static V join(V total, V x) { return total + x; }
  template <class V> static V neutral(V) { return V{}; }
  static A start() { return A{}; }
};

// The type in which elements are compared.
template <class T> struct Compared { using type = T; };
template <> struct Compared<Half> { using type = float; };

// The least and the largest value of a type.
template <class A> struct Range {
  static constexpr A least = static_cast<A>(-1) < A{} ? static_cast<A>(uint64_t{1} << (8 * sizeof(A) - 1)) : A{};
  static constexpr A largest = static_cast<A>(~least);
};
template <> struct Range<float> { static constexpr float largest = __builtin_inff(), least = -largest; };
template <> struct Range<double> { static constexpr double largest = __builtin_inf(), least = -largest; };

template <int kind, class T> struct Rule;

template <class T> struct Rule<SUM, T> : Adding<T, SumTypes<T>> { static constexpr bool divides = false; };
template <class T> struct Rule<MEAN, T> : Adding<T, MeanTypes<T>> { static constexpr bool divides = true; };

// NaN wins, as in numpy.maximum and numpy.minimum.
template <class Element> struct Rule<MAX, Element> {
  using T = Element;
  using A = typename Compared<T>::type;
  using F = A;
  static constexpr bool divides = false;
  template <class V> static V join(V most, V x) { return ((x > most) | (x != x)) ? x : most; }
  template <class V> static V neutral(V first) { return first; }
  static A start() { return Range<A>::least; }
};

template <class Element> struct Rule<MIN, Element> {
  using T = Element;
  using A = typename Compared<T>::type;
  using F = A;
  static constexpr bool divides = false;
  template <class V> static V join(V fewest, V x) { return ((x < fewest) | (x != x)) ? x : fewest; }
  template <class V> static V neutral(V first) { return first; }
  static A start() { return Range<A>::largest; }
};

// The result of `count` rows, which is their total or their mean.
template <class R>
inline typename R::A divided(typename R::F total, int64_t count) {
  using A = typename R::A;
  if constexpr (R::divides) return static_cast<A>(total / static_cast<typename R::F>(count));
  return static_cast<A>(total);
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
