// Groups rows by id: counting sort, and sums by id. In NumPy: groups.py.
#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "bindings/python.h"
#include "shared/threads.h"

namespace seqflow {
namespace {

// Sorting by counting. In NumPy: groups.py.
void count_and_place(Integers ids, int64_t *order, int64_t *sizes, int64_t num_groups) {
  Numbers group(ids.size);  // read once, so that what was checked is what is used
  for (int64_t i = 0; i < num_groups; ++i) sizes[i] = 0;
  for (int64_t i = 0; i < ids.size; ++i) {
    group[i] = ids[i];
    if (static_cast<uint64_t>(group[i]) >= static_cast<uint64_t>(num_groups))
      throw Fault{"outside", "ids", {i, group[i], 0, num_groups}, 4};
    ++sizes[group[i]];
  }
  Numbers next(num_groups);
  for (int64_t i = 0, before = 0; i < num_groups; ++i) {
    next[i] = before;
    before += sizes[i];
  }
  for (int64_t i = 0; i < ids.size; ++i) order[next[group[i]]++] = i;
}

nb::object group_rows(nb::handle ids, Index num_groups) {
  if (num_groups < 0) decline();
  const Buffer buffer(ids);
  const Integers groups = buffer.counts();
  nb::object order = empty_array({groups.size}, buffer, 1, dtype_named(INT64));
  nb::object sizes = empty_array({num_groups}, buffer, 1, dtype_named(INT64));
  Buffer order_buffer(order, NUMERIC, true), sizes_buffer(sizes, NUMERIC, true);
  {
    const Unlocked unlocked(buffer.bytes());
    count_and_place(groups, reinterpret_cast<int64_t *>(order_buffer.data()),
                    reinterpret_cast<int64_t *>(sizes_buffer.data()), num_groups);
  }
  return nb::make_tuple(order, sizes);
}

// Adds the elements [first, last) to the sums of their ids; false where an id is outside.
template <class T, class I>
bool add_all(const T *data, const I *ids, int64_t first, int64_t last, double *sums, int64_t *counts,
             int64_t num_groups) {
  constexpr int64_t AHEAD = 16;  // sums that are fetched before they are needed
  for (int64_t i = first; i < last; ++i) {
    // not checked yet: the address may be anything
    const int64_t later = __atomic_load_n(ids + (i + AHEAD < last ? i + AHEAD : i), __ATOMIC_RELAXED);
    __builtin_prefetch(reinterpret_cast<const void *>(reinterpret_cast<uintptr_t>(sums) + static_cast<uint64_t>(later) * 8), 1);
    const int64_t id = __atomic_load_n(ids + i, __ATOMIC_RELAXED);
    if (static_cast<uint64_t>(id) >= static_cast<uint64_t>(num_groups)) return false;
    sums[id] += static_cast<double>(data[i]);
    if (counts) ++counts[id];
  }
  return true;
}

template <class T>
bool add_all(const T *data, Integers ids, int64_t first, int64_t last, double *sums, int64_t *counts,
             int64_t num_groups) {
  return ids.wide ? add_all(data, static_cast<const int64_t *>(ids.values), first, last, sums, counts, num_groups)
                  : add_all(data, static_cast<const int32_t *>(ids.values), first, last, sums, counts, num_groups);
}

// Long columns are added up in parts, on any number of threads the same, and their sums in order. The sums of the
// first part are those of the result.
template <class T>
void add_in_parts(const T *data, Integers ids, double *sums, int64_t *counts, int64_t num_groups) {
  constexpr int64_t LONG = 1 << 18, ROWS_OF_A_GROUP = 8, MOST = 2;
  const int64_t parts =
      std::clamp<int64_t>(std::min(ids.size / LONG, ids.size / (num_groups + 1) / ROWS_OF_A_GROUP), 1, MOST);
  const int64_t step = (ids.size + parts - 1) / parts, others = (parts - 1) * num_groups;
  const std::unique_ptr<double[]> more_sums(new double[static_cast<size_t>(others)]);
  const std::unique_ptr<int64_t[]> more_counts(new int64_t[static_cast<size_t>(counts ? others : 0)]);
  bool fits = true;
  parallel_for(parts, ids.size * 16, [&](int64_t part) {
    double *const own_sums = part == 0 ? sums : more_sums.get() + (part - 1) * num_groups;
    int64_t *const own_counts = !counts || part == 0 ? counts : more_counts.get() + (part - 1) * num_groups;
    std::fill(own_sums, own_sums + num_groups, 0.0);
    if (counts) std::fill(own_counts, own_counts + num_groups, 0);
    const int64_t first = std::min(part * step, ids.size), last = std::min(first + step, ids.size);
    if (!add_all(data, ids, first, last, own_sums, own_counts, num_groups))
      __atomic_store_n(&fits, false, __ATOMIC_RELAXED);
  });
  if (!fits) blame_index(ids, 0, num_groups, false, 0, "ids");
  for (int64_t before = 0; before < others; before += num_groups)
    for (int64_t i = 0; i < num_groups; ++i) {
      sums[i] += more_sums[before + i];
      if (counts) counts[i] += more_counts[before + i];
    }
}

// In NumPy: groups.py.
nb::object add_by_id(nb::handle data, nb::handle ids, Index num_groups, bool counted) {
  if (num_groups < 0) decline();
  const Buffer column(data), buffer(ids);
  const Integers groups = buffer.counts();
  const Type type = column.type();
  if (column.rank() != 1 || column.size() != groups.size || (type != FLOAT32 && type != FLOAT64)) decline();
  nb::object sums = empty_array({num_groups}, buffer, 1, dtype_named(FLOAT64));
  nb::object sizes = empty_array({counted ? num_groups.value : 0}, buffer, 1, dtype_named(INT64));
  Buffer sums_buffer(sums, NUMERIC, true), sizes_buffer(sizes, NUMERIC, true);
  double *totals = reinterpret_cast<double *>(sums_buffer.data());
  int64_t *counts = counted ? reinterpret_cast<int64_t *>(sizes_buffer.data()) : nullptr;
  {
    const Unlocked unlocked(buffer.bytes());
    if (type == FLOAT32)
      add_in_parts(reinterpret_cast<const float *>(column.data()), groups, totals, counts, num_groups);
    else
      add_in_parts(reinterpret_cast<const double *>(column.data()), groups, totals, counts, num_groups);
  }
  return nb::make_tuple(sums, sizes);
}

// Rows of segments, added to those that the indices of each segment name.
template <class T>
struct Scatter {
  const T *rows, *weights;  // weights: one for each index, or null
  Integers indices;
  const int64_t *offsets;
  int64_t num_segments, columns, num_rows;
  bool ignores;
  int64_t ignored;
  T *sums;
};

// Ids of which many rows are summed. In float32 the sums of a million would be off by a percent: they have accumulators of
// float64, and are cast once. They are found by a sample: one of ten thousand rows with near certainty, while float32 loses
// less than a thousandth on fewer.
struct Hot {
  static constexpr int64_t SLOTS = 1024, STRIDE = 128, LEAST = 32, MOST_ELEMENTS = 1 << 17;
  std::vector<int64_t> ids;
  std::vector<int32_t> slots;  // 1 + the number of the hot id whose last bits these are; 0 for none
  std::vector<double> sums;

