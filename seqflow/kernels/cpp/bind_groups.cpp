// Groups rows by id: counting sort, and sums by id. In NumPy: groups.py.
#include <algorithm>
#include <memory>

#include "python.h"
#include "threads.h"

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
  for (int64_t i = first; i < last; ++i) {
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

// One row that is added to a row of a part of the table.
struct Addend {
  uint32_t place, segment;
  float weight;
};

// The addends of each part of 1 << shift rows of the table, one part after another, in the order of the indices; where
// each part begins. Nothing where an index is outside of the table.
Numbers by_parts(const Scatter<float> &job, int shift, int64_t parts, std::unique_ptr<Addend[]> &addends) {
  Numbers begins(parts + 1), places(job.indices.size);  // read once, so that what was checked is what is used
  std::fill(begins.data(), begins.data() + parts + 1, int64_t{0});
  for (int64_t i = 0; i < job.indices.size; ++i) {
    const int64_t index = places[i] = job.indices[i];
    if (job.ignores && index == job.ignored) continue;
    if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(job.num_rows)) return Numbers(0);
    ++begins[(index >> shift) + 1];
  }
  for (int64_t part = 0; part < parts; ++part) begins[part + 1] += begins[part];
  addends.reset(new Addend[static_cast<size_t>(begins[parts])]);
  Numbers next(parts);
  std::copy(begins.data(), begins.data() + parts, next.data());
  for (int64_t k = 0; k < job.num_segments; ++k)
    for (int64_t i = job.offsets[k]; i < job.offsets[k + 1]; ++i) {
      if (job.ignores && places[i] == job.ignored) continue;
      const int64_t part = places[i] >> shift;
      addends[next[part]++] = {static_cast<uint32_t>(places[i] - (part << shift)), static_cast<uint32_t>(k), job.weights ? job.weights[i] : 1.0f};
    }
  return begins;
}

// So few addends lose as little in float32 as those that NumPy adds up in one run.
constexpr int64_t FEW_ADDENDS = 128;

template <class S>
void add(const Scatter<float> &job, const Addend *first, const Addend *last, S *sums) {
  for (; first != last; ++first) {
    const float *const from = job.rows + int64_t{first->segment} * job.columns;
    S *const to = sums + int64_t{first->place} * job.columns;
    const S weight = first->weight;
    for (int64_t c = 0; c < job.columns; ++c) to[c] += weight * from[c];
  }
}

// Sums of float32 are added up in float64, a part of the table at a time, which fits into a cache, and are cast once.
bool scatter_wide(const Scatter<float> &job, int64_t bytes) {
  constexpr int64_t CACHED = 1 << 15;  // elements of a part
  int shift = 0;
  while ((job.columns << (shift + 1)) <= CACHED && (job.num_rows >> shift) > usable_threads()) ++shift;
  const int64_t rows = int64_t{1} << shift, parts = (job.num_rows + rows - 1) >> shift;
  std::unique_ptr<Addend[]> addends;
  const Numbers begins = by_parts(job, shift, parts, addends);
  if (begins.size == 0) return false;
  parallel_for(parts, bytes, [&](int64_t part) {
    const int64_t size = std::min(rows, job.num_rows - part * rows) * job.columns;
    float *const sums = job.sums + part * rows * job.columns;
    const Addend *const first = addends.get() + begins[part], *const last = addends.get() + begins[part + 1];
    if (last - first <= FEW_ADDENDS) {
      std::fill(sums, sums + size, 0.0f);
      add(job, first, last, sums);
      return;
    }
    const std::unique_ptr<double[]> wide(new double[static_cast<size_t>(size)]());
    add(job, first, last, wide.get());
    for (int64_t c = 0; c < size; ++c) sums[c] = static_cast<float>(wide[c]);
  });
  return true;
}

// The part [first, last) of the table; false where an index is outside of the table.
template <class T>
[[gnu::noinline]] bool scatter(const Scatter<T> &job, int64_t first, int64_t last) {
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
      T *const to = job.sums + index * job.columns;
      if (job.weights) {
        const T weight = job.weights[i];
        for (int64_t c = 0; c < job.columns; ++c) to[c] += weight * from[c];
      } else {
        for (int64_t c = 0; c < job.columns; ++c) to[c] += from[c];
      }
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
    const bool is_wide = sizeof(T) == 4 && picks.size > FEW_ADDENDS && !(counts.size >> 32);
    if constexpr (sizeof(T) == 4)
      if (is_wide) fits = scatter_wide(job, work + buffer.bytes());
    const int64_t parts = is_wide ? 0 : usable_threads();  // each reads all indices
    parallel_for(parts, work + buffer.bytes(), [&](int64_t part) {
      const int64_t step = (num_rows + parts - 1) / parts;
      const int64_t begin = std::min(part * step, num_rows), end = std::min(begin + step, num_rows);
      if (!scatter(job, begin, end)) __atomic_store_n(&fits, false, __ATOMIC_RELAXED);
    });
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
