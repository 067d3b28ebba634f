// The arguments of a segment reduction.
#pragma once

#include "shared/types.h"

namespace seqflow {

// Rows of `data`, or those of them that `indices` pick, reduced segment by segment. Positions (rows of direct
// data, entries of indices) are cut into blocks of fixed size. A segment belongs to the block where it begins, unless
// it is longer than a block: then it leaves one partial result in each block (`tail` where it begins, `head` where it
// goes on), and `combine` joins them.
struct Reduction {
  const void *data;
  int64_t num_rows, columns;
  const int64_t *offsets;  // [num_segments + 1], checked
  int64_t num_segments;
  bool gathered;
  Integers indices;
  int64_t rows_ahead;  // how far ahead of the row that is read rows are fetched
  bool ignores;
  int64_t ignored;
  const void *weights;  // of each position, or of each position inside a segment; null: none
  bool positional;
  bool mean;          // of sums: divide them by how many rows there are
  uint64_t flipped;   // of extremes: the bits of each element that are flipped where elements are compared
  const void *empty;  // one element of the result, or null for 0
  void *out;
  int64_t block_size, num_blocks;
  void *head, *tail;                 // [num_blocks, columns] accumulators each, only where a segment is long
  void *totals;                      // [columns] accumulators, to join them in
  int64_t *head_count, *tail_count;  // how many rows went into them
  bool fault = false;                // an index was out of range: the caller finds it
};

constexpr int64_t MAX_ACCUMULATOR_BYTES = 8;
constexpr int64_t CHUNK = 64;  // rows that are added up in the type of the result before they go into the totals

using ReduceBlock = void (*)(Reduction &, int64_t block);
using CombineBlocks = void (*)(Reduction &);

}  // namespace seqflow
