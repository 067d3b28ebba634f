// Lines `label qid:number index:value …` in one pass. In NumPy: providers/lines/libsvm.py, for all other lines, too.
#include <charconv>
#include <cstring>
#include <limits>

#include "bindings/python.h"

namespace seqflow {
namespace {
namespace pairs {

constexpr double POWERS[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
constexpr int MOST_POWER = 22, MOST_DIGITS = 19, MOST_EXPONENT = 9999;
constexpr uint64_t LARGEST = INT64_MAX, EXACT = uint64_t{1} << 53;

// Decimal digits with a point and an exponent: number * 10**exponent.
struct Decimal {
  uint64_t number = 0;
  int64_t exponent = 0;
  bool fits = true;  // the number is not larger than uint64

  // Both are exact, so that one division or multiplication rounds once.
  bool is_exact() const { return fits && number <= EXACT && exponent >= -MOST_POWER && exponent <= MOST_POWER; }
  double value() const {
    const double exact = static_cast<double>(number);
    return exponent < 0 ? exact / POWERS[-exponent] : exact * POWERS[exponent];
  }
};

// Whether a double, itself rounded, is rounded to a float as the number was that it stands for: it must not lie in the
// middle between two floats, and be 0 or normal as a float.
bool rounds_once(double value) {
  uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  constexpr uint64_t DROPPED = (uint64_t{1} << 29) - 1, MIDDLE = uint64_t{1} << 28;
  return value == 0 || ((bits & DROPPED) != MIDDLE && value >= std::numeric_limits<float>::min() &&
                        value <= std::numeric_limits<float>::max());
}

// Numbers at `at`, which is moved behind them; false where there is none, or not a plain one.
struct Text {
  const uint8_t *at;
  const uint8_t *const end;

  uint8_t next() const { return at < end ? *at : '\n'; }
  bool is_digit() const { return static_cast<uint8_t>(next() - '0') < 10; }
  bool ends_line() const { return next() == '\n' || next() == '#'; }
  bool is_blank() const { return next() == ' ' || next() == '\t' || (next() >= '\v' && next() <= '\r'); }
  bool ends_word() const { return is_blank() || ends_line(); }
  void skip_blanks() {
    while (is_blank()) ++at;
  }
  void skip_line() {
    const void *const found = at < end ? std::memchr(at, '\n', end - at) : nullptr;
    at = found ? static_cast<const uint8_t *>(found) + 1 : end;
  }
  bool skip_sign() {
    const bool is_negative = next() == '-';
    if (is_negative || next() == '+') ++at;
    return is_negative;
  }
  bool skip(const char *word, int64_t size) {
    if (end - at < size || std::memcmp(at, word, size) != 0) return false;
    at += size;
    return true;
  }

  bool integer(int64_t &number) {
    const bool is_negative = skip_sign();
    const uint8_t *const first = at;
    uint64_t value = 0;
    for (; is_digit(); ++at) value = value * 10 + (*at - '0');
    number = is_negative ? -static_cast<int64_t>(value & LARGEST) : static_cast<int64_t>(value);
    return at > first && at - first <= MOST_DIGITS && value <= LARGEST;
  }

  int64_t digits(Decimal &decimal) {
    const uint8_t *const first = at;
    for (; is_digit(); ++at) {
      const uint8_t digit = *at - '0';
      if (decimal.number > (UINT64_MAX - 9) / 10) decimal.fits = false;
      decimal.number = decimal.number * 10 + digit;
    }
    return at - first;
  }

  bool decimal(Decimal &decimal) {
    const int64_t whole = digits(decimal);
    int64_t decimals = 0;
    if (next() == '.') {
      ++at;
      decimals = digits(decimal);
    }
    if (whole + decimals == 0) return false;
    decimal.exponent = -decimals;
    if (next() != 'e' && next() != 'E') return true;
    ++at;
    const bool is_negative = skip_sign();
    const uint8_t *const first = at;
    int64_t exponent = 0;
    for (; is_digit(); ++at) exponent = exponent > MOST_EXPONENT ? exponent : exponent * 10 + (*at - '0');
    decimal.exponent += is_negative ? -exponent : exponent;
    return at > first;
  }

  // The nearest number of that type, as for a text of its own.
  template <class T>
  bool number(T &number) {
    const bool is_negative = skip_sign();
    const uint8_t *const first = at;
    Decimal found;
    if (!decimal(found)) return false;
    if (found.is_exact() && (sizeof(T) == sizeof(double) || rounds_once(found.value())))
      number = static_cast<T>(found.value());
    else if (!by_library(first, number))
      return false;
    if (is_negative) number = -number;
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

// Arrays of the results, and how many elements they have so far.
struct Rows {
  const Buffer &like;
  const int64_t most_rows, most_pairs;
  nb::object label_array = empty_array({most_rows}, like, 1, dtype_named(FLOAT64));
  nb::object qid_array = empty_array({most_rows}, like, 1, dtype_named(INT64));
  nb::object offset_array = empty_array({most_rows + 1}, like, 1, dtype_named(INT32));
  nb::object id_array = empty_array({most_pairs}, like, 1, dtype_named(INT64));
  nb::object value_array = empty_array({most_pairs}, like, 1, dtype_named(FLOAT32));
  Buffer label_view{label_array, NUMERIC, true}, qid_view{qid_array, NUMERIC, true};
  Buffer offset_view{offset_array, NUMERIC, true}, id_view{id_array, NUMERIC, true};
  Buffer value_view{value_array, NUMERIC, true};
  int64_t rows = 0, pairs = 0;

  template <class T>
  static T *of(Buffer &view) {
    return reinterpret_cast<T *>(view.data());
  }

  // The row of the line at text.at; false where it is none.
  bool read(Text &text, bool has_qid, int64_t least) {
    if (rows == most_rows) return false;
    int64_t qid = 0;
    if (!text.number(of<double>(label_view)[rows]) || !text.ends_word()) return false;
    text.skip_blanks();
    if (has_qid && (!text.skip("qid:", 4) || !text.integer(qid) || !text.ends_word())) return false;
    of<int64_t>(qid_view)[rows] = qid;
    for (text.skip_blanks(); !text.ends_line(); text.skip_blanks(), ++pairs) {
      int64_t id = 0;
      if (pairs == most_pairs || !text.integer(id) || id < least || !text.skip(":", 1)) return false;
      of<int64_t>(id_view)[pairs] = id - least;
      if (!text.number(of<float>(value_view)[pairs]) || !text.ends_word()) return false;
    }
    of<int32_t>(offset_view)[++rows] = static_cast<int32_t>(pairs);
    return true;
  }

  bool read_all(Text text, bool has_qid, int64_t least) {
    of<int32_t>(offset_view)[0] = 0;
    for (; text.at < text.end; text.skip_line()) {
      text.skip_blanks();
      if (!text.ends_line() && !read(text, has_qid, least)) return false;
    }
    return true;
  }
};

nb::object parse_pairs(nb::handle data, bool has_qid, bool one_based) {
  const Buffer bytes(data);
  if (bytes.type() != UINT8 || !dtype_of(data).equal(dtype_named(UINT8)) || bytes.rank() != 1) decline();
  const uint8_t *const first = bytes.data(), *const end = first + bytes.bytes();
  if (bytes.bytes() == 0 || end[-1] != '\n' || bytes.bytes() > INT32_MAX) return nb::none();
  int64_t lines = 0, colons = 0;
  for (const uint8_t *at = first; at < end; ++at) {
    lines += *at == '\n';
    colons += *at == ':';
  }
  Rows found{bytes, lines, colons};
  bool good;
  {
    const Unlocked unlocked(bytes.bytes());
    good = found.read_all(Text{first, end}, has_qid, one_based);
  }
  if (!good) return nb::none();
  const nb::slice rows(found.rows), pairs(found.pairs), offsets(found.rows + 1);
  return nb::make_tuple(found.label_array[rows], found.qid_array[rows], found.id_array[pairs],
                        found.value_array[pairs], found.offset_array[offsets]);
}

}  // namespace pairs
}  // namespace

void bind_pairs(nb::module_ &module) { bind_kernel(module, "parse_pairs", pairs::parse_pairs); }

}  // namespace seqflow
