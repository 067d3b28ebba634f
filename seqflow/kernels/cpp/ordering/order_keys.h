// Sort keys: comparable integers and floats for each element type; NaN above everything else, -0 and 0 the same.
#pragma once

#include "shared/vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// What vectors compare elements of T as: K. Small integers are widened. Unsigned integers come as the signed ones of
// their bits: `flipped` are the bits that are turned for that, and all of them for the reverse order. Of floats any bit
// of it reverses the order.
template <class T> struct Compared { using K = int32_t; };
template <> struct Compared<int64_t> { using K = int64_t; };
template <> struct Compared<float> { using K = float; };
template <> struct Compared<double> { using K = double; };

template <class T>
struct Keys {
  using K = typename Compared<T>::K;
  static constexpr bool floats = __is_same(T, float) || __is_same(T, double);
  static constexpr int64_t MOST = sizeof(K) == 4 ? INT32_MAX : INT64_MAX;

  // Ascending comparable lanes, and back.
  template <int N>
  static Vector<K, N> comparable(Vector<K, N> lanes, int64_t flipped) {
    if constexpr (floats)
      return flipped ? -lanes : lanes;
    else
      return lanes ^ static_cast<K>(flipped);
  }

  static constexpr K largest() {
    if constexpr (floats)
      return __builtin_huge_val();
    else
      return MOST;
  }
};

// Unsigned integers in the order of the elements, and back.
template <int SIZE> struct Unsigned;
template <> struct Unsigned<1> { using type = uint8_t; };
template <> struct Unsigned<2> { using type = uint16_t; };
template <> struct Unsigned<4> { using type = uint32_t; };
template <> struct Unsigned<8> { using type = uint64_t; };

template <class T>
struct Digits {
  using U = typename Unsigned<sizeof(T)>::type;
  static constexpr bool floats = Keys<T>::floats;
  static constexpr U TOP = static_cast<U>(U{1} << (sizeof(U) * 8 - 1));

  static U of(T value, int64_t flipped) {
    U bits;
    memcpy(&bits, &value, sizeof bits);
    if constexpr (!floats) return static_cast<U>(bits ^ TOP ^ static_cast<U>(flipped));
    if (value != value)
      bits = static_cast<U>(~U{0});
    else
      bits ^= bits & TOP ? static_cast<U>(~U{0}) : TOP;
    return flipped ? static_cast<U>(~bits) : bits;
  }

  // Back to the element; what was NaN is one.
  static T back(U digits, int64_t flipped) {
    if constexpr (!floats) return static_cast<T>(digits ^ TOP ^ static_cast<U>(flipped));
    if (flipped) digits = static_cast<U>(~digits);
    digits ^= digits & TOP ? TOP : static_cast<U>(~U{0});
    T value;
    memcpy(&value, &digits, sizeof value);
    return value;
  }

  // The same with -0 as 0: what is equal has equal digits.
  static U stable(T value, int64_t flipped) {
    if constexpr (floats) value += 0;
    return of(value, flipped);
  }
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
