// Equal sequences, and the tree of common prefixes. In NumPy: sharing.py. It waits for memory, not for arithmetic: there
// is one form for all instruction sets.
#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "bindings/python.h"
#include "shared/room.h"
#include "shared/threads.h"

namespace seqflow {
namespace {
namespace sharing {

uint64_t folded(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t word_at(const uint8_t *bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return word;
}

// A hash of bytes, which no result depends on: two lanes of 16 bytes at a time, then what is left.
uint64_t hash_of(const uint8_t *bytes, int64_t size, uint64_t length) {
  constexpr uint64_t A = 0x9E3779B97F4A7C15, B = 0xBF58476D1CE4E5B9, C = 0x94D049BB133111EB;
  uint64_t one = length ^ A, two = length ^ B;
  for (; size >= 32; bytes += 32, size -= 32) {
    one = folded(word_at(bytes) ^ A, word_at(bytes + 8) ^ one);
    two = folded(word_at(bytes + 16) ^ B, word_at(bytes + 24) ^ two);
  }
  for (; size >= 8; bytes += 8, size -= 8) one = folded(word_at(bytes) ^ C, one ^ B);
  if (size > 0) {
    uint64_t word = 0;
    std::memcpy(&word, bytes, static_cast<size_t>(size));
    two = folded(word ^ C, two ^ A);
  }
  return folded(one ^ C, two ^ A);
}

struct Slot {
  uint64_t hash;
  int64_t code;  // -1: free
};

constexpr int64_t AT_ONCE = 16;  // slots that are on their way from memory together

// Number sequences in order of first appearance: `is_equal(i, j)` decides where their hashes are equal.
template <class Test>
void number_rows(const Room<uint64_t> &hashes, int64_t count, std::vector<int64_t> &first, int64_t *codes,
                 const Test &is_equal) {
  int64_t size = 16;
  while (size < product(count, 2)) size *= 2;
  const uint64_t mask = static_cast<uint64_t>(size) - 1;
  Room<Slot> slots(size);
  std::fill(slots.data(), slots.data() + size, Slot{0, -1});
  for (int64_t i = 0; i < count; ++i) {
    if (i % AT_ONCE == 0)
      for (int64_t j = i; j < std::min(count, i + AT_ONCE); ++j) __builtin_prefetch(&slots[hashes[j] & mask]);
    uint64_t place = hashes[i] & mask;
    for (;; place = (place + 1) & mask) {
      Slot &slot = slots[static_cast<int64_t>(place)];
      if (slot.code >= 0 && (slot.hash != hashes[i] || !is_equal(i, first[slot.code]))) continue;
      if (slot.code < 0) {
        slot = {hashes[i], static_cast<int64_t>(first.size())};
        first.push_back(i);
      }
      codes[i] = slot.code;
      break;
    }
  }
}

nb::object distinct_sequences(nb::handle data, nb::handle lengths, nb::handle keys) {
  const Buffer rows(data, ANY), sizes(lengths);
  const Integers counts = sizes.counts();
  std::vector<int64_t> names;
  if (!keys.is_none()) {
    const Buffer buffer(keys);
    const Integers found = buffer.counts();
    if (found.size != counts.size) decline();
    names.resize(static_cast<size_t>(found.size));
    for (int64_t i = 0; i < found.size; ++i) names[i] = found[i];
  }
  const bool by_key = !keys.is_none();
  const Numbers offsets = checked_offsets(counts, "lengths");
  check_sum(offsets[counts.size], rows.extent(0), "lengths", "data");
  const int64_t row_bytes = rows.row_bytes();
  const auto bytes_of = [&](int64_t i) { return rows.data() + offsets[i] * row_bytes; };
  const auto length_of = [&](int64_t i) { return offsets[i + 1] - offsets[i]; };
  const auto is_equal = [&](int64_t i, int64_t j) {
    return length_of(i) == length_of(j) &&
           std::memcmp(bytes_of(i), bytes_of(j), static_cast<size_t>(length_of(i) * row_bytes)) == 0;
  };
  nb::object codes = empty_array({counts.size}, sizes, 1, dtype_named(INT64));
  Buffer result(codes, NUMERIC, true);
  int64_t *const out = reinterpret_cast<int64_t *>(result.data());
  std::vector<int64_t> first, differing;
  {
    const Unlocked unlocked(rows.bytes() + result.bytes());
    Room<uint64_t> hashes(counts.size);
    parallel_ranges(counts.size, by_key ? 0 : rows.bytes(), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i)
        hashes[i] = by_key ? folded(static_cast<uint64_t>(names[i]) ^ 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9)
                           : hash_of(bytes_of(i), length_of(i) * row_bytes, static_cast<uint64_t>(length_of(i)));
    });
    if (by_key) {
      number_rows(hashes, counts.size, first, out, [&](int64_t i, int64_t j) { return names[i] == names[j]; });
      for (int64_t i = 0; i < counts.size; ++i)
        if (!is_equal(i, first[out[i]])) differing.push_back(i);
    } else {
      number_rows(hashes, counts.size, first, out, is_equal);
    }
  }
  return nb::make_tuple(int64_array(first.data(), static_cast<int64_t>(first.size())), codes,
                        int64_array(differing.data(), static_cast<int64_t>(differing.size())));
}

// Builds a trie from its root down: a group of sequences that share the elements before `from` gets the segment of all
// elements that they share from `start` on, and its sequences are divided by the next element.
template <class T>
struct Trie {
  const T *data;
  const Numbers &offsets;
  const int64_t min_shared;
  int64_t *rows;
  std::vector<int64_t> order, kept, node_lengths, parents;

