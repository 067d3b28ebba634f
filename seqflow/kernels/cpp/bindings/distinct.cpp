// Which integers are the same. In NumPy: distinct.py. It waits for memory, not for arithmetic: there is one form for
// all instruction sets.
#include <algorithm>
#include <optional>
#include <vector>

#include "bindings/python.h"
#include "shared/room.h"

namespace seqflow {
namespace {

// A value above the least one, and where it stands.
struct Placed {
  uint64_t value;
  int64_t place;

  bool operator<(const Placed &other) const {
    return value != other.value ? value < other.value : place < other.place;
  }
};

// The different ids in ascending order: where each is first seen, and how often. Where they were sorted, that is the
// place and the value of the first num_sorted.
struct Distinct {
  std::vector<int64_t> first, counts;
  std::optional<Room<Placed>> sorted;
  int64_t num_sorted = 0;

  void copy(int64_t count, int64_t *to_first, int64_t *to_counts) {
    if (!sorted) {
      std::copy(first.begin(), first.end(), to_first);
      std::copy(counts.begin(), counts.end(), to_counts);
      return;
    }
    for (int64_t k = 0; k < count; ++k) {
      to_first[k] = (*sorted)[k].place;
      to_counts[k] = static_cast<int64_t>((*sorted)[k].value);
    }
  }
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
  static constexpr size_t MOST = 1 << 17;

  HashTable() : slots(1 << 12) {}

  __attribute__((always_inline)) void prefetch(int64_t id) const { __builtin_prefetch(&slots[place(id)]); }

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

// A digit of BITS bits.
template <int BITS>
inline int digit(uint64_t value, int shift) {
  return static_cast<int>((value >> shift) % (1 << BITS));
}

// How often each digit occurs, to where each begins.
template <size_t SIZE>
void add_up(int64_t (&counts)[SIZE]) {
  int64_t before = 0;
  for (int64_t &count : counts) {
    const int64_t own = count;
    count = before;
    before += own;
  }
}

// Sort by the lowest bits, the highest digit of them first; `other` is as large.
void sort_part(Placed *part, Placed *other, int64_t size, int bits) {
  constexpr int BITS = 8, FEW = 64;
  if (size <= FEW) return std::sort(part, part + size);
  if (bits == 0) return;  // all are the same
  const int shift = bits < BITS ? 0 : bits - BITS;
  int64_t ends[1 << BITS] = {};
  for (int64_t i = 0; i < size; ++i) ++ends[digit<BITS>(part[i].value, shift)];
  add_up(ends);
  for (int64_t i = 0; i < size; ++i) other[ends[digit<BITS>(part[i].value, shift)]++] = part[i];
  std::copy(other, other + size, part);
  int64_t begin = 0;
  for (const int64_t end : ends) {
    sort_part(part + begin, other + begin, end - begin, shift);
    begin = end;
  }
}

// By digits, so that what is sorted soon fits the cache, and in about the same time for any data. The values are copied
// first, to where the codes will be: what was counted is what is moved. Of the different values that were sorted, place
// and count are left at the beginning; returns how many there are.
template <class T>
int64_t number_by_sorting(const T *ids, int64_t size, int64_t least, uint64_t span, Room<Placed> &placed,
                          int64_t *codes) {
  constexpr int BITS = 11;
  const int bits = span >> BITS ? 64 - BITS - __builtin_clzll(span) : 0;
  int64_t ends[1 << BITS] = {};
  for (int64_t i = 0; i < size; ++i) {
    const uint64_t value = static_cast<uint64_t>(static_cast<int64_t>(ids[i])) - static_cast<uint64_t>(least);
    codes[i] = static_cast<int64_t>(value);
    ++ends[digit<BITS>(value, bits)];
  }
  Room<Placed> other(*std::max_element(std::begin(ends), std::end(ends)));
  add_up(ends);
  for (int64_t i = 0; i < size; ++i) {
    const uint64_t value = static_cast<uint64_t>(codes[i]);
    placed[ends[digit<BITS>(value, bits)]++] = {value, i};
  }
  int64_t begin = 0, count = 0;
  for (const int64_t end : ends) {
    sort_part(placed.data() + begin, other.data(), end - begin, bits);
    while (begin < end) {
      const Placed first = placed[begin];
      const int64_t from = begin;
      for (; begin < end && placed[begin].value == first.value; ++begin) codes[placed[begin].place] = count;
      placed[count++] = {static_cast<uint64_t>(begin - from), first.place};
    }
  }
  return count;
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
    return number_by_table(ids, size, low, span + 1, found, codes);
  if (number_by_hash(ids, size, found, codes)) return;
  found.sorted.emplace(size);
  found.num_sorted = number_by_sorting(ids, size, low, span, *found.sorted, codes);
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
  const int64_t count = found.sorted ? found.num_sorted : static_cast<int64_t>(found.first.size());
  nb::object first = empty_array({count}, buffer, 1, dtype_named(INT64));
  nb::object counts = empty_array({count}, buffer, 1, dtype_named(INT64));
  Buffer firsts(first, NUMERIC, true), times(counts, NUMERIC, true);
  found.copy(count, reinterpret_cast<int64_t *>(firsts.data()), reinterpret_cast<int64_t *>(times.data()));
  return nb::make_tuple(first, codes, counts);
}

}  // namespace

void bind_distinct(nb::module_ &module) { bind_kernel(module, "distinct_ids", distinct_ids); }

}  // namespace seqflow
