// Numbers in lines of fields that are separated by tabs, in one pass. In NumPy: fields.py.
#include <cstring>
#include <vector>

#include "bindings/python.h"
#include "shared/numerals.h"

namespace seqflow {
namespace {
namespace fields {

using numerals::DIGITS, numerals::NONE;

constexpr int MOST_DECIMALS = 19, MOST_HEXADECIMALS = 16;
constexpr int64_t TEXT = 0, HEXADECIMAL = 16;
constexpr uint64_t LARGEST = INT64_MAX;

// Text up to `end`. Another thread may write to it meanwhile: nothing relies on the newline at its end.
struct Text {
  const uint8_t *const data, *const end;

  uint8_t digit(const uint8_t *at) const { return at < end ? DIGITS.of[*at] : NONE; }
  bool ends_line(const uint8_t *at) const {
    return at == end || *at == '\n' || (*at == '\r' && end - at > 1 && at[1] == '\n');
  }
  bool ends_field(const uint8_t *at) const { return ends_line(at) || *at == '\t'; }
  const uint8_t *next_line(const uint8_t *at) const {
    const void *const found = at < end ? std::memchr(at, '\n', end - at) : nullptr;
    return found ? static_cast<const uint8_t *>(found) + 1 : end;
  }

  // What stands at `at` up to the end of its field, which `at` is moved to; false where it is not of that base.
  bool field(const uint8_t *&at, int64_t base, int64_t &number) const {
    const uint8_t *const start = at;
    if (base == TEXT) {
      while (!ends_field(at)) ++at;
      number = ((start - data) << 32) + (at - start);
      return true;
    }
    uint64_t value = 0;
    if (base == HEXADECIMAL) {
      for (uint8_t next; (next = digit(at)) != NONE; ++at) value = value << 4 | next;
      number = static_cast<int64_t>(value);
      return at - start <= MOST_HEXADECIMALS && value <= LARGEST && ends_field(at);
    }
    const bool is_negative = at < end && *at == '-';
    if (is_negative || (at < end && *at == '+')) ++at;
    const uint8_t *const first = at;
    for (uint8_t next; (next = digit(at)) < 10; ++at) value = value * 10 + next;
    number = is_negative ? -static_cast<int64_t>(value & LARGEST) : static_cast<int64_t>(value);
    return (at > first || at == start) && at - first <= MOST_DECIMALS && value <= LARGEST && ends_field(at);
  }

  // The fields of the line at `at`, which is moved behind it; false where they are others.
  bool line(const uint8_t *&at, const Numbers &bases, int64_t *numbers, uint8_t *missing) const {
    const uint8_t *const first = at;
    bool good = true;
    for (int64_t k = 0; k < bases.size && good; ++k) {
      const uint8_t *const start = at;
      const bool is_last = k == bases.size - 1;
      good = field(at, bases[k], numbers[k]) && is_last == ends_line(at);
      missing[k] = at == start;
      at += good && !is_last;
    }
    at = next_line(good ? at : first);
    return good;
  }
};

// Columns that lie together: numbers and missing [lines, width].
struct Columns {
  nb::object numbers, missing;
  Buffer number, absent;
  const int64_t width;

  Columns(int64_t lines, int64_t width, const Buffer &like)
      : numbers(empty_array({lines, width}, like, 1, dtype_named(INT64))),
        missing(empty_array({lines, width}, like, 1, bool_dtype())),
        number(numbers, NUMERIC, true),
        absent(missing, ANY, true),
        width(width) {}
};

nb::object parse_fields(nb::handle data, nb::handle kinds, nb::handle together) {
  const Buffer bytes(data), given(kinds), parts(together);
  if (bytes.type() != UINT8 || !dtype_of(data).equal(dtype_named(UINT8)) || bytes.rank() != 1) decline();
  const Integers integers = given.counts(), sizes = parts.counts();
  const Text text{bytes.data(), bytes.data() + bytes.bytes()};
  if (bytes.bytes() == 0 || text.end[-1] != '\n' || bytes.bytes() > INT32_MAX) decline();
  Numbers bases(integers.size), widths(sizes.size);
  int64_t total = 0;
  for (int64_t i = 0; i < bases.size; ++i) {
    bases[i] = integers[i];
    if (bases[i] != TEXT && bases[i] != 10 && bases[i] != HEXADECIMAL) decline();
  }
  for (int64_t i = 0; i < widths.size; total += widths[i++]) {
    widths[i] = sizes[i];
    if (widths[i] < 1 || widths[i] > bases.size) decline();
  }
  if (total != bases.size || total == 0) decline();
  int64_t lines = 0;
  for (const uint8_t *at = text.data; at < text.end; ++lines) at = text.next_line(at);
  std::vector<std::unique_ptr<Columns>> columns;
  for (int64_t i = 0; i < widths.size; ++i) columns.emplace_back(new Columns(lines, widths[i], given));
  nb::object starts = empty_array({lines}, given, 1, dtype_named(INT64));
  nb::object good = empty_array({lines}, given, 1, bool_dtype());
  Buffer start(starts, NUMERIC, true), fits(good, ANY, true);
  Numbers numbers(bases.size);
  std::vector<uint8_t> missing(bases.size);
  int64_t count = 0;
  {
    const Unlocked unlocked(bytes.bytes());
    for (const uint8_t *at = text.data; at < text.end && count < lines;) {
      if (text.ends_line(at)) {
        at = text.next_line(at);
        continue;
      }
      reinterpret_cast<int64_t *>(start.data())[count] = at - text.data;
      const bool is_good = text.line(at, bases, numbers.data(), missing.data());
      int64_t from = 0;
      for (const auto &some : columns) {
        int64_t *const to = reinterpret_cast<int64_t *>(some->number.data()) + count * some->width;
        uint8_t *const absent = some->absent.data() + count * some->width;
        for (int64_t k = 0; k < some->width; ++k) {
          to[k] = is_good ? numbers[from + k] : 0;
          absent[k] = is_good && missing[from + k];
        }
        from += some->width;
      }
      fits.data()[count++] = is_good;
    }
  }
  const nb::slice rows(count);
  nb::list found, absent;
  for (const auto &some : columns) {
    found.append(some->numbers[rows]);
    absent.append(some->missing[rows]);
  }
  return nb::make_tuple(nb::tuple(found), nb::tuple(absent), starts[rows], good[rows]);
}

}  // namespace fields
}  // namespace

void bind_fields(nb::module_ &module) { bind_kernel(module, "parse_fields", fields::parse_fields); }

}  // namespace seqflow