  struct Group {
    int64_t first, last, start, from, parent;
  };
  std::vector<Group> open;
  std::vector<std::pair<int64_t, int64_t>> parts;  // the next element of each sequence that goes on, and its number

  int64_t length(int64_t row) const { return offsets[row + 1] - offsets[row]; }
  int64_t element(int64_t row, int64_t at) const { return static_cast<int64_t>(data[offsets[row] + at]); }

  int64_t shared_by(const Group &group) const {
    const int64_t one = order[group.first];
    int64_t common = length(one);
    const T *const mine = data + offsets[one];
    for (int64_t k = group.first + 1; k < group.last; ++k) {
      const T *const other = data + offsets[order[k]];
      common = std::min(common, length(order[k]));
      common = std::mismatch(mine + std::min(group.from, common), mine + common, other + std::min(group.from, common)).first - mine;
    }
    return common;
  }

  // The segment of elements `start` to `end` of some sequences; its number, that of the parent where it is empty.
  int64_t add(int64_t first, int64_t last, int64_t start, int64_t end, int64_t parent) {
    if (end <= start) return parent;
    const int64_t place = static_cast<int64_t>(kept.size());
    const int64_t from = offsets[order[first]];
    for (int64_t at = start; at < end; ++at) kept.push_back(from + at);
    for (int64_t k = first; k < last; ++k)
      for (int64_t at = start; at < end; ++at) rows[offsets[order[k]] + at] = place + at - start;
    node_lengths.push_back(end - start);
    parents.push_back(parent);
    return static_cast<int64_t>(parents.size()) - 1;
  }

  // Sort order[first:last] by `key`, and push a group for each of equal keys, the first one on top.
  void divide(int64_t first, int64_t start, int64_t from, int64_t parent) {
    std::sort(parts.begin(), parts.end());
    const int64_t count = static_cast<int64_t>(parts.size());
    for (int64_t k = 0; k < count; ++k) order[first + k] = parts[k].second;
    for (int64_t end = count, k = count - 1; k >= 0; --k)
      if (k == 0 || parts[k - 1].first != parts[k].first) {
        open.push_back({first + k, first + end, start, from, parent});
        end = k;
      }
  }

