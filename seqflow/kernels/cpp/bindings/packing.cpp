// Plans packed rows, and binds packing.h.
#include <cstring>

#include "moves/assigning.h"
#include "moves/packing.h"
#include "moves/plan_packing.h"
#include "shared/processor.h"
#include "bindings/python.h"
#include "shared/threads.h"

namespace seqflow {
namespace {

Plan plan_for(const char *strategy, const Numbers &offsets, int64_t capacity, int64_t max_pieces) {
  if (std::strcmp(strategy, "concat") == 0) return cut_stream(offsets, capacity);
  if (std::strcmp(strategy, "first_fit") == 0) return first_fit(offsets, capacity, max_pieces);
  return best_fit(offsets, capacity, max_pieces);
}

nb::object array_of(const std::vector<int64_t> &numbers) {
  return int64_array(numbers.data(), static_cast<int64_t>(numbers.size()));
}

nb::object plan_packing(nb::handle lengths, Index capacity, const char *strategy, Index max_pieces) {
  const bool known = std::strcmp(strategy, "concat") == 0 || std::strcmp(strategy, "first_fit") == 0 ||
                     std::strcmp(strategy, "best_fit") == 0;
  if (!known || capacity < 1 || capacity > INT64_MAX / 4 || max_pieces < 0) decline();
  if (max_pieces > 0 && std::strcmp(strategy, "concat") == 0) decline();
  const Buffer buffer(lengths);
  const Integers counts = buffer.counts();
  const Numbers offsets = checked_offsets(counts, "lengths");
  check_memory({4, counts.size + offsets[counts.size] / capacity}, INT64);  // no plan has more pieces
  Plan plan;
  {
    const Unlocked unlocked(buffer.bytes());
    plan = plan_for(strategy, offsets, capacity, max_pieces);
  }
  return nb::module_::import_("seqflow.kernels.packing")
      .attr("PackingPlan")(array_of(plan.sources), array_of(plan.starts), array_of(plan.piece_lengths),
                           array_of(plan.pieces));
}

nb::object fill_packed(nb::object data, nb::handle lengths, nb::tuple plan, Index capacity, nb::handle value,
                       nb::handle out) {
  if (plan.size() != 4 || capacity < 0) decline();
  nb::object given[3] = {nb::none(), nb::none(), nb::none()};
  if (!out.is_none()) {
    if (!PyTuple_Check(out.ptr()) || PyTuple_GET_SIZE(out.ptr()) != 3) decline();
    for (int i = 0; i < 3; ++i) given[i] = nb::borrow(PyTuple_GET_ITEM(out.ptr(), i));
  }
  const Buffer rows(data, ANY), counts(lengths), from(plan[0]), at(plan[1]), sizes(plan[2]), per_row(plan[3]);
  const int64_t num_pieces = sizes.counts().size, num_rows = per_row.counts().size;
  if (from.counts().size != num_pieces || at.counts().size != num_pieces) decline();
  Packing job = {};
  job.data = rows.data();
  job.row_bytes = rows.row_bytes();
  if (job.row_bytes == 0) decline();
  job.capacity = capacity;
  const nb::object dtype = dtype_of(data);
  const Fill fill(value, dtype, rows.is_described());
  job.pattern = fill.pattern();
  const int64_t bytes = product(product(num_rows, capacity), job.row_bytes);
  nb::object packed = output(given[0], {num_rows, capacity}, rows, 1, dtype);
  nb::object segment_ids = output(given[1], {num_rows, capacity}, counts, 1, dtype_named(INT32), "segment_ids");
  nb::object position_ids = output(given[2], {num_rows, capacity}, counts, 1, dtype_named(INT32), "position_ids");
  Buffer to(packed, ANY, true), ids(segment_ids, NUMERIC, true), positions(position_ids, NUMERIC, true);
  if (to.shares_memory(rows)) return fill_packed(copy_of(data), lengths, plan, capacity, value, out);
  job.packed = to.data();
  job.segment_ids = reinterpret_cast<int32_t *>(ids.data());
  job.position_ids = reinterpret_cast<int32_t *>(positions.data());
  {
    const Unlocked unlocked(bytes);
    const Numbers offsets = checked_offsets(counts.counts(), "lengths");
    check_sum(offsets[offsets.size - 1], rows.extent(0), "lengths", "data");
    const Numbers first = checked_offsets(per_row.counts(), "pieces");
    check_sum(first[num_rows], num_pieces, "pieces", "piece_lengths");
    const Numbers ends = checked_offsets(sizes.counts(), "piece_lengths");
    const Numbers places = checked_places(offsets, from.counts(), at.counts(), ends, first, capacity);
    job.places = places.data();
    job.ends = ends.data();
    job.first = first.data();
    const auto run = SEQFLOW_SELECTED(packing_kernels).fill_packed;
    parallel_ranges(num_rows, bytes, [&](int64_t begin, int64_t end) { run(job, begin, end); });
  }
  return nb::make_tuple(packed, segment_ids, position_ids);
}

nb::object assign_items(nb::handle costs, nb::handle room) {
  const Buffer items(costs), columns(room);
  const Integers of_items = items.counts(), places = columns.counts();
  check_total(of_items, "costs");
  check_sum(check_total(places, "room"), of_items.size, "room", "costs");
  std::vector<int64_t> found;
  {
    const Unlocked unlocked(items.bytes());
    found = assign(of_items, places);
  }
  return array_of(found);
}

}  // namespace

void bind_packing(nb::module_ &module) {
  bind_kernel(module, "plan_packing", plan_packing);
  bind_kernel(module, "fill_packed", fill_packed);
  bind_kernel(module, "assign", assign_items);
}

}  // namespace seqflow
