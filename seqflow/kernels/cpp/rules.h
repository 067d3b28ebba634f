// What "sum", "mean", "max" and "min" do to elements of each type: A is accumulated in registers (and is the
// type of the result), F over longer stretches. As in NumPy: arrays.sum_dtype and arrays.mean_dtype.
#pragma once

#include "types.h"
#include "vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class T> struct SumTypes { using A = int64_t; using F = int64_t; };
template <> struct SumTypes<float> { using A = float; using F = double; };
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
};

template <int kind, class T> struct Rule;

template <class T> struct Rule<SUM, T> : Adding<T, SumTypes<T>> { static constexpr bool divides = false; };
template <class T> struct Rule<MEAN, T> : Adding<T, MeanTypes<T>> { static constexpr bool divides = true; };

// NaN wins, as in numpy.maximum and numpy.minimum.
template <class Element> struct Rule<MAX, Element> {
  using T = Element;
  using A = T;
  using F = T;
  static constexpr bool divides = false;
  template <class V> static V join(V most, V x) { return ((x > most) | (x != x)) ? x : most; }
  template <class V> static V neutral(V first) { return first; }
};

template <class Element> struct Rule<MIN, Element> {
  using T = Element;
  using A = T;
  using F = T;
  static constexpr bool divides = false;
  template <class V> static V join(V least, V x) { return ((x < least) | (x != x)) ? x : least; }
  template <class V> static V neutral(V first) { return first; }
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
