// Hash tables from keys to ids. In NumPy: vocabulary.py. Every number of a table is read once and checked before it is
// used: a table may come from a damaged file.
#include <algorithm>
#include <cstring>

#include "bindings/python.h"
#include "shared/threads.h"

namespace seqflow {
namespace {

uint64_t mixed(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t hash_of(const uint8_t *text, int64_t size) {
  uint64_t hash = mixed(static_cast<uint64_t>(size));
  for (; size > 0; text += 8, size -= 8) {
    uint64_t group = 0;
    if (size >= 8)
      memcpy(&group, text, 8);
    else
      memcpy(&group, text, static_cast<size_t>(size));
    hash = mixed(hash ^ group);
  }
  return hash;
}

// Pairs of a word and its id; `mask` is their number, a power of two, less 1.
struct Slots {
  const int64_t *pairs;
  uint64_t mask;

  explicit Slots(const Buffer &buffer) {
    const int64_t size = buffer.extent(0);
    if (buffer.rank() != 2 || buffer.extent(1) != 2 || size == 0 || (size & (size - 1)) != 0) decline();
    if (buffer.type() != INT64) decline();
    pairs = reinterpret_cast<const int64_t *>(buffer.data());
    mask = static_cast<uint64_t>(size) - 1;
  }
  uint64_t home(uint64_t word) const { return mixed(word) & mask; }
  __attribute__((always_inline)) void prefetch(uint64_t place) const { __builtin_prefetch(pairs + 2 * place); }

  // The id of a word for which `is_it(id)` holds, beginning at `place`; 0 where there is none.
  template <class Test>
  int64_t find(uint64_t word, uint64_t place, const Test &is_it) const {
    for (uint64_t probes = 0; probes <= mask; ++probes, place = (place + 1) & mask) {
      const int64_t id = __atomic_load_n(pairs + 2 * place + 1, __ATOMIC_RELAXED);
      if (id == 0) return 0;
      const int64_t met = __atomic_load_n(pairs + 2 * place, __ATOMIC_RELAXED);
      if (static_cast<uint64_t>(met) == word && is_it(id)) return id;
    }
    return 0;
  }
};

constexpr int64_t AT_ONCE = 32;  // look-ups whose first slots are on their way from memory together

template <class Word, class Test>
void find_all(const Slots &slots, const Word &word_of, const Test &is_it, int64_t *ids, int64_t begin, int64_t end) {
  uint64_t words[AT_ONCE], places[AT_ONCE];
  for (int64_t i = begin; i < end; i += AT_ONCE) {
    const int64_t count = std::min(AT_ONCE, end - i);
    for (int64_t j = 0; j < count; ++j) {
      words[j] = word_of(i + j);
      places[j] = slots.home(words[j]);
      slots.prefetch(places[j]);
    }
    for (int64_t j = 0; j < count; ++j)
      ids[i + j] = slots.find(words[j], places[j], [&](int64_t id) { return is_it(i + j, id); });
  }
}

nb::object hash_slots(nb::handle words) {
  const Buffer buffer(words);
  const Integers keys = buffer.counts();
  int64_t size = 1;
  while (size < product(keys.size, 2)) size = product(size, 2);
  nb::object table = empty_array({size, 2}, buffer, 1, dtype_named(INT64));
  Buffer result(table, NUMERIC, true);
  int64_t *const slots = reinterpret_cast<int64_t *>(result.data());
  const uint64_t mask = static_cast<uint64_t>(size) - 1;
  const Unlocked unlocked(result.bytes());
  memset(slots, 0, static_cast<size_t>(result.bytes()));
  uint64_t coming[AT_ONCE];
  for (int64_t i = 0; i < keys.size; i += AT_ONCE) {
    const int64_t count = std::min(AT_ONCE, keys.size - i);
    for (int64_t j = 0; j < count; ++j) {
      coming[j] = static_cast<uint64_t>(keys[i + j]);
      __builtin_prefetch(slots + 2 * (mixed(coming[j]) & mask), 1);
    }
    for (int64_t j = 0; j < count; ++j) {
      uint64_t place = mixed(coming[j]) & mask;
      while (slots[2 * place + 1] != 0) place = (place + 1) & mask;
      slots[2 * place] = static_cast<int64_t>(coming[j]);
      slots[2 * place + 1] = i + j + 1;
    }
  }
  return table;
}

nb::object find_words(nb::handle slots, nb::handle words) {
  const Buffer table(slots), buffer(words);
  const Slots known(table);
  const Integers asked = buffer.integers();
  nb::object ids = empty_array({}, buffer, 0, dtype_named(INT64));
  Buffer result(ids, NUMERIC, true);
  int64_t *const out = reinterpret_cast<int64_t *>(result.data());
  const Unlocked unlocked(result.bytes());
  parallel_ranges(asked.size, 4 * result.bytes(), [&](int64_t begin, int64_t end) {
    find_all(
        known, [&](int64_t i) { return static_cast<uint64_t>(asked[i]); }, [](int64_t, int64_t) { return true; }, out,
        begin, end);
  });
  return ids;
}

// Bytes in one dimension.
const uint8_t *bytes_of(const Buffer &buffer) {
  if (buffer.rank() != 1 || !buffer.is_bytes()) decline();
  return buffer.data();
}

nb::object words_of_strings(nb::handle data, nb::handle lengths) {
  const Buffer text(data), counts(lengths);
  const uint8_t *const bytes = bytes_of(text);
  const int64_t num_strings = counts.counts().size;
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_sum(offsets[num_strings], text.size(), "lengths", "data");
  nb::object hashes = empty_array({num_strings}, counts, 1, dtype_named(INT64));
  Buffer result(hashes, NUMERIC, true);
  int64_t *const out = reinterpret_cast<int64_t *>(result.data());
  const Unlocked unlocked(text.bytes());
  parallel_ranges(num_strings, text.bytes() + result.bytes(), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i)
      out[i] = static_cast<int64_t>(hash_of(bytes + offsets[i], offsets[i + 1] - offsets[i]));
  });
  return hashes;
}

nb::object find_strings(nb::handle slots, nb::handle known_offsets, nb::handle known_text, nb::handle data,
                        nb::handle lengths) {
  const Buffer table(slots), bounds_buffer(known_offsets), known_buffer(known_text), text(data), counts(lengths);
  const Slots known(table);
  const Integers bounds = bounds_buffer.counts();
  const uint8_t *const known_bytes = bytes_of(known_buffer), *const bytes = bytes_of(text);
  const int64_t num_strings = counts.counts().size, known_size = known_buffer.size();
  const Numbers offsets = checked_offsets(counts.counts(), "lengths");
  check_sum(offsets[num_strings], text.size(), "lengths", "data");
  nb::object ids = empty_array({num_strings}, counts, 1, dtype_named(INT64));
  Buffer result(ids, NUMERIC, true);
  int64_t *const out = reinterpret_cast<int64_t *>(result.data());
  const auto hash = [&](int64_t i) { return hash_of(bytes + offsets[i], offsets[i + 1] - offsets[i]); };
  const auto is_equal = [&](int64_t i, int64_t id) {
    if (id < 1 || id >= bounds.size) return false;
    const int64_t start = bounds[id - 1], stop = bounds[id], size = offsets[i + 1] - offsets[i];
    if (start < 0 || stop > known_size || start > stop || stop - start != size) return false;
    return memcmp(known_bytes + start, bytes + offsets[i], static_cast<size_t>(size)) == 0;
  };
  const Unlocked unlocked(text.bytes() + result.bytes());
  parallel_ranges(num_strings, text.bytes() + 8 * result.bytes(), [&](int64_t begin, int64_t end) {
    find_all(known, hash, is_equal, out, begin, end);
  });
  return ids;
}

}  // namespace

void bind_vocabulary(nb::module_ &module) {
  bind_kernel(module, "words_of_strings", words_of_strings);
  bind_kernel(module, "hash_slots", hash_slots);
  bind_kernel(module, "find_words", find_words);
  bind_kernel(module, "find_strings", find_strings);
}

}  // namespace seqflow
