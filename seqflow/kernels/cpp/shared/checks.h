// Checks of lengths and indices. The first fault is thrown; checks.py finds the same one.
#pragma once

#include <cstdint>
#include <memory>

#include "moves/moves.h"

namespace seqflow {

// The arguments of a KernelError; the function `kind` of error.py makes the message.
struct Fault {
  const char *kind;
  const char *argument;  // null where that function takes none
  int64_t numbers[5];
  int count;
  const char *owner = nullptr;
};

// A block of int64, on the stack where it is small.
class Numbers {
 public:
  explicit Numbers(int64_t size) : size(size) {
    if (size > FEW) many.reset(new int64_t[static_cast<size_t>(size)]);
  }
  int64_t *data() { return many ? many.get() : few; }
  const int64_t *data() const { return many ? many.get() : few; }
  int64_t &operator[](int64_t i) { return data()[i]; }
  int64_t operator[](int64_t i) const { return data()[i]; }
  const int64_t size;

 private:
  static constexpr int64_t FEW = 65;
  int64_t few[FEW];
  std::unique_ptr<int64_t[]> many;
};

// The sum of counts, none of them negative.
int64_t check_total(Integers counts, const char *argument);

int64_t check_max(Integers counts, const char *argument);

// The exclusive sums of counts, with the total at the end.
Numbers checked_offsets(Integers counts, const char *argument);

void check_sum(int64_t total, int64_t expected, const char *argument, const char *owner);

// No length above `room`; offsets are theirs.
void check_room(const Numbers &offsets, int64_t room, const char *argument);

// The index that is to blame for a fault a kernel met.
[[noreturn]] void blame_index(Integers indices, int64_t low, int64_t high, bool ignores, int64_t ignored,
                              const char *argument);

// How often each of 0 .. count - 1 occurs among ascending ids; false where they do not ascend or are others.
bool count_ids(Integers ids, int64_t count, int64_t *out);

// The id that is to blame for that. num_segments -1: there is no limit.
[[noreturn]] void blame_id(Integers ids, int64_t num_segments, const char *argument);

void check_slices(const Slices &slices);

// Target slices follow one another without overlap, so that their order does not matter.
bool are_apart(const Slices &slices);

// The first row of each piece in data; what the pieces of each row add up to fits.
Numbers checked_places(const Numbers &offsets, Integers sources, Integers starts, const Numbers &ends,
                       const Numbers &first, int64_t capacity);

// More bytes are needed than int64 counts.
[[noreturn]] inline void refuse_size() { throw Fault{"beyond_memory", nullptr, {}, 0}; }

// a * b, or an error.
inline int64_t product(int64_t a, int64_t b) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) refuse_size();
  return result;
}

}  // namespace seqflow
