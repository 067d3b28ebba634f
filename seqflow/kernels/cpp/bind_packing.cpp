#include <cstring>

#include "packing.h"
#include "processor.h"
#include "python.h"
#include "threads.h"

namespace seqflow {
namespace {

Plan plan_for(const char *strategy, const Numbers &offsets, int64_t capacity) {
  if (std::strcmp(strategy, "concat") == 0) return cut_stream(offsets, capacity);
  if (std::strcmp(strategy, "first_fit") == 0) return first_fit(offsets, capacity);
  return best_fit(offsets, capacity);
}

nb::object array_of(const std::vector<int64_t> &numbers) {
  return int64_array(numbers.data(), static_cast<int64_t>(numbers.size()));
}

// The four arrays of a PackingPlan; native.py has checked capacity and strategy.
nb::object plan_packing(nb::handle lengths, int64_t capacity, const char *strategy) {
  const Buffer buffer(lengths);
  Plan plan;
  {
    const Unlocked unlocked(buffer.bytes());
    const Numbers offsets = checked_offsets(buffer.counts(), "lengths");
    plan = plan_for(strategy, offsets, capacity);
  }
  return nb::make_tuple(array_of(plan.sources), array_of(plan.starts), array_of(plan.piece_lengths),
                        array_of(plan.pieces));
}

// Into outputs that native.py has made or checked.
void fill_packed(nb::handle data, nb::handle lengths, nb::handle sources, nb::handle starts,
                 nb::handle piece_lengths, nb::handle pieces, int64_t capacity, nb::handle value,
                 nb::handle packed, nb::handle segment_ids, nb::handle position_ids) {
  const Buffer rows(data), counts(lengths), from(sources), at(starts), sizes(piece_lengths), per_row(pieces);
  Buffer to(packed, true), ids(segment_ids, true), positions(position_ids, true);
  rows.check_movable();
  Packing job = {};
  job.data = rows.data();
  job.row_bytes = rows.row_bytes();
  if (job.row_bytes == 0 || capacity < 0 || ids.type() != INT32 || positions.type() != INT32) not_plain();
  job.capacity = capacity;
  job.pattern = pattern_of(value, job.row_bytes);
  job.packed = to.data();
  job.segment_ids = reinterpret_cast<int32_t *>(ids.data());
  job.position_ids = reinterpret_cast<int32_t *>(positions.data());
  const int64_t num_pieces = sizes.counts().size, num_rows = per_row.counts().size;
  const int64_t cells = product(num_rows, capacity), bytes = product(cells, job.row_bytes);
  if (from.counts().size != num_pieces || at.counts().size != num_pieces || to.bytes() != bytes ||
      ids.size() != cells || positions.size() != cells)
    throw nb::value_error("the plan or an output has another size than the result");

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
  parallel_ranges(num_rows, bytes,
                  [&](int64_t begin, int64_t end) { kernels().fill_packed(job, begin, end); });
}

}  // namespace

void bind_packing(nb::module_ &module) {
  module.def("plan_packing", plan_packing);
  module.def("fill_packed", fill_packed, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(),
             nb::arg(), nb::arg().none(), nb::arg(), nb::arg(), nb::arg());
}

}  // namespace seqflow
