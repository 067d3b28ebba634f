// What the kernels of one instruction set offer, and the plain structs they work on. No std templates here:
// the files that include this are compiled once for each instruction set.
#pragma once

#include <stdint.h>

namespace seqflow {

// A contiguous array of int32 or int64. An entry is read exactly once, so that what was checked is what is used.
struct Integers {
  const void *values = nullptr;
  int64_t size = 0;
  bool wide = true;

  int64_t operator[](int64_t i) const {
    return wide ? __atomic_load_n(static_cast<const int64_t *>(values) + i, __ATOMIC_RELAXED)
                : __atomic_load_n(static_cast<const int32_t *>(values) + i, __ATOMIC_RELAXED);
  }
};

enum Kind { SUM, MEAN, MAX, MIN, NUM_KINDS };
enum Type { INT8, UINT8, INT16, UINT16, INT32, UINT32, INT64, UINT64, FLOAT32, FLOAT64, NUM_TYPES };

// Rows of `data`, or those of them that `indices` pick, reduced segment by segment. Positions (rows of direct
// data, entries of indices) are cut into blocks of fixed size; a segment that crosses a border leaves one
// partial result in each block (`tail` where it begins, `head` where it goes on), and `combine` joins them.
struct Reduction {
  const void *data;
  int64_t num_rows, columns;
  const int64_t *offsets;  // [num_segments + 1], checked
  int64_t num_segments;
  bool gathered;
  Integers indices;
  bool ignores;
  int64_t ignored;
  const void *empty;  // one element of the result, or null for 0
  void *out;
  int64_t block_size, num_blocks;
  void *head, *tail, *scratch;         // [num_blocks, columns] accumulators each
  int64_t *head_count, *tail_count;    // how many rows went into them
  bool fault = false;                  // an index was out of range: the caller finds it
};

// Rows of `row_bytes` picked by indices.
struct Gather {
  const uint8_t *data;
  int64_t num_rows, row_bytes;
  Integers indices;
  bool wrap, ignores;
  int64_t ignored;
  uint8_t *out;
  bool fault = false;
};

// Slices of rows from one array to another.
struct Slices {
  const uint8_t *source;
  uint8_t *target;
  int64_t source_rows, target_rows, row_bytes;
  Integers source_starts, sizes, target_starts;
};

// A value to fill with: `bytes` holds it over and over where its size divides 64, else it is repeated one by one.
struct Pattern {
  uint8_t bytes[64];
  const uint8_t *value;
  int64_t size;
  bool repeats;
};

// Flat rows to padded ones, or back.
struct Padding {
  uint8_t *flat;
  uint8_t *padded;
  uint8_t *mask;
  int64_t row_bytes, width;
  const int64_t *offsets;  // [number of sequences + 1], checked
  bool left;
  bool streams;  // write around the caches
  Pattern pattern;
};

// Flat rows to rows by time step, or back.
struct ByTime {
  uint8_t *flat;
  uint8_t *packed;
  int64_t row_bytes, num_sequences;
  const int64_t *offsets;  // [num_sequences + 1], checked
  bool streams;            // write around the caches
  Pattern pattern;
};

// Pieces of sequences to packed rows; all of it checked.
struct Packing {
  const uint8_t *data;
  uint8_t *packed;
  int32_t *segment_ids, *position_ids;
  int64_t row_bytes, capacity;
  const int64_t *places;  // [number of pieces]: the first row of each piece in data
  const int64_t *ends;    // [number of pieces + 1]: exclusive sum of piece lengths
  const int64_t *first;   // [number of packed rows + 1]: exclusive sum of pieces
  Pattern pattern;
};

struct Kernels {
  void (*reduce_block[NUM_KINDS][NUM_TYPES])(Reduction &, int64_t block);
  void (*combine[NUM_KINDS][NUM_TYPES])(Reduction &);
  void (*gather)(Gather &, int64_t begin, int64_t end);
  void (*move_slices)(const Slices &, int64_t begin, int64_t end);
  void (*pad)(const Padding &, int64_t begin, int64_t end);
  void (*unpad)(const Padding &, int64_t begin, int64_t end);
  void (*pack_by_time)(const ByTime &, int64_t begin, int64_t end);  // of time steps
  void (*unpack_by_time)(const ByTime &, int64_t begin, int64_t end);
  void (*fill_packed)(const Packing &, int64_t begin, int64_t end);
  void (*segment_ids)(const int64_t *offsets, int64_t begin, int64_t end, int64_t *out);
  void (*positions)(const int64_t *offsets, int64_t begin, int64_t end, int64_t *out);
};

constexpr int64_t MAX_ACCUMULATOR_BYTES = 8;

namespace baseline { extern const Kernels kernels; }
namespace avx2 { extern const Kernels kernels; }
namespace avx512 { extern const Kernels kernels; }

}  // namespace seqflow
