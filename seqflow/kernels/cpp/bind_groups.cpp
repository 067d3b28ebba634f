#include "python.h"

namespace seqflow {
namespace {

// Sorting by counting. In NumPy: reference.group_rows.
nb::object group_rows(nb::handle ids, int64_t num_groups) {
  const Buffer buffer(ids);
  const Integers groups = buffer.counts();
  nb::object order = empty_array({groups.size}, buffer, 1, dtype_named(INT64));
  nb::object sizes = empty_array({num_groups}, buffer, 1, dtype_named(INT64));
  Buffer order_buffer(order, true), sizes_buffer(sizes, true);
  int64_t *const to = reinterpret_cast<int64_t *>(order_buffer.data());
  int64_t *const count = reinterpret_cast<int64_t *>(sizes_buffer.data());
  const Unlocked unlocked(buffer.bytes());
  Numbers group(groups.size);  // read once, so that what was checked is what is used
  for (int64_t i = 0; i < num_groups; ++i) count[i] = 0;
  for (int64_t i = 0; i < groups.size; ++i) {
    group[i] = groups[i];
    if (static_cast<uint64_t>(group[i]) >= static_cast<uint64_t>(num_groups))
      throw Fault{"outside", "ids", {i, group[i], 0, num_groups}, 4};
    ++count[group[i]];
  }
  Numbers next(num_groups);
  for (int64_t i = 0, before = 0; i < num_groups; ++i) {
    next[i] = before;
    before += count[i];
  }
  for (int64_t i = 0; i < groups.size; ++i) to[next[group[i]]++] = i;
  return nb::make_tuple(order, sizes);
}

}  // namespace

void bind_groups(nb::module_ &module) { module.def("group_rows", group_rows); }

}  // namespace seqflow
