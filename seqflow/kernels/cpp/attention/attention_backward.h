// The gradient of attention: weights are made again from lse, one tile of keys against all units that see some of it.
//
//   P = exp(S - lse)             delta = sum(d_out * out) - d_lse of each row
//   d_v = P^T d_out              dS = P * (d_out v^T - delta), times the derivative of the cap
//   d_q = scale * dS k           d_k = scale * dS^T q
#pragma once

#include "attention/scores.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class T>
struct BackwardTiles {
  T *scaled, *values, *keys, *d_keys, *d_values;  // of a tile of keys: columns of k and v, rows of k, sums
  T *scores, *slopes, *bends, *queries, *d_out, *d_queries;  // of a unit
  int64_t depth, width, size = 0;

  BackwardTiles(const Attention &job, T *memory)
      : depth(round_up(job.depth, LANES<T>)), width(round_up(job.width, LANES<T>)) {
    const auto take = [&](int64_t count) { return take_lines<T>(memory, size, count); };
    scaled = take(KEYS * job.depth);
    values = take(KEYS * job.width);
    keys = take(KEYS * round_up(job.depth, PANEL<T>));
    d_keys = take(KEYS * depth);
    d_values = take(KEYS * width);
    scores = take(QUERIES * SCORES<T>);
    slopes = take(QUERIES * SCORES<T>);
    bends = take(job.softcap != 0 ? SCORES<T> : 0);
    queries = take(QUERIES * round_up(job.depth, PANEL<T>));
    d_out = take(QUERIES * round_up(job.width, PANEL<T>));
    d_queries = take(QUERIES * depth);
  }
};

template <class T>
T delta_of(const Attention &job, int64_t row) {
  const T *const a = static_cast<const T *>(job.out) + row * job.width;
  const T *const b = static_cast<const T *>(job.d_out) + row * job.width;
  T sum = 0;
  for (int64_t e = 0; e < job.width; ++e) sum += a[e] * b[e];
  return sum - static_cast<const T *>(job.d_lse)[row];
}

// Scores of row i become weights; what arrives at them becomes what arrives at the scores. Returns the slope's gradient.
template <class T>
double weigh_row(const Places &at, const Unit<T> &unit, const Tile &tile, int64_t i, const BackwardTiles<T> &tiles) {
  constexpr int N = LANES<T>;
  const Attention &job = at.job;
  const int64_t place = unit.first + i + at.shift, from = unit.row_of(at, 1) + i * job.heads;
  T *const row = tiles.scores + i * SCORES<T>, *const d = tiles.slopes + i * SCORES<T>;
  if (job.softcap != 0 || job.slopes) adjust<T>(job, tile, unit.head, place, row, tiles.bends);
  const T lse = static_cast<const T *>(job.lse)[from];
  const T shift = lse == -INFINITE<T> ? INFINITE<T> : lse;  // a query that sees no key has weights of 0
  const T delta = delta_of<T>(job, from);
  for (int64_t j = tile.begin; j < tile.end; j += N) {
    const Vector<T, N> weight = power<T>(load<T, T, N>(row + j) - shift);
    store<T, N>(row + j, weight);
    store<T, N>(d + j, weight * (load<T, T, N>(d + j) - delta));
  }
  fill_outside<T>(row, tile, tile.seen(at, unit.first + i), T(0));
  fill_outside<T>(d, tile, tile.seen(at, unit.first + i), T(0));
  double found = 0;
  if (job.slopes)
    for (int64_t j = tile.begin; j < tile.end; j += N)
      found -= across<Plus, T, N>(load<T, T, N>(d + j) * distances<T>(tile.key + j - place));
  if (job.softcap != 0)
    for (int64_t j = tile.begin; j < tile.end; j += N)
      store<T, N>(d + j, load<T, T, N>(d + j) * load<T, T, N>(tiles.bends + j));
  return found;
}

// The three products of rows [i, i + rows) of a unit with the keys that `seen` holds.
template <class T>
void add_products(const Unit<T> &unit, const BackwardTiles<T> &tiles, Range seen, int64_t i, int64_t rows, int64_t count) {
  const int64_t keys = seen.high - seen.low, at = i * SCORES<T> + seen.low;
  multiply<T, true>({tiles.scores + at, 1, SCORES<T>, tiles.d_out + i * PANEL<T>, unit.rows * PANEL<T>,
                     tiles.d_values + seen.low * tiles.width, tiles.width, keys, tiles.width, rows});
  multiply<T, true>({tiles.slopes + at, 1, SCORES<T>, tiles.queries + i * PANEL<T>, unit.rows * PANEL<T>,
                     tiles.d_keys + seen.low * tiles.depth, tiles.depth, keys, tiles.depth, rows});
  multiply<T, false>({tiles.slopes + at, SCORES<T>, 1, tiles.keys + seen.low * PANEL<T>, count * PANEL<T>,
                      tiles.d_queries + i * tiles.depth, tiles.depth, rows, tiles.depth, keys});
}

