// Assigns items to columns so that the columns cost alike. In NumPy: assigning.py.
#pragma once

#include <vector>

#include "shared/checks.h"

namespace seqflow {

// The items column after column, room[c] of them in column c; room adds up to the items, and costs to an int64.
std::vector<int64_t> assign(Integers costs, Integers room);

}  // namespace seqflow