  Hot(const Scatter<float> &job) {
    if (job.indices.size < STRIDE * LEAST) return;
    std::vector<int64_t> sample;
    uint64_t bits = 0;
    for (int64_t i = 0; i + STRIDE <= job.indices.size; i += STRIDE) {
      bits = bits * 6364136223846793005u + 1442695040888963407u;
      sample.push_back(job.indices[i + static_cast<int64_t>(bits >> 57)]);
    }
    std::sort(sample.begin(), sample.end());
    std::vector<std::pair<int64_t, int64_t>> counted;  // - how often, id
    for (size_t i = 0, end; i < sample.size(); i = end) {
      for (end = i; end < sample.size() && sample[end] == sample[i];) ++end;
      const bool inside = static_cast<uint64_t>(sample[i]) < static_cast<uint64_t>(job.num_rows);
      if (inside && static_cast<int64_t>(end - i) >= LEAST) counted.emplace_back(-static_cast<int64_t>(end - i), sample[i]);
    }
    if (counted.empty()) return;
    std::sort(counted.begin(), counted.end());
    slots.resize(SLOTS);
    for (const auto &[often, id] : counted) {
      int32_t &slot = slots[static_cast<size_t>(id % SLOTS)];
      if (slot != 0 || (static_cast<int64_t>(ids.size()) + 1) * job.columns > std::max(MOST_ELEMENTS, job.columns)) continue;
      ids.push_back(id);
      slot = static_cast<int32_t>(ids.size());
    }
    sums.resize(ids.size() * static_cast<size_t>(job.columns));
  }

