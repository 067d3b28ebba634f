#include "processor.h"

#include <atomic>
#include <cstring>

#if defined(SEQFLOW_X86_LEVELS)
#include <cpuid.h>
#endif

namespace seqflow {
namespace {

#if defined(SEQFLOW_X86_LEVELS)
// Whether that bit of ECX is set for that leaf of CPUID: for what not every compiler's __builtin_cpu_supports knows.
bool has_bit(unsigned leaf, int bit) {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  return __get_cpuid(leaf, &eax, &ebx, &ecx, &edx) != 0 && (ecx >> bit & 1) != 0;
}

bool has_lzcnt() { return has_bit(0x80000001, 5); }
bool has_movbe() { return has_bit(1, 22); }
bool has_f16c() { return has_bit(1, 29); }
#endif

int best() {
  int found = 0;
  for (int i = 1; i < NUM_INSTRUCTION_SETS; ++i)
    if (is_available(i)) found = i;
  return found;
}

std::atomic<int> selected{best()};

}  // namespace

const char *const INSTRUCTION_SETS[NUM_INSTRUCTION_SETS] = {"baseline", "avx2", "avx512"};

bool is_available(int instruction_set) {
  if (instruction_set == 0) return true;
#if defined(SEQFLOW_X86_LEVELS)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
                    __builtin_cpu_supports("popcnt") && has_lzcnt() && has_movbe() && has_f16c();
  if (instruction_set == 1) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
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
