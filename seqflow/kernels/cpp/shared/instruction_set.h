// Compiles one source for several instruction sets.
//
// Each family of kernels has one header: what a call works on, a table of functions, and the loops. A binding includes
// it and finds in the table of the instruction set in use (processor.h) what to call. The build compiles it once for each
// instruction set (instruction_set.cpp), with SEQFLOW_ISA defined: only then are there the loops, in a namespace of that
// name.
// No std templates in there, nor inline functions outside of that namespace: one compiled for AVX-512 could be what
// the linker keeps for everyone.
#pragma once

#include "shared/types.h"

// Say that each instruction set has such a table.
#define SEQFLOW_TABLE(Table, table)                \
  namespace baseline { extern const Table table; } \
  namespace avx2 { extern const Table table; }     \
  namespace avx512 { extern const Table table; }

// The functions of a template for each Type, in its order.
#define SEQFLOW_TYPES(f)                                                                               \
  {f<int8_t>,  f<uint8_t>,  f<int16_t>, f<uint16_t>, f<int32_t>, f<uint32_t>, f<int64_t>, f<uint64_t>, \
   f<float>,   f<double>}
