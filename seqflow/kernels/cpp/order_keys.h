// Elements as keys of the same order: NaN above everything else, -0 and 0 the same.
#pragma once

#include "vectors.h"

namespace seqflow {
namespace SEQFLOW_ISA {

// What vectors compare elements of T as: K. Small integers are widened; `flips` are those whose first bit is turned.
template <class T> struct Compared { using K = int32_t; static constexpr bool flips = false; };
template <> struct Compared<uint32_t> { using K = int32_t; static constexpr bool flips = true; };
template <> struct Compared<int64_t> { using K = int64_t; static constexpr bool flips = false; };
template <> struct Compared<uint64_t> { using K = int64_t; static constexpr bool flips = true; };
template <> struct Compared<float> { using K = float; static constexpr bool flips = false; };
template <> struct Compared<double> { using K = double; static constexpr bool flips = false; };

template <class T>
struct Keys {
  using K = typename Compared<T>::K;
  static constexpr bool floats = __is_same(T, float) || __is_same(T, double);
  static constexpr bool flips = Compared<T>::flips;
  static constexpr int64_t MOST = sizeof(K) == 4 ? INT32_MAX : INT64_MAX;
  static constexpr K FIRST_BIT = flips ? static_cast<K>(~MOST) : 0;

  // Ascending comparable lanes; `reverse` turns their order around.
  template <int N>
  static Vector<K, N> comparable(Vector<K, N> lanes, bool reverse) {
    if constexpr (floats) {
      return reverse ? -lanes : lanes;
    } else {
      if constexpr (flips) lanes ^= FIRST_BIT;
      return reverse ? ~lanes : lanes;
    }
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
  static constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
  static constexpr U TOP = static_cast<U>(U{1} << (sizeof(U) * 8 - 1));

  static U of(T value, bool reverse) {
    U bits;
    memcpy(&bits, &value, sizeof bits);
    if constexpr (floats) {
      if (value != value)
        bits = static_cast<U>(~U{0});
      else
        bits ^= bits & TOP ? static_cast<U>(~U{0}) : TOP;
    } else if constexpr (is_signed) {
      bits ^= TOP;
    }
    return reverse ? static_cast<U>(~bits) : bits;
  }

  // The same with -0 as 0: what is equal has equal digits.
  static U stable(T value, bool reverse) {
    if constexpr (floats) value += 0;
    return of(value, reverse);
  }

  static T value(U bits, bool reverse) {
    if (reverse) bits = static_cast<U>(~bits);
    if constexpr (floats)
      bits ^= bits & TOP ? TOP : static_cast<U>(~U{0});
    else if constexpr (is_signed)
      bits ^= TOP;
    T result;
    memcpy(&result, &bits, sizeof result);
    return result;
  }
};

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
