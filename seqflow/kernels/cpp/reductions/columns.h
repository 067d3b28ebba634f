// Blocks of columns, worked on one after another.
#pragma once

#include <stdint.h>

namespace seqflow {
namespace SEQFLOW_ISA {

constexpr int64_t COLUMNS = 32;  // accumulated at the same time

// Call `body(first column, block)` for all columns: how many columns the block has, and a row; known at compile time where
// there is only one.
struct One {
  static constexpr int64_t count = 1, all = 1;
};
struct Several {
  int64_t count, all;
};
template <class Body>
inline void each_block(int64_t columns, const Body &body) {
  if (columns == 1) return body(0, One{});
  for (int64_t column = 0; column < columns; column += COLUMNS)
    body(column, Several{columns - column < COLUMNS ? columns - column : COLUMNS, columns});
}

}  // namespace SEQFLOW_ISA
}  // namespace seqflow
