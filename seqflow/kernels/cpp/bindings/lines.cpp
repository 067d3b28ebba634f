// Where the lines of a text start and stop, and how often letters are in them. In NumPy: lines.py.
#include <cstring>
#include <utility>

#include "bindings/python.h"

namespace seqflow {
namespace {
namespace lines {

constexpr int64_t WIDTH = 16, MOST_STEPS = 255;  // letters side by side; steps whose counts fit a byte
typedef uint8_t Letters __attribute__((vector_size(WIDTH)));

constexpr Letters PLACES = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};

// The few letters from `at` up to `stop`, and 0 behind them, of data up to `end`.
inline Letters last_letters(const uint8_t *at, const uint8_t *stop, const uint8_t *end) {
  Letters found{};
  if (end - at >= WIDTH)
    std::memcpy(&found, at, WIDTH);
  else
    std::memcpy(&found, at, end - at);
  return found & reinterpret_cast<Letters>(PLACES < Letters{} + static_cast<uint8_t>(stop - at));
}

inline int64_t sum(const Letters &counts) {
  uint64_t halves[2], total = 0;
  std::memcpy(halves, &counts, sizeof halves);
  constexpr uint64_t EVEN = 0x00ff00ff00ff00ff, ONES = 0x0001000100010001;
  for (const uint64_t half : halves) total += (((half & EVEN) + (half >> 8 & EVEN)) * ONES) >> 48;
  return static_cast<int64_t>(total);
}

// How often a letter, not 0, is in a text up to `stop`, in data up to `end`.
int64_t count_letter(const uint8_t *at, const uint8_t *stop, const uint8_t *end, uint8_t letter) {
  const Letters same = Letters{} + letter;
  int64_t total = 0;
  while (stop - at >= WIDTH) {
    Letters counts{};
    for (int64_t step = 0; step < MOST_STEPS && stop - at >= WIDTH; ++step, at += WIDTH) {
      Letters found;
      std::memcpy(&found, at, WIDTH);
      counts -= reinterpret_cast<Letters>(found == same);
    }
    total += sum(counts);
  }
  return total + sum(reinterpret_cast<Letters>(last_letters(at, stop, end) == same) & 1);
}

nb::object split_lines(nb::handle data, nb::handle blanks, nb::handle letters) {
  const Buffer bytes(data), blank(blanks), letter(letters);
  for (const auto &[array, buffer] : {std::pair{data, &bytes}, std::pair{blanks, &blank}, std::pair{letters, &letter}})
    if (!dtype_of(array).equal(dtype_named(UINT8)) || buffer->rank() != 1) decline();
  bool is_blank[256] = {};
  for (int64_t i = 0; i < blank.bytes(); ++i) is_blank[blank.data()[i]] = true;
  Numbers counted(letter.bytes());
  for (int64_t i = 0; i < counted.size; ++i)
    if ((counted[i] = letter.data()[i]) == 0) decline();
  const uint8_t *const first = bytes.data(), *const end = first + bytes.bytes();
  const auto newline = [end](const uint8_t *at) {
    return at < end ? static_cast<const uint8_t *>(std::memchr(at, '\n', end - at)) : nullptr;
  };
  int64_t most = 0;
  for (const uint8_t *at = first; (at = newline(at)); ++at) ++most;
  nb::object starts = empty_array({most}, bytes, 1, dtype_named(INT64));
  nb::object stops = empty_array({most}, bytes, 1, dtype_named(INT64));
  nb::object counts = empty_array({counted.size, most}, bytes, 1, dtype_named(INT64));
  Buffer start(starts, NUMERIC, true), stop(stops, NUMERIC, true), count(counts, NUMERIC, true);
  int64_t rows = 0;
  {
    const Unlocked unlocked(bytes.bytes());
    const uint8_t *next = nullptr;
    for (const uint8_t *at = first; rows < most && (next = newline(at)); at = next + 1) {
      const uint8_t *last = next;
      while (at < last && is_blank[*at]) ++at;
      while (at < last && is_blank[last[-1]]) --last;
      if (at == last) continue;
      reinterpret_cast<int64_t *>(start.data())[rows] = at - first;
      reinterpret_cast<int64_t *>(stop.data())[rows] = last - first;
      for (int64_t i = 0; i < counted.size; ++i)
        reinterpret_cast<int64_t *>(count.data())[i * most + rows] =
            count_letter(at, last, end, static_cast<uint8_t>(counted[i]));
      ++rows;
    }
  }
  const nb::slice found(rows);
  return nb::make_tuple(starts[found], stops[found], counts[nb::make_tuple(nb::slice(counted.size), found)]);
}

}  // namespace lines
}  // namespace

void bind_lines(nb::module_ &module) { bind_kernel(module, "split_lines", lines::split_lines); }

}  // namespace seqflow
