// Selects the instruction set: at first the best of those that were compiled and that this processor has.
#pragma once

#include "shared/instruction_set.h"

namespace seqflow {

enum InstructionSet { BASELINE, AVX2, AVX512, NUM_INSTRUCTION_SETS };
extern const char *const INSTRUCTION_SETS[NUM_INSTRUCTION_SETS];

bool is_compiled(int instruction_set);
bool is_available(int instruction_set);  // compiled, and on this processor

// False where there is none of that name, or it is not available.
bool select_instruction_set(const char *name);
int selected_index();
const char *selected_instruction_set();

// The table of that name of the instruction set in use. The compiler never sees the tables of a set that was not
// compiled: CMakeLists.txt defines SEQFLOW_HAS_AVX2 and SEQFLOW_HAS_AVX512.
#if defined(SEQFLOW_HAS_AVX512)
#define SEQFLOW_IF_AVX512(table) selected_index() == AVX512 ? avx512::table :
#else
#define SEQFLOW_IF_AVX512(table)
#endif
#if defined(SEQFLOW_HAS_AVX2)
#define SEQFLOW_IF_AVX2(table) selected_index() == AVX2 ? avx2::table :
#else
#define SEQFLOW_IF_AVX2(table)
#endif
#define SEQFLOW_SELECTED(table) (SEQFLOW_IF_AVX512(table) SEQFLOW_IF_AVX2(table) baseline::table)

}  // namespace seqflow