// One unit against one tile of keys; returns the gradient of the head's slope.
template <class T>
double backward_tile(const Places &at, const Unit<T> &unit, const Tile &tile, const BackwardTiles<T> &tiles,
                     int64_t count, bool finite) {
  const Attention &job = at.job;
  const int64_t q_row = job.heads * job.depth, out_row = job.heads * job.width;
  const T *const q = static_cast<const T *>(job.q) + unit.row_of(at, job.depth);
  const T *const d_out = static_cast<const T *>(job.d_out) + unit.row_of(at, job.width);
  finite &= pack_rows<T>(q, q_row, unit.rows, job.depth, tiles.queries);
  finite &= pack_rows<T>(d_out, out_row, unit.rows, job.width, tiles.d_out);
  score<T>(q, q_row, job.depth, tiles.scaled, tile, unit.rows, tiles.scores);
  score<T>(d_out, out_row, job.width, tiles.values, tile, unit.rows, tiles.slopes);
  double slope = 0;
  for (int64_t i = 0; i < unit.rows; ++i) slope += weigh_row<T>(at, unit, tile, i, tiles);
  if (finite || !tile.hides(at, unit.first, unit.rows)) {
    add_products<T>(unit, tiles, tile.some, 0, unit.rows, count);
    return slope;
  }
  // row by row, over the keys it sees: 0 * NaN is NaN
  for (int64_t i = 0; i < unit.rows; ++i) {
    const Range seen = tile.seen(at, unit.first + i);
    if (!seen.is_empty()) add_products<T>(unit, tiles, seen, i, 1, count);
    for (int64_t k = 0; seen.is_empty() && k < tiles.depth; ++k) tiles.d_queries[i * tiles.depth + k] = 0;
  }
  return slope;
}

template <class T>
void add_rows(const T *from, int64_t from_row, int64_t rows, int64_t columns, T scale, T *to, int64_t to_row) {
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < columns; ++k) to[i * to_row + k] += from[i * from_row + k] * scale;
}

template <class T>
void attention_backward(const Attention &job, const AttentionTask &task, const Turns &turns, void *scratch) {
  const Places at(job, task.sequence);
  const BackwardTiles<T> tiles(job, static_cast<T *>(scratch));
  const int64_t count = task.last - task.first, row = (at.key + task.first) * job.groups + task.group;
  const T *const k = static_cast<const T *>(job.k) + row * job.depth, *const v = static_cast<const T *>(job.v) + row * job.width;
  const int64_t k_row = job.groups * job.depth, v_row = job.groups * job.width;
  const T scale = static_cast<T>(job.scale);
  pack_transposed<T>(k, k_row, count, job.depth, scale, tiles.scaled);
  pack_transposed<T>(v, v_row, count, job.width, T(1), tiles.values);
  bool finite = pack_rows<T>(k, k_row, count, job.depth, tiles.keys);
  for (int64_t i = 0; i < count * job.width; ++i) finite &= v[i / job.width * v_row + i % job.width] * 0 == 0;
  for (int64_t i = 0; i < count * tiles.depth; ++i) tiles.d_keys[i] = 0;
  for (int64_t i = 0; i < count * tiles.width; ++i) tiles.d_values[i] = 0;
  // queries that see some of these keys
  const int64_t low = task.first - job.after - at.shift, high = task.last + job.before - at.shift;
  const int64_t begin = low < 0 ? 0 : low / QUERIES, end = (high < at.queries ? high : at.queries);
  for (int64_t number = begin * at.ratio(); number / at.ratio() * QUERIES < end; ++number) {
    const Unit<T> unit(at, task.group, number);
    const Tile tile = Tile::of<T>(at, unit, task.first, count);
    if (tile.some.is_empty()) continue;
    const double slope = backward_tile<T>(at, unit, tile, tiles, count, finite);
    if (turns.d_slopes) turns.d_slopes[number % at.ratio()] += slope;
    if (turns.before) job.await(turns.before, number);
    add_rows<T>(tiles.d_queries, tiles.depth, unit.rows, job.depth, scale,
                static_cast<T *>(job.d_q) + unit.row_of(at, job.depth), job.heads * job.depth);
    __atomic_store_n(turns.own, number + 1, __ATOMIC_RELEASE);
  }
  __atomic_store_n(turns.own, INT64_MAX, __ATOMIC_RELEASE);
  T *const d_k = static_cast<T *>(job.d_k) + row * job.depth, *const d_v = static_cast<T *>(job.d_v) + row * job.width;
  for (int64_t j = 0; j < count; ++j) {
    for (int64_t e = 0; e < job.depth; ++e) d_k[j * k_row + e] = tiles.d_keys[j * tiles.depth + e] * scale;
    for (int64_t e = 0; e < job.width; ++e) d_v[j * v_row + e] = tiles.d_values[j * tiles.width + e];
  }
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
