// Compares two sequences of each pair, and sets by the least of their hashes. In NumPy: matching.py.
#include <algorithm>
#include <vector>

#include "bindings/python.h"
#include "ids/minhash.h"
#include "shared/processor.h"
#include "shared/segments.h"

namespace seqflow {
namespace {
namespace matching {

// Both sequences of a pair: `data` [size], `other` [other_size].
struct Pair {
  Integers data, other;
  int64_t first, size, other_first, other_size;

  int64_t left(int64_t i) const { return data[first + i]; }
  int64_t right(int64_t i) const { return other[other_first + i]; }
};

// A set of values by open addressing, used again for each pair.
struct Set {
  std::vector<int64_t> values;
  std::vector<uint8_t> used;
  uint64_t mask = 0;

  static uint64_t hash(int64_t value) {
    const uint64_t z = static_cast<uint64_t>(value) * 0x9E3779B97F4A7C15;
    return z ^ (z >> 32);
  }
  void clear(int64_t size) {
    uint64_t slots = 16;
    while (slots < 2 * static_cast<uint64_t>(size)) slots *= 2;
    mask = slots - 1;
    if (values.size() < slots) values.resize(slots);
    used.assign(slots, 0);
  }
  bool find(int64_t value, uint64_t &slot) const {
    for (slot = hash(value) & mask; used[slot]; slot = (slot + 1) & mask)
      if (values[slot] == value) return true;
    return false;
  }
  bool has(int64_t value) const {
    uint64_t slot;
    return find(value, slot);
  }
  void add(int64_t value) {
    uint64_t slot;
    if (find(value, slot)) return;
    used[slot] = 1;
    values[slot] = value;
  }
};

// Below this many comparisons, all of them take less time than the set.
constexpr int64_t FEW = 64;

void find_all(const Pair &pair, Set &set, bool *found) {
  if (pair.size == 0) return;
  if (pair.other_size <= FEW / 8 || pair.size * pair.other_size <= FEW) {
    for (int64_t i = 0; i < pair.size; ++i) {
      const int64_t value = pair.left(i);
      bool is_in = false;
      for (int64_t j = 0; j < pair.other_size; ++j) is_in |= pair.right(j) == value;
      found[pair.first + i] = is_in;
    }
    return;
  }
  set.clear(pair.other_size);
  for (int64_t j = 0; j < pair.other_size; ++j) set.add(pair.right(j));
  for (int64_t i = 0; i < pair.size; ++i) found[pair.first + i] = set.has(pair.left(i));
}

// One row of the table of all prefixes at a time; `row` [other_size + 1].
int64_t distance(const Pair &pair, std::vector<int64_t> &row) {
  row.resize(pair.other_size + 1);
  for (int64_t j = 0; j <= pair.other_size; ++j) row[j] = j;
  for (int64_t i = 0; i < pair.size; ++i) {
    const int64_t value = pair.left(i);
    int64_t before = row[0]++;
    for (int64_t j = 0; j < pair.other_size; ++j) {
      const int64_t changed = before + (value != pair.right(j));
      before = row[j + 1];
      row[j + 1] = std::min(changed, std::min(before, row[j]) + 1);
    }
  }
  return row[pair.other_size];
}

int64_t common(const Pair &pair, std::vector<int64_t> &row) {
  row.assign(pair.other_size + 1, 0);
  for (int64_t i = 0; i < pair.size; ++i) {
    const int64_t value = pair.left(i);
    int64_t before = 0;
    for (int64_t j = 0; j < pair.other_size; ++j) {
      const int64_t extended = before + 1;
      before = row[j + 1];
      row[j + 1] = value == pair.right(j) ? extended : std::max(before, row[j]);
    }
  }
  return row[pair.other_size];
}

// Call body(begin, end, pair_at) for ranges of pairs.
template <class F>
nb::object each_pair(nb::handle data, nb::handle lengths, nb::handle other, nb::handle other_lengths, bool by_row,
                     F &&body) {
  const Buffer left(data), counts(lengths), right(other), other_counts(other_lengths);
  const Integers a = left.counts(), b = right.counts(), sizes = counts.counts(), other_sizes = other_counts.counts();
  if (sizes.size != other_sizes.size) decline();
  nb::object result = empty_array({by_row ? a.size : sizes.size}, left, 1, by_row ? bool_dtype() : dtype_named(INT64));
  Buffer out(result, NUMERIC, true);
  const Unlocked unlocked(left.bytes() + right.bytes());
  const Numbers offsets = checked_offsets(sizes, "lengths"), ends = checked_offsets(other_sizes, "other_lengths");
  check_sum(offsets[offsets.size - 1], a.size, "lengths", "data");
  check_sum(ends[ends.size - 1], b.size, "other_lengths", "other");
  parallel_segments(offsets, 1, 4 * (left.bytes() + right.bytes()), [&](int64_t begin, int64_t end) {
    body(begin, end, out.data(), [&](int64_t k) {
      return Pair{a, b, offsets[k], offsets[k + 1] - offsets[k], ends[k], ends[k + 1] - ends[k]};
    });
  });
  return result;
}

}  // namespace matching

nb::object isin_within(nb::handle data, nb::handle lengths, nb::handle other, nb::handle other_lengths) {
  return matching::each_pair(data, lengths, other, other_lengths, true,
                             [](int64_t begin, int64_t end, uint8_t *out, auto &&pair) {
    matching::Set set;
    for (int64_t k = begin; k < end; ++k) matching::find_all(pair(k), set, reinterpret_cast<bool *>(out));
  });
}

template <class F>
nb::object of_pairs(nb::handle data, nb::handle lengths, nb::handle other, nb::handle other_lengths, F &&f) {
  return matching::each_pair(data, lengths, other, other_lengths, false,
                             [&](int64_t begin, int64_t end, uint8_t *out, auto &&pair) {
    std::vector<int64_t> row;
    for (int64_t k = begin; k < end; ++k) reinterpret_cast<int64_t *>(out)[k] = f(pair(k), row);
  });
}

nb::object edit_distances(nb::handle data, nb::handle lengths, nb::handle other, nb::handle other_lengths) {
  return of_pairs(data, lengths, other, other_lengths, matching::distance);
}

nb::object longest_common(nb::handle data, nb::handle lengths, nb::handle other, nb::handle other_lengths) {
  return of_pairs(data, lengths, other, other_lengths, matching::common);
}

nb::object minhash(nb::handle shingles, nb::handle lengths, nb::handle factors, nb::handle offsets) {
  const Buffer hashes(shingles), counts(lengths), a(factors), b(offsets);
  const Integers x = hashes.counts(), sizes = counts.counts(), first = a.counts(), second = b.counts();
  if (first.size != second.size) decline();
  const int64_t count = first.size;
  const MinHashKernels &kernels = SEQFLOW_SELECTED(minhash_kernels);
  std::vector<uint64_t> by(count), plus(count);
  std::vector<double> shares(3 * kernels.padded(count));
  for (int64_t j = 0; j < count; ++j) {
    by[j] = static_cast<uint64_t>(first[j]), plus[j] = static_cast<uint64_t>(second[j]);
    if (by[j] >= PRIME || plus[j] >= PRIME) decline();
  }
  check_memory({sizes.size, count}, INT64);
  nb::object result = empty_array({sizes.size, count}, hashes, 1, dtype_named(INT64));
  Buffer out(result, NUMERIC, true);
  const Unlocked unlocked(hashes.bytes() + out.bytes());
  const Numbers ends = checked_offsets(sizes, "lengths");
  check_sum(ends[ends.size - 1], x.size, "lengths", "shingles");
  const MinHash job = {x, ends.data(), by.data(), plus.data(), count, shares.data(), reinterpret_cast<uint64_t *>(out.data())};
  kernels.prepare(job);
  parallel_segments(ends, count, hashes.bytes() * count / 16,
                    [&](int64_t begin, int64_t end) { kernels.run(job, begin, end); });
  return result;
}

}  // namespace

void bind_matching(nb::module_ &module) {
  bind_kernel(module, "isin_within", isin_within);
  bind_kernel(module, "edit_distances", edit_distances);
  bind_kernel(module, "longest_common", longest_common);
  bind_kernel(module, "minhash", minhash);
}

}  // namespace seqflow
