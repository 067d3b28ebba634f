// Which integers are the same. In NumPy: distinct.py. It waits for memory, not for arithmetic: there is one form for
// all instruction sets.
#include <algorithm>
#include <vector>

#include "python.h"

namespace seqflow {
namespace {

// The different ids in ascending order: where each is first seen, and how often.
struct Distinct {
  std::vector<int64_t> first, counts;
};

// Values that lie close together: the table of all of them holds first the places where they are seen, then codes.
template <class T>
void number_by_table(const T *ids, int64_t size, int64_t least, uint64_t range, Distinct &found, int64_t *codes) {
  std::vector<int32_t> table(range, -1);
  const auto entry = [&](int64_t i) -> int32_t & {
    const uint64_t place = static_cast<uint64_t>(static_cast<int64_t>(ids[i])) - static_cast<uint64_t>(least);
    if (place >= range) throw Fault{"changed", "ids", {}, 0};
    return table[place];
  };
  for (int64_t i = size - 1; i >= 0; --i) entry(i) = static_cast<int32_t>(i);
  for (int32_t &value : table) {
    if (value < 0) continue;
    found.first.push_back(value);
    value = static_cast<int32_t>(found.first.size()) - 1;
  }
  found.counts.assign(found.first.size(), 0);
  for (int64_t i = 0; i < size; ++i) {
    const int32_t code = entry(i);
    if (code < 0) throw Fault{"changed", "ids", {}, 0};
    ++found.counts[static_cast<size_t>(code)];
    codes[i] = code;
  }
}

// Not too many different values. Open addressing: a value is at its place or behind it, before the next one that is
// free.
class HashTable {
 public:
  static constexpr size_t MOST = 1 << 18;

  HashTable() : slots(1 << 12) {}

  void prefetch(int64_t id) const { __builtin_prefetch(&slots[place(id)]); }

  // The number of an id; -1 where too many meet at their places.
  int32_t number(int64_t id, int64_t position) {
    for (size_t at = place(id);; at = next(at)) {
      Slot &slot = slots[at];
      if (slot.code >= 0 && slot.id == id) {
        ++counts[static_cast<size_t>(slot.code)];
        return slot.code;
      }
      if (slot.code < 0) {
        slot = {id, static_cast<int32_t>(ids.size())};
        ids.push_back(id);
        first.push_back(position);
        counts.push_back(1);
        return slot.code;
      }
      if (++collisions > 16 * position + 1024) return -1;
    }
  }

  // Make room for some more values, so that at least half of the slots stay free; false where there are too many.
  bool reserve(size_t more) {
    if (2 * (ids.size() + more) <= slots.size()) return true;
    if (ids.size() + more > MOST) return false;
    slots.assign(4 * slots.size(), Slot());
    for (size_t k = 0; k < ids.size(); ++k) {
      size_t at = place(ids[k]);
      while (slots[at].code >= 0) at = next(at);
      slots[at] = {ids[k], static_cast<int32_t>(k)};
    }
    return true;
  }

  std::vector<int64_t> ids, first, counts;

 private:
  struct Slot {
    int64_t id = 0;
    int32_t code = -1;
  };

  size_t next(size_t at) const { return (at + 1) & (slots.size() - 1); }

  size_t place(int64_t id) const {
    uint64_t z = static_cast<uint64_t>(id);
    z = (z ^ (z >> 32)) * 0xD6E8FEB86659FD93;
    z = (z ^ (z >> 32)) * 0xD6E8FEB86659FD93;
    return (z ^ (z >> 32)) & (slots.size() - 1);
  }

  std::vector<Slot> slots;
  int64_t collisions = 0;
};

template <class T>
bool number_by_hash(const T *ids, int64_t size, Distinct &found, int64_t *codes) {
  constexpr int64_t BLOCK = 32;
  HashTable table;
  int64_t block[BLOCK];
  for (int64_t begin = 0; begin < size; begin += BLOCK) {
    const int64_t count = std::min(BLOCK, size - begin);
    if (!table.reserve(BLOCK)) return false;
    for (int64_t i = 0; i < count; ++i) table.prefetch(block[i] = static_cast<int64_t>(ids[begin + i]));
    for (int64_t i = 0; i < count; ++i)
      if ((codes[begin + i] = table.number(block[i], begin + i)) < 0) return false;
  }
  const size_t count = table.ids.size();
  std::vector<int32_t> order(count), ranks(count);
  for (size_t k = 0; k < count; ++k) order[k] = static_cast<int32_t>(k);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return table.ids[a] < table.ids[b]; });
  for (size_t k = 0; k < count; ++k) {
    ranks[order[k]] = static_cast<int32_t>(k);
    found.first.push_back(table.first[order[k]]);
    found.counts.push_back(table.counts[order[k]]);
  }
  for (int64_t i = 0; i < size; ++i) codes[i] = ranks[codes[i]];
  return true;
}