  // The accumulators of an id; null where it has none.
  double *of(int64_t id, int64_t columns) {
    const int32_t slot = slots[static_cast<size_t>(id % SLOTS)];
    return slot != 0 && ids[slot - 1] == id ? sums.data() + (slot - 1) * columns : nullptr;
  }
};

template <class T>
void add_row(const T *from, const T *weight, int64_t columns, T *to) {
  if (weight) {
    const T factor = *weight;
    for (int64_t c = 0; c < columns; ++c) to[c] += factor * from[c];
  } else {
    for (int64_t c = 0; c < columns; ++c) to[c] += from[c];
  }
}

void add_wide(const float *from, const float *weight, int64_t columns, double *to) {
  using Floats = float __attribute__((vector_size(16)));
  using Doubles = double __attribute__((vector_size(32)));
  const double factor = weight ? *weight : 1;
  int64_t c = 0;
  for (; c + 4 <= columns; c += 4) {
    Floats added;
    Doubles sum;
    std::memcpy(&added, from + c, sizeof added);
    std::memcpy(&sum, to + c, sizeof sum);
    sum += factor * __builtin_convertvector(added, Doubles);
    std::memcpy(to + c, &sum, sizeof sum);
  }
  for (; c < columns; ++c) to[c] += factor * from[c];
}

// The part [first, last) of the table; false where an index is outside of the table.
template <bool HAS_HOT, class T>
[[gnu::noinline]] bool scatter(const Scatter<T> &job, Hot *hot, int64_t first, int64_t last) {
  constexpr int64_t AHEAD = 8;  // rows of the table that are fetched before they are needed
  for (int64_t i = first * job.columns; i < last * job.columns; ++i) job.sums[i] = 0;
  for (int64_t k = 0; k < job.num_segments; ++k) {
    const T *const from = job.rows + k * job.columns;
    for (int64_t i = job.offsets[k]; i < job.offsets[k + 1]; ++i) {
      const int64_t index = job.indices[i], later = job.indices[i + AHEAD < job.indices.size ? i + AHEAD : i];
      if (later >= first && later < last)
        for (int64_t c = 0; c < job.columns; c += 64 / static_cast<int64_t>(sizeof(T)))
          __builtin_prefetch(job.sums + later * job.columns + c, 1);
      if (job.ignores && index == job.ignored) continue;
      if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(job.num_rows)) return false;
      if (index < first || index >= last) continue;
      const T *const weight = job.weights ? job.weights + i : nullptr;
      if constexpr (HAS_HOT && sizeof(T) == 4)
        if (double *const wide = hot->of(index, job.columns)) {
          add_wide(from, weight, job.columns, wide);
          continue;
        }
      add_row(from, weight, job.columns, job.sums + index * job.columns);
    }
  }
  return true;
}

template <class T>
nb::object scatter_segments(const Buffer &rows, Integers picks, Integers counts, const Buffer *factors,
                            int64_t num_rows, const Ignored &ignored) {
  nb::object result = empty_array({num_rows}, rows, 1, dtype_named(rows.type()));
  Buffer buffer(result, NUMERIC, true);
  Scatter<T> job = {};
  job.rows = reinterpret_cast<const T *>(rows.data());
  job.weights = factors ? reinterpret_cast<const T *>(factors->data()) : nullptr;
  job.sums = reinterpret_cast<T *>(buffer.data());
  job.indices = picks;
  job.columns = rows.row_elements(), job.num_rows = num_rows;
  job.ignores = ignored.any, job.ignored = ignored.index;
  const int64_t work = product(picks.size, rows.row_bytes());
  bool fits = true;
  {
    const Unlocked unlocked(work + buffer.bytes());
    const Numbers offsets = checked_offsets(counts, "lengths");
    job.offsets = offsets.data(), job.num_segments = counts.size;
    check_sum(offsets[counts.size], picks.size, "lengths", "indices");
    std::unique_ptr<Hot> hot;
    if constexpr (sizeof(T) == 4) hot = std::make_unique<Hot>(job);
    const bool has_hot = hot && !hot->ids.empty();
    const int64_t parts = usable_threads();  // each reads all indices
    parallel_for(parts, work + buffer.bytes(), [&](int64_t part) {
      const int64_t step = (num_rows + parts - 1) / parts;
      const int64_t begin = std::min(part * step, num_rows), end = std::min(begin + step, num_rows);
      if (!(has_hot ? scatter<true>(job, hot.get(), begin, end) : scatter<false>(job, hot.get(), begin, end)))
        __atomic_store_n(&fits, false, __ATOMIC_RELAXED);
    });
    if (has_hot)
      for (size_t i = 0; i < hot->ids.size(); ++i)
        for (int64_t c = 0; c < job.columns; ++c)
          job.sums[hot->ids[i] * job.columns + c] = static_cast<T>(hot->sums[i * job.columns + c]);
  }
  if (!fits) blame_index(picks, 0, num_rows, ignored.any, ignored.index, "indices");
  return result;
}

// In NumPy: groups.py.
nb::object scatter_segments(nb::handle data, nb::handle indices, nb::handle lengths, nb::handle weights,
                            Index num_rows, nb::handle ignore_index) {
  if (num_rows < 0) decline();
  const Buffer rows(data), picks(indices), counts(lengths);
  if (rows.is_half()) decline();
  const Type type = rows.type();
  const Integers sizes = counts.counts(), ids = picks.counts();
  if ((type != FLOAT32 && type != FLOAT64) || rows.row_elements() == 0 || rows.extent(0) != sizes.size) decline();
  const Ignored ignored(ignore_index);
  std::unique_ptr<Buffer> factors;
  if (!weights.is_none()) {
    factors = std::make_unique<Buffer>(weights);
    if (factors->is_half() || factors->type() != type || factors->rank() != 1 || factors->size() != ids.size) decline();
  }
  return type == FLOAT32 ? scatter_segments<float>(rows, ids, sizes, factors.get(), num_rows, ignored)
                         : scatter_segments<double>(rows, ids, sizes, factors.get(), num_rows, ignored);
}

}  // namespace

void bind_groups(nb::module_ &module) {
  bind_kernel(module, "group_rows", group_rows);
  bind_kernel(module, "add_by_id", add_by_id);
  bind_kernel(module, "scatter_segments",
              static_cast<nb::object (*)(nb::handle, nb::handle, nb::handle, nb::handle, Index, nb::handle)>(scatter_segments));
}

}  // namespace seqflow
