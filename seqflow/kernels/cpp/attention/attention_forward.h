// Softmax of scores times values, tile by tile of keys: sums so far are scaled down whenever a larger score comes.
#pragma once

#include "attention/scores.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <class T>
struct ForwardTiles {
  T *keys, *values, *scores, *out, *top, *total;
  int64_t width, size = 0;

  ForwardTiles(const Attention &job, T *memory) : width(round_up(job.width, LANES<T>)) {
    const auto take = [&](int64_t count) { return take_lines<T>(memory, size, count); };
    keys = take(KEYS * job.depth);
    values = take(KEYS * round_up(job.width, PANEL<T>));
    scores = take(QUERIES * SCORES<T>);
    out = take(UNITS * QUERIES * width);
    top = take(UNITS * QUERIES);
    total = take(UNITS * QUERIES);
  }
};

// A row of scores becomes exp(score - largest score so far); returns by how much the sums so far are scaled down.
template <class T>
inline T soften(T *row, const Tile &tile, T &top, T &total) {
  constexpr int N = LANES<T>;
  using V = Vector<T, N>;
  V most = V{} - INFINITE<T>;
  for (int64_t j = tile.begin; j < tile.end; j += N) most = Larger::join(most, load<T, T, N>(row + j));
  const T before = top, found = across<Larger, T, N>(most);
  if (found > top) top = found;
  const T shift = top == -INFINITE<T> ? T(0) : top;  // -inf less -inf would be NaN
  V sum = {};
  for (int64_t j = tile.begin; j < tile.end; j += N) {
    const V weight = power<T>(load<T, T, N>(row + j) - shift);
    store<T, N>(row + j, weight);
    sum += weight;
  }
  const T decay = before == top ? T(1) : static_cast<T>(__builtin_exp(before - top));
  total = total * decay + across<Plus, T, N>(sum);
  return decay;
}

// One unit against one tile of keys.
template <class T>
void forward_tile(const Places &at, const Unit<T> &unit, const Tile &tile, ForwardTiles<T> &tiles, int64_t slot,
                  int64_t count, bool finite) {
  const Attention &job = at.job;
  const int64_t depth = job.depth, width = tiles.width, panel = count * PANEL<T>;
  T *const out = tiles.out + slot * QUERIES * width;
  score<T>(static_cast<const T *>(job.q) + unit.row_of(at, depth), job.heads * depth, depth, tiles.keys, tile, unit.rows,
           tiles.scores);
  for (int64_t i = 0; i < unit.rows; ++i) {
    T *const row = tiles.scores + i * SCORES<T>;
    if (job.softcap != 0 || job.slopes) adjust<T>(job, tile, unit.head, unit.first + i + at.shift, row, nullptr);
    fill_outside<T>(row, tile, tile.seen(at, unit.first + i), -INFINITE<T>);
    const T decay = soften<T>(row, tile, tiles.top[slot * QUERIES + i], tiles.total[slot * QUERIES + i]);
    if (decay != 1)
      for (int64_t e = 0; e < width; ++e) out[i * width + e] *= decay;
  }
  if (finite || !tile.hides(at, unit.first, unit.rows))
    return multiply<T, true>({tiles.scores + tile.some.low, SCORES<T>, 1, tiles.values + tile.some.low * PANEL<T>, panel,
                              out, width, unit.rows, width, tile.some.high - tile.some.low});
  // row by row, over the keys it sees: 0 * NaN is NaN
  for (int64_t i = 0; i < unit.rows; ++i) {
    const Range seen = tile.seen(at, unit.first + i);
    if (!seen.is_empty())
      multiply<T, true>({tiles.scores + i * SCORES<T> + seen.low, SCORES<T>, 1, tiles.values + seen.low * PANEL<T>, panel,
                         out + i * width, width, 1, width, seen.high - seen.low});
  }
}

template <class T>
void finish_unit(const Places &at, const Unit<T> &unit, const ForwardTiles<T> &tiles, int64_t slot) {
  const Attention &job = at.job;
  for (int64_t i = 0; i < unit.rows; ++i) {
    const int64_t from = slot * QUERIES + i;
    const T total = tiles.total[from], factor = total == 0 ? T(0) : 1 / total;
    T *const to = static_cast<T *>(job.out) + unit.row_of(at, job.width) + i * job.heads * job.width;
    for (int64_t e = 0; e < job.width; ++e) to[e] = tiles.out[from * tiles.width + e] * factor;
    static_cast<T *>(job.lse)[unit.row_of(at, 1) + i * job.heads] =
        total == 0 ? -INFINITE<T> : tiles.top[from] + static_cast<T>(__builtin_log(total));
  }
}

template <class T>
void attention_forward(const Attention &job, const AttentionTask &task, void *scratch) {
  const Places at(job, task.sequence);
  ForwardTiles<T> tiles(job, static_cast<T *>(scratch));
  const int64_t num_units = task.last - task.first;
  for (int64_t i = 0; i < num_units * QUERIES * tiles.width; ++i) tiles.out[i] = 0;
  for (int64_t i = 0; i < num_units * QUERIES; ++i) tiles.top[i] = -INFINITE<T>, tiles.total[i] = 0;
  const Unit<T> first(at, task.group, task.first), last(at, task.group, task.last - 1);
  const Range all = {at.seen(first.first).low, at.seen(last.first, last.rows).high};
  const T *const k = static_cast<const T *>(job.k), *const v = static_cast<const T *>(job.v);
  for (int64_t key = all.low / KEYS * KEYS; key < all.high; key += KEYS) {
    const int64_t count = all.high - key < KEYS ? all.high - key : KEYS;
    const int64_t row = (at.key + key) * job.groups + task.group;
    pack_transposed<T>(k + row * job.depth, job.groups * job.depth, count, job.depth, static_cast<T>(job.scale), tiles.keys);
    const bool finite = pack_rows<T>(v + row * job.width, job.groups * job.width, count, job.width, tiles.values);
    for (int64_t slot = 0; slot < num_units; ++slot) {
      const Unit<T> unit(at, task.group, task.first + slot);
      const Tile tile = Tile::of<T>(at, unit, key, count);
      if (!tile.some.is_empty()) forward_tile<T>(at, unit, tile, tiles, slot, count, finite);
    }
  }
  for (int64_t slot = 0; slot < num_units; ++slot)
    finish_unit<T>(at, Unit<T>(at, task.group, task.first + slot), tiles, slot);
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
