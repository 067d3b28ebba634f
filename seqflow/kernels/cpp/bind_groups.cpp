// Groups rows by id: counting sort, and sums by id. In NumPy: groups.py.
#include <algorithm>

#include "python.h"

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

template <class T, class I>
void add_all(const T *data, const I *ids, int64_t size, double *sums, int64_t *counts, int64_t num_groups) {
  for (int64_t i = 0; i < size; ++i) {
    const int64_t id = __atomic_load_n(ids + i, __ATOMIC_RELAXED);
    if (static_cast<uint64_t>(id) >= static_cast<uint64_t>(num_groups))
      throw Fault{"outside", "ids", {i, id, 0, num_groups}, 4};
    sums[id] += static_cast<double>(data[i]);
    if (counts) ++counts[id];
  }
}

template <class T>
void add_all(const T *data, Integers ids, double *sums, int64_t *counts, int64_t num_groups) {
  if (ids.wide) return add_all(data, static_cast<const int64_t *>(ids.values), ids.size, sums, counts, num_groups);
  add_all(data, static_cast<const int32_t *>(ids.values), ids.size, sums, counts, num_groups);
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
    std::fill(totals, totals + num_groups, 0.0);
    if (counted) std::fill(counts, counts + num_groups, 0);
    if (type == FLOAT32)
      add_all(reinterpret_cast<const float *>(column.data()), groups, totals, counts, num_groups);
    else
      add_all(reinterpret_cast<const double *>(column.data()), groups, totals, counts, num_groups);
  }
  return nb::make_tuple(sums, sizes);
}

}  // namespace

void bind_groups(nb::module_ &module) {
  bind_kernel(module, "group_rows", group_rows);
  bind_kernel(module, "add_by_id", add_by_id);
}

}  // namespace seqflow
