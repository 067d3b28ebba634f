// Asks the processor which instruction sets it has.
#include "shared/processor.h"

#include <atomic>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace seqflow {
namespace {

#if defined(__x86_64__)
struct Registers {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

Registers cpuid(unsigned leaf) {
  Registers found;
  __get_cpuid_count(leaf, 0, &found.eax, &found.ebx, &found.ecx, &found.edx);
  return found;
}

bool has(unsigned word, unsigned bits) { return (word & bits) == bits; }

// Which registers the operating system saves. Its bits: 1 and 2 for 32-byte registers, 5 to 7 for those of AVX-512.
unsigned saved_registers() {
  if (!has(cpuid(1).ecx, bit_OSXSAVE)) return 0;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

// All that the levels x86-64-v3 and x86-64-v4 may use, asked of CPUID itself: __builtin_cpu_supports knows LZCNT and
// F16C in some compilers only, and needs a library of the compiler's that is not linked on Windows.
bool has_avx2() {
  return has(saved_registers(), 0x6) &&
         has(cpuid(1).ecx, bit_FMA | bit_MOVBE | bit_POPCNT | bit_AVX | bit_F16C) &&
         has(cpuid(7).ebx, bit_BMI | bit_AVX2 | bit_BMI2) && has(cpuid(0x80000001).ecx, bit_LZCNT);
}

bool has_avx512() {
  return has_avx2() && has(saved_registers(), 0xe6) &&
         has(cpuid(7).ebx, bit_AVX512F | bit_AVX512DQ | bit_AVX512CD | bit_AVX512BW | bit_AVX512VL);
}
#else
bool has_avx2() { return false; }
bool has_avx512() { return false; }
#endif

int best() {
  int found = BASELINE;
  for (int i = 0; i < NUM_INSTRUCTION_SETS; ++i)
    if (is_available(i)) found = i;
  return found;
}

std::atomic<int> selected{best()};

}  // namespace

const char *const INSTRUCTION_SETS[NUM_INSTRUCTION_SETS] = {"baseline", "avx2", "avx512"};

bool is_compiled(int instruction_set) {
#if defined(SEQFLOW_HAS_AVX2)
  if (instruction_set == AVX2) return true;
#endif
#if defined(SEQFLOW_HAS_AVX512)
  if (instruction_set == AVX512) return true;
#endif
  return instruction_set == BASELINE;
}

bool is_available(int instruction_set) {
  if (!is_compiled(instruction_set)) return false;
  return instruction_set == BASELINE || (instruction_set == AVX2 ? has_avx2() : has_avx512());
}

bool select_instruction_set(const char *name) {
  for (int i = 0; i < NUM_INSTRUCTION_SETS; ++i) {
    if (std::strcmp(name, INSTRUCTION_SETS[i]) != 0 || !is_available(i)) continue;
    selected.store(i);
    return true;
  }
  return false;
}

int selected_index() { return selected.load(std::memory_order_relaxed); }

const char *selected_instruction_set() { return INSTRUCTION_SETS[selected.load()]; }

}  // namespace seqflow
