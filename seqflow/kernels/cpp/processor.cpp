#include "processor.h"

#include <atomic>
#include <cstring>

namespace seqflow {
namespace {

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
                    __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("lzcnt") &&
                    __builtin_cpu_supports("f16c") && __builtin_cpu_supports("movbe");
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
