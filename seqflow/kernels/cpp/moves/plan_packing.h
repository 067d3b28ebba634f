// Plans which sequences share a packed row. In NumPy: packing.py.
#pragma once

#include <vector>

#include "shared/checks.h"

namespace seqflow {

struct Plan {
  std::vector<int64_t> sources, starts, piece_lengths, pieces;
};

Plan cut_stream(const Numbers &offsets, int64_t capacity);
// A row of `max_pieces` pieces takes no more; 0 is any number.
Plan best_fit(const Numbers &offsets, int64_t capacity, int64_t max_pieces);
Plan first_fit(const Numbers &offsets, int64_t capacity, int64_t max_pieces);

}  // namespace seqflow
