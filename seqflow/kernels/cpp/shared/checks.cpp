// Checks of lengths and indices; the first fault is thrown.
#include "shared/checks.h"

#include <algorithm>
#include <utility>

namespace seqflow {
namespace {

// All bits that occur, and the sum: no entry is negative and no sum can have overflowed if `bits` are few.
template <class T>
void scan(const T *values, int64_t size, uint64_t *bits, uint64_t *total) {
  uint64_t all = 0, sum = 0;
  for (int64_t i = 0; i < size; ++i) {
    const uint64_t value = static_cast<uint64_t>(static_cast<int64_t>(values[i]));
    all |= value;
    sum += value;
  }
  *bits = all;
  *total = sum;
}

constexpr uint64_t SMALL = uint64_t{1} << 31;

int64_t slow_total(Integers counts, const char *argument) {
  int64_t total = 0;
  for (int64_t i = 0; i < counts.size; ++i) {
    const int64_t value = counts[i];
    if (value < 0) throw Fault{"negative", argument, {i, value}, 2};
    if (value > INT64_MAX - total) throw Fault{"overflow", argument, {i, value, 0, INT64_MAX - total + 1}, 4};
    total += value;
  }
  return total;
}

// First where each run of ids ends, by a store without a branch for each id; then the differences.
template <class T>
bool count_runs(const T *ids, int64_t size, int64_t count, int64_t *out) {
  std::fill(out, out + count, 0);
  uint64_t before = 0;
  bool falls = false;
  for (int64_t i = 0; i < size; ++i) {
    const uint64_t id = static_cast<uint64_t>(static_cast<int64_t>(__atomic_load_n(ids + i, __ATOMIC_RELAXED)));
    if (id >= static_cast<uint64_t>(count)) return false;
    falls |= id < before;
    before = id;
    out[id] = i + 1;
  }
  int64_t end = 0;
  for (int64_t k = 0; k < count; ++k) {
    const int64_t next = out[k] ? out[k] : end;
    out[k] = next - end;
    end = next;
  }
  return !falls;
}

bool is_inside(int64_t start, int64_t size, int64_t rows) {
  return start >= 0 && size <= rows && start <= rows - size;
}

}  // namespace

int64_t check_total(Integers counts, const char *argument) {
  uint64_t bits, total;
  if (counts.wide)
    scan(static_cast<const int64_t *>(counts.values), counts.size, &bits, &total);
  else
    scan(static_cast<const int32_t *>(counts.values), counts.size, &bits, &total);
  if (bits < SMALL && static_cast<uint64_t>(counts.size) < SMALL) return static_cast<int64_t>(total);
  return slow_total(counts, argument);
}

int64_t check_max(Integers counts, const char *argument) {
  int64_t most = 0;
  for (int64_t i = 0; i < counts.size; ++i) {
    const int64_t value = counts[i];
    if (value < 0) throw Fault{"negative", argument, {i, value}, 2};
    if (value > most) most = value;
  }
  return most;
}

Numbers checked_offsets(Integers counts, const char *argument) {
  Numbers offsets(counts.size + 1);
  int64_t *to = offsets.data();
  uint64_t total = 0, bits = 0;
  to[0] = 0;
  for (int64_t i = 0; i < counts.size; ++i) {
    const uint64_t value = static_cast<uint64_t>(counts[i]);
    total += value;
    bits |= value | total;
    to[i + 1] = static_cast<int64_t>(total);
  }
  if (bits > static_cast<uint64_t>(INT64_MAX)) {
    slow_total(counts, argument);
    throw Fault{"changed", argument, {}, 0};
  }
  return offsets;
}

void check_sum(int64_t total, int64_t expected, const char *argument, const char *owner) {
  if (total != expected) throw Fault{"wrong_sum", argument, {total, expected}, 2, owner};
}

void check_room(const Numbers &offsets, int64_t room, const char *argument) {
  for (int64_t i = 0; i + 1 < offsets.size; ++i) {
    const int64_t length = offsets[i + 1] - offsets[i];
    if (length > room) throw Fault{"too_long", argument, {i, length, room}, 3};
  }
}

void blame_index(Integers indices, int64_t low, int64_t high, bool ignores, int64_t ignored,
                 const char *argument) {
  for (int64_t i = 0; i < indices.size; ++i) {
    const int64_t index = indices[i];
    if (ignores && index == ignored) continue;
    if (index < low || index >= high) throw Fault{"outside", argument, {i, index, low, high}, 4};
  }
  throw Fault{"changed", argument, {}, 0};
}

bool count_ids(Integers ids, int64_t count, int64_t *out) {
  return ids.wide ? count_runs(static_cast<const int64_t *>(ids.values), ids.size, count, out)
                  : count_runs(static_cast<const int32_t *>(ids.values), ids.size, count, out);
}

void blame_id(Integers ids, int64_t num_segments, const char *argument) {
  int64_t before = 0;
  for (int64_t i = 0; i < ids.size; ++i) {
    const int64_t id = ids[i];
    if (num_segments >= 0 && (id < 0 || id >= num_segments))
      throw Fault{"outside", argument, {i, id, 0, num_segments}, 4};
    if (id < 0) throw Fault{"negative", argument, {i, id}, 2};
    if (id < before) throw Fault{"descending", argument, {i, id, before}, 3};
    before = id;
  }
  throw Fault{"changed", argument, {}, 0};
}

void check_slices(const Slices &slices) {
  for (int64_t k = 0; k < slices.sizes.size; ++k) {
    const int64_t size = slices.sizes[k], from = slices.source_starts[k], to = slices.target_starts[k];
    if (size < 0) throw Fault{"negative", "sizes", {k, size}, 2};
    if (!is_inside(from, size, slices.source_rows))
      throw Fault{"slice_outside", "source_starts", {k, from, size, slices.source_rows}, 4};
    if (!is_inside(to, size, slices.target_rows))
      throw Fault{"slice_outside", "target_starts", {k, to, size, slices.target_rows}, 4};
  }
}

bool are_apart(const Slices &slices) {
  int64_t end = 0;
  for (int64_t k = 0; k < slices.sizes.size; ++k) {
    const int64_t to = slices.target_starts[k];
    if (to < end) return false;
    end = to + slices.sizes[k];
  }
  return true;
}

Numbers checked_places(const Numbers &offsets, Integers sources, Integers starts, const Numbers &ends,
                       const Numbers &first, int64_t capacity) {
  const int64_t num_sequences = offsets.size - 1;
  Numbers places(sources.size);
  for (int64_t k = 0; k < sources.size; ++k) {
    places[k] = sources[k];
    if (places[k] < 0 || places[k] >= num_sequences)
      throw Fault{"outside", "sources", {k, places[k], 0, num_sequences}, 4};
  }
  for (int64_t k = 0; k < sources.size; ++k) {
    const int64_t from = offsets[places[k]], rows = offsets[places[k] + 1] - from;
    const int64_t start = starts[k], size = ends[k + 1] - ends[k];
    if (!is_inside(start, size, rows)) throw Fault{"slice_outside", "starts", {k, start, size, rows}, 4};
    places[k] = from + start;
  }
  for (int64_t row = 0; row + 1 < first.size; ++row) {
    const int64_t used = ends[first[row + 1]] - ends[first[row]];
    if (used > capacity) throw Fault{"too_full", nullptr, {row, used, capacity}, 3};
  }
  return places;
}

}  // namespace seqflow