  void grow(const std::vector<int64_t> &names, int64_t count) {
    for (int64_t i = 0; i < count; ++i) parts.emplace_back(names.empty() ? 0 : names[i], i);
    order.resize(static_cast<size_t>(count));
    divide(0, 0, 0, -1);
    while (!open.empty()) {
      const Group group = open.back();
      open.pop_back();
      const int64_t common = shared_by(group);
      const bool shares = group.last - group.first == 1 || common >= min_shared;
      const int64_t own = shares ? add(group.first, group.last, group.start, common, group.parent) : -1;
      parts.clear();
      int64_t ended = group.first;
      for (int64_t k = group.first; k < group.last; ++k) {
        const int64_t row = order[k];
        if (length(row) > common) {
          parts.emplace_back(element(row, common), row);
        } else {
          order[ended++] = row;
          if (!shares) add(ended - 1, ended, 0, common, -1);
        }
      }
      if (!parts.empty()) divide(ended, shares ? common : group.start, common + 1, own);
    }
  }
};

template <class T>
nb::object trie_of(const Buffer &data, const Numbers &offsets, const Buffer &sizes, const std::vector<int64_t> &names,
                   int64_t min_shared) {
  nb::object rows = empty_array({data.size()}, data, 1, dtype_named(INT64));
  Buffer result(rows, NUMERIC, true);
  Trie<T> trie = {reinterpret_cast<const T *>(data.data()), offsets, min_shared,
                  reinterpret_cast<int64_t *>(result.data()), {}, {}, {}, {}, {}, {}};
  {
    const Unlocked unlocked(result.bytes() + sizes.bytes());
    trie.grow(names, offsets.size - 1);
  }
  const auto array = [](const std::vector<int64_t> &one) { return int64_array(one.data(), static_cast<int64_t>(one.size())); };
  return nb::make_tuple(array(trie.kept), array(trie.node_lengths), array(trie.parents), rows);
}

nb::object prefix_tree(nb::handle data, nb::handle lengths, nb::handle keys, Index min_shared) {
  const Buffer elements(data), sizes(lengths);
  const Integers ids = elements.counts(), counts = sizes.counts();
  std::vector<int64_t> names;
  if (!keys.is_none()) {
    const Buffer buffer(keys);
    const Integers found = buffer.counts();
    if (found.size != counts.size) decline();
    for (int64_t i = 0; i < found.size; ++i) names.push_back(found[i]);
  }
  const Numbers offsets = checked_offsets(counts, "lengths");
  check_sum(offsets[counts.size], ids.size, "lengths", "data");
  return ids.wide ? trie_of<int64_t>(elements, offsets, sizes, names, min_shared)
                  : trie_of<int32_t>(elements, offsets, sizes, names, min_shared);
}

nb::object tree_paths(nb::handle parents, nb::handle node_lengths) {
  const Buffer above(parents), sizes(node_lengths);
  const Integers owners = above.counts();
  const int64_t count = owners.size;
  if (sizes.counts().size != count) decline();
  const Numbers offsets = checked_offsets(sizes.counts(), "node_lengths");
  const int64_t size = offsets[count];
  std::vector<int64_t> parent(count), starts(count + 1), ends(count, size), last(count, -1), path;
  nb::object results[4];
  int64_t *out[4];
  for (int k = 0; k < 4; ++k) {
    results[k] = empty_array({k == 0 ? count : size}, sizes, 1, dtype_named(INT64));
    out[k] = reinterpret_cast<int64_t *>(Buffer(results[k], NUMERIC, true).data());
  }
  int64_t *const lengths = out[0], *const positions = out[1], *const previous = out[2], *const until = out[3];
  for (int64_t i = 0; i < count; ++i) {
    const int64_t owner = parent[i] = owners[i], own = offsets[i + 1] - offsets[i];
    for (; !path.empty() && path.back() != owner; path.pop_back()) ends[path.back()] = offsets[i];
    if (owner != (path.empty() ? -1 : path.back())) throw Fault{"not_in_preorder", "parents", {i, owner}, 2};
    path.push_back(i);
    const int64_t begins = owner < 0 ? 0 : lengths[owner], before = owner < 0 ? -1 : last[owner];
    if (__builtin_add_overflow(begins, own, &lengths[i]) || __builtin_add_overflow(starts[i], lengths[i], &starts[i + 1]))
      refuse_size();
    last[i] = own > 0 ? offsets[i + 1] - 1 : before;
    for (int64_t at = 0; at < own; ++at) {
      positions[offsets[i] + at] = begins + at;
      previous[offsets[i] + at] = at > 0 ? offsets[i] + at - 1 : before;
    }
  }
  nb::object keys = empty_array({starts[count]}, sizes, 1, dtype_named(INT64));
  Buffer result(keys, NUMERIC, true);
  int64_t *const seen = reinterpret_cast<int64_t *>(result.data());
  {
    const Unlocked unlocked(result.bytes());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t own = offsets[i + 1] - offsets[i], above_it = starts[i + 1] - starts[i] - own;
      if (parent[i] >= 0) std::copy_n(seen + starts[parent[i]], above_it, seen + starts[i]);
      for (int64_t at = 0; at < own; ++at) {
        seen[starts[i] + above_it + at] = offsets[i] + at;
        until[offsets[i] + at] = ends[i];
      }
    }
  }
  return nb::make_tuple(keys, results[0], results[1], results[2], results[3]);
}

}  // namespace sharing
}  // namespace

void bind_sharing(nb::module_ &module) {
  bind_kernel(module, "distinct_sequences", sharing::distinct_sequences);
  bind_kernel(module, "prefix_tree", sharing::prefix_tree);
  bind_kernel(module, "tree_paths", sharing::tree_paths);
}

}  // namespace seqflow
