// Time-major packing of sequences, and its inverse.
//
// Small rows go through a tile, a few steps of some hundred sequences that stays in the nearest cache: on the flat
// side it is read or written a sequence at a time, on the packed side a step at a time, both in runs.
#pragma once

#include "moves/copy.h"
#include "moves/padding.h"

namespace seqflow {
namespace SEQFLOW_ISA {

template <int ROW_BYTES>
struct Tile {
  static constexpr int64_t STEPS = 128 / ROW_BYTES;
  static constexpr int64_t SEQUENCES = 16384 / (STEPS * ROW_BYTES);

  uint8_t rows[STEPS][SEQUENCES * ROW_BYTES];
  int64_t sequence, count, step, steps;  // its first sequence and step, and how many there are
  int64_t least, most;                   // how many rows its sequences have from that step on; may be negative

  uint8_t *packed(const ByTime &job, int64_t s) const {
    return job.packed + ((step + s) * job.num_sequences + sequence) * ROW_BYTES;
  }
  void measure(const ByTime &job) {
    least = INT64_MAX, most = INT64_MIN;
    for (int64_t k = sequence; k < sequence + count; ++k) {
      const int64_t left = job.offsets[k + 1] - job.offsets[k] - step;
      least = left < least ? left : least;
      most = left > most ? left : most;
    }
  }
};

// Call f(row in flat, row in the tile) for every row of the tile that there is in flat.
template <int ROW_BYTES, class F>
inline void each_row(const ByTime &job, Tile<ROW_BYTES> &tile, F &&f) {
  constexpr int64_t STEPS = Tile<ROW_BYTES>::STEPS;
  for (int64_t k = 0; k < tile.count; ++k) {
    const int64_t first = job.offsets[tile.sequence + k] + tile.step;
    const int64_t left = job.offsets[tile.sequence + k + 1] - first;
    const int64_t steps = left < tile.steps ? left : tile.steps;
    uint8_t *flat = job.flat + (left > 0 ? first : 0) * ROW_BYTES, *row = tile.rows[0] + k * ROW_BYTES;
    prefetch(reinterpret_cast<uintptr_t>(flat) + STEPS * ROW_BYTES, STEPS * ROW_BYTES);  // for the next tile
    if (steps == STEPS)
      for (int64_t s = 0; s < STEPS; ++s) f(flat + s * ROW_BYTES, row + s * sizeof tile.rows[0]);
    else
      for (int64_t s = 0; s < steps; ++s) f(flat + s * ROW_BYTES, row + s * sizeof tile.rows[0]);
  }
}

template <int ROW_BYTES>
void pack_tile(const ByTime &job, Tile<ROW_BYTES> &tile) {
  const int64_t run = tile.count * ROW_BYTES;
  if (tile.least < tile.steps) fill(tile.rows[0], job.pattern, sizeof tile.rows);
  if (tile.most > 0)
    each_row(job, tile, [](uint8_t *flat, uint8_t *row) { memcpy(row, flat, ROW_BYTES); });
  for (int64_t s = 0; s < tile.steps; ++s) copy(tile.packed(job, s), tile.rows[s], run);
}

template <int ROW_BYTES>
void unpack_tile(const ByTime &job, Tile<ROW_BYTES> &tile) {
  const int64_t steps = tile.most < tile.steps ? tile.most : tile.steps;
  for (int64_t s = 0; s < steps; ++s) copy(tile.rows[s], tile.packed(job, s), tile.count * ROW_BYTES);
  if (steps > 0) each_row(job, tile, [](uint8_t *flat, uint8_t *row) { memcpy(flat, row, ROW_BYTES); });
}

template <int ROW_BYTES>
void each_tile(const ByTime &job, int64_t begin, int64_t end, void (*move)(const ByTime &, Tile<ROW_BYTES> &)) {
  Tile<ROW_BYTES> tile;
  for (tile.sequence = 0; tile.sequence < job.num_sequences; tile.sequence += tile.SEQUENCES) {
    const int64_t rest = job.num_sequences - tile.sequence;
    tile.count = rest < tile.SEQUENCES ? rest : tile.SEQUENCES;
    for (tile.step = begin; tile.step < end; tile.step += tile.STEPS) {
      tile.steps = end - tile.step < tile.STEPS ? end - tile.step : tile.STEPS;
      tile.measure(job);
      move(job, tile);
    }
  }
}

// Rows of any size: a few steps of as many sequences as there may be pages at hand.
constexpr int64_t FEW_STEPS = 8, FEW_SEQUENCES = 64;

template <class F>
inline void each_run(const ByTime &job, int64_t begin, int64_t end, F &&f) {
  for (int64_t t = begin; t < end; t += FEW_STEPS)
    for (int64_t k = 0; k < job.num_sequences; k += FEW_SEQUENCES)
      for (int64_t s = t; s < end && s < t + FEW_STEPS; ++s)
        f(s, k, k + FEW_SEQUENCES < job.num_sequences ? k + FEW_SEQUENCES : job.num_sequences,
          job.packed + (s * job.num_sequences + k) * job.row_bytes);
}

inline void pack_rows(const ByTime &job, int64_t begin, int64_t end) {
  const int64_t row_bytes = job.row_bytes;
  const bool streams = job.streams && row_bytes >= 256;
  each_run(job, begin, end, [&](int64_t step, int64_t k, int64_t last, uint8_t *to) {
    Stream stream(to);
    for (; k < last; ++k, to += row_bytes) {
      const int64_t row = job.offsets[k] + step;
      const bool is_there = row < job.offsets[k + 1];
      if (streams && is_there)
        stream.write(job.flat + row * row_bytes, row_bytes);
      else if (streams)
        stream.fill(job.pattern, row_bytes);
      else if (is_there)
        copy(to, job.flat + row * row_bytes, row_bytes);
      else
        fill(to, job.pattern, row_bytes);
    }
    if (streams) stream.finish();
  });
}

inline void unpack_rows(const ByTime &job, int64_t begin, int64_t end) {
  const int64_t row_bytes = job.row_bytes;
  each_run(job, begin, end, [&](int64_t step, int64_t k, int64_t last, const uint8_t *from) {
    for (; k < last; ++k, from += row_bytes) {
      const int64_t row = job.offsets[k] + step;
      if (row < job.offsets[k + 1]) copy(job.flat + row * row_bytes, from, row_bytes);
    }
  });
}

inline void pack_by_time(const ByTime &job, int64_t begin, int64_t end) {
  switch (job.pattern.repeats ? job.row_bytes : 0) {
    case 1: each_tile<1>(job, begin, end, pack_tile<1>); break;
    case 2: each_tile<2>(job, begin, end, pack_tile<2>); break;
    case 4: each_tile<4>(job, begin, end, pack_tile<4>); break;
    case 8: each_tile<8>(job, begin, end, pack_tile<8>); break;
    case 16: each_tile<16>(job, begin, end, pack_tile<16>); break;
    default: pack_rows(job, begin, end);
  }
  if (job.streams) finish_streams();
}

inline void unpack_by_time(const ByTime &job, int64_t begin, int64_t end) {
  switch (job.row_bytes) {
    case 1: return each_tile<1>(job, begin, end, unpack_tile<1>);
    case 2: return each_tile<2>(job, begin, end, unpack_tile<2>);
    case 4: return each_tile<4>(job, begin, end, unpack_tile<4>);
    case 8: return each_tile<8>(job, begin, end, unpack_tile<8>);
    case 16: return each_tile<16>(job, begin, end, unpack_tile<16>);
    default: return unpack_rows(job, begin, end);
  }
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
