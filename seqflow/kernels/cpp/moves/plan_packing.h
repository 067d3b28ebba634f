// Plans which sequences share a packed row. In NumPy: packing.py.
#pragma once

#include <vector>

#include "shared/checks.h"

namespace seqflow {

struct Plan {
  std::vector<int64_t> sources, starts, piece_lengths, pieces;
};

Plan cut_stream(const Numbers &offsets, int64_t capacity);
Plan best_fit(const Numbers &offsets, int64_t capacity);
Plan first_fit(const Numbers &offsets, int64_t capacity);

}  // namespace seqflow
