// Numbers in texts: integers, and decimals rounded to the nearest number of a type. Not for loops that are compiled for
// several instruction sets: it has std templates.
#pragma once

#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>

namespace seqflow {
namespace numerals {

constexpr uint8_t NONE = 255;  // of what is no digit

struct Digits {
  uint8_t of[256];
  constexpr Digits() : of{} {
    for (int byte = 0; byte < 256; ++byte) {
      const int lower = byte | 32;
      of[byte] = byte >= '0' && byte <= '9' ? byte - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : NONE;
    }
  }
};
constexpr Digits DIGITS;

constexpr double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int MOST_POWER = 22, MOST_DIGITS = 19;
// RapidJSON, which Arrow parses with, refuses some exponents from 308 on, of numbers near 0, too.
constexpr int64_t MOST_EXPONENT = 300;
constexpr uint64_t LARGEST = INT64_MAX, EXACT = uint64_t{1} << 53;

// Decimal digits with a point and an exponent: number * 10**exponent.
struct Decimal {
  uint64_t number = 0;
  int64_t exponent = 0;
  bool fits = true;  // it has few enough digits for uint64

  // Both are exact, so that one division or multiplication rounds once.
  bool is_exact() const { return fits && number <= EXACT && exponent >= -MOST_POWER && exponent <= MOST_POWER; }
  double value() const {
    const double exact = static_cast<double>(number);
    return exponent < 0 ? exact / POWERS[-exponent] : exact * POWERS[exponent];
  }
};

// Whether a double, itself rounded, is rounded to a float as the number was that it stands for: it must not lie in the
// middle between two floats, and be 0 or normal as a float.
inline bool rounds_once(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  constexpr uint64_t DROPPED = (uint64_t{1} << 29) - 1, MIDDLE = uint64_t{1} << 28;
  return value == 0 || ((bits & DROPPED) != MIDDLE && value >= std::numeric_limits<float>::min() &&
                        value <= std::numeric_limits<float>::max());
}

// Numbers at `at`, which is moved behind them; false where there is none, or not a plain one.
struct Text {
  const uint8_t *at;
  const uint8_t *end;

  uint8_t next() const { return at < end ? *at : '\n'; }
  bool is_digit() const { return static_cast<uint8_t>(next() - '0') < 10; }
  bool skip_sign() {
    const uint8_t first = next();
    at += first == '-' || first == '+';
    return first == '-';
  }
  bool skip(const char *word, int64_t size) {
    if (end - at < size || std::memcmp(at, word, size) != 0) return false;
    at += size;
    return true;
  }

  bool integer(int64_t &number) {
    const bool is_negative = skip_sign();
    const uint8_t *const first = at;
    const uint64_t value = digits(0);
    number = is_negative ? -static_cast<int64_t>(value & LARGEST) : static_cast<int64_t>(value);
    return at > first && at - first <= MOST_DIGITS && value <= LARGEST;
  }

  // `value` with digits added to it; wrong beyond MOST_DIGITS of them.
  __attribute__((always_inline)) uint64_t digits(uint64_t value) {
    const uint8_t *next = at;
    for (uint8_t digit; next < end && (digit = static_cast<uint8_t>(*next - '0')) < 10; ++next) value = value * 10 + digit;
    at = next;
    return value;
  }

  // As JSON has it: with digits on both sides of a point, and not beyond what each parser of JSON takes.
  __attribute__((always_inline)) bool decimal(Decimal &decimal) {
    const uint8_t *first = at;
    decimal.number = digits(0);
    const int64_t whole = at - first;
    int64_t decimals = 0;
    if (whole == 0 || whole > MOST_EXPONENT) return false;
    if (next() == '.') {
      first = ++at;
      decimal.number = digits(decimal.number);
      decimals = at - first;
      if (decimals == 0) return false;
    }
    decimal.fits = whole + decimals <= MOST_DIGITS;
    decimal.exponent = -decimals;
    if (next() != 'e' && next() != 'E') return true;
    ++at;
    const bool is_negative = skip_sign();
    first = at;
    int64_t exponent = 0;
    for (; is_digit(); ++at) exponent = exponent > MOST_EXPONENT ? exponent : exponent * 10 + (*at - '0');
    decimal.exponent += is_negative ? -exponent : exponent;
    return at > first && exponent <= MOST_EXPONENT;
  }

  // The nearest number of that type, as for a text of its own.
  template <class T>
  __attribute__((always_inline)) bool number(T &number) {
    const bool is_negative = skip_sign();
    const uint8_t *const first = at;
    Decimal found;
    if (!decimal(found)) return false;
    if (found.is_exact() && (sizeof(T) == sizeof(double) || rounds_once(found.value())))
      number = static_cast<T>(found.value());
    else if (!by_library(first, number))
      return false;
    static constexpr T SIGNS[] = {1, -1};  // a branch would be wrong half of the time
    number *= SIGNS[is_negative];
    return true;
  }

  template <class T>
  bool by_library(const uint8_t *first, T &number) const {
#if defined(__cpp_lib_to_chars)
    const auto *const from = reinterpret_cast<const char *>(first), *const to = reinterpret_cast<const char *>(at);
    const auto result = std::from_chars(from, to, number);
    return result.ec == std::errc() && result.ptr == to;
#else
    (void)first, (void)number;
    return false;
#endif
  }
};

}  // namespace numerals
}  // namespace seqflow
