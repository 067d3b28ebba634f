// Scores of one unit against one tile of keys, and which of them count.
#pragma once

#include "shared/products.h"
#include "recurrent/activations.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class T>
constexpr T INFINITE = __builtin_huge_val();
// Scores from row to row: a line more than the keys, or rows would lie in few sets of the nearest cache.
template <class T>
constexpr int64_t SCORES = KEYS + 64 / sizeof(T);

// exp(x) for x <= 0, and 0 where it is too small for a normal number.
template <class T>
inline Vector<T, LANES<T>> power(Vector<T, LANES<T>> x) {
  using E = Exponential<T>;
  using V = Vector<T, LANES<T>>;
  const V low = V{} - E::MAX;
  const Split<T, LANES<T>> e = split_exponential<T, LANES<T>>(x < low ? low : x);
  return x < low ? V{} : e.scale * e.rest + e.scale;
}

// The next elements of a block of memory, which starts a line; null where only the size is asked for.
template <class T>
T *take_lines(T *memory, int64_t &size, int64_t count) {
  T *const at = memory ? memory + size : nullptr;
  size += round_up(count, 64 / sizeof(T));
  return at;
}

struct Range {
  int64_t low, high;
  bool is_empty() const { return low >= high; }
};

// One sequence of a task.
struct Places {
  const Attention &job;
  const int64_t query, key;  // their first rows
  const int64_t queries, keys, shift;

  Places(const Attention &job, int64_t sequence)
      : job(job),
        query(job.offsets[sequence]),
        key(job.kv_offsets[sequence]),
        queries(job.offsets[sequence + 1] - query),
        keys(job.kv_offsets[sequence + 1] - key),
        shift(job.from_end ? keys - queries : 0) {}

  int64_t ratio() const { return job.heads / job.groups; }
  int64_t inside(int64_t at) const { return at < 0 ? 0 : at > keys ? keys : at; }
  // Keys that the queries [i, i + count) see, some of them.
  Range seen(int64_t i, int64_t count = 1) const {
    return {inside(i + shift - job.before), inside(i + count + shift + job.after)};
  }
};

// Some queries of one head.
template <class T>
struct Unit {
  int64_t head, first, rows;

  Unit(const Places &at, int64_t group, int64_t number)
      : head(group * at.ratio() + number % at.ratio()),
        first(number / at.ratio() * QUERIES),
        rows(at.queries - first < QUERIES ? at.queries - first : QUERIES) {}

  // Its first row of an array [queries, heads, width], whose rows are heads * width apart.
  int64_t row_of(const Places &at, int64_t width) const {
    return ((at.query + first) * at.job.heads + head) * width;
  }
};

// Keys [low, high) of a tile that starts at `key`, those that some row of the unit sees, and scores in whole vectors:
// columns [begin, end).
struct Tile {
  int64_t key;
  Range some;
  int64_t begin, end;

  template <class T>
  static Tile of(const Places &at, const Unit<T> &unit, int64_t key, int64_t count) {
    Range some = at.seen(unit.first, unit.rows);
    some.low = some.low < key ? 0 : some.low - key;
    some.high = some.high > key + count ? count : some.high - key;
    return {key, some, some.low / PANEL<T> * PANEL<T>, round_up(some.high, LANES<T>)};
  }
  Range seen(const Places &at, int64_t i) const {
    const Range all = at.seen(i);
    return {all.low < key + some.low ? some.low : all.low - key, all.high > key + some.high ? some.high : all.high - key};
  }
  bool hides(const Places &at, int64_t first, int64_t rows) const {
    const Range a = seen(at, first), b = seen(at, first + rows - 1);
    return b.low > some.low || a.high < some.high;
  }
};

// a[rows, depth] · panels[depth, keys] for the columns of a tile.
template <class T>
void score(const T *a, int64_t stride, int64_t depth, const T *panels, const Tile &tile, int64_t rows, T *to) {
  multiply<T, false>({a, stride, 1, panels + tile.begin * depth, depth * PANEL<T>, to + tile.begin, SCORES<T>, rows,
                      tile.end - tile.begin, depth});
}

// Places of keys less that of a query, without sign.
template <class T>
inline Vector<T, LANES<T>> distances(int64_t from) {
  Vector<T, LANES<T>> lanes = {};
  for (int i = 0; i < LANES<T>; ++i) lanes[i] = static_cast<T>(from + i);
  return lanes < T(0) ? -lanes : lanes;
}

// Cap a row of scores, and take the slope's share; `slopes_of_cap` gets the derivative of the cap where it is not null.
template <class T>
__attribute__((noinline)) void adjust(const Attention &job, const Tile &tile, int64_t head, int64_t place, T *row,
                                      T *slopes_of_cap) {
  constexpr int N = LANES<T>;
  const T cap = static_cast<T>(job.softcap), slope = job.slopes ? static_cast<const T *>(job.slopes)[head] : T(0);
  for (int64_t j = tile.begin; j < tile.end; j += N) {
    Vector<T, N> s = load<T, T, N>(row + j);
    if (cap != 0) {
      const Vector<T, N> bent = tanh<T, N>(s / cap);
      s = bent * cap;
      if (slopes_of_cap) store<T, N>(slopes_of_cap + j, T(1) - bent * bent);
    }
    if (job.slopes) s -= slope * distances<T>(tile.key + j - place);
    store<T, N>(row + j, s);
  }
}

template <class T>
void fill_outside(T *row, const Tile &tile, Range seen, T value) {
  const int64_t stop = seen.low < tile.end ? seen.low : tile.end;
  for (int64_t j = tile.begin; j < stop; ++j) row[j] = value;
  for (int64_t j = seen.high > tile.begin ? seen.high : tile.begin; j < tile.end; ++j) row[j] = value;
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
