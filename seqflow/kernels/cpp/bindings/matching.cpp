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

// A set of values in groups of four, used again for each pair: a value is in the group of its hash, or in a later one
// if all before that are full. A lookup is a comparison with a whole group, without a branch that depends on the value.
struct Set {
  static constexpr uint64_t SIZE = 4;
  std::vector<int64_t> values;
  std::vector<uint8_t> sizes;
  uint64_t mask = 0;

  static uint64_t hash(int64_t value) {
    const uint64_t z = static_cast<uint64_t>(value) * 0x9E3779B97F4A7C15;
    return z ^ (z >> 32);
  }
  void fill(const Pair &pair) {
    uint64_t groups = 4;
    while (groups < static_cast<uint64_t>(pair.other_size)) groups *= 2;
    mask = groups - 1;
    sizes.assign(groups, 0);
    // free places hold a value of the set, too: what equals it is in the set
    const int64_t first = pair.right(0);
    values.assign(SIZE * groups, first);
    for (int64_t j = 1; j < pair.other_size; ++j) {
      const int64_t value = pair.right(j);
      const uint64_t group = find(value);
      if (!holds(group, value)) values[SIZE * group + sizes[group]++] = value;
    }
  }
  bool has(int64_t value) const { return holds(find(value), value); }

 private:
  bool holds(uint64_t group, int64_t value) const {
    const int64_t *const four = &values[SIZE * group];
    return (four[0] == value) | (four[1] == value) | (four[2] == value) | (four[3] == value);
  }
  // The group that holds the value, or has room for it.
  uint64_t find(int64_t value) const {
    uint64_t group = hash(value) & mask;
    while (sizes[group] == SIZE && !holds(group, value)) group = (group + 1) & mask;
    return group;
  }
};

// Values that lie close together, by a byte for each from the least to the largest one; used again for each pair.
struct Table {
  std::vector<uint8_t> bytes;
  uint64_t least = 0, range = 0;

  // False where the values would need more than a few bytes each.
  bool fill(const Pair &pair) {
    int64_t low = pair.right(0), high = low;
    for (int64_t j = 1; j < pair.other_size; ++j) {
      const int64_t value = pair.right(j);
      low = std::min(low, value), high = std::max(high, value);
    }
    least = static_cast<uint64_t>(low), range = static_cast<uint64_t>(high) - least;
    if (range >= 16 * static_cast<uint64_t>(pair.other_size)) return false;
    bytes.assign(range + 2, 0);  // the last one is for all other values
    for (int64_t j = 0; j < pair.other_size; ++j) {
      const uint64_t place = static_cast<uint64_t>(pair.right(j)) - least;
      if (place <= range) bytes[place] = 1;
    }
    return true;
  }
  bool has(int64_t value) const { return bytes[std::min(static_cast<uint64_t>(value) - least, range + 1)]; }
};

// Below this many comparisons, all of them take less time than the set.
constexpr int64_t FEW = 64;

void find_all(const Pair &pair, Set &set, Table &table, bool *found) {
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
  if (table.fill(pair)) {
    for (int64_t i = 0; i < pair.size; ++i) found[pair.first + i] = table.has(pair.left(i));
    return;
  }
  set.fill(pair);
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
    matching::Table table;
    for (int64_t k = begin; k < end; ++k) matching::find_all(pair(k), set, table, reinterpret_cast<bool *>(out));
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