// A value above the least one, and where it stands.
struct Placed {
  uint64_t value;
  int64_t place;
};

// Sorted by digits, from the last one on: stable, and in the same time for any data.
template <class T>
std::vector<Placed> sorted(const T *ids, int64_t size, int64_t least) {
  constexpr int BITS = 8, VALUES = 1 << BITS, DIGITS = 64 / BITS;
  std::vector<Placed> placed(size), other(size);
  std::vector<int64_t> counts(DIGITS * VALUES);
  for (int64_t i = 0; i < size; ++i) {
    placed[i] = {static_cast<uint64_t>(static_cast<int64_t>(ids[i])) - static_cast<uint64_t>(least), i};
    for (int digit = 0; digit < DIGITS; ++digit)
      ++counts[digit * VALUES + (placed[i].value >> (digit * BITS)) % VALUES];
  }
  for (int digit = 0; digit < DIGITS; ++digit) {
    int64_t *next = &counts[digit * VALUES];
    if (next[(placed[0].value >> (digit * BITS)) % VALUES] == size) continue;  // all have the same
    for (int64_t value = 0, before = 0; value < VALUES; ++value) {
      const int64_t count = next[value];
      next[value] = before;
      before += count;
    }
    for (const Placed &one : placed) other[next[(one.value >> (digit * BITS)) % VALUES]++] = one;
    placed.swap(other);
  }
  return placed;
}

template <class T>
void number_by_sorting(const T *ids, int64_t size, int64_t least, Distinct &found, int64_t *codes) {
  const std::vector<Placed> placed = sorted(ids, size, least);
  for (int64_t i = 0; i < size; ++i) {
    if (i == 0 || placed[i].value != placed[i - 1].value) {
      found.first.push_back(placed[i].place);
      found.counts.push_back(0);
    }
    ++found.counts.back();
    codes[placed[i].place] = static_cast<int64_t>(found.first.size()) - 1;
  }
}

template <class T>
void number(const void *values, int64_t size, Distinct &found, int64_t *codes) {
  const T *ids = static_cast<const T *>(values);
  if (size == 0) return;
  T least = ids[0], most = ids[0];
  for (int64_t i = 0; i < size; ++i) {
    least = ids[i] < least ? ids[i] : least;
    most = ids[i] > most ? ids[i] : most;
  }
  const int64_t low = static_cast<int64_t>(least);
  const uint64_t span = static_cast<uint64_t>(static_cast<int64_t>(most)) - static_cast<uint64_t>(low);
  if (span < static_cast<uint64_t>(2 * size))
    number_by_table(ids, size, low, span + 1, found, codes);
  else if (!number_by_hash(ids, size, found, codes))
    number_by_sorting(ids, size, low, found, codes);
}

nb::object distinct_ids(nb::handle ids) {
  const Buffer buffer(ids);
  const Integers integers = buffer.counts();
  if (integers.size > INT32_MAX) decline();
  nb::object codes = empty_array({integers.size}, buffer, 1, dtype_named(INT64));
  Buffer result(codes, NUMERIC, true);
  Distinct found;
  {
    const Unlocked unlocked(buffer.bytes());
    int64_t *out = reinterpret_cast<int64_t *>(result.data());
    if (integers.wide)
      number<int64_t>(integers.values, integers.size, found, out);
    else
      number<int32_t>(integers.values, integers.size, found, out);
  }
  const int64_t count = static_cast<int64_t>(found.first.size());
  return nb::make_tuple(int64_array(found.first.data(), count), codes, int64_array(found.counts.data(), count));
}

}  // namespace

void bind_distinct(nb::module_ &module) { bind_kernel(module, "distinct_ids", distinct_ids); }

}  // namespace seqflow
