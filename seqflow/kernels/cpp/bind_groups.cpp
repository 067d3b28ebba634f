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

}  // namespace

void bind_groups(nb::module_ &module) { bind_kernel(module, "group_rows", group_rows); }

}  // namespace seqflow
