// Which instruction set is in use: at first the best this processor has.
#pragma once

#include "instruction_set.h"

namespace seqflow {

constexpr int NUM_INSTRUCTION_SETS = 3;
extern const char *const INSTRUCTION_SETS[NUM_INSTRUCTION_SETS];

bool is_available(int instruction_set);

// False where there is none of that name, or not on this processor.
bool select_instruction_set(const char *name);
int selected_index();
const char *selected_instruction_set();

// The table of that name of the instruction set in use.
#if defined(SEQFLOW_X86_LEVELS)
#define SEQFLOW_SELECTED(table) \
  (selected_index() == 2 ? avx512::table : selected_index() == 1 ? avx2::table : baseline::table)
#else
#define SEQFLOW_SELECTED(table) (baseline::table)
#endif

}  // namespace seqflow
