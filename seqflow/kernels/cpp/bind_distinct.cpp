// Which integers are the same. In NumPy: distinct.py. It waits for memory, not for arithmetic: there is one form for
// all instruction sets.
#include <algorithm>
#include <vector>

#include "python.h"

namespace seqflow {
namespace {

// What is known of the values so far: where each was first seen, and how often it was.
struct Seen {
  std::vector<int64_t> first, counts;

  int64_t add(int64_t position) {
    first.push_back(position);
    counts.push_back(1);
    return static_cast<int64_t>(first.size()) - 1;
  }
};

// Codes by value, where values lie close together.
template <class T>
void number_by_table(const T *ids, int64_t size, int64_t least, int64_t range, Seen &seen, int64_t *codes) {
  std::vector<int32_t> table(static_cast<size_t>(range), -1);
  for (int64_t i = 0; i < size; ++i) {
    const uint64_t place = static_cast<uint64_t>(static_cast<int64_t>(ids[i])) - static_cast<uint64_t>(least);
    if (place >= static_cast<uint64_t>(range)) throw Fault{"changed", "ids", {}, 0};
    int32_t &code = table[place];
    if (code < 0)
      code = static_cast<int32_t>(seen.add(i));
    else
      ++seen.counts[static_cast<size_t>(code)];
    codes[i] = code;
  }
}

// Open addressing: a value is at its place or behind it, before the next one that is free.
class HashTable {
 public:
  HashTable() : slots(1 << 10) {}

  void prefetch(int64_t id) const { __builtin_prefetch(&slots[place(id)]); }

  int64_t number(int64_t id, int64_t position, Seen &seen) {
    for (size_t at = place(id);; at = (at + 1) & (slots.size() - 1)) {
      Slot &slot = slots[at];
      if (slot.code < 0) {
        slot = {id, seen.add(position)};
        return slot.code;
      }
      if (slot.id == id) {
        ++seen.counts[static_cast<size_t>(slot.code)];
        return slot.code;
      }
    }
  }

  // Room for some more values, so that at least half of the slots stay free.
  void reserve(size_t used, size_t more) {
    size_t size = slots.size();
    while (size < 2 * (used + more)) size *= 2;
    if (size == slots.size()) return;
    std::vector<Slot> old(size);
    old.swap(slots);
    for (const Slot &slot : old) {
      if (slot.code < 0) continue;
      size_t at = place(slot.id);
      while (slots[at].code >= 0) at = (at + 1) & (size - 1);
      slots[at] = slot;
    }
  }

 private:
  struct Slot {
    int64_t id = 0, code = -1;
  };

  size_t place(int64_t id) const {
    uint64_t z = static_cast<uint64_t>(id);
    z = (z ^ (z >> 32)) * 0xD6E8FEB86659FD93;
    z = (z ^ (z >> 32)) * 0xD6E8FEB86659FD93;
    return static_cast<size_t>(z ^ (z >> 32)) & (slots.size() - 1);
  }

  std::vector<Slot> slots;
};

template <class T>
void number_by_hash(const T *ids, int64_t size, Seen &seen, int64_t *codes) {
  constexpr int64_t BLOCK = 32;
  HashTable table;
  int64_t block[BLOCK];
  for (int64_t begin = 0; begin < size; begin += BLOCK) {
    const int64_t count = std::min(BLOCK, size - begin);
    table.reserve(seen.first.size(), BLOCK);
    for (int64_t i = 0; i < count; ++i) table.prefetch(block[i] = static_cast<int64_t>(ids[begin + i]));
    for (int64_t i = 0; i < count; ++i) codes[begin + i] = table.number(block[i], begin + i, seen);
  }
}

template <class T>
void number(const void *values, int64_t size, Seen &seen, int64_t *codes) {
  const T *ids = static_cast<const T *>(values);
  if (size == 0) return;
  T least = ids[0], most = ids[0];
  for (int64_t i = 0; i < size; ++i) {
    least = ids[i] < least ? ids[i] : least;
    most = ids[i] > most ? ids[i] : most;
  }
  const uint64_t span = static_cast<uint64_t>(static_cast<int64_t>(most)) - static_cast<uint64_t>(static_cast<int64_t>(least));
  const uint64_t room = static_cast<uint64_t>(std::min<int64_t>(2 * size, 1 << 30));
  if (span < room && size < (int64_t{1} << 31))
    number_by_table(ids, size, static_cast<int64_t>(least), static_cast<int64_t>(span) + 1, seen, codes);
  else
    number_by_hash(ids, size, seen, codes);
}

nb::object distinct_ids(nb::handle ids) {
  const Buffer buffer(ids);
  const Integers integers = buffer.counts();
  nb::object codes = empty_array({integers.size}, buffer, 1, dtype_named(INT64));
  Buffer result(codes, NUMERIC, true);
  Seen seen;
  {
    const Unlocked unlocked(buffer.bytes());
    int64_t *out = reinterpret_cast<int64_t *>(result.data());
    if (integers.wide)
      number<int64_t>(integers.values, integers.size, seen, out);
    else
      number<int32_t>(integers.values, integers.size, seen, out);
  }
  const int64_t count = static_cast<int64_t>(seen.first.size());
  return nb::make_tuple(int64_array(seen.first.data(), count), codes, int64_array(seen.counts.data(), count));
}

}  // namespace

void bind_distinct(nb::module_ &module) { bind_kernel(module, "distinct_ids", distinct_ids); }

}  // namespace seqflow
